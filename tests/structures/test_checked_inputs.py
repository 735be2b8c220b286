"""Nothing unchecked reaches a kernel: bad indices, lengths and shapes are errors of one line.

Kernels read whatever an index says, so that a test must see the error itself, or the right values.
"""

import numpy as np
import pytest
import scipy.sparse

from maxmargin import BlockFrankWolfe, WarmStart, solve
from maxmargin.encoding.grids import edge_differences, grid_directions, grid_edges
from maxmargin.problems import (
    Chain,
    Custom,
    Dependency,
    Graph,
    Matching,
    Multiclass,
    SecondOrderChain,
    Segments,
)
from maxmargin.solving.decoding import decode_all
from maxmargin.solving.objective import hinge_losses, primal
from maxmargin.structures.dependency.encode import ArcEncoder, Arcs, Indicators
from maxmargin.structures.graphs.encode import Graphs
from maxmargin.structures.matchings.encode import Links
from maxmargin.structures.oracle import psi, write_output
from maxmargin.structures.problem import sizes
from maxmargin.structures.questions import k_best_outputs
from maxmargin.structures.segments.encode import EncodedSegments

X = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0], [1.0, 3.0, 5.0], [2.0, 4.0, 6.0]])
FORBIDDEN = np.zeros((4, 4), dtype=np.bool_)


def encoded():
    """Valid arguments of the builders of each model, in fresh arrays."""
    sequences = {"features": X.copy(), "offsets": np.array([0, 2, 5]), "n_labels": 3}
    graphs = {
        "nodes": X.copy(),
        "offsets": np.array([0, 2, 5]),
        "edges": np.ones((3, 2)),
        "edge_offsets": np.array([0, 1, 3]),
        "ends": np.array([[0, 1], [0, 1], [1, 2]]),
    }
    links = {
        "features": np.arange(20.0),
        "offsets": np.array([0, 4, 10]),
        "sources": np.array([2, 3]),
        "targets": np.array([2, 2]),
        "n_features": 2,
    }
    codes = np.array([1, 0, 3, 5, 4])
    return {
        "multiclass": {"X": X.copy(), "labels": np.array([0, 1, 2, 0, 1]), "n_labels": 3},
        "chain": {**sequences, "labels": np.array([0, 1, 2, 0, 1])},
        "second": {**sequences, "labels": np.array([0, 1, 2, 0, 1])},
        "segments": {**sequences, "codes": codes, "limits": np.array([2, 1, 2])},
        "graph": {**graphs, "labels": np.array([0, 1, 2, 0, 1]), "n_labels": 3, "weights": np.ones(5)},
        "matching": {
            **links,
            "truth": np.array([1, 0, 0, 1, 0, 1, 0, 0, 1, 0], dtype=np.bool_),
            "possible": np.zeros(10, dtype=np.bool_),
        },
        "trees": {
            "features": np.arange(1.0, 25.0).reshape(8, 3),
            "offsets": np.array([0, 1, 3]),
            "heads": np.array([0, 0, 1]),
        },
    }


def build(model, **changes):
    """The problem of a model, with some arguments changed."""
    given = encoded()[model] | changes
    if model == "multiclass":
        return Multiclass.from_encoded(**given)
    if model in ("chain", "second"):
        return (Chain if model == "chain" else SecondOrderChain).from_encoded(**given)
    if model == "segments":
        found = EncodedSegments(given["codes"], np.arange(2), 3)
        return Segments.from_encoded(given["features"], given["offsets"], found, given["limits"])
    if model == "graph":
        rest = {name: given.pop(name) for name in ("labels", "n_labels", "weights", "loss") if name in given}
        return Graph.from_encoded(Graphs(**given), **rest)
    if model == "matching":
        truth, possible = given.pop("truth"), given.pop("possible")
        fertility = given.pop("fertility", 1)
        return Matching.from_encoded(Links(**given), truth, possible, fertility=fertility)
    return Dependency.from_encoded(Arcs(given["features"], given["offsets"]), given["heads"])


MODELS = list(encoded())
FEATURES = {"multiclass": "X", "graph": "nodes"} | dict.fromkeys(
    ("chain", "second", "segments", "trees"), "features"
)
OFFSETS = ("chain", "second", "segments", "graph")


