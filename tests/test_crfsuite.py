"""Projects that use python-crfsuite run on `maxmargin.crfsuite`, with one import changed."""

import itertools
import os
import subprocess
import sys
import warnings
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maxmargin import ChainSVC, FileError, MulticlassSVC, load
from maxmargin import crfsuite as ours

ALGORITHMS = ["lbfgs", "l2sgd", "ap", "pa", "arow"]
X = [
    [{"word": "the", "n": 0.3}, {"word": "dog", "next": {"word": "barks", "tags": ["V", "V"]}}, ["barks"]],
    [{"word": "a"}, {"word": "cat", "n": 0.5}],
    [["word:the", "last"]],
    [],
]
Y = [["D", "N", "V"], ["D", "N"], ["D"], []]


@pytest.fixture(scope="module")
def theirs() -> ModuleType:
    return pytest.importorskip("pycrfsuite")


def trained(
    path: Path, module: Any = ours, groups: Any = (0, 0, 0, 0), holdout: int = -1, **kwargs: Any
) -> Any:
    trainer = module.Trainer(verbose=False, **kwargs)
    for x, y, group in zip(X, Y, groups, strict=True):
        trainer.append(x, y, group)
    trainer.train(str(path), holdout)
    return opened(path, module)


def opened(path: Path, module: Any = ours) -> Any:
    tagger = module.Tagger()
    tagger.open(str(path))
    return tagger


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "model"
    trained(path)
    return path


@pytest.mark.parametrize("algorithm", [*ALGORITHMS, "averaged-perceptron", "passive-aggressive", "LBFGS"])
def test_parameters_and_defaults_are_those_of_crfsuite(theirs: Any, algorithm: str) -> None:
    trainers = [module.Trainer(algorithm, verbose=False) for module in (ours, theirs)]
    found, expected = (trainer.get_params() for trainer in trainers)
    assert found == expected
    assert {name: type(value) for name, value in found.items()} == {k: type(v) for k, v in expected.items()}
    for trainer in trainers:
        trainer.set_params({"max_iterations": "7", "feature.possible_states": True, "feature.minfreq": 2})
        trainer.set("epsilon" if "epsilon" in found else "delta", "0.5")
    assert trainers[0].get_params() == trainers[1].get_params()
    assert trainers[0].params() == list(found)
    assert sorted(trainers[0].params()) == sorted(trainers[1].params())
    for trainer in trainers:
        trainer.select("lbfgs")
    assert trainers[0].get_params() == trainers[1].get_params()


def test_all_that_projects_call_is_there(theirs: Any) -> None:
    """What is missing is the log of a training by other means, and what the guide names."""

    def public(module: Any) -> set[str]:
        made = module.ItemSequence([]), module.Trainer(verbose=False), module.Tagger()
        return {f"{type(each).__name__}.{name}" for each in made for name in dir(each) if name[0] != "_"}

    missing = public(theirs) - public(ours)
    messages = {name for name in missing if name.startswith("Trainer.on_")}
    assert missing == {"Trainer.message", "Trainer.help", "Tagger.open_inmemory", *messages}


def test_the_guide_says_what_to_use_for_every_name_of_sklearn_crfsuite() -> None:
    CRF = pytest.importorskip("sklearn_crfsuite").CRF
    page = (Path(__file__).parents[1] / "docs" / "guides" / "coming_from.md").read_text(encoding="utf-8")
    names = {name for name in dir(CRF) if name[0] != "_"} - set(dir(ChainSVC))
    names |= {"training_log_", "classes_", "keep_tempfiles", "model_filename", "trainer_cls"}
    assert not [name for name in names if f"`{name}" not in page]


def test_the_same_calls_have_the_same_answers(theirs: Any, tmp_path: Path) -> None:
    for module in (ours, theirs):
        tagger = trained(tmp_path / module.__name__, module)
        assert sorted(tagger.labels()) == ["D", "N", "V"]
        assert [tagger.tag(x) for x in X] == Y
        assert tagger.tag(module.ItemSequence(X[1])) == Y[1] == tagger.tag()
        assert tagger.marginal("D", 0) > tagger.marginal("V", 0) > 0
        assert tagger.probability(["D", "N"]) > tagger.probability(["N", "N"]) > 0
        with tagger.open(str(tmp_path / module.__name__)) as same:
            assert same is tagger
            assert same.tag(iter(X[0])) == Y[0]
        names = {name for name, _ in tagger_names(module, tmp_path / module.__name__)}
        assert {"word:the", "next:word:barks", "next:tags:V", "n", "barks", "last"} <= names


def tagger_names(module: Any, path: Path) -> Any:
    return opened(path, module).info().state_features


