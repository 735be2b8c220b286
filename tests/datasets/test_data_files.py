"""Where data files are looked for, and what happens when they have to be fetched."""

import gzip
import logging
import os
import urllib.request
from collections.abc import Callable
from http.client import IncompleteRead
from pathlib import Path

import pytest

from maxmargin.datasets._files import Source, locate

SOURCE = Source(("a.npz", "sub/b.gz"), "https://example.org/b.gz", "sub/b.gz")
CONTENT = os.urandom(300_000)
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


def test_tilde_in_data_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(variable, str(tmp_path))
    path = put(tmp_path / "d", "a.npz")
    assert locate(SOURCE, "~/d", "f") == path


def test_fetched_whole(cache: Path, serve: Serve, caplog: pytest.LogCaptureFixture) -> None:
    requests = serve({SOURCE.url: gzip.compress(CONTENT)})
    with caplog.at_level(logging.INFO, logger="maxmargin"):
        path = locate(SOURCE, None, "f")
    assert path == cache / "sub" / "b.gz"
    assert gzip.decompress(path.read_bytes()) == CONTENT
    assert list(path.parent.iterdir()) == [path]
    assert requests == [SOURCE.url]
    assert caplog.messages == [f"fetching {SOURCE.url} into {path}"]


def test_nowhere_and_no_network(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
    [gzip.compress(CONTENT)[:-1], gzip.compress(CONTENT)[:90_000], b"", b"<html>log in</html>"],
    ids=["one byte short", "cut", "empty", "a web page"],
)
def test_damaged_download_leaves_nothing(cache: Path, serve: Serve, body: bytes) -> None:
    serve({SOURCE.url: body})
    assert_not_fetched("gzip")
    assert leftovers(cache) == []


def test_flipped_bit_leaves_nothing(cache: Path, serve: Serve) -> None:
    body = bytearray(gzip.compress(CONTENT))
    body[150_000] ^= 1
    serve({SOURCE.url: bytes(body)})
    assert_not_fetched("gzip")
    assert leftovers(cache) == []


@pytest.mark.parametrize("error", [TimeoutError("timed out\nthere"), IncompleteRead(b"")])
def test_broken_connection_leaves_nothing(
    cache: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def break_off(url: str, timeout: float) -> None:
        raise error

    monkeypatch.setattr(urllib.request, "urlopen", break_off)
    assert_not_fetched(r"timed out there|IncompleteRead")
    assert leftovers(cache) == []


def test_interrupted_download_leaves_nothing(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(url: str, timeout: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(urllib.request, "urlopen", interrupt)
    with pytest.raises(KeyboardInterrupt):
        locate(SOURCE, None, "f")
    assert leftovers(cache) == []


def assert_not_fetched(reason: str) -> None:
    with pytest.raises(FileNotFoundError, match=rf"could not be fetched \(.*({reason})") as caught:
        locate(SOURCE, None, "f")
    assert "\n" not in str(caught.value)


def leftovers(cache: Path) -> list[Path]:
    return [path for path in cache.rglob("*") if path.is_file()]
