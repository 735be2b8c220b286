"""Some examples of a problem: they are the same, nothing is copied, and nothing is compiled."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numba
import numpy as np
import pytest

from maxmargin import Accelerated, BlockFrankWolfe, Pairwise, Result, solve
from maxmargin.compiling.generics import has_implementation
from maxmargin.methods.scratch import corner_of_answer, find_corner, new_scratch
from maxmargin.methods.sweep import sweep
from maxmargin.problems import (
    Chain,
    Custom,
    Dependency,
    Graph,
    Matching,
    Multiclass,
    SecondOrderChain,
    Segments,
    SignConstrained,
    SlackRescaled,
    Weighted,
)
from maxmargin.solving.decoding import decode_all
from maxmargin.structures.feature_map import gram, inner, map_sizes, norm2, push, statistics_size
from maxmargin.structures.oracle import (
    decode,
    expectation,
    is_bounded,
    is_exact,
    output_size,
    shortfall,
    write_output,
)
from maxmargin.structures.problem import Taken, as_problem, sizes, take
from maxmargin.structures.segments.encode import EncodedSegments
from support.bitwise_runs import assert_same_bits, bits
from support.counting import Counting
from support.maps import as_move
from support.naive import Array
from support.own_problems import OwnObject, OwnTuple
from support.plain import Plain

LAM = 0.1
LENGTHS = (3, 2, 4, 2, 3)
CHOSEN = (3, 0, 4, 0)
RNG = np.random.default_rng(5)
FEATURES = [RNG.normal(size=(length, 3)) for length in LENGTHS]
# Each example has both labels, so that every subset has.
LABELS = [np.append([0, 1], RNG.integers(2, size=length - 2)) for length in LENGTHS]
LINKS = [RNG.normal(size=(2, length, 3)) for length in LENGTHS]
ARCS = [RNG.normal(size=(length, length + 1, 3)) for length in LENGTHS]
HEADS = [[0, *range(1, length)] for length in LENGTHS]
EDGES = [[(t, t + 1) for t in range(length - 1)] for length in LENGTHS]
COST = np.array([[0.0, 1.3], [0.8, 0.0]])
WEIGHTS = np.array([0.5, 2.0, 1.5, 0.7, 1.1])
SIGNED = [0, 2, 3]

Build = Callable[[Sequence[int]], Any]


def offsets(chosen: Sequence[int]) -> Array:
    return np.cumsum([0, *(LENGTHS[i] for i in chosen)])


def joined(parts: list[Array], chosen: Sequence[int]) -> Array:
    return np.concatenate([parts[i] for i in chosen])


def chain(chosen: Sequence[int], loss: Any = COST, made: Any = Chain) -> Any:
    return made.from_encoded(joined(FEATURES, chosen), offsets(chosen), joined(LABELS, chosen), 2, loss=loss)


def multiclass(chosen: Sequence[int]) -> Any:
    X, y = np.array([x[0] for x in FEATURES]), np.arange(5) % 3
    cost = np.array([[0.0, 1.3, 0.4], [0.8, 0.0, 1.1], [0.6, 0.9, 0.0]])
    return Multiclass.from_encoded(X[list(chosen)], y[list(chosen)], 3, loss=cost)


def segments(chosen: Sequence[int]) -> Any:
    codes = [2 * y + 1 for y in LABELS]
    found = EncodedSegments(joined(codes, chosen), np.arange(2), 2)
    return Segments.from_encoded(joined(FEATURES, chosen), offsets(chosen), found, np.array([2, 3]))


def graph(chosen: Sequence[int], inference: str = "tree") -> Any:
    graphs = [(FEATURES[i], EDGES[i], FEATURES[i][1:, :2]) for i in chosen]
    return Graph.from_graphs(graphs, [LABELS[i] for i in chosen], inference=inference)


def matching(chosen: Sequence[int]) -> Any:
    links = [[(0, i % 2), (1, (i + 1) % 2)] for i in chosen]
    return Matching.from_links([LINKS[i] for i in chosen], links, fertility=2)


def trees(chosen: Sequence[int]) -> Any:
    return Dependency.from_arcs([ARCS[i] for i in chosen], [HEADS[i] for i in chosen])


def functions(chosen: Sequence[int]) -> Any:
    """Two outputs, of which each multiplies the features of the example in its own place."""

    def features(x: Array, y: int) -> Array:
        return np.kron(np.eye(2)[y], x)

    def argmax(x: Array, w: Array, truth: int | None = None) -> int:
        cost = np.zeros(2) if truth is None else COST[truth]
        return int(np.argmax([w @ features(x, y) + cost[y] for y in range(2)]))

    X, truths = [FEATURES[i][0] for i in chosen], [i % 2 for i in chosen]
    return Custom(features, lambda truth, y: float(COST[truth, y]), argmax, X, truths)


def own(chosen: Sequence[int], made: Any) -> Any:
    X, y = np.array([x[0] for x in FEATURES])[list(chosen)], (np.arange(5) % 3)[list(chosen)]
    return made(X, y) if made is OwnObject else made(X, y, (X**2).sum(axis=1))


MODELS: dict[str, Build] = {
    "multiclass": multiclass,
    "chain": chain,
    "second-order chain": lambda chosen: chain(chosen, made=SecondOrderChain),
    "segments": segments,
    "graph": graph,
    "cut": lambda chosen: graph(chosen, "cut"),
    "messages": lambda chosen: graph(chosen, "messages"),
    "matching": matching,
    "trees": trees,
}
WRAPPED: dict[str, Build] = {
    "weighted chain": lambda chosen: Weighted(chain(chosen), WEIGHTS[list(chosen)]),
    "weighted graph": lambda chosen: Weighted(graph(chosen), WEIGHTS[list(chosen)]),
    "rescaled classes": lambda chosen: SlackRescaled(multiclass(chosen)),
    "rescaled chain": lambda chosen: SlackRescaled(chain(chosen, "hamming")),
    "rescaled second-order chain": lambda chosen: SlackRescaled(chain(chosen, "hamming", SecondOrderChain)),
    "rescaled graph": lambda chosen: SlackRescaled(graph(chosen)),
    "chain with signs": lambda chosen: SignConstrained(chain(chosen), SIGNED),
    "all wrappers": lambda chosen: Weighted(
        SignConstrained(SlackRescaled(multiclass(chosen)), SIGNED), WEIGHTS[list(chosen)]
    ),
}
OWN: dict[str, Build] = {
    "functions": functions,
    "object": lambda chosen: Plain(chain(chosen)),
    "counting object": lambda chosen: Counting(multiclass(chosen)),
    "weighted object": lambda chosen: Weighted(Plain(chain(chosen)), WEIGHTS[list(chosen)]),
}
# Their number of examples is that of their arrays.
UNSIZED: dict[str, Build] = {
    "own object": lambda chosen: own(chosen, Sized),
    "own named tuple": lambda chosen: own(chosen, OwnTuple),
}
ALL = MODELS | WRAPPED | OWN | UNSIZED


class Sized(OwnObject):
    """It has as many examples as labels."""

    def __init__(self, X: Array, y: Array, squares: Array) -> None:
        super().__init__(X, y)

    def sizes(self) -> Any:
        return super().sizes()._replace(examples=len(self.y))


def whole(name: str) -> Any:
    return as_problem(ALL[name](range(5)))


def answers(problem: Any, i: int) -> Iterator[Array]:
    """Yield what every function of the problem says of example i, at random weights."""
    phi, oracle = problem
    rng, scratch = np.random.default_rng(0), new_scratch(problem)
    work, end, m = scratch.block, output_size(oracle, i), statistics_size(phi, i)
    delta = np.zeros(len(work.image))
    yield np.array([m, end])
    for _ in range(4):
        w = rng.normal(size=map_sizes(phi).weights)
        yield np.array(find_corner(problem, i, w, scratch))
        yield from (work.theta[:m].copy(), scratch.y[:end].copy())
        where, value = (part[: work.corner.size[0]] for part in work.corner[:2])
        yield from (where.copy(), value.copy())
        yield np.array([shortfall(oracle, i, scratch.oracle)])
        np.add.at(delta, where, rng.normal() * value)
        decode(oracle, i, work.theta, scratch.y, scratch.oracle)
        yield scratch.y[:end].copy()
        yield np.array(corner_of_answer(problem, i, scratch))
        if has_implementation(oracle, expectation):
            z = np.full(m, np.nan)
            yield np.array(expectation(oracle, i, work.theta, 0.7, z, scratch.oracle))
            yield z
    gram(phi, i, as_move(delta), work.image, work.map)
    yield work.image[:m].copy()
    yield np.array([norm2(phi, i, as_move(delta), work.image, work.map)])
    push(phi, i, as_move(delta), 0.3, w, work.map)
    yield w


@pytest.mark.parametrize("name", ALL)
def test_every_function_of_an_example_is_that_of_the_whole(name: str) -> None:
    problem = whole(name)
    part = take(problem, CHOSEN)
    assert sizes(part) == sizes(problem)._replace(examples=len(CHOSEN))
    assert is_exact(part.oracle) == is_exact(problem.oracle)
    assert is_bounded(part.oracle) == is_bounded(problem.oracle)
    for j, i in enumerate(CHOSEN):
        found = list(answers(part, j))
        for a, b in zip(found, answers(problem, i), strict=True):
            np.testing.assert_array_equal(a, b)
        assert any(a.any() for a in found[1:])


@pytest.mark.parametrize("name", ALL)
def test_weights_are_measured_and_unpacked_alike(name: str) -> None:
    problem = whole(name)
    part, rng = take(problem, CHOSEN), np.random.default_rng(1)
    w, v = rng.normal(size=(2, map_sizes(problem.map).weights))
    assert inner(part.map, w, v) == inner(problem.map, w, v)
    for a, b in zip(part.unpack(w), problem.unpack(w), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", [name for name in ALL if name != "functions"])
def test_an_output_is_written_for_the_example_that_is_meant(name: str) -> None:
    problem = whole(name)
    part, scratch = take(problem, CHOSEN), new_scratch(problem)
    for j, i in enumerate(CHOSEN):
        y = np.zeros((2, len(scratch.y)), dtype=np.int64)
        find_corner(problem, i, np.ones(map_sizes(problem.map).weights), scratch)
        output = scratch.y[: output_size(problem.oracle, i)]
        write_output(part.oracle, j, output, y[0])
        write_output(problem.oracle, i, output, y[1])
        np.testing.assert_array_equal(*y)
        np.testing.assert_array_equal(y[0, : len(output)], output)


def ran(problem: Any, method: Any = None) -> Result:
    method = method or BlockFrankWolfe(LAM)
    return solve(problem, method, tol=0.0, max_passes=6, check_every=3, random_state=0)


@pytest.mark.parametrize("name", ALL)
def test_solving_is_that_of_the_problem_built_from_these_examples(name: str) -> None:
    part, built = take(whole(name), CHOSEN), as_problem(ALL[name](CHOSEN))
    found, expected = ran(part), ran(built)
    assert_same_bits(found, expected)
    assert found.dual > 0.0
    if name not in ("functions", "object", "weighted object"):
        np.testing.assert_array_equal(decode_all(part, found.w), decode_all(built, found.w))


def test_methods_that_look_ahead_or_measure_costs() -> None:
    part, built = take(whole("multiclass"), CHOSEN), multiclass(CHOSEN)
    method = Accelerated(Pairwise(LAM))
    assert_same_bits(ran(part, method), ran(built, method))


@pytest.mark.parametrize("name", ALL)
def test_a_subset_of_a_subset_is_a_subset(name: str) -> None:
    problem = whole(name)
    twice, once = take(take(problem, CHOSEN), [2, 1]), take(problem, [CHOSEN[2], CHOSEN[1]])
    for j in range(2):
        for a, b in zip(answers(twice, j), answers(once, j), strict=True):
            np.testing.assert_array_equal(a, b)


def arrays(value: Any) -> Iterator[Array]:
    """Yield the arrays of which a named tuple is made."""
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, tuple):
        for field in value:
            yield from arrays(field)


@pytest.mark.parametrize("name", MODELS | WRAPPED)
def test_features_and_labels_are_not_copied(name: str) -> None:
    """Every array is shared, except those that have one entry per example."""
    problem = whole(name)
    part, copied = take(problem, CHOSEN), 0
    assert [type(half) for half in part] == [type(half) for half in problem]
    for found, array in zip(arrays(part), arrays(problem), strict=True):
        if not np.shares_memory(found, array):
            np.testing.assert_array_equal(found, array[list(CHOSEN)] if array.size else array)
            copied += found.size
    assert copied <= 2 * 12 * len(CHOSEN)
    shared = sum(np.shares_memory(a, b) for a, b in zip(arrays(part.map), arrays(problem.map), strict=True))
    assert shared >= 1


@pytest.mark.parametrize("name", ["object", "counting object", *UNSIZED])
def test_other_problems_are_wrapped_and_not_copied(name: str) -> None:
    problem = whole(name)
    part = take(problem, CHOSEN)
    assert (type(part.map), type(part.oracle)) == (Taken, Taken)
    assert part.map is part.oracle
    assert part.map.inner is problem.map
    again = take(part, [1])
    assert again.map.inner is problem.map
    assert again.map.indices.tolist() == [CHOSEN[1]]


def test_an_object_may_know_how_to_take() -> None:
    class Taking(Plain):
        def take(self, indices: Array) -> "Taking":
            taken.append(indices.tolist())
            return Taking(take(self.problem, indices))

    taken: list[list[int]] = []
    part = take(as_problem(Taking(chain(range(5)))), CHOSEN)
    assert type(part.map) is Taking
    assert part.map is part.oracle
    assert taken == [list(CHOSEN)]
    assert bits(ran(part).weights) == bits(ran(Plain(chain(CHOSEN))).weights)


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="there are no kernels")
@pytest.mark.slow
def test_no_kernel_is_compiled_for_a_subset() -> None:
    problem = multiclass(range(5))
    ran(problem)
    before = list(sweep.cached.signatures)
    assert before
    part = take(problem, CHOSEN)
    assert sweep.mode(part, BlockFrankWolfe(LAM)) == "cached"
    ran(part)
    assert list(sweep.cached.signatures) == before


@pytest.mark.parametrize(
    ("indices", "message"),
    [
        ([], "indices must be one or more ints, got "),
        ([0.0, 1.0], "indices must be one or more ints, got "),
        ([[0, 1]], "indices must be one or more ints, got "),
        ([True, False], "indices must be one or more ints, got "),
        ("01", "indices must be one or more ints, got "),
        (1, "indices must be one or more ints, got "),
        ([0, 5], "indices must be from 0 to 4, got 5."),
        ([0, -1], "indices must be from 0 to 4, got -1."),
    ],
)
@pytest.mark.parametrize("name", ["chain", "object"])
def test_indices_that_are_refused(name: str, indices: Any, message: str) -> None:
    with pytest.raises(ValueError, match=f"^take: {message}") as caught:
        take(whole(name), indices)
    assert "\n" not in str(caught.value)
