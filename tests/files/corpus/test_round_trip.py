"""A corpus has the rows, labels and names that `SequenceEncoder` makes of the data, and trains the same."""

import gzip
import json
import pickle
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.feature_extraction import FeatureHasher

from maxmargin import (
    ChainSVC,
    DependencySVC,
    GraphSVC,
    MatchingSVC,
    MulticlassSVC,
    MultilabelSVC,
    SegmentSVC,
    encode_files,
    load,
    open_corpus,
)
from maxmargin.encoding.labels import encode_labels
from maxmargin.encoding.sequences import HashingEncoder, SequenceEncoder
from maxmargin.files.columns import word_features
from maxmargin.files.corpus import reading
from maxmargin.files.corpus.opening import Corpus, open_part, sequence_lengths
from maxmargin.files.templates import parse_template
from maxmargin.problems import Chain
from maxmargin.runtime.arrays import is_mapped
from maxmargin.solving import display

NAMES = st.text("ab=:\\é\t ", min_size=1, max_size=3).filter(lambda name: "\t" not in name)
LABELS = st.sampled_from(["B-X", "I-X", "O"])
STRINGS = st.lists(st.tuples(st.lists(NAMES, max_size=4), LABELS), max_size=4)
VALUED = st.lists(
    st.tuples(st.dictionaries(NAMES, st.floats(-9, 9) | st.sampled_from([1.0, "s", True])), LABELS),
    max_size=4,
)


def write_json(path: Path, sequences: list[Any]) -> Path:
    lines = (
        json.dumps({"tokens": [token for token, _ in x], "labels": [label for _, label in x]})
        for x in sequences
    )
    path.write_text("\n".join(lines))
    return path


def assert_same(corpus: Corpus, X: list[Any], y: list[Any], min_count: int = 1) -> None:
    """The corpus is what the encoder makes of lists."""
    encoder = SequenceEncoder(min_count=min_count)
    rows, offsets = encoder.fit_transform(X)
    codes, classes = encode_labels(y, offsets)
    found = corpus.X.tokens
    assert corpus.X.names == encoder.feature_names_
    assert found.rows.shape == rows.shape
    for name in ("data", "indices", "indptr"):
        assert np.array_equal(getattr(found.rows, name), getattr(rows, name)), name
    assert np.array_equal(found.offsets, offsets)
    assert np.array_equal(corpus.y.codes, codes)
    assert corpus.y.classes.tolist() == classes.tolist()
    assert list(corpus.y) == [corpus.y[i] for i in range(len(y))] == [list(labels) for labels in y]


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    sequences=st.lists(STRINGS, min_size=1, max_size=6) | st.lists(VALUED, min_size=1, max_size=6),
    min_count=st.integers(1, 2),
    size=st.integers(1, 5),
)
def test_any_sequences_are_read_back(
    tmp_path_factory: pytest.TempPathFactory, sequences: list[Any], min_count: int, size: int
) -> None:
    folder = tmp_path_factory.mktemp("corpus")
    path = write_json(folder / "data", sequences)
    X, y = ([[pair[k] for pair in x] for x in sequences] for k in (0, 1))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "_TOKENS", size)
        try:
            SequenceEncoder(min_count=min_count).fit(X)
        except ValueError:  # no token, or no feature that is frequent enough
            with pytest.raises(ValueError, match=r"encode: (the files must have|no feature)"):
                encode_files(path, folder / "out", format="json", min_count=min_count)
            assert not (folder / "out" / "manifest.json").exists()
            return
        corpus = encode_files(path, folder / "out", format="json", min_count=min_count)
    assert_same(corpus, X, y, min_count)
    if min_count == 1:
        again = SequenceEncoder().fit_transform(corpus.X)
        assert np.array_equal(again.rows.toarray().sum(axis=1), corpus.X.tokens.rows.toarray().sum(axis=1))


