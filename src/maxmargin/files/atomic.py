"""Atomic writes: a file appears complete and synced to disk, or not at all."""

import os
import secrets
import zlib
from contextlib import suppress
from glob import escape
from pathlib import Path

try:
    import fcntl
except ImportError:  # on Windows
    fcntl = None  # type: ignore[assignment]

# O_BINARY: Windows would otherwise translate line ends.
_NEW_FILE = os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_BINARY", 0)


def write_atomically(path: str | os.PathLike[str], *content: bytes | memoryview) -> None:
    """Write a file of these parts beside ``path``, sync it to disk, and give it the name ``path``.

    Whatever happens, ``path`` is the old file or the new one. An error removes the temporary file. A process
    that is killed leaves it behind, as ``.NAME.*.part``; the next process that writes ``path`` removes it. If
    ``path`` is a link, the file that it points to is replaced.
    """
    target = Path(os.path.realpath(path))
    unfinished = target.with_name(_unfinished_name(target, secrets.token_hex(8)))
    try:
        # The permissions are those of any new file, unlike those that tempfile sets.
        with open(os.open(unfinished, _NEW_FILE, 0o666), "wb") as stream:
            _locked(stream.fileno())
            stream.writelines(content)
            stream.flush()
            os.fsync(stream.fileno())
            if fcntl is not None:
                os.replace(unfinished, target)  # while it is locked
        if fcntl is None:  # Windows renames only closed files
            os.replace(unfinished, target)
    except BaseException:  # including Ctrl-C
        with suppress(OSError):
            unfinished.unlink()
        raise
    _sync_directory(target.parent)
    remove_unfinished(target)


def remove_unfinished(path: str | os.PathLike[str]) -> None:
    """Remove the files beside ``path`` that processes killed in `write_atomically` have left behind.

    Files that a process is writing stay: it has locked them, or, on Windows, has them open.
    """
    target = Path(os.path.realpath(path))
    for unfinished in target.parent.glob(_unfinished_name(Path(escape(target.name)), "*")):
        with suppress(OSError):
            if _is_abandoned(unfinished):
                unfinished.unlink()


def _is_abandoned(unfinished: Path) -> bool:
    """Whether no process is writing this file."""
    handle = os.open(unfinished, os.O_RDONLY)
    try:
        return _locked(handle)
    finally:
        os.close(handle)


def _locked(handle: int) -> bool:
    """Lock an open file until it is closed; return False if another process has locked it.

    On systems without locks, it counts as locked by this process.
    """
    if fcntl is None:
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _unfinished_name(target: Path, mark: str) -> str:
    return f".{target.name}.{mark}.part"


def _sync_directory(directory: Path) -> None:
    """Sync the new name to disk, where directories can be opened: not on Windows."""
    with suppress(OSError):
        handle = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


# Seals: checksums by which every reader of a file sees that it is as it was written.
#
# A seal stands at the same place of every file, as the first of the metadata that safetensors allows. It
# covers all other bytes. No check of the parts of a file can be as complete: a changed weight is a weight,
# too. The module imports nothing, as `maxmargin tag` reads models without NumPy.

_LENGTH_BYTES = 8
KEY = "crc32"
_METADATA = b'{"__metadata__":{'
_BEFORE, _DIGITS, _AFTER = _METADATA + f'"{KEY}":"'.encode(), 8, b'",'
_FIRST = _LENGTH_BYTES + len(_BEFORE)
_UNIT = 8  # headers are as long as a multiple of this, so that arrays are aligned

Bytes = bytes | bytearray | memoryview


def sealed(content: bytes) -> tuple[bytes, memoryview]:
    """Return a safetensors file that has metadata, in two parts, with a seal."""
    first = _LENGTH_BYTES + int.from_bytes(content[:_LENGTH_BYTES], "little")
    header = content[_LENGTH_BYTES:first].rstrip(b" ")
    if not header.startswith(_METADATA):
        raise ValueError("expected a file of safetensors that begins with metadata")
    header = _BEFORE + b"0" * _DIGITS + _AFTER + header.removeprefix(_METADATA)
    header += b" " * (-len(header) % _UNIT)
    head, arrays = len(header).to_bytes(_LENGTH_BYTES, "little") + header, memoryview(content)[first:]
    return head[:_FIRST] + _checksum(head, arrays) + head[_FIRST + _DIGITS :], arrays


def has_seal(content: Bytes) -> bool:
    """Return whether a file, of which at least the beginning is given, has a seal."""
    return content[_LENGTH_BYTES:_FIRST] == _BEFORE


def is_sealed(content: Bytes) -> bool:
    """Return whether a file has a seal, and is as it was written."""
    whole = memoryview(content)
    return has_seal(whole) and whole[_FIRST : _FIRST + _DIGITS] == _checksum(whole)


def _checksum(head: Bytes, *others: Bytes) -> bytes:
    """Return the digits of the seal of a file, in one or more parts; the first has the place of the seal."""
    found = 0
    for part in (head[:_FIRST], head[_FIRST + _DIGITS :], *others):
        found = zlib.crc32(part, found)
    return b"%08x" % found
