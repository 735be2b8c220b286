"""No file that another user could have written is loaded: modes, owners, links, and two real users."""

import hashlib
import os
import pickle
import stat
import tempfile
from multiprocessing import get_context
from pathlib import Path

import pytest

from maxmargin.compiling import kernel_cache, places
from maxmargin.compiling.kernel_cache import PackageCache
from maxmargin.compiling.numba_private import instructions
from maxmargin.compiling.places import (
    Untrusted,
    check_directory,
    private_directory,
    read_trusted,
    write_private,
)

pytestmark = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="needs POSIX permissions")
two_users = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can act as two users"
)
NOBODY = 65534


@pytest.fixture
def place(tmp_path):
    """Return a directory of this user's with a file in it."""
    folder = private_directory(tmp_path / "kernels")
    write_private(folder / "code", b"code")
    return folder


def test_what_is_made_is_for_this_user_alone(tmp_path):
    before = os.umask(0)
    try:
        folder = private_directory(tmp_path / "a" / "b")
        write_private(folder / "code", b"code")
    finally:
        os.umask(before)
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "a", folder, folder / "code")]
    assert modes == [0o700, 0o700, 0o600]
    assert [path.name for path in folder.iterdir()] == ["code"]
    assert read_trusted(folder / "code") == b"code"


@pytest.mark.parametrize("mode", [0o600, 0o400, 0o644, 0o444, 0o640, 0o755])
def test_a_file_that_others_cannot_write_is_read(place, mode):
    (place / "code").chmod(mode)
    assert read_trusted(place / "code") == b"code"


@pytest.mark.parametrize("mode", [0o660, 0o620, 0o606, 0o602, 0o666, 0o777])
def test_a_file_that_others_can_write_is_not_read(place, mode):
    (place / "code").chmod(mode)
    assert read_trusted(place / "code") is None


@pytest.mark.parametrize("mode", [0o770, 0o720, 0o707, 0o702, 0o777, 0o1777])
def test_nothing_is_read_from_a_directory_that_others_can_write(place, mode):
    place.chmod(mode)
    assert read_trusted(place / "code") is None
    with pytest.raises(Untrusted, match="others can write to"):
        private_directory(place)


@pytest.mark.parametrize(("mode", "trusted"), [(0o755, True), (0o1777, True), (0o777, False), (0o757, False)])
def test_others_may_add_to_a_directory_above_only_if_it_is_sticky(place, mode, trusted):
    place.parent.chmod(mode)
    assert (read_trusted(place / "code") is not None) is trusted


@pytest.mark.parametrize("own", [True, False])
def test_above_the_users_own_group_may_write(place, own, monkeypatch):
    monkeypatch.setattr(places, "_is_own_group", lambda number: own)
    place.parent.chmod(0o775)
    assert (read_trusted(place / "code") is not None) is own
    place.chmod(0o770)  # the directory itself is made for the user alone
    assert read_trusted(place / "code") is None


def test_a_link_is_not_read(place):
    (place / "link").symlink_to(place / "code")
    assert read_trusted(place / "link") is None


def test_a_pipe_is_not_waited_for(place):
    os.mkfifo(place / "pipe", 0o600)
    assert read_trusted(place / "pipe") is None


def test_what_belongs_to_another_user_is_read_only_if_that_is_root(place, monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: NOBODY)
    by_root = os.stat(place).st_uid == 0
    assert (read_trusted(place / "code") is not None) is by_root


def test_without_posix_permissions_all_is_read(place, monkeypatch):
    monkeypatch.setattr(places, "_POSIX", False)
    (place / "code").chmod(0o666)
    assert read_trusted(place / "code") == b"code"


class Bomb:
    """An attacker's pickle: it leaves a mark when it is loaded."""

    def __init__(self, mark):
        self.mark = mark

    def __reduce__(self):
        return os.mkdir, (str(self.mark),)


def _plant(user, folder, name, content, mode):
    """As another user, make a directory and put a file there."""
    os.setuid(user)
    os.umask(0)
    Path(folder).mkdir(mode=mode, exist_ok=True)
    (Path(folder) / name).write_bytes(content)


def plant_as(user, folder, name, content, mode=0o755):
    process = get_context("fork").Process(target=_plant, args=(user, folder, name, content, mode))
    process.start()
    process.join()
    assert process.exitcode == 0


class Target:
    """What the cache needs of Numba's target before it reads a file."""

    def refresh(self):
        pass

    def codegen(self):
        return self

    def magic_tuple(self):
        return ("processor",)