COLUMNS = "-DOCSTART- -X- O\n\nthe DT B-NP\ndog NN I-NP\n\n\nruns VB B-VP\n\nEU NNP B-NP\n"


@pytest.mark.parametrize("template", [None, "U00:%x[0,0]\nU01:%x[-1,1]/%x[0,1]"])
def test_column_files_are_encoded_by_templates(tmp_path: Path, template: str | None) -> None:
    (tmp_path / "data").write_text(COLUMNS)
    (tmp_path / "more.gz").write_bytes(gzip.compress(COLUMNS.encode()))
    given = None
    features = word_features
    if template is not None:
        given = tmp_path / "template"
        given.write_text(template)
        features = parse_template(template).features
    files = [tmp_path / "data", tmp_path / "more.gz"]
    corpus = encode_files(files, tmp_path / "out", template=given)
    rows = [[["the", "DT"], ["dog", "NN"]], [["runs", "VB"]], [["EU", "NNP"]]] * 2
    labels = [["B-NP", "I-NP"], ["B-VP"], ["B-NP"]] * 2
    assert_same(corpus, [features(x) for x in rows], labels)
    assert corpus.manifest.recipe.settings == {"template": template, "columns": 3}


def test_attribute_files_are_read_in_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "_BYTES", 8)
    (tmp_path / "data").write_text("A\tw=x\tcap\nB\tw=y\n\nA\tw=x\n\nB\n\nA\tw=x:2.5\n")
    corpus = encode_files(tmp_path / "data", tmp_path / "out")
    X = [[{"w=x": 1, "cap": 1}, {"w=y": 1}], [{"w=x": 1}], [{}], [{"w=x": 2.5}]]
    assert_same(corpus, X, [["A", "B"], ["A"], ["B"], ["A"]])
    assert corpus.X[0] == [{"w=x": 1.0, "cap": 1.0}, {"w=y": 1.0}]


def words(n: int) -> list[Any]:
    rng = np.random.default_rng(0)
    lengths = rng.integers(0, 6, size=n)
    return [
        [([f"w={k}", f"s={k % 3}", "bias"], "ABC"[k % 3]) for k in rng.integers(9, size=m).tolist()]
        for m in lengths
    ]


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    return encode_files(write_json(tmp_path / "data", words(20)), tmp_path / "out")


def test_training_is_the_same_bit_for_bit(tmp_path: Path, corpus: Corpus) -> None:
    X, y = ([[pair[k] for pair in x] for x in words(20)] for k in (0, 1))
    expected = ChainSVC(random_state=0, C=1.0).fit(X, y)
    for data in (corpus, corpus.path, Path(corpus.path)):
        model = ChainSVC(random_state=0, C=1.0).fit(data)
        assert np.array_equal(model._w, expected._w)
        assert model.feature_names_ == expected.feature_names_
    assert np.array_equal(ChainSVC(random_state=0, C=1.0).fit(corpus.X, corpus.y)._w, expected._w)
    model.save(tmp_path / "model")
    assert load(tmp_path / "model").predict(X) == expected.predict(X) == model.predict(corpus.X)
    assert model.score(corpus.X, corpus.y) == expected.score(X, y)


