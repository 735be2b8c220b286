"""Files that nobody but this user, or root, can have written: code is loaded from no others.

A directory is trusted if it and all directories above it belong to this user or to root, and nobody else
can write to them; to those above, in a sticky directory such as /tmp, others may add. These are the rules
by which ssh trusts its keys. Where there are no POSIX permissions, as on Windows, all is trusted that can
be opened.
"""

import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

_POSIX = hasattr(os, "geteuid")
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
# A symbolic link is not followed; a pipe is not waited for.
_PLAIN_FILE = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


class Untrusted(PermissionError):
    """Others could have written here."""


def private_directory(path: Path) -> Path:
    """Return the real path of a trusted directory, made for this user alone if need be, or raise OSError."""
    real = Path(os.path.realpath(path))
    missing = [place for place in (real, *real.parents) if not place.is_dir()]
    _check_above(missing[-1] if missing else real)
    for place in reversed(missing):
        place.mkdir(mode=0o700, exist_ok=True)  # another process may make it now
    check_directory(real)
    return real


def check_directory(path: Path) -> None:
    """Raise `Untrusted` if others could have written to this directory, given by its real path."""
    _check(path, os.lstat(path), _OTHERS_WRITE)
    _check_above(path)


def read_trusted(file: Path) -> bytes | None:
    """Return the content of a trusted file in a trusted directory, or None."""
    try:
        check_directory(file.parent)
        with open(file, "rb", opener=lambda path, flags: os.open(path, flags | _PLAIN_FILE)) as stream:
            status = os.fstat(stream.fileno())  # of what is read, not of what was there before
            _check(file, status, _OTHERS_WRITE)
            return stream.read() if stat.S_ISREG(status.st_mode) else None
    except OSError:
        return None


def write_private(file: Path, content: bytes) -> None:
    """Write a file for this user alone in one stroke, if the disk allows: readers see all of it or none."""
    unfinished = None
    try:
        private_directory(file.parent)  # another process may have removed it
        handle, unfinished = tempfile.mkstemp(dir=file.parent, prefix=file.name + ".")
        with open(handle, "wb") as stream:
            stream.write(content)
        os.replace(unfinished, file)
    except OSError:
        if unfinished is not None:
            with suppress(OSError):
                os.unlink(unfinished)


def _check_above(path: Path) -> None:
    for above in path.parents:
        status = os.lstat(above)
        _check(above, status, 0 if status.st_mode & stat.S_ISVTX else _writers_above(status))


def _check(path: Path, status: os.stat_result, writers: int) -> None:
    """Raise `Untrusted` if a file belongs to somebody else, or its mode lets one of ``writers`` write."""
    if not _POSIX:
        return
    if status.st_uid not in (os.geteuid(), 0):
        raise Untrusted(f"{path} belongs to another user")
    if status.st_mode & writers:
        raise Untrusted(f"others can write to {path}")


def _writers_above(status: os.stat_result) -> int:
    """Return whose permission to write is a danger above a directory: not that of the user's private group.

    Where each user has a group of the same name, directories are often made writable to it.
    """
    return stat.S_IWOTH if _is_own_group(status.st_gid) else _OTHERS_WRITE


def _is_own_group(number: int) -> bool:
    if not _POSIX:
        return True
    import grp
    import pwd

    try:
        group, user = grp.getgrgid(number), pwd.getpwuid(os.geteuid())
    except KeyError:
        return False
    return group.gr_name == user.pw_name and set(group.gr_mem) <= {user.pw_name}