def bad_offsets():
    for model in OFFSETS:
        yield model, {"offsets": np.array([0, 2, 10**6])}, "offsets must be two or more ints from 0 to 5"
        yield model, {"offsets": np.array([1, 2, 5])}, "offsets must be two or more ints from 0"
        yield model, {"offsets": np.array([0, 7, 5])}, "offsets must rise by at least 1, got 7 and 5"
        yield model, {"offsets": np.array([0, 2, 2, 5])}, "offsets must rise by at least 1, got 2 and 2"
        yield model, {"offsets": np.array([0, -(2**63), 5])}, "offsets must rise by at least 1"
        yield model, {"offsets": np.array([0.0, 2.0, 5.0])}, "offsets must be a vector of ints"
        yield model, {"offsets": np.array([0])}, "offsets must be two or more ints"
        yield model, {"offsets": np.zeros(0, dtype=int)}, "offsets must be two or more ints .*got none"


def bad_labels():
    for model in ("multiclass", "chain", "second", "graph"):
        for wrong in (3, 10**7, -1, -(2**63)):
            labels = np.array([0, 1, wrong, 0, 1])
            yield model, {"labels": labels}, f"labels must be from 0 to 2, got {wrong} at position 2"
        yield model, {"labels": np.array([0, 1, 2**64 - 1, 0, 1], dtype=np.uint64)}, "must be from 0 to 2"
        yield model, {"labels": np.array([0, 1])}, "labels must be 5 ints, got 2"
        yield model, {"labels": np.array([0.0, 1.0, 2.0, 0.0, 1.0])}, "labels must be a vector of ints"
        yield model, {"labels": np.zeros((5, 1), dtype=int)}, "labels must be a vector of ints"
        yield model, {"n_labels": 0}, "n_labels must be an int >= 1"
        yield model, {"n_labels": 2.5}, "n_labels must be an int >= 1"
        yield model, {"loss": np.zeros((2, 2))}, "cost matrix must have one row and column per label"


def bad_features():
    for model, name in FEATURES.items():
        n = len(encoded()[model][name])
        yield model, {name: np.ones((n + 1, 3))}, r"must (be|have|rise)"
        yield model, {name: np.ones(n)}, r"features must be real numbers of shape"
        yield model, {name: np.full((n, 3), "a")}, r"features must be real numbers of shape"
        yield model, {name: np.full((n, 3), 1j)}, r"features must be real numbers of shape"
        outside = scipy.sparse.csr_array(np.ones((n, 3)))
        outside.indices[1] = 3
        yield model, {name: outside}, "column indices from 0 to 2, got 3 in row 0"
        negative = scipy.sparse.csr_array(np.ones((n, 3)))
        negative.indices[4] = -1
        yield model, {name: negative}, "column indices from 0 to 2, got -1 in row 1"
        ends = scipy.sparse.csr_array(np.ones((n, 3)))
        ends.indptr[-1] = 10**7
        yield model, {name: ends}, "must have an indptr of"
        falls = scipy.sparse.csr_array(np.ones((n, 3)))
        falls.indptr[1] = 10**7
        yield model, {name: falls}, "indptr that never decreases, got one that decreases after row 1"
        wide = scipy.sparse.csr_array((n, 2**32 + 1))
        yield model, {name: wide}, r"at most 2\*\*32 columns"
        large = scipy.sparse.csr_array((n, 2**32 - 1))
        yield model, {name: large}, r"weights must fit into the memory of "


