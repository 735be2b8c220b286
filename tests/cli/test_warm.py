"""Compiling everything beforehand."""

import inspect
import itertools
import re
import subprocess
import sys
from types import SimpleNamespace
from typing import get_args

import numpy as np
import pytest

from maxmargin import estimators
from maxmargin.cli import demo, warm
from maxmargin.cli import warm as _first_fits
from maxmargin.cli.warm import FirstFit
from maxmargin.estimators.parameters import DUAL_METHODS
from maxmargin.estimators.structure import tables_of_trials
from maxmargin.structures.classes.model import MulticlassMap
from maxmargin.structures.dependency.model import DependencyMap
from maxmargin.structures.graphs.loopy import LABELLINGS
from maxmargin.structures.graphs.model import GraphMap
from maxmargin.structures.matchings.model import MatchingMap
from maxmargin.structures.rows import DenseRows, Rows, as_rows
from maxmargin.structures.segments.model import SegmentsMap
from maxmargin.structures.sequences.model import ChainMap, SecondOrderMap

ROW_KINDS = ("dense rows", "sparse rows", "indicators rows")


def _rows(problem):
    """How a problem stores features; None if there is but one way."""
    held = getattr(problem.map, "inner", problem.map)  # of second order
    return type(held.rows) if hasattr(held, "rows") else None


def test_every_model_kind_of_features_and_method_is_run(monkeypatch):
    solved, decoded = [], []
    monkeypatch.setattr(
        _first_fits,
        "solve",
        lambda problem, method, **_: solved.append((type(problem.map), _rows(problem), method)),
    )
    monkeypatch.setattr(_first_fits, "decode_all", lambda problem, *_: decoded.append(type(problem.map)))
    for fit in _first_fits.all_fits():
        _first_fits.run(fit)
    made = [method(1.0) for method in DUAL_METHODS.values()]
    maps = (ChainMap, MulticlassMap, SegmentsMap, SecondOrderMap, *(DependencyMap,) * 2)
    expected = [
        *itertools.product(maps, get_args(Rows), made),
        *itertools.product((MatchingMap,), (None,), made),
        *itertools.product((GraphMap,) * len(LABELLINGS), (DenseRows,), made),
    ]
    assert sorted(solved, key=repr) == sorted(expected, key=repr)
    assert set(decoded) == {*maps, GraphMap, MatchingMap}


def test_every_compiled_estimator_is_in_the_default_set():
    names = [name for name in estimators.__all__ if name.endswith("SVC")]
    made = {name for name in names if inspect.isclass(getattr(estimators, name))}
    assert set(warm.compiled()) == made - {"StructuredSVC"}  # whose problem is the user's


@pytest.mark.parametrize("fit", _first_fits.default_fits(warm.compiled()), ids=str)
def test_default_fits_train_the_estimator_as_it_comes(fit, monkeypatch):
    trained = []
    cls = getattr(estimators, fit.model)
    whole = cls.fit
    monkeypatch.setattr(cls, "fit", lambda self, X, y: trained.append(self) or whole(self, X, y))
    _first_fits.run(fit)
    (estimator,) = trained
    given = {"max_iter": 2, "tol": 0.0, "verbose": 0, "random_state": 0}
    assert estimator.get_params() == cls(**given).get_params()
    assert estimator.n_iter_ == 2


def test_default_fits_have_the_three_kinds_of_rows():
    found = {fit.data for fit in _first_fits.default_fits(["ChainSVC", "MulticlassSVC", "SegmentSVC"])}
    assert found == {*ROW_KINDS, "attributes"}
    kinds = [type(as_rows(X)) for X in tables_of_trials().values()]
    assert kinds == list(get_args(Rows))


def test_the_default_set_has_what_the_demo_needs(monkeypatch):
    made = []
    monkeypatch.setattr(demo, "solve", lambda problem, method, **_: made.append((type(problem.map), method)))
    data = demo.Words([np.zeros((2, 3))], [[0, 1]], [], [])
    demo.train_as_in_paper(data, SimpleNamespace(history=SimpleNamespace(passes=[1])))
    ((of_map, method),) = made
    monkeypatch.setattr(_first_fits, "solve", lambda problem, method, **_: made.append((problem, method)))
    _first_fits.run(_first_fits.DEMO)
    problem, same = made[1]
    assert (type(problem.map), _rows(problem), type(same)) == (of_map, DenseRows, type(method))
    assert _first_fits.DEMO in warm.plan().fits
    assert _first_fits.DEMO not in warm.plan(["ChainSVC"]).fits


def test_a_process_has_few_fits_of_one_model():
    fits = warm.plan(every_method=True).fits
    groups = warm._groups(fits)
    assert [fit for group in groups for fit in group] == list(fits)
    assert all(len(group) <= 3 and len({fit.model for fit in group}) == 1 for group in groups)


