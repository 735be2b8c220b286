"""Checkpoints and pickles of the version before, whose modules had other paths."""

import json
import pickle
import re
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import maxmargin
from maxmargin import Status, _moved, estimators, problems
from maxmargin.files.sealed import FileError
from maxmargin.structures.problem import fingerprint
from support import earlier, model_files
from support.bitwise_runs import bits
from support.checkpoints import assert_same_run, assert_same_state

RUNS = earlier.runs()
# Their solver of quadratic programs rounds the last bit differently on the processor that made the files.
OF_PROGRAMS = {"method-cutting-plane", "method-n-slack"}
PROBLEMS = earlier.problems()
SAMPLES = model_files.samples()
# What documents and examples imported.
DOCUMENTED = [
    "maxmargin.arrays.FloatArray",
    "maxmargin.compiling.threads.run_in_turns",
    "maxmargin.dask.rounds.Round",
    "maxmargin.decoding.decode_all",
    "maxmargin.driver.solve",
    "maxmargin.encoding.links.encode_matchings",
    "maxmargin.estimators.chain.ChainSVC",
    "maxmargin.formats.columns.read_columns",
    "maxmargin.inference.chow_liu.chow_liu",
    "maxmargin.kinds.begin",
    "maxmargin.persistence.container.FileError",
    "maxmargin.problems.chain.ChainProblem",
    "maxmargin.problems.feature_map.map_sizes",
    "maxmargin.problems.feature_map.push",
    "maxmargin.problems.feature_map.score",
    "maxmargin.problems.halves.absent",
    "maxmargin.problems.margins.forbid",
    "maxmargin.problems.margins.output_score",
    "maxmargin.problems.multiclass.MulticlassProblem",
    "maxmargin.problems.oracle.argmax",
    "maxmargin.problems.oracle.loss",
    "maxmargin.problems.oracle.output_size",
    "maxmargin.problems.oracles.multiclass.MulticlassOracle",
    "maxmargin.problems.problem.sizes",
    "maxmargin.result.Progress",
    "maxmargin.rows.as_rows",
]


def unpickled(file: str) -> Any:
    """Return what a pickle of the version before holds; each path that is old must have a warning."""
    content = (earlier.FOLDER / file).read_bytes()
    with pytest.warns(FutureWarning) as warned:
        found = pickle.loads(content)
    for warning in warned:
        old, new = re.findall(r"maxmargin[\w.]*(?=\.)", str(warning.message))
        assert old.encode() in content
        assert new in sys.modules
        assert warning.filename == __file__
    return found


