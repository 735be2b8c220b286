"""The order in which wrappers of problems are nested does not matter, and what cannot be nested says so."""

from collections.abc import Callable
from itertools import permutations
from typing import Any

import numpy as np
import pytest

from maxmargin import Accelerated, BlockFrankWolfe, FrankWolfe, Pairwise, Result, solve
from maxmargin.problems import SignConstrained, SlackRescaled, Weighted
from maxmargin.structures.problem import as_problem, sizes, take
from support import naive
from support.bases import interpreted
from support.bitwise_runs import assert_same_bits, bits
from support.catalogue import Case, chain_case, flat, multiclass_case
from support.counting import Counting
from support.naive import Array, Enumerated
from support.own_functions import custom
from support.own_problems import own_problems
from support.plain import Plain
from support.slack import rescaled

LAM = 0.1
METHODS = {
    "bcfw": BlockFrankWolfe(LAM),
    "accelerated": Accelerated(Pairwise(LAM)),
    "fw": FrankWolfe(LAM),
}
# Powers of two: the product of two such weights is not rounded.
WEIGHTS = np.array([0.5, 2.0, 1.0, 4.0, 0.25, 2.0, 1.0])
SIGNED = np.array([0, 2, 3, 7])
Wrapper = Callable[[Any], Any]
WRAPPERS: dict[str, Wrapper] = {
    "weights": lambda problem: Weighted(problem, WEIGHTS[: _n(problem)]),
    "signs": lambda problem: SignConstrained(problem, SIGNED),
    "slacks": SlackRescaled,
}
CASES: dict[str, Case] = {
    "multiclass": multiclass_case(3, n=5),
    "chain": chain_case(4, (1, 2, 2), 2, loss="hamming"),
}
# Of these slacks can be rescaled; of the others they cannot.
RESCALABLE: dict[str, Callable[[], Any]] = {
    "multiclass": lambda: CASES["multiclass"].problem,
    "chain": lambda: CASES["chain"].problem,
    "second-order chain": lambda: chain_case(5, (3, 1, 2), 2, loss="hamming", order=2).problem,
}
OTHERS: dict[str, Callable[[], Any]] = {
    "functions": lambda: custom(CASES["multiclass"]),
    "object": lambda: Plain(CASES["multiclass"].problem),
    "counting object": lambda: Counting(CASES["chain"].problem),
    "named tuple": lambda: own_problems()["compiled"],
}
BASES = RESCALABLE | OTHERS


def _n(problem: Any) -> int:
    return sizes(as_problem(problem)).examples


def nested(base: str, order: tuple[str, ...]) -> Any:
    """Return the problem in these wrappers, the first the innermost; it runs interpreted."""
    problem = interpreted(as_problem(BASES[base]()))
    for name in order:
        problem = WRAPPERS[name](problem)
    return problem


def ran(problem: Any, method: str = "bcfw") -> Result:
    return solve(problem, METHODS[method], tol=0.0, max_passes=9, check_every=3, random_state=0)


def is_legal(order: tuple[str, ...]) -> bool:
    """Whether slacks are rescaled once, and before examples are weighted."""
    slacks = [k for k, name in enumerate(order) if name == "slacks"]
    return not slacks or (len(slacks) == 1 and "weights" not in order[: slacks[0]])


def orders(names: tuple[str, ...]) -> list[tuple[str, ...]]:
    return [order for order in permutations(names) if is_legal(order)]


SETS = [("weights", "signs"), ("weights", "slacks"), ("signs", "slacks"), ("weights", "signs", "slacks")]


@pytest.mark.parametrize("names", SETS, ids=" ".join)
@pytest.mark.parametrize("base", RESCALABLE)
@pytest.mark.parametrize("method", METHODS)
def test_every_order_gives_the_same_bits(method: str, base: str, names: tuple[str, ...]) -> None:
    first, *others = [ran(nested(base, order), method) for order in orders(names)]
    assert len(others) == {"weights signs": 1, "weights slacks": 0, "signs slacks": 1}.get(" ".join(names), 2)
    for other in others:
        assert_same_bits(other, first)
    alone = [ran(nested(base, (name,)), method) for name in names]
    assert all(bits(result.weights) != bits(first.weights) for result in alone)


@pytest.mark.parametrize("base", OTHERS)
@pytest.mark.parametrize("method", METHODS)
def test_every_order_around_a_users_problem_gives_the_same_bits(method: str, base: str) -> None:
    first, second = (ran(nested(base, order), method) for order in orders(("weights", "signs")))
    assert_same_bits(second, first)
    alone = [ran(nested(base, (name,)), method) for name in ("weights", "signs")]
    assert all(bits(result.weights) != bits(first.weights) for result in alone)


@pytest.mark.parametrize("base", BASES)
def test_weights_of_weights_are_multiplied(base: str) -> None:
    problem = nested(base, ())
    n = _n(problem)
    others = WEIGHTS[:n][::-1]
    expected = ran(Weighted(problem, WEIGHTS[:n] * others))
    for pair in ((WEIGHTS[:n], others), (others, WEIGHTS[:n])):
        assert_same_bits(ran(Weighted(Weighted(problem, pair[0]), pair[1])), expected)


