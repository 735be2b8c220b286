"""Fits that continue from their files, against fits that never stopped."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from maxmargin import Checkpoint, MulticlassSVC
from maxmargin.files.sealed import FileError
from support.bitwise_runs import bits
from support.checkpoints import short_pieces
from support.estimators import KINDS

WITH_CHECKPOINTS = sorted(set(KINDS) - {"structured"})
COLUMNS = ("passes", "oracle_calls", "primal", "dual", "gap")


class Crash(Exception):
    """Stands for the end of the process."""


def stop_after(passes: int, error: type[Exception] | None = None) -> Any:
    """Return a callback that ends training after some passes, or raises an error then."""

    def look(progress: Any) -> bool:
        if error is not None and progress.passes >= passes:
            raise error
        return bool(progress.passes < passes)

    return look


def fitted(name: str, passes: int = 6, error: type[Exception] | None = None, **parameters: Any) -> Any:
    """Return an estimator that was trained for some passes."""
    kind = KINDS[name]
    settings = {"tol": 0.0, "check_every": 2, "callbacks": [stop_after(passes, error)]}
    with short_pieces():
        return kind.new(**settings | parameters).fit(kind.X, kind.y)


def assert_same_model(found: Any, expected: Any, X: Any) -> None:
    assert bits(found._w) == bits(expected._w)
    for column in COLUMNS:
        assert bits(found.history_[column]) == bits(expected.history_[column])
    assert (found.gap_, found.n_iter_) == (expected.gap_, expected.n_iter_)
    for a, b in zip(found.predict(X), expected.predict(X), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", WITH_CHECKPOINTS)
def test_a_fit_continues_bit_for_bit(name: str, tmp_path: Path) -> None:
    kept = Checkpoint(tmp_path / "fit", every=0)
    with pytest.raises(Crash):
        fitted(name, 4, Crash, checkpoint=kept)
    assert (tmp_path / "fit").exists()
    found = fitted(name, checkpoint=kept)
    assert_same_model(found, fitted(name), KINDS[name].X)


def test_a_fit_that_ended_has_its_result_at_once(tmp_path: Path) -> None:
    kind = KINDS["multiclass"]
    expected = kind.new(checkpoint=tmp_path / "fit").fit(kind.X, kind.y)
    again = clone(expected).set_params(checkpoint=str(tmp_path / "fit"), callbacks=[pytest.fail])
    assert_same_model(again.fit(kind.X, kind.y), expected, kind.X)
    assert [path.name for path in tmp_path.iterdir()] == ["fit"]
    better = again.set_params(tol=1e-4, callbacks=None).fit(kind.X, kind.y)
    assert_same_model(better, kind.new(tol=1e-4).fit(kind.X, kind.y), kind.X)


@pytest.mark.parametrize(
    ("parameters", "difference"),
    [
        ({"class_weight": "balanced"}, "of other data"),
        ({"loss": 2.0 - 2.0 * np.eye(3)}, "of other data"),
        ({"C": 2.0}, "of another method, or with other parameters, such as C"),
        ({"method": "bcfw"}, "of another method, or with other parameters, such as C"),
        ({"sampling": "uniform"}, "with sampling='permutation', not 'uniform'"),
        ({"check_every": 3}, "with check_every=5, not 3"),
        ({"random_state": 1}, "with random_state=0, not 1"),
    ],
)
def test_files_of_other_fits_are_refused(parameters: dict[str, Any], difference: str, tmp_path: Path) -> None:
    kind, file = KINDS["multiclass"], tmp_path / "fit"
    model = kind.new(checkpoint=file).fit(kind.X, np.array([0, 1, 1, 0, 1, 2]))
    before = file.read_bytes()
    with pytest.raises(FileError) as caught:
        model.set_params(**parameters).fit(kind.X, np.array([0, 1, 1, 0, 1, 2]))
    expected = (
        f"{file}: expected a checkpoint of this run, got one {difference}; remove it or give another path"
    )
    assert str(caught.value) == expected
    assert file.read_bytes() == before


def test_a_warm_start_begins_a_checkpoint_and_a_file_goes_before_it(tmp_path: Path) -> None:
    kind = KINDS["multiclass"]
    model = kind.new(warm_start=True, tol=0.1).fit(kind.X, kind.y)
    model.set_params(checkpoint=tmp_path / "fit", tol=0.01).fit(kind.X, kind.y)
    expected = clone(model).set_params(callbacks=[pytest.fail]).fit(kind.X, kind.y)
    assert_same_model(model, expected, kind.X)


def test_probabilities_have_their_own_runs(tmp_path: Path) -> None:
    kind = KINDS["multiclass"]
    expected = kind.new(probability=True).fit(kind.X, kind.y)
    for _ in range(2):
        found = kind.new(probability=True, checkpoint=tmp_path / "fit").fit(kind.X, kind.y)
        assert found.temperature_ == expected.temperature_


def test_partial_fit_has_no_checkpoint(tmp_path: Path) -> None:
    kind = KINDS["multiclass"]
    message = "MulticlassSVC: checkpoint must be None for partial_fit, as each call has other examples"
    with pytest.raises(ValueError, match=message):
        kind.new(checkpoint=tmp_path / "fit").partial_fit(kind.X, kind.y)


@pytest.mark.parametrize("wrong", [3, 1.5, ["fit"], True])
def test_wrong_parameters_are_refused(wrong: Any) -> None:
    kind = KINDS["multiclass"]
    with pytest.raises(ValueError, match="'checkpoint' parameter of MulticlassSVC must be"):
        MulticlassSVC(checkpoint=wrong).fit(kind.X, kind.y)