CALLS = {
    "unknown algorithm": lambda m, path: m.Trainer("x", verbose=False),
    "unknown type": lambda m, path: m.Trainer(verbose=False).select("lbfgs", "x"),
    "unknown parameter": lambda m, path: m.Trainer(verbose=False).set("x", 1),
    "parameter of another algorithm": lambda m, path: m.Trainer("ap", {"c1": 1}, verbose=False),
    "unknown parameter read": lambda m, path: m.Trainer(verbose=False).get("x"),
    "lengths": lambda m, path: m.Trainer(verbose=False).append([["a"]], ["A", "B"]),
    "numbers as labels": lambda m, path: m.Trainer(verbose=False).append([["a"]], [1]),
    "tag before open": lambda m, path: m.Tagger().tag([["a"]]),
    "labels before open": lambda m, path: m.Tagger().labels(),
    "no file": lambda m, path: m.Tagger().open(str(path) + ".missing"),
    "another file": lambda m, path: m.Tagger().open(__file__),
    "too few labels": lambda m, path: tagged(m, path).probability(["D"]),
    "position": lambda m, path: tagged(m, path).marginal("D", 3),
    "position before the first": lambda m, path: tagged(m, path).marginal("D", -1),
}


def tagged(module: Any, path: Path) -> Any:
    tagger = opened(path, module)
    tagger.tag(X[0])
    return tagger


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_what_crfsuite_refuses_is_refused_in_kind(theirs: Any, tmp_path: Path, file: Path, call: Any) -> None:
    trained(tmp_path / "theirs", theirs)
    with pytest.raises((ValueError, TypeError, OSError)) as expected:
        call(theirs, tmp_path / "theirs")
    with pytest.raises(expected.type) as found:
        call(ours, file)
    assert "\n" not in str(found.value)


NAME = st.sampled_from(["word", "the", "word:the", "next", "n", "last", "other"])
LEAF = NAME | st.floats(-2.0, 2.0) | st.booleans() | st.lists(NAME, max_size=2) | st.sets(NAME, max_size=2)
NESTED = st.recursive(LEAF, lambda inner: st.dictionaries(NAME, inner, max_size=3), max_leaves=5)


@given(x=st.lists(st.dictionaries(NAME, NESTED, max_size=4) | st.lists(NAME, max_size=3), max_size=5))
def test_tagging_without_the_estimator_has_its_labels(file: Path, x: Any) -> None:
    tagger = opened(file)
    assert tagger.tag(x) == load(file).predict(ours.ItemSequence(x)._numbered)[0]
    assert "_estimator" not in vars(tagger._predictor)
    assert tagger.tag(ours.ItemSequence(x)) == tagger.tag(x)


@pytest.mark.compiled
def test_a_process_that_tags_does_not_import_the_estimator(file: Path) -> None:
    program = (
        "import sys; from maxmargin import crfsuite; tagger = crfsuite.Tagger(); tagger.open(sys.argv[1]);"
        "print(tagger.tag([{'next': {'word': 'dog'}}]), *{'scipy', 'numba', 'sklearn'} & set(sys.modules))"
    )
    opened(file)  # compiles the loops that are not on disk
    run = [sys.executable, "-c", program, str(file)]
    said = subprocess.run(run, capture_output=True, text=True, check=True).stdout
    assert said.strip() == str(opened(file).tag([{"next": {"word": "dog"}}]))


def test_unknown_labels_are_refused(file: Path) -> None:
    tagger = tagged(ours, file)
    for call in (lambda: tagger.marginal("Z", 0), lambda: tagger.probability(["D", "Z", "N"])):
        with pytest.raises(ValueError, match="no label 'Z'; it has D, N, V"):
            call()


def test_a_trainer_learns_what_chains_learn_from_the_same_items(tmp_path: Path) -> None:
    model = ChainSVC(probability=True, random_state=0, verbose=0)
    kept = [(x, y) for x, y in zip(X, Y, strict=True) if x]
    summed = [ours.ItemSequence(x).items() for x, _ in kept]
    summed[0][1]["next:tags:V"] = 2.0  # items() shows one of two
    model.fit(summed, [y for _, y in kept])
    trained(tmp_path / "model")
    same = load(tmp_path / "model")
    assert same.feature_names_ == model.feature_names_
    np.testing.assert_array_equal(same.coef_, model.coef_)
    assert same.temperature_ == model.temperature_


def test_sequences_of_the_group_that_is_held_out_do_not_count(tmp_path: Path) -> None:
    tagger = trained(tmp_path / "some", groups=(1, 1, 2, 1), holdout=2)
    trainer = ours.Trainer(verbose=False)
    for x, y in zip(X[:2], Y[:2], strict=True):
        trainer.append(x, y)
    trainer.train(tmp_path / "few")
    assert tagger.info().state_features == opened(tmp_path / "few").info().state_features


