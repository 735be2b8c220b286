"""Explanations compared with all outputs of small examples, each scored by the formula of its model."""

import itertools
import math
import pickle
import re
import sys
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from maxmargin import DependencySVC, MultilabelSVC, SegmentSVC
from maxmargin.compiling.interpreting import interpreted
from support.estimators import KINDS

Part = Any
Output = Any


class Case(NamedTuple):
    """A model, an example, all of its outputs, their scores, and what a part is in each."""

    model: Any
    x: Any
    outputs: list[Output]
    score: Callable[[Output], float]
    state: Callable[[Output, Part], Any]


@cache
def fitted(name: str, **parameters: Any) -> tuple[Any, Any]:
    kind = KINDS[name]
    return kind.new(C=5.0, tol=0.2, **parameters).fit(kind.X, kind.y), kind.X[0]


def chain(order: int) -> Case:
    model, x = fitted("chain", order=order)
    unary, start, end, pairs = model.coef_ @ x.T, model.start_, model.end_, model.transitions_
    trigrams = model.trigrams_ if order == 2 else np.zeros((3, 3, 3))

    def score(y: Output) -> float:
        total = start[y[0]] + end[y[-1]] + sum(unary[k, t] for t, k in enumerate(y))
        total += sum(pairs[pair] for pair in itertools.pairwise(y))
        return total + sum(trigrams[y[t : t + 3]] for t in range(len(y) - 2))

    return Case(model, x, list(itertools.product(range(3), repeat=4)), score, lambda y, t: y[t])


def segmentations(start: int, n: int, longest: dict[str, int]) -> Iterator[tuple[Any, ...]]:
    if start == n:
        yield ()
    for label, most in longest.items():
        for stop in range(start + 1, min(start + most, n) + 1):
            yield from ((((start, stop, label), *rest)) for rest in segmentations(stop, n, longest))


def segments() -> Case:
    model, x = fitted("segments")
    labels = [*model.classes_, "O"]
    coef, first, last = model.coef_, model.first_coef_, model.last_coef_
    starts, pairs, lengths = model.start_, model.transitions_, model.lengths_

    def score(y: Output) -> float:
        total = starts[labels.index(y[0][2])]
        for (_, _, a), (_, _, b) in itertools.pairwise(y):
            total += pairs[labels.index(a), labels.index(b)]
        for start, stop, label in y:
            k = labels.index(label)
            total += coef[k] @ x[start:stop].sum(axis=0) + first[k] @ x[start]
            total += last[k] @ x[stop - 1] + lengths[k, stop - start - 1]
        return total

    def state(y: Output, part: Part) -> Any:
        return next((label for start, stop, label in y if (start, stop) == part), None)

    outputs = list(segmentations(0, len(x), dict(zip(labels, model.max_length_, strict=True))))
    return Case(model, x, outputs, score, state)


def graph(inference: str) -> Case:
    model, (nodes, ends, edges) = fitted("graph", inference=inference)

    def edge_score(e: int, a: int, b: int) -> float:
        if inference == "cut":
            return max(0.0, edges[e] @ model.edge_coef_) if a == b else 0.0
        return edges[e] @ model.edge_coef_[:, a, b]

    def score(y: Output) -> float:
        total = sum(model.coef_[k] @ row for k, row in zip(y, nodes, strict=True))
        return total + sum(edge_score(e, y[a], y[b]) for e, (a, b) in enumerate(ends))

    x = nodes, ends, edges
    return Case(model, x, list(itertools.product(range(2), repeat=3)), score, lambda y, v: y[v])


def matching(fertility: int) -> Case:
    kind = KINDS["matching"]
    model = kind.new(C=5.0, tol=0.2, fertility=fertility).fit(kind.X, kind.y)
    x, links = kind.X[1], list(itertools.product(range(2), range(3)))

    def allowed(y: Output) -> bool:
        counts = [[link[side] for link in y].count(k) for side, n in ((0, 2), (1, 3)) for k in range(n)]
        return max(counts[:2]) <= fertility and max(counts[2:]) <= 1

    def score(y: Output) -> float:
        total = sum(x[link] @ model.coef_ + model.intercept_ for link in y)
        return total + sum(sum(model.places_[: [a for a, _ in y].count(s) - 1]) for s in {a for a, _ in y})

    subsets = (frozenset(y) for n in range(4) for y in itertools.combinations(links, n))
    return Case(model, x, [y for y in subsets if allowed(y)], score, lambda y, link: link in y)