BAD_STRUCTURES = [
    ("segments", {"codes": np.array([1, 0, 3, 5, 6])}, "codes of segments must be from 0 to 5, got 6"),
    ("segments", {"codes": np.array([1, 0, 3, -5, 4])}, "codes of segments must be from 0 to 5, got -5"),
    ("segments", {"codes": np.array([1, 0, 3])}, "codes of segments must be 5 ints, got 3"),
    ("segments", {"codes": np.array([0, 0, 3, 5, 4])}, "odd where a segment starts, got 0 at token 0"),
    ("segments", {"codes": np.array([1, 0, 0, 5, 4])}, "odd where a segment starts, got 0 at token 2"),
    ("segments", {"codes": np.array([1, 0, 3, 2, 5])}, "the segment at token 2 must have at most 1 tokens"),
    ("segments", {"limits": np.array([2, 1])}, "codes of segments must be from 0 to 3"),
    ("segments", {"limits": np.array([2, 1, -2])}, "limits must be from 0"),
    ("segments", {"limits": np.zeros(0, dtype=int)}, "limits must be lengths"),
    ("segments", {"limits": np.array([2, 1, 2**32 - 1])}, r"must have at most 2\*\*32 statistics"),
    ("chain", {"forbidden": FORBIDDEN[:3, :3]}, r"forbidden must be bools of shape \(4, 4\)"),
    ("second", {"forbidden": FORBIDDEN.astype(float)}, r"forbidden must be bools of shape \(4, 4\)"),
    ("graph", {"ends": np.array([[0, 1], [0, 1], [1, 3]])}, "ends of edges must be from 0 to 2, got 3"),
    ("graph", {"ends": np.array([[0, 2], [0, 1], [1, 2]])}, "ends of edges must be from 0 to 1, got 2"),
    ("graph", {"ends": np.array([[0, 1], [-1, 1], [1, 2]])}, "ends of edges must be from 0 to 2, got -1"),
    ("graph", {"ends": np.array([[0, 1], [1, 1], [1, 2]])}, "edge 1 must join two nodes, got 1 twice"),
    ("graph", {"ends": np.array([[0, 1]])}, r"ends must have shapes \(3,\) and \(3, 2\)"),
    ("graph", {"ends": np.array([[0, 1], [0, 1], [1.5, 2]])}, "ends of edges must be a vector of ints"),
    ("graph", {"edge_offsets": np.array([0, 3])}, r"edge_offsets and ends must have shapes \(3,\)"),
    ("graph", {"edge_offsets": np.array([0, 9, 3])}, "edge_offsets must rise by at least 0"),
    ("graph", {"edge_offsets": np.array([0, 1, 4])}, "edge_offsets must be two or more ints from 0 to 3"),
    ("graph", {"edges": np.ones((2, 2))}, "edge_offsets must be two or more ints from 0 to 2"),
    ("graph", {"weights": np.ones(4)}, "weights must be 5 finite numbers >= 0"),
    ("graph", {"weights": np.full(5, np.nan)}, "weights must be 5 finite numbers >= 0"),
    ("matching", {"truth": np.ones(10, dtype=np.bool_)}, "truth must link a source at most 1 times"),
    ("matching", {"truth": np.zeros(9, dtype=np.bool_)}, "truth must be 10 bools"),
    ("matching", {"truth": np.zeros(10)}, "truth must be 10 bools"),
    ("matching", {"possible": np.zeros(9, dtype=np.bool_)}, "possible must be 10 bools"),
    (
        "matching",
        {"sources": np.array([2, 4])},
        "pair 1 must have a link for each of 4 sources",
    ),
    ("matching", {"sources": np.array([2, 0])}, "sources must be from 1 to 10, got 0"),
    ("matching", {"targets": np.array([2])}, "targets must be 2 ints, got 1"),
    ("matching", {"targets": np.array([2, -2])}, "targets must be from 1 to 10, got -2"),
    ("matching", {"offsets": np.array([0, 4, 99])}, "offsets must be two or more ints from 0 to 10"),
    ("matching", {"n_features": 3}, "features must be a vector of 3 numbers per link"),
    ("matching", {"n_features": 0}, "n_features must be an int >= 1"),
    ("matching", {"features": np.ones((10, 2))}, "features must be a vector of 2 numbers per link"),
    ("matching", {"fertility": 0}, "fertility must be an int >= 1"),
    ("matching", {"fertility": 10**20}, "fertility must be at most 281474976710656"),
    ("matching", {"fertility": 2**40}, r"must have at most 2\*\*32 statistics"),
    ("trees", {"heads": np.array([0, 0, 3])}, "heads must be from 0 to 2, got 3 at position 2"),
    ("trees", {"heads": np.array([0, -1, 1])}, "heads must be from 0 to 2, got -1 at position 1"),
    ("trees", {"heads": np.array([1, 0, 1])}, "heads must be other words or 0 for the root, got 1 at pos"),
    ("trees", {"heads": np.array([0, 0])}, "heads must be 3 ints, got 2"),
    ("trees", {"offsets": np.array([0, 1, 10**9])}, "features must have .* rows"),
    ("trees", {"offsets": np.array([0, 3, 1])}, "offsets must rise by at least 1"),
]
NAMES = dict(zip(MODELS, ("Multiclass", "Chain", "SecondOrderChain", "Segments"), strict=False)) | {
    "graph": "Graph",
    "matching": "Matching",
    "trees": "Dependency",
}


