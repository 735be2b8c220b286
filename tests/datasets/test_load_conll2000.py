"""CoNLL-2000: reading, features written out by hand, chunk scores, and the real counts."""

import gzip
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maxmargin.datasets import chunk_f1, load_conll2000, read_conll2000, window_features

URL = "https://www.clips.uantwerpen.be/conll2000/chunking/"
TRAIN = "He PRP B-NP\nruns VBZ B-VP\n. . O\n\nRun VB B-VP\n! . O\n\n"
TEST = "Stop VB B-VP\n\n"
Serve = Callable[[dict[str, bytes]], list[str]]


def write_pair(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "train.txt.gz").write_bytes(gzip.compress(TRAIN.encode()))
    (folder / "test.txt.gz").write_bytes(gzip.compress(TEST.encode()))


def test_a_small_sentence_has_the_features_of_its_words() -> None:
    features = window_features([("He", "PRP"), ("runs", "VBZ"), (".", "."), ("No", "DT")])
    assert len(features) == 4
    assert features[1] == [
        "word[-2]=<s>",
        "word[-1]=He",
        "word[0]=runs",
        "word[1]=.",
        "word[2]=No",
        "word[-1:0]=He runs",
        "word[0:1]=runs .",
        "pos[-2]=<s>",
        "pos[-1]=PRP",
        "pos[0]=VBZ",
        "pos[1]=.",
        "pos[2]=DT",
        "pos[-2:-1]=<s> PRP",
        "pos[-1:0]=PRP VBZ",
        "pos[0:1]=VBZ .",
        "pos[1:2]=. DT",
        "pos[-2:0]=<s> PRP VBZ",
        "pos[-1:1]=PRP VBZ .",
        "pos[0:2]=VBZ . DT",
    ]


def test_a_sentence_of_one_word_has_features_of_its_ends() -> None:
    (features,) = window_features([("Stop", "VB")])
    assert features[:7] == [
        "word[-2]=<s>",
        "word[-1]=<s>",
        "word[0]=Stop",
        "word[1]=</s>",
        "word[2]=</s>",
        "word[-1:0]=<s> Stop",
        "word[0:1]=Stop </s>",
    ]
    assert features[12:] == [
        "pos[-2:-1]=<s> <s>",
        "pos[-1:0]=<s> VB",
        "pos[0:1]=VB </s>",
        "pos[1:2]=</s> </s>",
        "pos[-2:0]=<s> <s> VB",
        "pos[-1:1]=<s> VB </s>",
        "pos[0:2]=VB </s> </s>",
    ]


def test_an_empty_sentence_has_no_features() -> None:
    assert window_features([]) == []
    with pytest.raises(ValueError, match=r"^window_features: sentence must be a sequence of pairs"):
        window_features("He runs.")


def test_equal_features_are_one_object() -> None:
    a, b = (window_features([("".join(["r", "un"]), "VB")])[0] for _ in range(2))
    assert a == b
    assert all(x is y for x, y in zip(a, b, strict=True))


@pytest.mark.parametrize(
    "text",
    [TRAIN, TRAIN.strip(), "\n\n" + TRAIN + "\n\n", TRAIN.replace("\n", "\r\n")],
    ids=["official", "no blank at the end", "extra blanks", "Windows line ends"],
)
def test_sentences_are_read_plain_and_packed(tmp_path: Path, text: str) -> None:
    expected = [
        [("He", "PRP", "B-NP"), ("runs", "VBZ", "B-VP"), (".", ".", "O")],
        [("Run", "VB", "B-VP"), ("!", ".", "O")],
    ]
    plain, packed = tmp_path / "train.txt", tmp_path / "train.txt.gz"
    plain.write_bytes(text.encode())
    packed.write_bytes(gzip.compress(text.encode()))
    assert read_conll2000(plain) == expected
    assert read_conll2000(str(packed)) == expected


@pytest.mark.parametrize("folder", ["", "conll2000"])
def test_files_are_loaded_from_a_directory(tmp_path: Path, folder: str) -> None:
    write_pair(tmp_path / folder)
    X_train, y_train, X_test, y_test = load_conll2000(data_home=tmp_path)
    assert y_train == [["B-NP", "B-VP", "O"], ["B-VP", "O"]]
    assert y_test == [["B-VP"]]
    assert [[token[2] for token in sentence] for sentence in X_train + X_test] == [
        ["word[0]=He", "word[0]=runs", "word[0]=."],
        ["word[0]=Run", "word[0]=!"],
        ["word[0]=Stop"],
    ]


