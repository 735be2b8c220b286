"""Compiling everything beforehand."""

import itertools
import subprocess
import sys
from typing import get_args

import numpy as np
import pytest

from maxmargin import warm
from maxmargin.estimators._parameters import DUAL_METHODS
from maxmargin.problems.maps.arborescence import ArborescenceMap
from maxmargin.problems.maps.chain import ChainMap
from maxmargin.problems.maps.graph import GraphMap
from maxmargin.problems.maps.matching import MatchingMap
from maxmargin.problems.maps.multiclass import MulticlassMap
from maxmargin.problems.maps.second_order import SecondOrderMap
from maxmargin.problems.maps.segments import SegmentsMap
from maxmargin.problems.oracles._labelling import LABELLINGS
from maxmargin.rows import DenseRows, Rows


def _rows(problem):
    """How a problem stores features; None if there is but one way."""
    held = getattr(problem.map, "inner", problem.map)  # of second order
    return type(held.rows) if hasattr(held, "rows") else None


def test_every_model_kind_of_features_and_method_is_run(monkeypatch):
    solved, decoded = [], []
    monkeypatch.setattr(
        warm, "solve", lambda problem, method, **_: solved.append((type(problem.map), _rows(problem), method))
    )
    monkeypatch.setattr(warm, "decode_all", lambda problem, *_: decoded.append(type(problem.map)))
    compiled = warm.compile_kernels()
    made = [method(1.0) for method in DUAL_METHODS.values()]
    expected = [
        *itertools.product((ChainMap, MulticlassMap, SegmentsMap), get_args(Rows), made),
        *itertools.product((SecondOrderMap, *(ArborescenceMap,) * 2), get_args(Rows), made),
        *itertools.product((MatchingMap,), (None,), made),
        *itertools.product((GraphMap,) * len(LABELLINGS), (DenseRows,), made),
    ]
    assert sorted(solved, key=repr) == sorted(expected, key=repr)
    assert set(decoded) == {
        ArborescenceMap,
        ChainMap,
        GraphMap,
        MulticlassMap,
        MatchingMap,
        SecondOrderMap,
        SegmentsMap,
    }
    assert compiled.seconds >= 0


PROGRAM = """
import warnings
import numpy as np
import pytest
from maxmargin import ChainSVC, DependencySVC, GraphSVC, MatchingSVC, MulticlassSVC, SegmentSVC, warm

warm.DUAL_METHODS = {"bcfw": warm.DUAL_METHODS["bcfw"]}
compiled = warm.compile_kernels()
before = warm._n_specialisations()

warnings.simplefilter("ignore")
options = {"method": "bcfw", "max_iter": 2, "tol": 0.0}
rng = np.random.default_rng(0)
X, y = rng.normal(size=(9, 4)), np.arange(9) % 3
for features in (X, np.where(X > 1, X, 0.0), np.where(X > 1, 1.0, 0.0)):
    MulticlassSVC(**options).fit(features, y).predict(features)
    for order in (1, 2):
        ChainSVC(**options, order=order).fit([features], [y]).predict([features])
    SegmentSVC(**options).fit([features], [["B-a", "I-a", "O"] * 3]).predict([features])
words = [[["a", "b"], ["c"]], [["a"]]]
ChainSVC(**options).fit(words, [["N", "V"], ["N"]]).predict(words)
SegmentSVC(**options).fit(words, [["B-a", "I-a"], ["O"]]).predict(words)
links = [X[:6].reshape(2, 3, 4)]
MatchingSVC(**options, fertility=2).fit(links, [[(0, 0), (0, 2)]]).predict(links)
tagged = [[("a", "X"), ("b", "Y")]]
for projective in (False, True):
    DependencySVC(**options, projective=projective).fit(tagged, [[2, 0]]).predict(tagged)
for edges in ([(0, 1), (1, 2)], [(0, 1), (1, 2), (2, 0)]):
    for labels in ([0, 1, 1], [0, 1, 2]):
        GraphSVC(**options).fit([(X[:3], edges)], [labels]).predict([(X[:3], edges)])

assert compiled.kernels == before > 0
assert warm._n_specialisations() == before
assert str(compiled) == f"{before} kernels ready in {compiled.seconds:.1f} s, in {compiled.directory}"
"""


@pytest.mark.slow
def test_afterwards_estimators_compile_nothing():
    subprocess.run([sys.executable, "-c", PROGRAM], check=True, timeout=600)


def test_without_a_directory():
    said = str(warm.Compiled(12, np.float64(3.21), None))
    assert said == "12 kernels ready in 3.2 s, but not kept: no directory is writeable"