def test_nothing_is_copied(corpus: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    problems = []
    build = Chain.from_encoded
    monkeypatch.setattr(
        Chain, "from_encoded", lambda *a, **k: problems.append(build(*a, **k)) or problems[-1]
    )
    ChainSVC(random_state=0, C=1.0).fit(corpus)
    (phi, oracle), rows = problems[0], corpus.X.tokens.rows
    for used, mapped in (
        (phi.rows.start, rows.indptr),
        (phi.rows.columns, rows.indices),
        (oracle.labels, corpus.y.codes),
    ):
        assert is_mapped(used)
        assert np.shares_memory(used, mapped)
        with pytest.raises(ValueError, match="read-only"):
            mapped[0] = 1


def test_hashed_names_are_read_back(tmp_path: Path) -> None:
    sequences = words(20)
    X = [[token for token, _ in x] for x in sequences]
    corpus = encode_files(write_json(tmp_path / "data", sequences), tmp_path / "out", hash_bits=5)
    hasher = FeatureHasher(32, input_type="string", alternate_sign=False)
    expected = hasher.transform([token for x in X for token in x]).toarray() > 0
    assert np.array_equal(corpus.X.tokens.rows.toarray(), expected)
    assert corpus.X.names is None
    model = ChainSVC(random_state=0).fit(corpus)
    assert model.coef_.shape == (3, 32)
    assert model.feature_names_ is None
    model.save(tmp_path / "model")
    assert load(tmp_path / "model").predict(X) == model.predict(X) == model.predict(corpus.X)
    with pytest.raises(TypeError, match="X must have tokens that are dicts or lists of strings"):
        model.predict([np.zeros((2, 32))])


def test_values_that_share_a_column_are_added() -> None:
    rows, _ = HashingEncoder(1).transform([[{"a": 0.5, "b": 2.0, "c": 1.0, "d": 4.0}]])
    assert rows.sum() == 7.5
    rows, _ = HashingEncoder(1).transform([[["a", "b", "c", "d", "a"]]])
    assert set(rows.data.tolist()) == {1.0}


def test_segments_train_as_from_memory(tmp_path: Path) -> None:
    (tmp_path / "data").write_text(COLUMNS * 3)
    corpus = encode_files(tmp_path / "data", tmp_path / "out")
    model = SegmentSVC(random_state=0).fit(corpus)
    expected = SegmentSVC(random_state=0).fit(corpus.X[:], corpus.y[:])
    assert np.array_equal(model._w, expected._w)


def test_second_order_chains_train_as_from_memory(corpus: Corpus) -> None:
    model = ChainSVC(order=2, random_state=0).fit(corpus.path)
    expected = ChainSVC(order=2, random_state=0).fit(corpus.X[:], corpus.y[:])
    assert np.array_equal(model._w, expected._w)


@pytest.mark.parametrize(
    "estimator",
    [DependencySVC, GraphSVC, MatchingSVC, MulticlassSVC, MultilabelSVC],
    ids=lambda e: e.__name__,
)
def test_estimators_without_sequences_refuse_a_corpus_in_one_line(corpus: Corpus, estimator: Any) -> None:
    for data in ((corpus.path,), (corpus,), (corpus.path, corpus.y), (corpus.X, corpus.y)):
        with pytest.raises((TypeError, ValueError)) as caught:
            estimator().fit(*data)
        assert estimator.__name__ in str(caught.value)
        assert "\n" not in str(caught.value)


def test_progress_grows_to_all_of_the_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Both stages show what share of the bytes is done, which grows to all of it."""
    write_json(tmp_path / "data", words(20))
    monkeypatch.setattr(reading, "_TOKENS", 10)
    monkeypatch.setattr(display.Due, "seconds", lambda self: 3.0)
    for min_count in (1, 2):
        encode_files(tmp_path / "data", tmp_path / f"out{min_count}", min_count=min_count, verbose=2)
        lines = capsys.readouterr().err.splitlines()
        for stage in ("encode", "encode: finishing"):
            shares = [re.fullmatch(rf"{stage}: (\d+)%, 3 s", line) for line in lines]
            found = [int(share[1]) for share in shares if share]
            assert found == sorted(found)
            assert len(found) > 2
            assert found[-1] == 100
    encode_files(tmp_path / "data", tmp_path / "silent", verbose=0)
    assert capsys.readouterr().err == ""


def test_a_pickle_of_a_corpus_is_its_path(corpus: Corpus) -> None:
    content = pickle.dumps(corpus)
    assert len(content) < 500
    assert list(pickle.loads(content).y) == list(corpus.y)
    assert "20 sequences" in repr(corpus)


def test_a_finished_directory_is_left_alone(tmp_path: Path, corpus: Corpus) -> None:
    before = {file.name: file.stat().st_mtime_ns for file in Path(corpus.path).iterdir()}
    encode_files(tmp_path / "data", corpus.path)
    assert {file.name: file.stat().st_mtime_ns for file in Path(corpus.path).iterdir()} == before
    with pytest.raises(ValueError, match="must be a new directory, got a corpus of other files or settings"):
        encode_files(tmp_path / "data", corpus.path, min_count=2)
    assert len(open_corpus(corpus.path, verify=True).X) == 20


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"files": "-"},
            "encode: files must be files, which can be read again after an interruption, got '-'",
        ),
        ({"files": []}, "encode: files must be one or more paths, got an empty list"),
        ({"min_count": 0}, "encode: min_count must be an int >= 1, got 0"),
        ({"hash_bits": 31}, "encode: hash_bits must be an int from 1 to 30, got 31"),
        ({"hash_bits": 5, "min_count": 2}, "encode: min_count must be 1 where names are hashed, got 2"),
        ({"format": "conllu"}, "encode: format must be one of"),
        ({"template": "data"}, "template: expected a column file, got the format json"),
        ({"output": "."}, "must be a new or empty directory, got one with 'bad'"),
        ({"files": "rows"}, "rows: expected the format columns or attributes or json, got svmlight"),
        ({"files": ["data", "bad"]}, 'bad:1: expected "labels", a list of 1, one for each token, got None'),
        ({"files": "nowhere"}, "No such file or directory: 'nowhere'"),
        ({"files": ["data", "ints"]}, "encode: labels must be all strings or all whole numbers, got both"),
    ],
)
def test_faults_are_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    write_json(Path("data"), words(3))
    Path("bad").write_text('{"tokens": [["a"]]}')
    Path("ints").write_text('{"tokens": [["a"]], "labels": [1]}')
    Path("rows").write_text("1 1:1\n")
    with pytest.raises((ValueError, OSError)) as caught:
        encode_files(**({"files": "data", "output": "out"} | options))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_what_a_corpus_cannot_do_is_refused(corpus: Corpus) -> None:
    for model in (ChainSVC(min_count=2), ChainSVC(kernel="rbf")):
        with pytest.raises(ValueError, match="a corpus is for fit with kernel='linear' and min_count=1"):
            model.fit(corpus)
    with pytest.raises(ValueError, match="a corpus is for fit"):
        ChainSVC().partial_fit(corpus.X, corpus.y)
    with pytest.raises(ValueError, match=r"expected a directory with manifest\.json"):
        ChainSVC().fit("nowhere")
    with pytest.raises(TypeError, match="y must be a list of label sequences, got None"):
        ChainSVC().fit([[["a"]]])


def test_parts_of_a_corpus_are_its_slices(tmp_path: Path) -> None:
    data = "A\tw\tv:2\nB\tw\n\nB\tu\n\nA\tv\nA\tx\nB\tw:3\n\n"
    (tmp_path / "data").write_text(data)
    corpus = encode_files(tmp_path / "data", tmp_path / "corpus")
    assert sequence_lengths(corpus.path).tolist() == [2, 1, 3]
    for first, stop in ((0, 1), (1, 3), (0, 3)):
        part = open_part(corpus.path, first, stop)
        assert part.X[:] == corpus.X[first:stop]
        assert part.y[:] == corpus.y[first:stop]
        assert part.X.names == corpus.X.names
        assert is_mapped(part.X.tokens.rows.indices)
        assert is_mapped(part.y.codes)
        again = pickle.loads(pickle.dumps(part))
        assert again.X[:] == part.X[:]
        assert again.span == (first, stop)
    for first, stop in ((-1, 2), (2, 2), (1, 4)):
        with pytest.raises(ValueError, match="must be among 3 sequences"):
            open_part(corpus.path, first, stop)
