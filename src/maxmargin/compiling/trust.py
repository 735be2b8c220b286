"""Files that only this user or root can have written; code is loaded only from these.

A directory is trusted if it and all directories above it belong to this user or to root, and nobody else can
write to them. A sticky directory such as /tmp may be above it. ssh applies the same rules to its keys.
Without POSIX permissions, as on Windows, every file that can be opened is trusted.
"""

import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

_POSIX = hasattr(os, "geteuid")
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
# Do not follow a symbolic link, and do not wait for a pipe.
_PLAIN_FILE = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


class Untrusted(PermissionError):
    """Others could have written here."""


def private_directory(path: Path) -> Path:
    """Return the real path of a trusted directory, made for this user alone if missing, or raise OSError."""
    real = Path(os.path.realpath(path))
    missing = [place for place in (real, *real.parents) if not place.is_dir()]
    _check_above(missing[-1] if missing else real)
    for place in reversed(missing):
        place.mkdir(mode=0o700, exist_ok=True)  # another process may be making it
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
            status = os.fstat(stream.fileno())  # of the open file, whatever had its name before
            _check(file, status, _OTHERS_WRITE)
            return stream.read() if stat.S_ISREG(status.st_mode) else None
    except OSError:
        return None


def write_private(file: Path, content: bytes) -> None:
    """Write a file for this user only, if the disk allows; readers see all of it or nothing."""
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
    """Raise `Untrusted` if a file belongs to another user, or its mode has a permission of ``writers``."""
    if not _POSIX:
        return
    if status.st_uid not in (os.geteuid(), 0):
        raise Untrusted(f"{path} belongs to another user")
    if status.st_mode & writers:
        raise Untrusted(f"others can write to {path}")


def _writers_above(status: os.stat_result) -> int:
    """Return the write permissions on a directory that endanger its contents.

    If each user has a private group of the same name, directories are often writable for it: this is safe.
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