def is_tree(heads: Output) -> bool:
    def reaches_root(word: int) -> bool:
        seen: set[int] = set()
        while word and word not in seen:
            seen.add(word)
            word = heads[word - 1]
        return not word

    return heads.count(0) == 1 and all(reaches_root(j) for j in range(1, len(heads) + 1))


def dependency(projective: bool) -> Case:
    model, x = fitted("dependency", projective=projective)
    outputs = [heads for heads in itertools.product(range(4), repeat=3) if is_tree(heads)]
    if projective:  # of three words, only the arc over a root between its ends crosses
        outputs = [y for y in outputs if not (y[1] == 0 and (y[0] == 3 or y[2] == 1))]
    return Case(
        model,
        x,
        outputs,
        lambda y: sum(x[j, head] @ model.coef_ for j, head in enumerate(y)),
        lambda y, j: y[j - 1],
    )


def multiclass() -> Case:
    model, x = fitted("multiclass")
    return Case(model, x, [0, 1, 2], lambda y: model.coef_[y] @ x + model.intercept_[y], lambda y, part: y)


def multilabel(structure: str) -> Case:
    model, x = fitted("multilabel", structure=structure)

    def score(y: Output) -> float:
        total = sum(model.coef_[k] @ x + model.intercept_[k] for k in range(3) if y[k])
        pairs = zip(model.edges_.tolist(), model.edge_coef_, strict=True)
        return total + sum(table[y[a], y[b]] for (a, b), table in pairs)

    return Case(model, x, list(itertools.product(range(2), repeat=3)), score, lambda y, k: y[k])


MAKERS: dict[str, Callable[[], Case]] = {
    "chain": lambda: chain(1),
    "second_order": lambda: chain(2),
    "segments": segments,
    "tree": lambda: graph("tree"),
    "cut": lambda: graph("cut"),
    "messages": lambda: graph("messages"),
    "matching": lambda: matching(1),
    "fertile": lambda: matching(2),
    "dependency": lambda: dependency(False),
    "projective": lambda: dependency(True),
    "multiclass": multiclass,
    "independent": lambda: multilabel("independent"),
    "all_pairs": lambda: multilabel("full"),
}


@cache
def case_of(name: str) -> Case:
    return MAKERS[name]()


def plain(case: Case, output: Any) -> Output:
    """A prediction in the form in which the outputs of a case are listed."""
    if case.model.__class__ is SegmentSVC:
        inside = {t for start, stop, _ in output for t in range(start, stop)}
        outside = [(t, t + 1, "O") for t in range(len(case.x)) if t not in inside]
        return tuple(sorted([*output, *outside]))
    if case.outputs and isinstance(case.outputs[0], frozenset):
        pairs = enumerate(output) if isinstance(output, np.ndarray) else output
        return frozenset((int(a), int(b)) for a, b in pairs if b >= 0)
    return output if np.isscalar(output) else tuple(np.asarray(output).tolist())


def added(rows: Any) -> float:
    assert all(row.contribution == pytest.approx(row.value * row.weight, rel=1e-12) for row in rows)
    return math.fsum(row.contribution for row in rows)