def one_line(error, *names):
    message = str(error.value)
    assert "\n" not in message
    assert message.startswith(tuple(f"{name}: " for name in names)), message


@pytest.mark.parametrize("model", MODELS)
def test_valid_arguments_make_a_problem(model):
    assert sizes(build(model)).examples >= 2


@pytest.mark.parametrize(
    ("model", "changes", "message"), [*bad_offsets(), *bad_labels(), *bad_features(), *BAD_STRUCTURES]
)
def test_builders_refuse_what_kernels_cannot_read(model, changes, message):
    with pytest.raises(ValueError, match=message) as caught:
        build(model, **changes)
    one_line(caught, NAMES[model])


@pytest.mark.parametrize("start", [[0, 1, 99], [0, 9, 8]])
def test_indicators_are_checked_like_matrices(start):
    columns = np.array([0, 1, 2, 0, 1, 2, 0, 1], dtype=np.uint32)
    indicators = Indicators(np.array([*start, 8, 8, 8, 8, 8, 8]), columns, 3)
    with pytest.raises(ValueError, match="indptr that never decreases") as caught:
        build("trees", features=indicators)
    one_line(caught, "Dependency")
    columns[3] = 7
    for flag in (True, False):
        columns.flags.writeable = flag
        with pytest.raises(ValueError, match="column indices from 0 to 2, got 7 in row 3"):
            build("trees", features=Indicators(np.arange(9), columns, 3))


def test_repeated_indicators_are_summed():
    columns = np.array([2, 0, 2, 1, 1, 1, 1, 1, 1], dtype=np.uint32)
    given = Indicators(np.array([0, 3, 4, 5, 6, 7, 8, 9, 9]), columns, 3)
    rows = build("trees", features=given).map.rows
    assert (rows.columns[:2].tolist(), rows.values[:2].tolist()) == ([0, 2], [1.0, 2.0])


def leaves(problem):
    """All arrays of a problem, with those of its parts."""
    parts = [leaves(part) for part in problem if isinstance(part, tuple)]
    arrays = [part for part in problem if isinstance(part, np.ndarray)]
    return arrays + [array for part in parts for array in part]


@pytest.mark.parametrize("kind", [np.array, scipy.sparse.csr_array, scipy.sparse.csr_matrix])
@pytest.mark.parametrize("model", MODELS)
def test_what_callers_change_later_changes_no_problem(model, kind):
    given = encoded()[model]
    if model in FEATURES:
        given[FEATURES[model]] = kind(given[FEATURES[model]])
    problem = build(model, **given)
    before = [array.copy() for array in leaves(problem)]
    for value in given.values():
        parts = (value.data, value.indices, value.indptr) if scipy.sparse.issparse(value) else (value,)
        for array in parts:
            if isinstance(array, np.ndarray):
                assert array.flags.writeable
                array[...] = 1 if array.dtype == np.bool_ else 77
    after = leaves(problem)
    assert all(np.array_equal(a, b) for a, b in zip(before, after, strict=True))


def test_solutions_do_not_follow_the_callers_arrays():
    for convert in (np.array, scipy.sparse.csr_array):
        features, labels = convert(X), np.array([0, 1, 2, 0, 1])
        problem = Multiclass.from_arrays(features, labels)
        expected = solve(problem, BlockFrankWolfe(0.1), tol=0.0, max_passes=20, random_state=0)
        features *= 100
        labels[:] = 2
        found = solve(problem, BlockFrankWolfe(0.1), tol=0.0, max_passes=20, random_state=0)
        assert np.array_equal(found.w, expected.w)


PROBLEMS = {model: build(model) for model in MODELS}


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(
    "wrong", [lambda w: w[:-1], lambda w: np.append(w, 0.0), lambda w: w[None], lambda w: w.astype(complex)]
)
def test_weights_of_another_size_are_refused(model, wrong):
    problem = PROBLEMS[model]
    w = wrong(np.zeros(sizes(problem).weights))
    uses = [lambda: decode_all(problem, w), lambda: hinge_losses(problem, w)]
    if model in ("chain", "second", "segments"):
        uses.append(lambda: k_best_outputs(problem, w, 2))
    if w.ndim == 1 and w.dtype == np.float64:
        uses.append(lambda: primal(problem, w, 0.1))
    for use in uses:
        with pytest.raises(ValueError, match=r"w must be .* real numbers, one per weight") as caught:
            use()
        one_line(caught, type(problem.map).__name__)


