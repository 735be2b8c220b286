"""Where data files are looked for, and what happens when they have to be fetched."""

import gzip
import hashlib
import logging
import os
import urllib.request
from collections.abc import Callable
from email.message import Message
from http.client import IncompleteRead
from io import BytesIO
from pathlib import Path
from urllib.request import BaseHandler
from urllib.response import addinfourl

import pytest

from maxmargin.datasets import files
from maxmargin.datasets.files import Source, locate

CONTENT = os.urandom(300_000)
PACKED = gzip.compress(CONTENT)
SOURCE = Source(
    ("a.npz", "sub/b.gz"), "https://example.org/b.gz", "sub/b.gz", hashlib.sha256(PACKED).hexdigest()
)
Serve = Callable[[dict[str, bytes]], list[str]]


def put(folder: Path, name: str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"")
    return path


def test_order_of_the_directories(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MAXMARGIN_DATA", str(tmp_path / "named"))
    for folder in (cache, tmp_path / "named", tmp_path / "home"):
        path = put(folder, "sub/b.gz")
        assert locate(SOURCE, tmp_path / "home", "f") == path


def test_order_of_the_names(tmp_path: Path) -> None:
    for name in ("sub/b.gz", "a.npz"):
        path = put(tmp_path, name)
        assert locate(SOURCE, str(tmp_path), "f") == path


def test_cache_is_in_the_home_directory_by_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    path = put(tmp_path / ".cache" / "maxmargin", "a.npz")
    assert locate(SOURCE, None, "f") == path


def test_tilde_in_data_home_is_the_home_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(variable, str(tmp_path))
    path = put(tmp_path / "d", "a.npz")
    assert locate(SOURCE, "~/d", "f") == path


def test_a_file_is_fetched_whole(cache: Path, serve: Serve, caplog: pytest.LogCaptureFixture) -> None:
    requests = serve({SOURCE.url: PACKED})
    with caplog.at_level(logging.INFO, logger="maxmargin"):
        path = locate(SOURCE, None, "f")
    assert path == cache / "sub" / "b.gz"
    assert gzip.decompress(path.read_bytes()) == CONTENT
    assert list(path.parent.iterdir()) == [path]
    assert requests == [SOURCE.url]
    assert caplog.messages == [f"fetching {SOURCE.url} into {path}"]


def test_without_a_file_or_a_network_there_is_one_error(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named, home = tmp_path / "named", tmp_path / "home"
    monkeypatch.setenv("MAXMARGIN_DATA", str(named))
    with pytest.raises(FileNotFoundError) as caught:
        locate(SOURCE, home, "load_it")
    assert str(caught.value) == (
        f"load_it: no 'a.npz' or 'sub/b.gz' in {home}, {named}, {cache}, "
        "and https://example.org/b.gz could not be fetched (no route to host); "
        "put the file there, set MAXMARGIN_DATA or pass data_home=."
    )
    assert leftovers(cache) == []


@pytest.mark.parametrize(
    "body",
    [PACKED[:-1], PACKED[:90_000], b"", b"<html>log in</html>", gzip.compress(b"other"), PACKED + b"\0"],
    ids=["one byte short", "cut", "empty", "a web page", "another file", "one byte more"],
)
def test_what_is_not_the_official_file_leaves_nothing(cache: Path, serve: Serve, body: bytes) -> None:
    serve({SOURCE.url: body})
    assert_not_fetched("not the official file")
    assert leftovers(cache) == []


def test_flipped_bit_leaves_nothing(cache: Path, serve: Serve) -> None:
    body = bytearray(PACKED)
    body[150_000] ^= 1
    serve({SOURCE.url: bytes(body)})
    assert_not_fetched("not the official file")
    assert leftovers(cache) == []


@pytest.mark.parametrize("error", [TimeoutError("timed out\nthere"), IncompleteRead(b"")])
def test_broken_connection_leaves_nothing(
    cache: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def break_off(url: str) -> None:
        raise error

    monkeypatch.setattr(files, "_open", break_off)
    assert_not_fetched(r"timed out there|IncompleteRead")
    assert leftovers(cache) == []


def test_interrupted_download_leaves_nothing(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(url: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(files, "_open", interrupt)
    with pytest.raises(KeyboardInterrupt):
        locate(SOURCE, None, "f")
    assert leftovers(cache) == []


def test_without_a_known_hash_nothing_is_fetched(serve: Serve) -> None:
    requests = serve({SOURCE.url: PACKED})
    with pytest.raises(FileNotFoundError, match=f"^f: no .*; take it from {SOURCE.url}, put it there"):
        locate(SOURCE._replace(sha256=None), None, "f")
    assert requests == []


def test_a_directory_of_two_lines_is_named_in_one() -> None:
    with pytest.raises(FileNotFoundError, match=r"^f: no .* in two lines, .*data_home=\.$"):
        locate(SOURCE._replace(sha256=None), "two\nlines", "f")


def test_a_directory_whose_name_is_too_long() -> None:
    with pytest.raises(FileNotFoundError, match=r"^f: no .* in a+\.\.\., .*data_home=\.$") as caught:
        locate(SOURCE._replace(sha256=None), "a" * 5000, "f")
    assert len(str(caught.value)) < 700


REAL_OPEN = files._open


class Server(BaseHandler):
    """Answers in place of the network, each address with a body or with a redirection."""

    def __init__(self, answers: dict[str, bytes | str]) -> None:
        self.answers, self.asked = answers, list[str]()

    def https_open(self, request: urllib.request.Request) -> addinfourl:
        self.asked.append(request.full_url)
        answer, headers = self.answers[request.full_url], Message()
        if isinstance(answer, str):
            headers["Location"] = answer
        code, body = (302, b"") if isinstance(answer, str) else (200, answer)
        response = addinfourl(BytesIO(body), headers, request.full_url, code)
        response.msg = ""  # type: ignore[attr-defined]
        return response

    http_open = https_open


@pytest.mark.parametrize(
    ("answers", "reason"),
    [
        ({SOURCE.url: "https://mirror.org/b.gz", "https://mirror.org/b.gz": PACKED}, None),
        ({SOURCE.url: "http://mirror.org/b.gz", "http://mirror.org/b.gz": PACKED}, "is not https"),
        ({SOURCE.url: "file:///etc/passwd"}, "is not allowed"),
        ({SOURCE.url: "https://a.org/", "https://a.org/": "ftp://b.org/"}, "is not https"),
    ],
    ids=["https", "http", "file", "ftp, later"],
)
def test_redirects_stay_on_https(
    cache: Path, monkeypatch: pytest.MonkeyPatch, answers: dict[str, bytes | str], reason: str | None
) -> None:
    server = Server(answers)
    monkeypatch.setattr(files, "_open", REAL_OPEN)
    build = urllib.request.build_opener
    for name in ("HTTPHandler", "HTTPSHandler"):
        monkeypatch.setattr(urllib.request, name, BaseHandler)
    monkeypatch.setattr(urllib.request, "build_opener", lambda *handlers: build(server, *handlers))
    if reason is None:
        assert locate(SOURCE, None, "f").read_bytes() == PACKED
    else:
        assert_not_fetched(reason)
        assert leftovers(cache) == []
    assert all(url.startswith("https://") for url in server.asked)


def test_an_address_that_is_not_https_is_not_opened() -> None:
    with pytest.raises(OSError, match=r"^http://example\.org is not https$"):
        REAL_OPEN("http://example.org")


def assert_not_fetched(reason: str) -> None:
    with pytest.raises(FileNotFoundError, match=rf"could not be fetched \(.*({reason})") as caught:
        locate(SOURCE, None, "f")
    assert "\n" not in str(caught.value)


def leftovers(cache: Path) -> list[Path]:
    return [path for path in cache.rglob("*") if path.is_file()]
