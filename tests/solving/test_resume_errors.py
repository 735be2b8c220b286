"""What cannot be gone on from, and what is said of it: one line each."""

from typing import Any

import numpy as np
import pytest

from maxmargin import BlockFrankWolfe, Status, WarmStart, solve
from maxmargin.problems import Multiclass
from maxmargin.runtime.wording import shown
from support.catalogue import Case
from support.growing import KINDS, LENGTHS, Growing, growing
from support.warm_starts import ALL_METHODS, LAM, Counted, some_passes


def message_of(case: Case, method: Any, start: Any) -> str:
    """Return the one line with which a start is refused."""
    with pytest.raises(ValueError, match=r"^solve: ") as caught:
        solve(case.problem, method, start=start)
    message = str(caught.value)
    assert "\n" not in message
    return message


@pytest.mark.parametrize(
    ("start", "got"),
    [
        ("result", "'result'"),
        (np.zeros(3), "ndarray"),
        (0.1, "float"),
        (WarmStart("result"), "a WarmStart of str"),
        (WarmStart(WarmStart(None)), "a WarmStart of WarmStart"),
        ((1, 2), "tuple"),
    ],
)
def test_what_is_no_start_is_refused(start: Any, got: str) -> None:
    kinds = "a Result of solve, a WarmStart of one or the file of a checkpoint"
    expected = f"solve: start must be {kinds}, got {got}."
    assert message_of(growing("multiclass", 0).first(4), BlockFrankWolfe(LAM), start) == expected


@pytest.mark.parametrize("keep", ["bets", "", None, ["best"], 1])
def test_an_unknown_keep_is_refused(keep: Any) -> None:
    case, method = growing("multiclass", 0).first(4), BlockFrankWolfe(LAM)
    message = message_of(case, method, WarmStart(some_passes(case, method), keep))
    assert message == (
        f"solve: keep of a WarmStart must be one of 'best', 'weights', 'dual', got {shown(keep)}."
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("pairwise", "away"),
        ("bcfw", "pairwise"),
        ("bcfw", "bcfw-wavg"),
        ("accelerated pairwise", "pairwise"),
        ("accelerated pairwise", "accelerated bcfw"),
        ("fw", "bcfw"),
        ("fw-wavg", "bcfw-wavg"),
    ],
)
def test_other_kinds_of_method_are_refused(before: str, after: str) -> None:
    case = growing("multiclass", 0).first(4)
    message = message_of(case, ALL_METHODS[after], some_passes(case, ALL_METHODS[before]))
    assert message.startswith("solve: start must come from the same kind of method, ")
    assert message.endswith(f"got {kind_of(ALL_METHODS[before])}.")


def kind_of(method: Any) -> str:
    return str(method).split("(lam")[0].replace("inner=", "") + ")" * hasattr(method, "inner")


def with_other_features(examples: Growing) -> Growing:
    return examples._replace(X=[x + 1.0 for x in examples.X])


def with_other_labels(examples: Growing) -> Growing:
    return examples._replace(y=[(y + 1) % 3 for y in examples.y])


def with_one_other_label(examples: Growing) -> Growing:
    return examples._replace(y=[(examples.y[0] + 1) % 3, *examples.y[1:]])


def with_other_costs(examples: Growing) -> Growing:
    return examples._replace(cost=0.9 * examples.cost)


def with_other_cost_of_one_pair(examples: Growing) -> Growing:
    cost = examples.cost.copy()
    cost[0] *= [1.0, 0.2, 1.0]
    return examples._replace(cost=cost)


def in_another_order(examples: Growing) -> Growing:
    return examples._replace(X=examples.X[::-1], y=examples.y[::-1])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "other",
    [
        with_other_features,
        with_other_labels,
        with_one_other_label,
        with_other_costs,
        with_other_cost_of_one_pair,
        in_another_order,
    ],
)
@pytest.mark.parametrize("name", ALL_METHODS)
def test_other_problems_of_the_same_shape_are_refused(name: str, other: Any, kind: str) -> None:
    examples, method = growing(kind, 29, (2,) * 8), ALL_METHODS[name]
    message = message_of(other(examples).first(8), method, some_passes(examples.first(8), method))
    assert message == (
        "solve: start must come from this problem, or from a problem of its first examples, got a result "
        "for 8 other examples; leave start out."
    )


@pytest.mark.parametrize("name", ALL_METHODS)
def test_other_shapes_are_refused(name: str) -> None:
    examples, method = growing("chain", 31), ALL_METHODS[name]
    result = some_passes(examples.first(8), method)
    shorter = growing("chain", 31, (1,) * 8)
    swapped = growing("chain", 31, (1, 2, *LENGTHS[2:]))
    others = [examples.first(7), shorter.first(8), swapped.first(8), growing("multiclass", 31).first(8)]
    for other in others:
        assert "leave start out" in message_of(other, method, result)


@pytest.mark.parametrize("name", ALL_METHODS)
@pytest.mark.parametrize("n_labels", [2, 4])
def test_another_number_of_labels_is_refused(n_labels: int, name: str) -> None:
    # Of the same width, so that the weights are as long.
    examples, method = growing("multiclass", 37), ALL_METHODS[name]
    case, y = examples.first(6), np.concatenate(examples.y[:6])
    problem = Multiclass.from_encoded(np.concatenate(examples.X[:6]), y % n_labels, n_labels)
    result = some_passes(case, method)
    assert problem.map.width == case.problem.map.width
    assert "leave start out" in message_of(Case(problem, case.data, case.X), method, result)


@pytest.mark.parametrize("name", ALL_METHODS)
def test_a_run_cut_off_within_a_step_cannot_go_on(name: str) -> None:
    class CutOff(Counted):
        def push(self, *args: Any) -> None:
            super().push(*args)  # type: ignore[misc]
            if self.calls > 40:  # after those for the first kappa
                raise KeyboardInterrupt

    case, method = growing("multiclass", 41).first(5), ALL_METHODS[name]
    result = solve(CutOff(case.problem), method, tol=0.0, check_every=1, random_state=0)
    assert result.status is Status.INTERRUPTED
    with pytest.raises(ValueError, match=r"^solve: start must come from a run that ended after a step"):
        solve(case.problem, method, start=result)
