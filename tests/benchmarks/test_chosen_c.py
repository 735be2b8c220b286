"""The benchmark of C chosen by cross-validation, on a few made-up sequences."""

import argparse
from pathlib import Path

import numpy as np
import pytest

from maxmargin import ChainSVC

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def test_choices_are_compared_with_the_default_and_the_best_of_a_grid(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(BENCHMARKS)
    import chosen_c
    from _panel import Data, Examples, Task
    from _scores import ACCURACY

    def load(home: str) -> Data:
        rng = np.random.default_rng(0)
        y = list(rng.integers(2, size=(40, 3)))
        X = [labels[:, None] + rng.normal(size=(3, 2)) for labels in y]
        return Data(Examples(X, y, y), Examples(X, y, y))

    monkeypatch.setattr(chosen_c, "PANEL", {"toy": Task(load, ChainSVC, ACCURACY, ())})
    monkeypatch.setattr(chosen_c, "STEPS", np.array([-4.0, 0.0]))
    options = argparse.Namespace(data=".", share=1.0, parameters='{"tol": 0.3}')
    chosen_c.measure("toy", options)
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in capsys.readouterr().out.splitlines()]
    assert [row[:2] for row in rows] == [["toy", "auto"], ["toy", "one standard error"]]
    for _, _, default, score, ahead, best, behind, *_ in rows:
        assert float(ahead.split()[0]) == pytest.approx(float(score) - float(default), abs=0.011)
        assert float(behind.split()[0]) == pytest.approx(float(score) - float(best), abs=0.011)
        assert float(best) >= float(default) - 0.011  # which is a value of the grid
