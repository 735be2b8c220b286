"""What a result says of itself."""

import builtins

import numpy as np
import pytest

from maxmargin import BlockFrankWolfe, Result, solve
from maxmargin.problems import Multiclass

X = np.random.default_rng(0).normal(size=(20, 3))


@pytest.fixture(scope="module")
def result() -> Result:
    problem = Multiclass.from_arrays(X, np.arange(20) % 2)
    return solve(problem, BlockFrankWolfe(0.1), max_passes=3, tol=0.0, check_every=1, random_state=0)


def test_a_result_prints_a_short_table(result: Result) -> None:
    lines = repr(result).splitlines()
    assert lines[0] == "Result"
    assert [line[2:13].strip() for line in lines[1:]] == [
        *("status", "objective", "lower bound", "gap", "passes", "weights"),
    ]
    assert "max_passes: the limit of passes" in lines[1]
    assert f"{result.primal:.6g}" in lines[2]
    assert f"{result.dual:.6g}" in lines[3]
    assert f"{result.gap:.3g}, {result.gap / result.primal:.2%} of the objective (guaranteed)" in lines[4]
    assert lines[5].split()[1] == "3,"
    assert lines[5].endswith("and 3 certificates")
    assert lines[6].endswith("6, of which 6 are not zero")
    assert str(result) == repr(result)


def test_a_gap_is_no_share_of_an_objective_of_zero(result: Result) -> None:
    nothing = result._replace(primal=0.0, dual=0.0, gap=0.0)
    assert repr(nothing).splitlines()[4].split(maxsplit=1)[1] == "0 (guaranteed)"


def test_a_result_in_a_notebook_has_a_table_and_a_plot(result: Result) -> None:
    pytest.importorskip("matplotlib")
    text = result._repr_html_()
    assert text.startswith("<div><table><tr><th>status</th>")
    assert f"<td>{result.primal:.6g}</td>" in text
    assert text.count("<svg") == 1
    assert text.endswith("</div>")


def test_a_result_in_a_notebook_without_matplotlib_has_a_table(
    result: Result, monkeypatch: pytest.MonkeyPatch
) -> None:
    imported = builtins.__import__

    def without(name: str, *args: object, **kwargs: object) -> object:
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return imported(name, *args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(builtins, "__import__", without)
    assert "<svg" not in result._repr_html_()
    assert "<th>gap</th>" in result._repr_html_()
