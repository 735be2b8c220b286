"""What all tests share: the modules in ``support``, hypothesis' profile, and where the real data are."""

import os
import sys
from pathlib import Path

import pytest
from hypothesis import settings

_TESTS = Path(__file__).parent
# Appended, so that no folder of tests can hide an installed package.
if str(_TESTS) not in sys.path:
    sys.path.append(str(_TESTS))

# The first example of a kind may wait for the compiler; the same examples every time.
settings.register_profile("maxmargin", deadline=None, derandomize=True)
settings.load_profile("maxmargin")

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