def test_parameters_reach_chains_or_are_said_to_have_no_counterpart(tmp_path: Path) -> None:
    params = {"feature.minfreq": 1.5, "max_iterations": 30, "c2": 1.0, "feature.possible_transitions": True}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        trained(tmp_path / "model", params=params, estimator=ChainSVC(C=0.5, random_state=0))
    model = load(tmp_path / "model")
    assert (model.min_count, model.max_iter, model.C) == (2, 30, 0.5)
    with pytest.warns(UserWarning, match=r"^Trainer: c1, c2: without a counterpart, and ignored.") as found:
        trained(tmp_path / "model", params={"c1": 0.1, "c2": 0.01, "feature.minfreq": 0})
    assert len(found) == 1
    assert found[0].filename == __file__
    with pytest.warns(UserWarning, match=r"^Trainer: c, algorithm passive-aggressive: without"):
        trained(tmp_path / "model", algorithm="pa", params={"c": 2})


def test_a_number_is_expected_where_one_is_due() -> None:
    with pytest.raises(ValueError, match=r"Trainer: c1 must be a number, got 'abc' \(str\)"):
        ours.Trainer(params={"c1": "abc"})


def test_only_plain_chains_are_trained() -> None:
    for estimator in (ChainSVC(order=2), ChainSVC(kernel="rbf"), MulticlassSVC()):
        trainer: Any = ours.Trainer(estimator=estimator)  # type: ignore[arg-type]
        trainer.append(X[0], Y[0])
        with pytest.raises(ValueError, match="must be a ChainSVC of order 1 without a kernel"):
            trainer.train("")


def test_training_needs_sequences(tmp_path: Path) -> None:
    trainer = ours.Trainer(verbose=False)
    trainer.append(X[0], Y[0])
    trainer.clear()
    trainer.append([], [])
    with pytest.raises(ValueError, match="needs sequences to train on"):
        trainer.train(tmp_path / "model")


def test_an_empty_name_writes_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    trainer = ours.Trainer(verbose=False)
    trainer.append(X[0], Y[0])
    trainer.append([{b"word": b"the"}], [b"D"])
    trainer.train("")
    assert not list(tmp_path.iterdir())


def score(info: Any, items: list[dict[str, float]], y: tuple[str, ...]) -> float:
    """The score of a labelling, by the names of weights."""
    states = info.state_features
    found = states.get(("__BOS__", y[0]), 0.0) + states.get(("__EOS__", y[-1]), 0.0)
    for item, label in zip(items, y, strict=True):
        found += sum(states.get((name, label), 0.0) * value for name, value in item.items())
    return found + sum(info.transitions.get(pair, 0.0) for pair in itertools.pairwise(y))


@pytest.mark.parametrize("forbidden", [None, [("D", "D"), (None, "V"), ("N", None)]])
def test_probabilities_are_those_of_all_labellings(tmp_path: Path, forbidden: Any) -> None:
    estimator = ChainSVC(forbidden=forbidden, forbidden_in="prediction", probability=True, random_state=0)
    tagger = trained(tmp_path / "model", estimator=estimator)
    x = [X[0][0], ["word:cat"], {"n": 2.0, "unknown": "x"}]
    items, info, temperature = (
        ours.ItemSequence(x).items(),
        tagger.info(),
        load(tmp_path / "model").temperature_,
    )
    every = [
        y
        for y in itertools.product("DNV", repeat=3)
        if not {*itertools.pairwise([None, *y, None])} & set(forbidden or ())
    ]
    powers = np.exp([score(info, items, y) / temperature for y in every])
    p = dict(zip(every, powers / powers.sum(), strict=True))
    best = tagger.tag(x)
    assert p[tuple(best)] == pytest.approx(max(p.values()))
    for y in itertools.product("DNV", repeat=3):
        assert tagger.probability(y) == pytest.approx(p.get(y, 0.0), abs=1e-12)
    for t, label in itertools.product(range(3), "DNV"):
        assert tagger.marginal(label, t) == pytest.approx(
            sum(q for y, q in p.items() if y[t] == label), abs=1e-9
        )


def test_models_without_temperature_tag_and_say_that_they_have_no_probabilities(tmp_path: Path) -> None:
    tagger = trained(tmp_path / "model", estimator=ChainSVC(random_state=0))
    assert tagger.tag(X[0]) == Y[0]
    for call in (lambda: tagger.marginal("D", 0), lambda: tagger.probability(Y[0])):
        with pytest.raises(ValueError, match="temperature"):
            call()


def test_crfsuite_reads_what_is_dumped(theirs: Any, file: Path, tmp_path: Path, capsys: Any) -> None:
    from pycrfsuite._dumpparser import CRFsuiteDumpParser

    tagger = opened(file)
    tagger.dump(tmp_path / "dump")
    tagger.dump()
    text = (tmp_path / "dump").read_text(encoding="utf-8")
    assert capsys.readouterr().out == text
    parser, info = CRFsuiteDumpParser(), tagger.info()
    for line in text.splitlines(keepends=True):
        parser.feed(line)
    for name, expected in info._asdict().items():
        found = getattr(parser.result, name)
        assert found == (
            expected if name in ("header", "labels", "attributes") else pytest.approx(expected, abs=1e-6)
        )
        assert found


