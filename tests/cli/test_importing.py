"""Imports that scikit-learn makes and commands do not need."""

import subprocess
import sys

import pytest

from maxmargin.cli.models import postponed

# Trains interpreted, so that nothing is compiled.
TRAIN = """
import sys
from maxmargin.cli import main
from maxmargin.compiling.interpreting import interpreted

with interpreted():
    assert main(["train", sys.argv[1], "--model", sys.argv[2], "--quiet"]) == 0
"""
NOT_IMPORTED = TRAIN + "assert not {'pandas', 'scipy.stats'} & set(sys.modules), 'imported'\n"
# What scikit-learn imported is whole as soon as it is asked for.
USED_AFTERWARDS = """
from maxmargin.cli.models import import_scikit_learn

import_scikit_learn()
from sklearn.utils import fixes
assert fixes.scipy.stats.mode([1, 2, 2]).mode == 2
import scipy.stats, pandas, pandas.api.types
assert scipy.stats is fixes.scipy.stats
assert fixes.pd.DataFrame is pandas.DataFrame
"""


def run(program: str, *arguments: object) -> None:
    done = subprocess.run(
        [sys.executable, "-c", program, *map(str, arguments)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_training_does_not_import_what_it_does_not_need(tmp_path) -> None:
    data = tmp_path / "data"
    data.write_text("A\tx\nB\ty\n\nB\ty\nA\tx\n\n")
    run(NOT_IMPORTED, data, tmp_path / "model")


def test_what_was_postponed_is_there_when_it_is_used() -> None:
    run(USED_AFTERWARDS)


def test_modules_are_postponed_in_the_block_alone(monkeypatch) -> None:
    for name in ("wave",):
        monkeypatch.delitem(sys.modules, name, raising=False)
    with postponed("wave"):
        import wave as later

        assert type(later).__name__ == "_Postponed"
        assert "wave" in sys.modules
    assert "wave" not in sys.modules
    import wave

    assert type(wave) is type(sys)
    assert later.open is wave.open


def test_a_module_that_is_used_in_the_block_is_imported_there(monkeypatch) -> None:
    monkeypatch.delitem(sys.modules, "wave", raising=False)
    with postponed("wave", "sys"):
        from wave import Error

        assert type(sys.modules["wave"]) is type(sys) is type(sys.modules["sys"])
    assert sys.modules["wave"].Error is Error


def test_a_postponed_module_that_is_not_there_raises_when_it_is_used() -> None:
    with postponed("maxmargin_no_such_module"):
        import maxmargin_no_such_module as later
    with pytest.raises(ImportError):
        later.anything  # noqa: B018
