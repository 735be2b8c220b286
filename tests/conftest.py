"""What all tests share: the modules in ``support``, costs, and where the real data are."""

import os
import signal
import sys
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import settings

_TESTS = Path(__file__).parent
# Appended, so that no folder of tests can hide an installed package.
if str(_TESTS) not in sys.path:
    sys.path.append(str(_TESTS))

# The first example of a kind may wait for the compiler; the same examples every time. Every day there are
# fewer of them: the job `newest` has all, by --hypothesis-profile.
settings.register_profile("all", deadline=None, derandomize=True)
settings.register_profile("daily", settings.get_profile("all"), max_examples=25)
settings.load_profile("daily")


def pytest_configure(config: pytest.Config) -> None:
    """Measure the costs of tests if asked to, and hear Ctrl-C even as a job in the background."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    file = config.getoption("--costs")
    if file:
        from support.costs import Costs

        config.pluginmanager.register(Costs(Path(file)))


@pytest.hookimpl(tryfirst=True)  # before the choice by marks
def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark tests that train on real data as slow: interpreted they would take hours."""
    reads = {"real_data", "ocr_home", "reference_home"} & set(getattr(item, "fixturenames", ()))
    if reads and "datasets" not in item.path.parts:
        item.add_marker(pytest.mark.slow)


@pytest.hookimpl(trylast=True)  # after the choice by marks
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what ``--few`` leaves out."""
    most = config.getoption("--few")
    if most is None:
        return
    seen, chosen, left_out = Counter[str](), list[pytest.Item](), list[pytest.Item]()
    for item in items:
        function = item.nodeid.partition("[")[0]
        seen[function] += 1
        wanted = seen[function] <= most or item.get_closest_marker("every_case") is not None
        (chosen if wanted else left_out).append(item)
    items[:] = chosen
    config.hook.pytest_deselected(items=left_out)


# Read before any test hides the variables.
_PLACES = {name: os.environ.get(f"MAXMARGIN_{name.upper()}") for name in ("data", "reference")}


def _place(name: str) -> Path:
    """Return the directory named by the environment, or the one in ``shared`` beside the repository."""
    named = _PLACES[name]
    return Path(named) if named else _TESTS.parents[1] / "shared" / name


@pytest.fixture(scope="session")
def real_data() -> Path:
    """Return the directory of the real data files, or skip."""
    home = _place("data")
    if not home.is_dir():
        pytest.skip("needs the real data files: set MAXMARGIN_DATA")
    return home


@pytest.fixture(scope="session")
def ocr_home() -> Path:
    """Return the directory that holds the OCR letters, or skip."""
    home = _place("data")
    if not any((home / name).is_file() for name in ("ocr.npz", "letter.data.gz")):
        pytest.skip("needs the OCR letters: set MAXMARGIN_DATA")
    return home


@pytest.fixture(scope="session")
def reference_home() -> Path:
    """Return the directory that holds measurements of other systems, or skip."""
    home = _place("reference")
    if not home.is_dir():
        pytest.skip("needs the measurements of other systems: set MAXMARGIN_REFERENCE")
    return home