def test_files_of_crfsuite_are_missing_models(theirs: Any, tmp_path: Path) -> None:
    trained(tmp_path / "theirs", theirs)
    with pytest.raises(OSError, match="is a model of crfsuite, expected one of maxmargin; train it"):
        opened(tmp_path / "theirs")


def test_other_models_are_refused(tmp_path: Path) -> None:
    MulticlassSVC(random_state=0).fit([[0.0], [1.0]], ["a", "b"]).save(tmp_path / "classes")
    (tmp_path / "junk").write_bytes(b"junk" * 20)
    ChainSVC(random_state=0).fit([[[0.0], [1.0]]], [["a", "b"]]).save(tmp_path / "numbers")
    for name in ("classes", "numbers"):
        with pytest.raises(ValueError, match="must hold a ChainSVC of order 1 with names"):
            opened(tmp_path / name)
    with pytest.raises(FileError):
        opened(tmp_path / "junk")


@pytest.mark.parametrize("x", [None, "the dog", ["the"], [1.0], [[1.0]], {"a": 1}, [{"a": None}], [{1: 2}]])
def test_what_is_no_sequence_of_items_is_refused_in_one_line(x: Any) -> None:
    with pytest.raises((TypeError, ValueError)) as found:
        ours.ItemSequence(x)
    assert "\n" not in str(found.value)
    assert str(found.value).startswith("ItemSequence: ")


ADDRESSES = [
    [
        ("123", "AddressNumber"),
        ("Main", "StreetName"),
        ("St.", "StreetNamePostType"),
        ("Boston", "PlaceName"),
    ],
    [("45", "AddressNumber"), ("Oak", "StreetName"), ("Ave", "StreetNamePostType"), ("Salem", "PlaceName")],
    [("7", "AddressNumber"), ("Elm", "StreetName"), ("Rd", "StreetNamePostType"), ("Lynn", "PlaceName")],
]
# Imports what a project imports, trains as parserator does, and parses.
PROGRAM = """
import sys, warnings
from maxmargin import crfsuite
sys.modules["pycrfsuite"] = crfsuite  # the one import
warnings.simplefilter("ignore")
import {project} as project
from parserator.training import trainModel
trainModel([("", pairs) for pairs in {data!r}], project, {path!r})
tagger = getattr(project, "TAGGERS", {{}}).get("generic", project.TAGGER)
if tagger is None:  # without a model file of ours, as probablepeople has it
    project.TAGGERS["generic"] = tagger = crfsuite.Tagger()
tagger.open({path!r})
print(project.parse({text!r}))
"""


@pytest.mark.parametrize("project", ["usaddress", "probablepeople"])
def test_projects_train_and_parse(project: str, tmp_path: Path) -> None:
    for name in (project, "parserator"):
        pytest.importorskip(name)
    text = "12 Pine St. Boston"
    program = PROGRAM.format(project=project, data=ADDRESSES, path=str(tmp_path / "m"), text=text)
    run = [sys.executable, "-c", program]
    said = subprocess.run(run, capture_output=True, text=True, check=True, env=interpreted()).stdout
    expected = ["AddressNumber", "StreetName", "StreetNamePostType", "PlaceName"]
    assert said.strip() == str(list(zip(text.split(), expected, strict=True)))
    assert load(tmp_path / "m").classes_.tolist() == sorted(expected)


def interpreted() -> dict[str, str]:
    return {**os.environ, "NUMBA_DISABLE_JIT": "1"}


def test_sklearn_crfsuite_runs_on_it(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("sklearn_crfsuite")
    for name in [name for name in sys.modules if name.partition(".")[0] == "sklearn_crfsuite"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pycrfsuite", ours)
    from sklearn_crfsuite import CRF

    crf = CRF(max_iterations=50).fit(X[:3], Y[:3])
    assert list(map(list, crf.predict(X[:3]))) == Y[:3]
    assert crf.predict_marginals_single(X[0])[0]["D"] > 0.5
    assert ("next:word:barks", "N") in crf.state_features_
    for name in [name for name in sys.modules if name.partition(".")[0] == "sklearn_crfsuite"]:
        monkeypatch.delitem(sys.modules, name)


def test_items_have_no_vectors_as_those_of_python_crfsuite_have_none() -> None:
    message = "feature 'a:b' of token 1 of sequence 0 of X is an array, which ItemSequence does not take"
    with pytest.raises(TypeError, match=message):
        ours.ItemSequence([{"a": 1}, {"a": {"b": np.ones(2)}}])
