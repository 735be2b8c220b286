"""Ctrl-C while an estimator trains: the best weights so far are kept, and then everything stops."""

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from maxmargin import MulticlassSVC
from maxmargin.estimators import estimator
from maxmargin.solving.display import ProgressLine
from support.estimators import KINDS

CALLS = ("fit", "partial_fit")


@pytest.fixture(params=[name for name in KINDS if name != "structured"])
def kind(request: pytest.FixtureRequest) -> Any:
    return KINDS[request.param]


def interrupt_after(passes: int, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Let Ctrl-C be pressed in this pass and in no later one."""
    seen: list[Any] = []

    def press(self: ProgressLine, progress: Any) -> None:
        seen.append(progress)
        if len(seen) == passes:
            raise KeyboardInterrupt

    monkeypatch.setattr(ProgressLine, "__call__", press)
    monkeypatch.setattr(estimator, "shown_progress", lambda name, verbose: ProgressLine(name))
    return seen


@pytest.mark.parametrize("call", CALLS)
def test_the_model_of_the_passes_made_is_kept(kind: Any, call: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = kind.new(tol=0.0, max_iter=50)
    expected = kind.new(tol=0.0, max_iter=2, check_every=2)
    with pytest.warns(UserWarning, match="limit of passes"):
        getattr(expected, call)(kind.X, kind.y)
    interrupt_after(2, monkeypatch)
    with pytest.raises(KeyboardInterrupt) as caught:
        getattr(model, call)(kind.X, kind.y)
    assert str(caught.value) == (
        f"{type(model).__name__}: interrupted after 2 passes; the estimator is fitted, with a gap of "
        f"{model.gap_:.3g}."
    )
    np.testing.assert_array_equal(model._w, expected._w)
    assert (model.gap_, model.n_iter_, model.certified_) == (expected.gap_, 2, expected.certified_)
    assert not hasattr(model, "_interrupted")


def test_training_goes_on_after_an_interrupt(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    model = kind.new(warm_start=True)
    with monkeypatch.context() as patch:
        interrupt_after(1, patch)
        with pytest.raises(KeyboardInterrupt):
            model.fit(kind.X, kind.y)
    model.fit(kind.X, kind.y)
    whole = kind.new().fit(kind.X, kind.y)
    assert model.history_.dual.max() <= whole.history_.primal.min() + 1e-9
    assert whole.history_.dual.max() <= model.history_.primal.min() + 1e-9


def test_a_search_stops(monkeypatch: pytest.MonkeyPatch) -> None:
    X = np.random.default_rng(0).normal(size=(40, 3))
    search = GridSearchCV(MulticlassSVC(random_state=0), {"C": [0.1, 1.0, 10.0]}, cv=2)
    fits = []
    fit = MulticlassSVC.fit
    monkeypatch.setattr(MulticlassSVC, "fit", lambda self, X, y: (fits.append(self), fit(self, X, y))[1])
    interrupt_after(3, monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        search.fit(X, np.arange(40) % 2)
    assert len(fits) < 6
    assert clone(search.estimator).get_params() == search.estimator.get_params()