@pytest.mark.parametrize("base", BASES)
def test_signs_of_signs_are_those_of_both(base: str) -> None:
    problem = nested(base, ())
    expected = ran(SignConstrained(problem, SIGNED))
    for pair in ((SIGNED[:2], SIGNED[1:]), (SIGNED[2:], SIGNED[:3])):
        assert_same_bits(ran(SignConstrained(SignConstrained(problem, pair[0]), pair[1])), expected)


@pytest.mark.parametrize("names", [("weights",), ("signs",), *SETS[:1]], ids=" ".join)
@pytest.mark.parametrize("base", BASES)
def test_some_examples_of_a_wrapped_problem_are_wrapped(base: str, names: tuple[str, ...]) -> None:
    """`take` within all wrappers, and around each of them."""
    chosen = [2, 0]
    wrappers = {
        "weights": lambda problem: Weighted(problem, WEIGHTS[chosen]),
        "signs": WRAPPERS["signs"],
    }
    expected = take(nested(base, ()), chosen)
    for name in names:
        expected = wrappers[name](expected)
    for k in range(1, len(names) + 1):
        problem = take(nested(base, names[:k]), chosen)
        for name in names[k:]:
            problem = wrappers[name](problem)
        assert_same_bits(ran(problem), ran(expected))


@pytest.mark.parametrize("names", [("slacks",), *SETS[1:]], ids=" ".join)
@pytest.mark.parametrize("base", RESCALABLE)
def test_some_examples_of_a_rescaled_problem_are_rescaled(base: str, names: tuple[str, ...]) -> None:
    chosen = [2, 0]
    order = orders(names)[0]
    problem = take(nested(base, ()), chosen)
    for name in order:
        problem = Weighted(problem, WEIGHTS[chosen]) if name == "weights" else WRAPPERS[name](problem)
    assert_same_bits(ran(take(nested(base, order), chosen)), ran(problem))


def written_out(data: Enumerated, weights: Array) -> Enumerated:
    """Return the same outputs with slacks rescaled, then losses and psi times the weights."""
    data = rescaled(data)
    losses = [c * losses for c, losses in zip(weights, data.losses, strict=True)]
    return data._replace(losses=losses, psi=[c * psi for c, psi in zip(weights, data.psi, strict=True)])


@pytest.mark.parametrize("base", CASES)
def test_all_wrappers_together_bracket_the_optimum(base: str) -> None:
    case, problem = CASES[base], nested(base, ("slacks", "signs", "weights"))
    data = written_out(case.data, WEIGHTS[: len(case.X)])
    best = naive.primal(data, naive.signed_optimum(data, LAM, SIGNED), LAM)
    result = solve(problem, METHODS["accelerated"], tol=1e-3, max_passes=300, random_state=0)
    w = flat(problem, result.w)
    assert result.gap <= 1e-3
    assert result.dual - 1e-7 <= best <= result.primal + 1e-7
    assert result.primal == pytest.approx(naive.primal(data, w, LAM))
    assert (w[SIGNED] >= 0.0).all()


ILLEGAL: dict[str, tuple[Callable[[], Any], str]] = {
    "slacks after weights": (
        lambda: SlackRescaled(nested("chain", ("weights",))),
        "SlackRescaled: slacks must be rescaled before examples are weighted; write "
        "Weighted(SlackRescaled(problem), weights).",
    ),
    "slacks after weights and signs": (
        lambda: SlackRescaled(nested("chain", ("weights", "signs"))),
        "SlackRescaled: slacks must be rescaled before examples are weighted; write "
        "Weighted(SlackRescaled(problem), weights).",
    ),
    "slacks twice": (
        lambda: SlackRescaled(nested("chain", ("slacks",))),
        "SlackRescaled: problem must not have its slacks rescaled already; rescale them once.",
    ),
    "slacks twice, with signs": (
        lambda: SlackRescaled(nested("multiclass", ("slacks", "signs"))),
        "SlackRescaled: problem must not have its slacks rescaled already; rescale them once.",
    ),
}
for _base, _name in (
    ("functions", "a CustomOracle"),
    ("object", "a Plain"),
    ("counting object", "a Counting"),
    ("named tuple", "an OwnTuple"),
):
    ILLEGAL[f"slacks of a user's {_base}"] = (
        lambda base=_base: SlackRescaled(nested(base, ())),
        "SlackRescaled: problem must be a Multiclass, or a Chain, SecondOrderChain, Segments or Graph with a "
        f"Hamming loss, got {_name}.",
    )


@pytest.mark.parametrize("name", ILLEGAL)
def test_what_cannot_be_nested_says_so(name: str) -> None:
    make, message = ILLEGAL[name]
    with pytest.raises(TypeError) as caught:
        make()
    assert str(caught.value) == message


@pytest.mark.parametrize("wrapper", WRAPPERS)
@pytest.mark.parametrize("subject", [[1, 2], None, "chain", np.zeros(3)], ids=str)
def test_what_is_no_problem_is_not_wrapped(wrapper: str, subject: Any) -> None:
    made = {
        "weights": lambda: Weighted(subject, [1.0, 1.0]),
        "signs": lambda: SignConstrained(subject, [0]),
        "slacks": lambda: SlackRescaled(subject),
    }
    with pytest.raises(
        TypeError, match=r"^(Weighted|SignConstrained|SlackRescaled): problem must "
    ) as caught:
        made[wrapper]()
    assert "\n" not in str(caught.value)