def test_missing_file_is_named(tmp_path: Path) -> None:
    write_pair(tmp_path)
    (tmp_path / "test.txt.gz").unlink()
    missing = r"^load_conll2000: no 'conll2000/test.txt.gz' or 'test.txt.gz' in "
    with pytest.raises(FileNotFoundError, match=missing):
        load_conll2000(data_home=tmp_path)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (gzip.compress(TRAIN.encode())[:-9], "ended before"),
        (b"He PRP B-NP", "gzip"),
        (gzip.compress(b"He PRP B-NP\nruns VBZ\n"), "line 2 has 2 fields, not 'word POS tag'"),
        (gzip.compress(b"\xff PRP B-NP\n"), "utf-8"),
    ],
    ids=["cut", "not packed", "a field missing", "not text"],
)
def test_damaged_file_is_named(tmp_path: Path, body: bytes, reason: str) -> None:
    write_pair(tmp_path)
    path = tmp_path / "train.txt.gz"
    path.write_bytes(body)
    with pytest.raises(OSError, match=reason) as caught:
        load_conll2000(data_home=tmp_path)
    assert str(caught.value).startswith(f"read_conll2000: {path} is damaged")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("true", "pred", "f1"),
    [
        ("B-NP I-NP O B-VP", "B-NP I-NP O B-VP", 1.0),
        ("B-NP I-NP O B-VP", "B-NP O O B-VP", 0.5),
        ("I-NP I-NP I-VP", "B-NP I-NP B-VP", 1.0),
        ("B-NP I-VP", "B-NP B-VP", 1.0),
        ("B-NP B-NP", "B-NP I-NP", 0.0),
        ("B-NP I-NP", "B-VP I-VP", 0.0),
        ("B-NP O B-NP", "B-NP O O", 2 / 3),
        ("O I-NP", "O B-NP", 1.0),
        ("O O", "O O", 0.0),
        ("B-NP", "O", 0.0),
    ],
)
def test_chunk_f1_is_that_worked_out_by_hand(true: str, pred: str, f1: float) -> None:
    assert chunk_f1([true.split()], [pred.split()]) == pytest.approx(f1)


def test_no_chunk_crosses_from_one_sentence_to_the_next() -> None:
    assert chunk_f1([["B-NP"], ["I-NP"]], [["B-NP"], ["B-NP"]]) == 1.0


def continues(tags: list[str], i: int) -> bool:
    """Whether tag i prolongs the chunk of the tag before it."""
    return i > 0 and tags[i][0] == "I" and tags[i - 1] in ("B" + tags[i][1:], tags[i])


def spans(tags: list[str]) -> list[tuple[int, int, str]]:
    """Try every span: it is a chunk if it starts one, prolongs it throughout, and stops there."""
    n = len(tags)
    return [
        (i, j, tags[i][2:])
        for i in range(n)
        for j in range(i + 1, n + 1)
        if tags[i] != "O"
        and not continues(tags, i)
        and all(continues(tags, k) for k in range(i + 1, j))
        and not (j < n and continues(tags, j))
    ]


TAG_PAIRS = st.tuples(*2 * [st.sampled_from(["O", "B-a", "I-a", "B-b", "I-b"])])


@given(st.lists(st.lists(TAG_PAIRS, max_size=8), max_size=4))
def test_chunk_f1_is_that_of_all_spans(sentences: list[list[tuple[str, str]]]) -> None:
    true, pred = ([[pair[side] for pair in s] for s in sentences] for side in (0, 1))
    found = [(set(spans(a)), set(spans(b))) for a, b in zip(true, pred, strict=True)]
    right = sum(len(a & b) for a, b in found)
    if right == 0:
        assert chunk_f1(true, pred) == 0
        return
    precision = right / sum(len(b) for _, b in found)
    recall = right / sum(len(a) for a, _ in found)
    f1 = 2 * precision * recall / (precision + recall)
    assert chunk_f1(true, pred) == pytest.approx(f1)


@pytest.mark.parametrize(
    ("true", "pred", "message"),
    [
        ([["O"]], [], "expected as many predicted sequences as true ones, 1; got 0"),
        ([["O"], ["O", "O"]], [["O"], ["O"]], "expected 2 predicted tags in sequence 1; got 1"),
        ([["NP"]], [["O"]], "expected tags 'O', 'B-type' or 'I-type'; got 'NP'"),
        ([["O"]], [["B-"]], "got 'B-'"),
        ([["O-NP"]], [["O"]], "got 'O-NP'"),
    ],
)
def test_what_chunk_f1_cannot_score_is_refused(
    true: list[list[str]], pred: list[list[str]], message: str
) -> None:
    with pytest.raises(ValueError, match=f"^chunk_f1: .*{message}"):
        chunk_f1(true, pred)


@pytest.mark.long
def test_real_sentences_are_read(real_data: Path) -> None:
    X_train, y_train, X_test, y_test = load_conll2000(data_home=real_data)
    assert (len(X_train), len(X_test)) == (8936, 2012)
    assert (sum(map(len, X_train)), sum(map(len, X_test))) == (211727, 47377)
    assert [len(x) for x in X_train] == [len(y) for y in y_train]
    assert [len(x) for x in X_test] == [len(y) for y in y_test]
    tags = {tag for sentence in y_train for tag in sentence}
    assert len(tags) == 22
    assert {tag for sentence in y_test for tag in sentence} - tags == {"I-LST"}
    counts = Counter(f for sentence in X_train for token in sentence for f in token)
    kept = {feature for feature, count in counts.items() if count >= 3}
    assert 75_000 < len(kept) < 78_000
    assert sum(counts.values()) == 19 * 211727
