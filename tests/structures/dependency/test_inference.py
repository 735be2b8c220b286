"""Dependency trees against all of them, networkx, and an integer program."""

import networkx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import Bounds, LinearConstraint, milp

from maxmargin.structures.dependency.inference import AnyTrees, ProjectiveTrees, Trees, best_tree, tree_work
from support.naive import Array, all_trees

KINDS = [AnyTrees(False), AnyTrees(True), ProjectiveTrees(False), ProjectiveTrees(True)]


def run(trees: Trees, scores: Array) -> list[int]:
    """Return the heads; the work arrays are longer than need be and full of nonsense."""
    m = len(scores)
    work = tree_work(trees, m + 3)
    for array in work:
        array[:] = -5
    y = np.full(m + 2, -7)
    best_tree(trees, scores, work, y)
    assert (y[m:] == -7).all()
    return y[:m].tolist()


def value(scores: Array, y: list[int]) -> float:
    return sum(scores[j, h] for j, h in enumerate(y))


def random_scores(seed: int, m: int, whole: bool) -> Array:
    """Return random scores, nonsense where a word would be its own head; whole numbers make ties."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(m, m + 1))
    scores = np.round(2 * scores) if whole else scores
    scores[np.arange(m), np.arange(m) + 1] = 1e9
    return scores


seeds = st.integers(0, 2**32 - 1)


@given(seeds, st.integers(1, 5), st.booleans(), st.sampled_from(KINDS))
def test_the_tree_found_is_the_best_of_all(seed: int, m: int, whole: bool, kind: Trees) -> None:
    scores = random_scores(seed, m, whole)
    allowed = all_trees(m, single_root=kind.single_root, projective=isinstance(kind, ProjectiveTrees))
    found = run(kind, scores)
    assert tuple(found) in allowed
    assert value(scores, found) == pytest.approx(max(value(scores, list(y)) for y in allowed), abs=1e-12)


def test_the_number_of_trees_is_cayleys() -> None:
    """Cayley's formula, and as many with one root as roots times trees on the others."""
    for m in range(1, 6):
        assert len(all_trees(m)) == (m + 1) ** (m - 1)
        assert len(all_trees(m, single_root=True)) == m * m ** max(m - 2, 0)
    assert len(all_trees(4, projective=True)) < len(all_trees(4))


@given(seeds, st.integers(1, 25), st.booleans())
def test_the_best_tree_is_that_of_networkx(seed: int, m: int, whole: bool) -> None:
    scores = random_scores(seed, m, whole)
    graph = networkx.DiGraph()
    for j in range(m):
        graph.add_weighted_edges_from((h, j + 1, scores[j, h]) for h in range(m + 1) if h != j + 1)
    best = networkx.maximum_spanning_arborescence(graph).size(weight="weight")
    assert value(scores, run(AnyTrees(False), scores)) == pytest.approx(best, abs=1e-9)


@pytest.mark.parametrize("single_root", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_the_best_tree_is_that_of_an_integer_program(seed: int, single_root: bool) -> None:
    """Each word has one head and takes one unit of a flow from the root, which arcs of the tree can carry."""
    rng = np.random.default_rng(seed)
    m = int(rng.integers(4, 10))
    arcs = [(h, j) for j in range(m) for h in range(m + 1) if h != j + 1]
    scores = random_scores(seed, m, whole=False)
    into, out_of = (
        np.array([[1.0 * chosen(arc, node) for arc in arcs] for node in range(m + 1)])
        for chosen in (lambda arc, node: arc[1] + 1 == node, lambda arc, node: arc[0] == node)
    )
    none, every = np.zeros((m, len(arcs))), np.eye(len(arcs))
    program = milp(
        -np.array([scores[j, h] for h, j in arcs] + [0.0] * len(arcs)),
        constraints=[
            LinearConstraint(np.hstack([into[1:], none]), 1.0, 1.0),
            LinearConstraint(np.hstack([none, (into - out_of)[1:]]), 1.0, 1.0),
            LinearConstraint(np.hstack([-m * every, every]), ub=0.0),
            LinearConstraint(np.hstack([out_of[:1], none[:1]]), 1.0, 1.0 if single_root else m),
        ],
        bounds=Bounds(0.0, np.repeat([1.0, m], len(arcs))),
        integrality=np.repeat([1, 0], len(arcs)),
    )
    assert value(scores, run(AnyTrees(single_root), scores)) == pytest.approx(-program.fun, abs=1e-6)


@given(seeds, st.integers(6, 40), st.booleans())
def test_more_trees_to_choose_from_have_no_lower_score(seed: int, m: int, whole: bool) -> None:
    """The more trees there are to choose from, the better the best; and each is of its kind."""
    scores = random_scores(seed, m, whole)
    found = {kind: run(kind, scores) for kind in KINDS}
    values = {kind: value(scores, y) for kind, y in found.items()}
    for single_root in (False, True):
        assert values[ProjectiveTrees(single_root)] <= values[AnyTrees(single_root)] + 1e-9
    for kind in (AnyTrees, ProjectiveTrees):
        assert values[kind(True)] <= values[kind(False)] + 1e-9
        assert found[kind(True)].count(0) == 1
    for y in found.values():
        for j in range(m):
            steps, node = 0, j + 1
            while node:
                node, steps = y[node - 1], steps + 1
                assert steps <= m


@pytest.mark.parametrize("kind", KINDS[:2])
def test_a_projective_optimum_is_found_by_all(kind: AnyTrees) -> None:
    """Where the best tree of all is projective, both algorithms agree on it."""
    scores = np.full((6, 7), -1.0)
    tree = [2, 0, 2, 5, 3, 5]
    scores[np.arange(6), tree] = np.arange(6) + 1.0
    assert run(kind, scores) == run(ProjectiveTrees(kind.single_root), scores) == tree


def test_of_equal_trees_one_is_found_whose_heads_come_first() -> None:
    """Every head is the root, or a word before."""
    for kind, expected in zip(KINDS, ([0, 0, 0], [0, 1, 1], [0, 1, 2], [0, 1, 2]), strict=True):
        assert run(kind, np.zeros((3, 4))) == expected
        assert run(kind, np.zeros((1, 2))) == [0]


@pytest.mark.parametrize("kind", KINDS)
def test_scores_that_are_no_numbers_come_to_an_end(kind: Trees) -> None:
    assert len(run(kind, np.full((5, 6), np.nan))) == 5
