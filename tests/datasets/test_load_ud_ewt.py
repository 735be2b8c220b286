"""The English Web Treebank: reading, tags, damaged files, and the real sentences."""

import gzip
from collections import Counter
from pathlib import Path

import pytest

from maxmargin.datasets import load_ud_ewt, read_conllu

LINES = """# sent_id = 1
1-2\tdon't\t_\t_\t_\t_\t_\t_\t_\t_
1\tdo\tdo\tAUX\tVB\t_\t3\taux\t_\t_
2\tn't\tnot\tPART\tRB\t_\t3\tadvmod\t_\t_
3\tgo\tgo\tVERB\tVB\t_\t0\troot\t_\t_
3.1\tgo\tgo\tVERB\tVB\t_\t_\t_\t_\t_

# sent_id = 2
1\tYes\tyes\tINTJ\tUH\t_\t0\troot\t_\tSpaceAfter=No
"""
PARTS = ("train", "dev", "test")


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        ("both", ["AUX-VB", "PART-RB", "VERB-VB"]),
        ("upos", ["AUX", "PART", "VERB"]),
        ("xpos", ["VB", "RB", "VB"]),
    ],
)
def test_words_tags_and_heads_are_read(tmp_path: Path, tags: str, expected: list[str]) -> None:
    (tmp_path / "some.conllu").write_text(LINES)
    X, y = read_conllu(tmp_path / "some.conllu", tags=tags)
    assert X[0] == list(zip(["do", "n't", "go"], expected, strict=True))
    assert [word for word, _ in X[1]] == ["Yes"]
    assert y == [[3, 3, 0], [0]]


@pytest.mark.parametrize(("folder", "end"), [("", ".gz"), ("ud_ewt", ".gz"), ("ud_ewt", "")])
def test_files_are_found(tmp_path: Path, folder: str, end: str) -> None:
    (tmp_path / folder).mkdir(exist_ok=True)
    content = LINES.encode()
    for part in PARTS:
        path = tmp_path / folder / f"en_ewt-ud-{part}.conllu{end}"
        path.write_bytes(gzip.compress(content) if end else content)
    treebank = load_ud_ewt(data_home=tmp_path)
    assert treebank.train == treebank.dev == treebank.test
    assert len(treebank.train.X) == 2


def test_without_files_there_is_one_error(tmp_path: Path) -> None:
    with pytest.raises(
        FileNotFoundError, match=r"^load_ud_ewt: no 'ud_ewt/en_ewt-ud-train.conllu.gz' or"
    ) as caught:
        load_ud_ewt(data_home=tmp_path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("1\tdo\tAUX\n", r"line 1 has 3 fields, not 10"),
        ("1\tdo\t_\t_\t_\t_\tx\t_\t_\t_\n", r"line 1 has no head"),
        (b"\xff\xfe", "codec"),
    ],
)
def test_damaged_files_are_refused(tmp_path: Path, content: str | bytes, message: str) -> None:
    path = tmp_path / "some.conllu"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(OSError, match=f"^read_conllu: .*{message}") as caught:
        read_conllu(path)
    assert "\n" not in str(caught.value)


def test_unknown_kinds_of_tags_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"^read_conllu: tags must be 'both', 'upos' or 'xpos', got 'pos'"):
        read_conllu(tmp_path, tags="pos")


def test_the_real_sentences_are_read(real_data: Path) -> None:
    treebank = load_ud_ewt(data_home=real_data)
    assert [len(part.X) for part in treebank] == [12544, 2001, 2077]
    assert sum(map(len, treebank.train.X)) == 204577
    for X, y in treebank:
        assert [len(x) for x in X] == [len(heads) for heads in y]
        assert Counter(heads.count(0) for heads in y) == {1: len(y)}
    assert treebank.train.X[0][:2] == [("Al", "PROPN-NNP"), ("-", "PUNCT-HYPH")]