@pytest.fixture
def reachable():
    """Return a directory that other users can reach; they cannot reach those of pytest."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.fixture
def attacked(reachable, monkeypatch):
    """Return a cache in a directory open to all, the file it looks for, and the mark that a load leaves."""
    open_to_all = reachable / "open"
    open_to_all.mkdir()
    open_to_all.chmod(0o1777)
    monkeypatch.setattr(kernel_cache.config, "CACHE_DIR", str(open_to_all))
    monkeypatch.setattr(kernel_cache, "fingerprint", lambda: "0")
    monkeypatch.setattr(instructions, "_LOADS_ONLY", False)  # the target below is none of Numba's
    cache = PackageCache(private_directory)
    mark = reachable / "loaded"
    data = pickle.dumps(Bomb(mark))
    key = cache._name, (), Target().magic_tuple()
    kernel_cache._places.cache_clear()
    yield cache, cache._file(key), hashlib.sha256(data).digest() + data, mark, open_to_all
    kernel_cache._places.cache_clear()


def is_loaded(attacked):
    cache, *_, mark, _ = attacked
    try:
        cache.load_overload((), Target())
    except TypeError:  # what was loaded is not code
        assert mark.is_dir()
    return mark.is_dir()


@two_users
def test_what_this_user_wrote_is_loaded(attacked):
    _, name, content, _, _ = attacked
    write_private(kernel_cache.cache_directory() / name, content)
    assert is_loaded(attacked)


@two_users
@pytest.mark.parametrize("mode", [0o700, 0o755, 0o777])
def test_a_directory_of_another_user_is_not_used(attacked, mode):
    _, name, content, _, open_to_all = attacked
    (open_to_all / "maxmargin").mkdir()
    (open_to_all / "maxmargin").chmod(0o1777)
    plant_as(NOBODY, open_to_all / "maxmargin" / "kernels-0", name, content, mode)
    assert not is_loaded(attacked)
    assert kernel_cache.cache_directory() is None


@two_users
def test_a_directory_above_of_another_user_is_not_used(attacked):
    _, name, content, _, open_to_all = attacked
    plant_as(NOBODY, open_to_all / "maxmargin", "other", b"")
    own = open_to_all / "maxmargin" / "kernels-0"
    own.mkdir(mode=0o700)
    (own / name).write_bytes(content)
    assert not is_loaded(attacked)


@two_users
def test_a_file_that_another_user_put_in_our_directory_is_not_loaded(attacked):
    _, name, content, _, _ = attacked
    folder = kernel_cache.cache_directory()
    folder.parent.chmod(0o755)
    folder.chmod(0o777)
    plant_as(NOBODY, folder, name, content)
    assert not is_loaded(attacked)  # others can write to the directory
    folder.chmod(0o700)
    assert not is_loaded(attacked)  # the file belongs to another user


@two_users
def test_our_file_in_a_directory_that_our_group_can_write_is_not_loaded(attacked):
    _, name, content, _, _ = attacked
    folder = kernel_cache.cache_directory()
    write_private(folder / name, content)
    folder.chmod(0o770)
    assert not is_loaded(attacked)


@two_users
def test_a_link_to_a_directory_of_another_user_is_not_followed(attacked):
    _, name, content, _, open_to_all = attacked
    plant_as(NOBODY, open_to_all / "theirs", name, content)
    (open_to_all / "maxmargin").mkdir()
    (open_to_all / "maxmargin" / "kernels-0").symlink_to(open_to_all / "theirs")
    assert not is_loaded(attacked)


def _trusts(user, file, answers):
    os.setuid(user)
    answers.put((read_trusted(file), kernel_cache.cache_directory()))


@two_users
def test_what_root_keeps_for_all_is_read_by_others(attacked):
    _, name, content, _, _ = attacked
    folder = kernel_cache.cache_directory()
    write_private(folder / name, content)
    for path, mode in ((folder.parent, 0o755), (folder, 0o755), (folder / name, 0o644)):
        path.chmod(mode)
    kernel_cache._places.cache_clear()
    context = get_context("fork")
    answers = context.Queue()
    process = context.Process(target=_trusts, args=(NOBODY, folder / name, answers))
    process.start()
    assert answers.get(timeout=30) == (content, None)  # it can be read, but not written
    process.join()


def test_check_directory_names_what_is_wrong(tmp_path):
    tmp_path.chmod(0o777)
    with pytest.raises(Untrusted, match=f"others can write to {tmp_path}"):
        check_directory(tmp_path)