@pytest.mark.parametrize("name", MAKERS)
def test_contributions_add_up_and_changes_are_the_best(name: str) -> None:
    case = case_of(name)
    found = case.model.explain(case.x)
    output = plain(case, found.output)
    scores = {y: case.score(y) for y in case.outputs}
    best = max(scores, key=scores.__getitem__)
    assert output == best
    assert found.score == pytest.approx(scores[best], abs=1e-10)
    assert added(found.contributions) == pytest.approx(found.score, abs=1e-12)
    assert found.changes
    for change in found.changes:
        state = case.state(best, change.part)
        others = [y for y in case.outputs if case.state(y, change.part) != state]
        nearest = max(others, key=scores.__getitem__)
        assert plain(case, change.output) == nearest
        assert change.margin == pytest.approx(scores[best] - scores[nearest], abs=1e-10)
        assert added(change.contributions) == pytest.approx(change.margin, abs=1e-12)
        assert change.state == state != change.other
        if case.model.__class__ is not SegmentSVC:
            assert change.other == case.state(nearest, change.part)


@pytest.mark.parametrize("name", ["chain", "segments", "cut", "fertile", "projective", "all_pairs"])
def test_margins_are_those_of_predict_margins(name: str) -> None:
    case = case_of(name)
    margins = np.ravel(case.model.predict_margins([case.x])[0])
    changes = case.model.explain(case.x).changes
    assert sorted(change.margin for change in changes) == pytest.approx(sorted(margins), abs=1e-10) or (
        name == "segments"  # which has margins of tokens outside of segments too
        and set(np.round(margins, 9)) <= {round(change.margin, 9) for change in changes}
    )


def test_changes_are_those_of_smallest_margin() -> None:
    case = case_of("chain")
    all_changes = case.model.explain(case.x).changes
    some = case.model.explain(case.x, changes=2).changes
    assert {each.margin for each in some} == set(sorted(each.margin for each in all_changes)[:2])
    assert case.model.explain(case.x, changes=0).changes == ()


def test_a_part_that_cannot_change_has_no_change() -> None:
    kind = KINDS["chain"]
    forbidden = [(None, 1), (None, 2), (0, 0), (0, 2)]
    model = kind.new(forbidden=forbidden, forbidden_in="prediction").fit(kind.X, kind.y)
    changes = model.explain(kind.X[0]).changes
    assert not {0, 1} & {change.part for change in changes}
    assert all(change.output[:2] == [0, 1] for change in changes)


def test_structured_outputs_have_contributions_only() -> None:
    model, x = fitted("structured")
    found = model.explain(x)
    assert found.output == model.predict([x])[0]
    assert [(row.feature, row.value) for row in found.contributions] == [((x, found.output), 1.0)]
    assert found.score == model.coef_[model.feature_names_.index((x, found.output))]
    assert found.changes == ()


def test_arcs_have_names() -> None:
    X = [[("the", "DET"), ("dog", "NOUN"), ("barks", "VERB")], [("cats", "NOUN"), ("sleep", "VERB")]]
    model = DependencySVC(C=1.0, verbose=0, random_state=0).fit(X, [[2, 3, 0], [2, 0]])
    found = model.explain([("the", "DET"), ("cat", "NOUN"), ("barks", "VERB")])
    names = {row.feature for row in found.contributions if row.part == 1}
    assert "modifier word=the, head tag=NOUN, left" in names
    assert not any("word=cat" in str(name) for name in names)  # unknown to fit


@pytest.mark.parametrize("name", ["chain", "segments", "dependency", "matching"])
def test_empty_examples_have_empty_explanations(name: str) -> None:
    model, _ = fitted(name)
    x: Any = np.zeros((0, 3, 2)) if name == "matching" else []
    found = model.explain(x)
    assert len(found.output) == found.score == len(found.contributions) == len(found.changes) == 0
    assert repr(found) == "Explanation: score 0"


def test_rows_of_tables_are_explained_in_every_form() -> None:
    pd, sparse = pytest.importorskip("pandas"), pytest.importorskip("scipy.sparse")
    kind = KINDS["multiclass"]
    model, row = kind.new().fit(kind.X, kind.y), kind.X[2]
    expected = model.explain(row)
    assert model.explain(row[None]) == model.explain(list(row)) == expected
    assert model.explain(sparse.csr_array(row[None])).score == pytest.approx(expected.score)
    frame = pd.DataFrame(kind.X, columns=["p", "q", "r"])
    named = kind.new().fit(frame, kind.y).explain(frame.iloc[2])
    assert {row.feature for row in named.contributions} <= {"p", "q", "r", None}
    with pytest.raises(ValueError, match=r"^MulticlassSVC: x must be one row of features, got 2 rows.$"):
        model.explain(kind.X[:2])


