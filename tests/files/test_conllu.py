"""CoNLL-U: words, ranges, empty nodes and comments, and trees that are none."""

from pathlib import Path

import pytest

from maxmargin.files.conllu import Sentence, read_conllu
from maxmargin.files.sources import Malformed, Source

SENTENCE = """\
# text = don't go.
1-2\tdon't\t_\t_\t_\t_\t_\t_\t_\t_
1\tdo\tdo\tAUX\tVB\t_\t3\taux\t_\t_
2\tn't\tnot\tPART\tRB\t_\t3\tadvmod\t_\t_
3\tgo\tgo\tVERB\tVB\t_\t0\troot\t_\tSpaceAfter=No
3.1\tnow\tnow\tADV\tRB\t_\t_\t_\t3:advmod\t_
4\t.\t.\tPUNCT\t.\t_\t3\tpunct\t_\t_
"""


def read(path: Path, text: str, labelled: bool = True) -> list[Sentence]:
    path.write_text(text)
    with Source(path) as source:
        return list(read_conllu(source, labelled=labelled))


def test_words_tags_and_heads(tmp_path: Path) -> None:
    first, second = read(tmp_path / "data", SENTENCE + "\n\n" + SENTENCE)
    assert first.tagged("both") == [("do", "AUX-VB"), ("n't", "PART-RB"), ("go", "VERB-VB"), (".", "PUNCT-.")]
    assert first.tagged("upos")[1] == ("n't", "PART")
    assert first.heads() == second.heads() == [3, 3, 0, 3]
    assert first.punctuation() == [False, False, False, True]


def test_heads_are_written_back(tmp_path: Path) -> None:
    (sentence,) = read(tmp_path / "data", SENTENCE)
    assert sentence.with_heads([3, 3, 0, 3]) == SENTENCE.splitlines()
    changed = sentence.with_heads([2, 3, 0, 3], ["m=1", "m=2", "m=3", "m=4"])
    assert changed[:2] == SENTENCE.splitlines()[:2]
    assert changed[2] == "1\tdo\tdo\tAUX\tVB\t_\t2\t_\t_\tm=1"
    assert changed[4].endswith("\t0\troot\t_\tSpaceAfter=No|m=3")
    assert changed[5] == SENTENCE.splitlines()[5]


def test_heads_are_not_needed_for_predictions(tmp_path: Path) -> None:
    (sentence,) = read(tmp_path / "data", SENTENCE.replace("\t3\t", "\t_\t"), labelled=False)
    assert sentence.with_heads([3, 3, 0, 3])[2].split("\t")[6] == "3"


def row(number: object, head: object) -> str:
    return "\t".join([str(number), "w", "_", "X", "X", "_", str(head), "_", "_", "_"]) + "\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1\tw\tX\n", "data:1: expected 10 columns separated by tabs, got 3"),
        (row(1, 0) + row(3, 1), "data:2: expected word 2, got '3'"),
        (row("one", 0), "data:1: expected the number of a word, got 'one'"),
        ("# c\n" + row(1, "_"), "data:2: expected the number of a head, got '_'"),
        ("\n" + row(1, 0) + row(2, 3), "data:3: expected a head from 0 to 2, got 3"),
        (row(1, 0) + row(2, 0), "data:1: expected a sentence with one root, a word of head 0, got 2"),
        (row(1, 0) + row(2, 3) + row(3, 2), "data:2: expected a tree, got a cycle above word 2"),
    ],
)
def test_faults_name_file_and_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(Malformed) as caught:
        read(tmp_path / "data", text)
    assert message in str(caught.value)
