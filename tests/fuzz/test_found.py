"""Faults that fuzzing found, each once."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse

from fuzz.outcomes import one_line
from maxmargin import (
    Accelerated,
    Averaged,
    Away,
    MulticlassSVC,
    Pairwise,
    check_problem,
    datasets,
    displays,
    edge_differences,
    product,
    solve,
)
from maxmargin.problems import Custom, Matching, Multiclass, take
from maxmargin.runtime.wording import quoted, shown

X = np.random.default_rng(0).normal(size=(6, 2))
Y = np.arange(6) % 3
SPARSE = scipy.sparse.csr_array(np.eye(3))


@pytest.mark.parametrize("inner", [Pairwise, Away])
@pytest.mark.parametrize("k", [-480, -300, 300, 480])
def test_the_first_kappa_at_the_ends_of_the_range(inner: Any, k: int) -> None:
    """Squares of lam overflowed, and the steps that are measured were too long or too short."""
    expected, found = (
        solve(
            Multiclass.from_arrays(scale * X, Y),
            Accelerated(inner(0.3 * scale**2)),
            tol=0.0,
            max_passes=6,
            random_state=0,
        )
        for scale in (1.0, 2.0**k)
    )
    assert (found.primal, found.dual) == (expected.primal, expected.dual)
    assert (found.weights * 2.0**k == expected.weights).all()
    assert found.stopped.state.momentum.kappa == expected.stopped.state.momentum.kappa * 4.0**k > 0.0


REFUSED = {
    "a scheme that is none": lambda: Averaged(Pairwise(0.1), 3.5),
    "examples of no problem": lambda: take([1], [0]),  # type: ignore[type-var]
    "a cost of several lines": lambda: Matching.from_links([np.ones((2, 2, 1))], [[0, 1]], missed=SPARSE),
    "a table of several lines": lambda: Multiclass.from_arrays(np.array(3.0), Y),
    "a tag that is no text": lambda: datasets.chunk_f1([[["B-NP"]]], [["O"]]),
    "an estimator that is none": lambda: displays.FeaturesDisplay.from_estimator([SPARSE]),
    "fewer outputs than examples": lambda: check_problem(Multiclass.from_arrays(X, Y), outputs=[]),
    "differences of a long text": lambda: edge_differences("x" * 5000, [[0, 1]]),
    "positions of a long text": lambda: displays.GraphDisplay(
        ["a", "b"], edges=[[0, 1]], positions="x" * 5000
    ),
    "edges to nodes that are not there": lambda: displays.GraphDisplay(["a"], edges=[[0, 1]]),
    "edges that are no numbers of nodes": lambda: displays.GraphDisplay(["a", "b"], edges=[[0.5, 1.0]]),
    "a shape of one side": lambda: displays.GraphDisplay(["a", "b"], shape=(2,)),  # type: ignore[arg-type]
    "a start of a long text": lambda: product.ProductProblem(
        product.Quadratic(np.eye(2), np.zeros(2)), product.Simplex(2), x0="x" * 5000
    ),
    "a number of examples that is none": lambda: check_problem(Multiclass.from_arrays(X, Y), n_examples="a"),
    "a seed of several lines": lambda: datasets.load_digit_words(random_state=SPARSE),
    "a picture of no links": lambda: displays.AlignmentDisplay.from_predictions(None, ["a"], ["b"]),
    "more weights than memory": lambda: Custom(
        lambda x, y: ([y], [1.0]), lambda a, b: 0.0, lambda x, w, y=None: 0, [0], [0], n_features=2**42
    ),
    "weights of a kernel": lambda: MulticlassSVC(kernel="rbf").fit(X, Y).top_features(),
    "weights of a kernel of texts": lambda: (
        MulticlassSVC(kernel=lambda a, b: np.ones((len(a), len(b)))).fit(["a", "b"], [0, 1]).top_features()
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_garbage_raises_one_line_of_value_error_or_type_error(name: str) -> None:
    with pytest.raises((TypeError, ValueError)) as caught:
        REFUSED[name]()
    assert ":" in one_line(caught.value)


def test_a_model_with_a_kernel_still_has_no_coef() -> None:
    """`hasattr` goes by AttributeError, which the error is, too."""
    assert not hasattr(MulticlassSVC(kernel="rbf").fit(X, Y), "coef_")


def test_values_in_messages_are_short() -> None:
    assert shown("x" * 1000) == "'" + "x" * 196 + "..."
    assert "\n" not in quoted(SPARSE)
    assert shown(SPARSE) == "a csr_array of shape (3, 3)"
