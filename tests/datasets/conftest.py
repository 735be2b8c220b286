"""Keep these tests off the network and out of the user's cache."""

from collections.abc import Callable
from email.message import Message
from io import BytesIO
from pathlib import Path
from urllib.error import URLError

import pytest

from maxmargin.datasets import files


class Response(BytesIO):
    """What the opener returns: a readable body with headers."""

    def __init__(self, body: bytes) -> None:
        super().__init__(body)
        self.headers = Message()
        self.headers["Content-Length"] = str(len(body))


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Move the cache directory to a fresh place, name no other, and cut the network."""

    def refuse(url: str) -> Response:
        raise URLError("no route to host")

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("MAXMARGIN_DATA", raising=False)
    monkeypatch.setattr(files, "_open", refuse)
    return tmp_path / "cache" / "maxmargin"


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Callable[[dict[str, bytes]], list[str]]:
    """Answer requests from a dictionary of addresses; return the list that logs them."""

    def start(bodies: dict[str, bytes]) -> list[str]:
        requests: list[str] = []

        def answer(url: str) -> Response:
            requests.append(url)
            return Response(bodies[url])

        monkeypatch.setattr(files, "_open", answer)
        return requests

    return start