@pytest.fixture(autouse=True)
def nothing_moved_was_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget the modules that are gone, so that each test is warned of them."""
    for name in [name for name, module in sys.modules.items() if isinstance(module, _moved.Moved)]:
        monkeypatch.delitem(sys.modules, name)


@pytest.mark.parametrize("name", sorted(RUNS.keys() - {"signs"}))
def test_a_run_continues_from_its_checkpoint(name: str) -> None:
    problem, method = RUNS[name]
    found = earlier.run(problem, method, 5, start=earlier.FOLDER / f"{name}.run.checkpoint")
    expected = earlier.run(problem, method, 5)
    if name not in OF_PROGRAMS:
        assert_same_run(found, expected)
        return
    np.testing.assert_allclose(found.w, expected.w, rtol=1e-12, atol=1e-12)
    for column in ("passes", "oracle_calls", "primal", "dual", "gap"):
        np.testing.assert_allclose(found.history[column], expected.history[column], rtol=1e-12, atol=1e-12)


def test_a_run_with_signs_whose_vectors_have_another_layout_is_refused() -> None:
    problem, method = RUNS["signs"]
    with pytest.raises(
        FileError, match=r"signs\.run\.checkpoint: expected a checkpoint of this run, got one of"
    ):
        earlier.run(problem, method, 5, start=earlier.FOLDER / "signs.run.checkpoint")
    problem, _, result = unpickled("signs.problem.pickle").values()
    assert fingerprint(problem) == fingerprint(PROBLEMS["signs"])
    with pytest.raises(ValueError, match=r"^ProximalMap: w must be \d+ real numbers"):
        earlier.run(problem, method, 3, start=result)


@pytest.mark.parametrize("name", earlier.FITS)
def test_a_fit_continues_from_its_checkpoint(name: str, tmp_path: Path) -> None:
    file = tmp_path / "fit"
    file.write_bytes((earlier.FOLDER / f"{name}.fit.checkpoint").read_bytes())
    found, expected = earlier.fitted(name, 5, file), earlier.fitted(name, 5, tmp_path / "new")
    assert bits(found._w) == bits(expected._w)
    assert (found.gap_, found.n_iter_) == (expected.gap_, expected.n_iter_)


@pytest.mark.parametrize("name", sorted(PROBLEMS.keys() - {"signs"}))
def test_a_problem_is_unpickled_with_its_weights_and_result(name: str) -> None:
    problem, weights, result = unpickled(f"{name}.problem.pickle").values()
    assert fingerprint(problem) == fingerprint(PROBLEMS[name])
    for given, made in zip(weights, problem.unpack(result.w), strict=True):
        np.testing.assert_array_equal(given, made)
    assert type(weights) is type(problem.unpack(result.w))
    assert result.status is Status.MAX_PASSES
    assert result.history.gap[-1] == result.gap
    again = earlier.run(problem, earlier.METHODS["bcfw"], 3, start=result)
    assert again.certified <= result.certified
    assert again.dual >= result.dual


def test_a_problem_of_functions_is_unpickled() -> None:
    problem, weights, result = unpickled("custom.problem.pickle").values()
    assert_same_state(weights, problem.unpack(result.w))
    assert earlier.run(problem, earlier.METHODS["bcfw"], 3, start=result).dual >= result.dual


def test_methods_are_unpickled() -> None:
    assert unpickled("methods.pickle") == earlier.METHODS


@pytest.mark.parametrize("name", SAMPLES)
def test_an_estimator_is_unpickled_and_predicts_the_same(name: str) -> None:
    model, X, y = unpickled(f"{name}.estimator.pickle"), SAMPLES[name].X, SAMPLES[name].y
    expected = json.loads((model_files.FOLDER / "before" / f"{name}.json").read_text())
    assert model_files.outputs(model, X)["predict"] == expected["predict"]
    passes = model.n_iter_
    assert model.fit(X, y).n_iter_ == (0 if name in earlier.FITS else passes)  # those had kept their data


@pytest.mark.parametrize("path", DOCUMENTED)
def test_names_for_own_models_and_methods_are_found(path: str) -> None:
    module, _, name = path.rpartition(".")
    with pytest.warns(FutureWarning, match=rf"^{path} is now maxmargin\."):
        found = getattr(import_module(module), name)
    assert getattr(import_module(module), name) is found  # without a warning


def test_every_module_of_the_version_before_can_be_imported() -> None:
    for folder, modules in _moved._MODULES.items():
        for name in modules.split() if folder != "dask" or find_spec("distributed") else ():
            path = ".".join(filter(None, ["maxmargin", folder, name]))
            assert import_module(path).__name__ == path


def test_names_that_never_were_are_not_found() -> None:
    with pytest.raises(AttributeError, match=r"module 'maxmargin\.result' has no attribute 'Nothing'"):
        _ = import_module("maxmargin.result").Nothing
    with pytest.raises(ModuleNotFoundError):
        import_module("maxmargin.problems.nothing")
    with pytest.raises(ImportError, match=r"cannot import name 'nothing'"):
        from maxmargin.problems import nothing  # noqa: F401


def test_parsers_have_their_former_names() -> None:
    with pytest.warns(FutureWarning, match=r"problems\.Arborescence is now maxmargin\.problems\.Dependency"):
        assert problems.Arborescence is problems.Dependency
    with pytest.warns(FutureWarning, match=r"problems\.DependencyWeights"):
        assert problems.ArborescenceWeights is problems.DependencyWeights


@pytest.mark.parametrize("name", ["Explanation", "TokenTransformer", "load", "pickle_training_data"])
def test_names_of_all_estimators_are_still_among_them(name: str) -> None:
    with pytest.warns(FutureWarning, match=rf"^maxmargin\.estimators\.{name} is now maxmargin\.{name};"):
        assert getattr(estimators, name) is getattr(maxmargin, name)
