"""Find data files on disk, and download the official ones if there are none."""

import gzip
import hashlib
import logging
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, BinaryIO, NamedTuple

from maxmargin.runtime.wording import shortened

if TYPE_CHECKING:
    from http.client import HTTPResponse


_LOGGER = logging.getLogger(__name__)
_TIMEOUT = 30.0
_BLOCK = 1 << 16
# Seconds before the progress bar appears: one that flashes by for a small file is noise.
_BAR_DELAY = 2.0
_GZIP_ERRORS = (EOFError, gzip.BadGzipFile, zlib.error)


class Source(NamedTuple):
    """A data file: the names it may have in a data directory, and where it comes from.

    It is downloaded only if the SHA-256 of the official file is known: no other file is trusted.
    """

    names: tuple[str, ...]
    url: str
    saved_as: str
    sha256: str | None = None


def locate(source: Source, data_home: str | os.PathLike[str] | None, caller: str) -> Path:
    """Return the path of a data file; download it into the cache directory if it is in no other.

    Parameters
    ----------
    source : Source
        The file to find.
    data_home : path-like or None
        The directory to search first, before ``$MAXMARGIN_DATA`` and the cache directory.
    caller : str
        Name of the public function, for the error message.

    Returns
    -------
    Path
        An existing file.

    Raises
    ------
    FileNotFoundError
        If the file is in none of the directories and cannot be fetched.
    """
    path = find(source.names, data_home)
    if path is not None:
        return path
    if source.sha256 is None:
        return require(source.names, data_home, caller, f"take it from {source.url}")
    return _fetch_or_explain(source, source.sha256, search_path(data_home), caller)


def find(names: tuple[str, ...], data_home: str | os.PathLike[str] | None) -> Path | None:
    """Return the first file with one of these names in the data directories, or None."""
    paths = (folder / name for folder in search_path(data_home) for name in names)
    # `Path.is_file` would raise where a name is too long.
    return next((path for path in paths if os.path.isfile(path)), None)


def require(
    names: tuple[str, ...], data_home: str | os.PathLike[str] | None, caller: str, origin: str = ""
) -> Path:
    """Return the file with one of these names, or raise a one-line error that says where to get it."""
    path = find(names, data_home)
    if path is None:
        places = _listed(search_path(data_home))
        advice = f"{origin}, put it there" if origin else "put it there"
        raise FileNotFoundError(
            f"{caller}: no {names[0]!r} or {names[-1]!r} in {places}; {advice}, set MAXMARGIN_DATA or pass "
            "data_home=."
        )
    return path


def cache_dir() -> Path:
    """Return the cache directory of this library, which may not exist yet."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "maxmargin"


def read_gzip(path: Path, caller: str) -> bytes:
    """Return the decompressed content of a gzip file, or raise a one-line OSError."""
    try:
        with gzip.open(path) as stream:
            content = stream.read()
    except _GZIP_ERRORS as error:
        raise damaged(path, error, caller) from None
    if not content:
        raise damaged(path, "it is empty", caller)
    return content


def read_text(path: Path, caller: str) -> str:
    """Return the text of a file, compressed if its name ends in ``.gz``, or raise a one-line OSError."""
    raw = read_gzip(path, caller) if path.suffix == ".gz" else path.read_bytes()
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise damaged(path, error, caller) from None


def damaged(path: Path, reason: object, caller: str) -> OSError:
    """Return the error for a file that exists but has the wrong content."""
    return OSError(
        f"{caller}: {path} is damaged or not the expected file ({_one_line(reason)}); "
        "delete it and load again."
    )


def _listed(folders: list[Path]) -> str:
    """Return the names of folders for a message of one line."""
    return ", ".join(shortened(_one_line(folder)) for folder in folders)


def search_path(data_home: str | os.PathLike[str] | None) -> list[Path]:
    """Return the directories that are searched for data files, in order."""
    named = [data_home, os.environ.get("MAXMARGIN_DATA")]
    return [*(Path(folder).expanduser() for folder in named if folder), cache_dir()]


def _fetch_or_explain(source: Source, sha256: str, folders: list[Path], caller: str) -> Path:
    from http.client import HTTPException

    target = cache_dir() / source.saved_as
    try:
        _fetch(source.url, sha256, target)
    except (OSError, HTTPException) as error:
        names = " or ".join(repr(name) for name in source.names)
        places = _listed(folders)
        reason = _one_line(getattr(error, "reason", error))
        raise FileNotFoundError(
            f"{caller}: no {names} in {places}, and {source.url} could not be fetched ({reason}); "
            "put the file there, set MAXMARGIN_DATA or pass data_home=."
        ) from None
    return target


def _fetch(url: str, sha256: str, target: Path) -> None:
    """Download a file; ``target`` appears only if it is the official one."""
    _LOGGER.info("fetching %s into %s", url, target)
    target.parent.mkdir(parents=True, exist_ok=True)
    with _temporary_file(target) as part:
        with part.open("w+b") as stream:
            _receive(url, stream)
            stream.seek(0)
            found = hashlib.file_digest(stream, "sha256").hexdigest()
        if found != sha256:
            raise OSError(f"not the official file: its SHA-256 is {found}, not {sha256}")
        part.replace(target)


@contextmanager
def _temporary_file(target: Path) -> Iterator[Path]:
    """Yield an empty file beside ``target``, since a rename must not cross disks; remove it on leaving."""
    from tempfile import mkstemp

    handle, name = mkstemp(dir=target.parent, prefix=target.name, suffix=".part")
    os.close(handle)
    path = Path(name)
    try:
        yield path
    finally:
        path.unlink(missing_ok=True)


def _receive(url: str, stream: BinaryIO) -> None:
    from tqdm import tqdm

    with _open(url) as response:
        size = response.headers.get("Content-Length")
        total = int(size) if size and size.isdigit() else None
        # disable=None: no bar where the output is not a terminal
        with tqdm(total=total, unit="B", unit_scale=True, delay=_BAR_DELAY, disable=None) as bar:
            while block := response.read(_BLOCK):
                stream.write(block)
                bar.update(len(block))


def _open(url: str) -> "HTTPResponse":
    """Open an address by https; refuse redirections to anything else."""
    from http.client import HTTPMessage
    from urllib.request import HTTPRedirectHandler, Request, build_opener

    class StayOnHttps(HTTPRedirectHandler):
        def redirect_request(
            self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
        ) -> Request | None:
            _check_https(newurl)
            return super().redirect_request(req, fp, code, msg, headers, newurl)

    _check_https(url)
    return build_opener(StayOnHttps).open(url, timeout=_TIMEOUT)


def _check_https(url: str) -> None:
    if not url.lower().startswith("https://"):
        raise OSError(f"{url} is not https")


def _one_line(reason: object) -> str:
    return " ".join(str(reason).split())