def test_unknown_estimators_are_refused():
    with pytest.raises(ValueError, match=r"estimators must be among ChainSVC, .*, got 'TreeSVC'\.$"):
        warm.compile_kernels(["ChainSVC", "TreeSVC"])


def test_one_name_may_stand_alone():
    assert warm.plan("MatchingSVC", n_jobs=4) == ((FirstFit("MatchingSVC", "links"),), 1)


def test_the_plan_says_what_is_compiled_and_how_long_it_takes():
    fits = tuple(FirstFit("ChainSVC", str(k)) for k in range(20))
    assert str(warm.Plan(fits, 2)) == (
        "compiling for 20 kinds of fits in 2 processes of at most 1 GB: about 3 min, or less if some of it "
        "is on disk"
    )
    assert str(warm.Plan(fits[:1], 1)).startswith("compiling for 1 kind of fits in 1 process of at most 1 GB")


@pytest.fixture
def stubbed(monkeypatch, tmp_path):
    """Children that compile nothing, and the directory that they name."""
    monkeypatch.setattr(warm, "cache_directory", lambda: tmp_path)
    monkeypatch.setattr(
        warm,
        "CHILD",
        "import json, sys\nfor k, fit in enumerate(json.load(sys.stdin)): print(json.dumps([2, 100.0 + k]))",
    )
    return tmp_path


def test_outcomes_of_the_children_are_summed(stubbed):
    compiled = warm.compile_kernels(["ChainSVC", "MatchingSVC"], n_jobs=2)
    assert (compiled.kernels, compiled.megabytes, compiled.directory) == (10, 102.0, stubbed)


def test_a_log_has_a_line_for_each_fit(stubbed, capsys):
    """A terminal has a bar instead."""
    warm.compile_kernels(["MulticlassSVC"], n_jobs=1)
    lines = capsys.readouterr().err.splitlines()
    kinds = [
        re.fullmatch(r"compile: (\d of 3) after \d+ s: (.+), 2 kernels", line).groups() for line in lines
    ]
    assert kinds == [(f"{k} of 3", f"MulticlassSVC, {data}") for k, data in enumerate(ROW_KINDS, start=1)]
    warm.compile_kernels(["MulticlassSVC"], n_jobs=1, progress=False)
    assert capsys.readouterr().err == ""


def test_a_child_that_fails_is_an_error(monkeypatch, tmp_path):
    monkeypatch.setattr(warm, "cache_directory", lambda: tmp_path)
    monkeypatch.setattr(warm, "CHILD", "import sys; sys.stdin.read(); sys.exit(3)")
    with pytest.raises(ChildProcessError, match=r"compiled for MatchingSVC, links ended with code 3"):
        warm.compile_kernels(["MatchingSVC"])


PROGRAM = """
import warnings
import numpy as np
from maxmargin import MatchingSVC, MulticlassSVC
from maxmargin.cli import warm
from maxmargin.methods.sweep import sweep

compiled = warm.compile_kernels(["MulticlassSVC", "MatchingSVC"])
assert warm._n_specialisations() == 0
warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
X, y = rng.normal(size=(9, 4)), np.arange(9) % 3
for features in (X, np.where(X > 1, X, 0.0), np.where(X > 1, 1.0, 0.0)):
    MulticlassSVC(max_iter=2).fit(features, y).predict(features)
MulticlassSVC(max_iter=2, class_weight="balanced").fit(X, y, sample_weight=1.0 + y)
links = [X[:6].reshape(2, 3, 4)]
MatchingSVC(max_iter=2, fertility=2).fit(links, [[(0, 0), (0, 2)]]).predict(links)

assert compiled.kernels == warm._n_specialisations() > 0
assert sum(sweep.cached.stats.cache_hits.values()) == 4
assert not sweep.cached.stats.cache_misses
"""


def test_children_find_their_work_where_it_is():
    subprocess.run([sys.executable, "-W", "error", "-c", warm.CHILD], input=b"[]", check=True, timeout=600)


@pytest.mark.slow
def test_afterwards_estimators_compile_nothing():
    subprocess.run([sys.executable, "-c", PROGRAM], check=True, timeout=600)


def test_without_a_directory_nothing_is_kept(monkeypatch):
    monkeypatch.setattr(warm, "cache_directory", lambda: None)
    compiled = warm.compile_kernels()
    assert (compiled.kernels, compiled.directory) == (0, None)
    assert "no directory to keep them is writeable" in str(compiled)


def test_the_outcome_is_one_line(tmp_path):
    said = str(warm.Compiled(12, np.float64(3.21), tmp_path, 512.3))
    assert said == f"12 kernels ready in 3.2 s and at most 512 MB a process, in {tmp_path}"