def test_one_of_two_classes_is_changed_to_the_other() -> None:
    model = MultilabelSVC(verbose=0, random_state=0).fit([[0.0], [1.0], [2.0]], ["no", "yes", "yes"])
    found = model.explain([2.0])
    assert found.output == "yes"
    assert [(change.part, change.state, change.output) for change in found.changes] == [("yes", 1, "no")]


def test_frames_hold_contributions_and_changes() -> None:
    case = case_of("segments")
    found = case.model.explain(case.x)
    frame = found.to_frame()
    assert frame["contribution"].sum() == pytest.approx(found.score)
    assert list(frame.columns) == list(found.contributions[0]._fields)
    changes = found.changes_to_frame()
    assert list(changes.columns) == ["part", "state", "other", "margin"]
    assert changes["margin"].tolist() == [change.margin for change in found.changes]
    assert found.changes[0].to_frame()["contribution"].sum() == pytest.approx(found.changes[0].margin)
    again = pickle.loads(pickle.dumps(found))
    assert again == found


def test_frames_need_pandas_and_tables_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    case = case_of("multiclass")
    found = case.model.explain(case.x)
    monkeypatch.setitem(sys.modules, "pandas", None)
    for name, call in (("to_frame", found.to_frame), ("changes_to_frame", found.changes_to_frame)):
        with pytest.raises(ImportError, match=rf"^Explanation.{name} needs pandas.*maxmargin\[frame\]$"):
            call()
    lines = repr(found).splitlines()
    assert lines[0] == f"Explanation: score {found.score:.6g}"
    assert lines[1].split("  ")[0] == "part"
    assert f"{found.changes[0].margin:.4g}" in lines[-1]


def test_long_tables_are_cut() -> None:
    kind = KINDS["chain"]
    model = kind.new().fit(kind.X, kind.y)
    text = repr(model.explain(np.vstack(kind.X * 2)[:30]))
    assert len(re.findall(r"^\.\.\. and 1[45] more$", text, re.MULTILINE)) == 2
    assert len(text.splitlines()) <= 1 + 2 * (1 + 16 + 1)


def test_html_is_escaped() -> None:
    X = [[["<script>alert(1)</script>"], ["dog"]], [["a"], ["cat"]]]
    kind = KINDS["chain"]
    model = kind.new(C=10).fit(X, [["<b>", "N"]] * 2)
    html = model.explain(X[0])._repr_html_()
    assert "<script>" not in html
    assert "<b>" not in html
    assert "&lt;script&gt;" in html
    assert html.count("<table>") == 2


@pytest.mark.parametrize("name", ["chain", "segments", "graph", "multiclass", "multilabel"])
def test_kernels_have_no_contributions(name: str) -> None:
    model, x = fitted(name, kernel="rbf")
    with pytest.raises(AttributeError, match="explain is only available when using a linear kernel"):
        model.explain(x)


@pytest.mark.parametrize("name", KINDS)
def test_errors_are_one_line(name: str) -> None:
    kind = KINDS[name]
    with pytest.raises(NotFittedError):
        kind.new().explain(kind.X[0])
    if name != "structured":
        with pytest.raises(ValueError, match=r"^\w+SVC: changes must be an int >= 0, got -1.$"):
            fitted(name)[0].explain(kind.X[0], changes=-1)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in KINDS if name != "structured"])
def test_compiled_explanations_are_the_same(name: str) -> None:
    kind = KINDS[name]
    with interpreted():
        model = kind.new(C=5.0, tol=0.2).fit(kind.X, kind.y)
        expected = model.explain(kind.X[0])
    found = model.explain(kind.X[0])
    assert found.contributions == expected.contributions
    assert [change[:4] for change in found.changes] == [change[:4] for change in expected.changes]