def test_warm_starts_with_weights_of_another_size_are_refused():
    problem = PROBLEMS["multiclass"]
    result = solve(problem, BlockFrankWolfe(0.1), max_passes=2, random_state=0)
    for other in (problem, build("multiclass")):
        for start in (result._replace(w=result.w[:-1]), WarmStart(result._replace(w=result.w[:-1]))):
            with pytest.raises(ValueError, match="MulticlassMap: w must be 12 real numbers"):
                solve(other, BlockFrankWolfe(0.1), start=start)


def test_more_outputs_than_memory_holds_are_refused():
    problem = Chain.from_encoded(np.ones((200, 1)), [0, 200], np.arange(200) % 2, 2)  # with 2**200 outputs
    for k in (10**12, 10**30):
        with pytest.raises(ValueError, match="best outputs must fit into the memory") as caught:
            k_best_outputs(problem, np.zeros(sizes(problem).weights), k)
        one_line(caught, "predict_k_best")


def test_examples_of_more_statistics_than_kernels_can_number_are_refused():
    with pytest.raises(ValueError, match=r"^SecondOrderChain: the largest example must have at most 2\*\*32"):
        SecondOrderChain.for_prediction(X, np.array([0, 5]), 1700)


def unequal(a, b):
    return float(a != b)


@pytest.mark.parametrize("index", [-1, -(2**40), 3, 10**8])
@pytest.mark.parametrize("later", [False, True])
def test_indices_of_own_features_are_checked_at_every_call(index, later):
    def features(x, y):
        return np.array([index if y == 1 and (later or x == 1) else 0]), np.array([1.0])

    def run():
        truths = [0, 0 if later else 1]
        problem = Custom(features, unequal, lambda x, w, y=None: 1, [0, 1], truths, n_features=3)
        solve(problem, BlockFrankWolfe(0.1), max_passes=1, random_state=0)

    with pytest.raises(ValueError, match=f"^Custom: features of example [01] are wrong: .* got {index}"):
        run()


def test_own_features_may_reuse_their_arrays():
    where, value = np.zeros(1, dtype=np.int64), np.ones(1)

    def features(x, y):
        where[0] = y
        return where, value

    problem = Custom(features, unequal, lambda x, w, y=None: 1, [0, 1], [0, 2], n_features=3)
    where[0] = 10**8
    index, out = np.zeros(3, dtype=np.uint32), np.zeros(3)
    y = np.zeros(1, dtype=np.int64)
    write_output(problem.oracle, 1, 1, y)
    count = psi(problem.oracle, 1, y, index, out)
    assert sorted(zip(index[:count].tolist(), out[:count].tolist(), strict=True)) == [(1, -1.0), (2, 1.0)]


def test_sparse_features_of_unequal_lengths_are_refused():
    row = scipy.sparse.csr_array(np.array([[1.0, 2.0, 3.0]]))
    row.data = row.data[:1]
    with pytest.raises(ValueError, match="expected as many indices as values, got 3 and 1"):
        Custom(lambda x, y: row, lambda a, b: 0.0, lambda x, w, y=None: 0, [0], [0])


@pytest.mark.parametrize("heads", [[0, 3], [0, -1], [0], [0.0, 1.0]])
def test_heads_are_checked_before_features_are_made_of_them(heads):
    from maxmargin.structures.dependency.encode import encode_tagged

    tagged = encode_tagged([[("a", "A"), ("b", "B")]])
    with pytest.raises(ValueError, match=r"^heads must be"):
        ArcEncoder().fit(tagged, np.array(heads))


@pytest.mark.parametrize("edges", [[(0, 4)], [(-1, 1)], [(0, 1, 2)], [(0.0, 1.0)], [0, 1]])
def test_differences_along_edges_are_between_nodes(edges):
    with pytest.raises(ValueError, match=r"^edge_differences: edges must be"):
        edge_differences(np.ones((2, 2, 3)), edges)
    assert edge_differences(X, []).shape == (0, 3)
    with pytest.raises(ValueError, match=r"^edge_differences: values must have a row of features per node"):
        edge_differences(np.ones(3), edges)


@pytest.mark.parametrize("shape", [(2.5, 3), (0, 3), (3,), 7, ("a", 2)])
def test_grids_have_whole_sides(shape):
    for function in (grid_edges, grid_directions):
        with pytest.raises(ValueError, match=r"shape must be \(rows, columns\)"):
            function(shape)
