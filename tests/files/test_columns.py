"""Column files, and what is common to all files: compression, encodings, line ends."""

import gzip
from pathlib import Path

import pytest

from maxmargin.files.columns import read_columns, split_fields, word_features
from maxmargin.files.sources import Malformed, Source

TEXT = "He PRP B-NP\nruns VBZ B-VP\n\n\nYes UH O\n"


def read(path: Path, content: bytes, **options: tuple[int, ...]) -> list[list[list[str]]]:
    path.write_bytes(content)
    with Source(path) as source:
        return [sentence.rows for sentence in read_columns(source, **options)]


SENTENCES = [[["He", "PRP", "B-NP"], ["runs", "VBZ", "B-VP"]], [["Yes", "UH", "O"]]]


@pytest.mark.parametrize(
    "content",
    [
        TEXT.encode(),
        TEXT.rstrip().encode(),
        TEXT.replace("\n", "\r\n").encode(),
        TEXT.replace(" ", "\t").encode(),
        TEXT.replace(" ", " \t ").encode(),
        b"\xef\xbb\xbf" + TEXT.encode(),
        ("\n \n" + TEXT + "\n\n").encode(),
        gzip.compress(TEXT.encode(), mtime=0),
    ],
)
def test_sentences_do_not_depend_on_compression_encodings_and_line_ends(
    tmp_path: Path, content: bytes
) -> None:
    assert read(tmp_path / "data", content) == SENTENCES


def test_documents_start_with_a_line_of_their_own(tmp_path: Path) -> None:
    text = "-DOCSTART- -X- O\n\nEU NNP B-ORG\n-DOCSTART- -X- O\nhe PRP O\n"
    (tmp_path / "data").write_text(text)
    with Source(tmp_path / "data") as source:
        found = [
            (sentence.starts_document, len(sentence.rows), sentence.line) for sentence in read_columns(source)
        ]
    assert found == [(True, 1, 1), (False, 1, 3), (True, 1, 4), (False, 1, 5)]


def test_hash_signs_are_words_and_other_white_space_is_part_of_them(tmp_path: Path) -> None:
    assert read(tmp_path / "data", "# # B-NP\n\u3000 x\u00a0y B\n".encode()) == [
        [["#", "#", "B-NP"], ["\u3000", "x\u00a0y", "B"]]
    ]
    assert split_fields("") == []


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a b c\nd e\n", "data:2: expected 3 columns as in the lines before, got 2: 'd e'"),
        (b"a b\n", "data:1: expected 3 columns, got 2: 'a b'"),
        (b"a b c\n\xff b c\n", "data:2: expected text in UTF-8, got byte 0xff"),
        (gzip.compress(b"a b c\n" * 100, mtime=0)[:-9], "data: expected intact gzip data, got damaged data"),
        (b"\x1f\x8bnot gzip", "data: expected intact gzip data, got damaged data"),
    ],
)
def test_faults_name_file_and_line(tmp_path: Path, content: bytes, message: str) -> None:
    with pytest.raises(Malformed) as caught:
        read(tmp_path / "data", content, widths=(3,))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_words_have_default_features() -> None:
    first, _ = word_features([["McDonald's", "NNP"], ["42", "CD"]])
    assert first == [
        "word[-2]=_B-2",
        "word[-1]=_B-1",
        "word[0]=McDonald's",
        "word[1]=42",
        "word[2]=_B+1",
        "word[-1:0]=_B-1 McDonald's",
        "word[0:1]=McDonald's 42",
        "shape[-1]=_B-1",
        "shape[0]=XxXxxxxx'x",
        "shape[1]=00",
        "form[-1]=_B-1",
        "form[0]=XxXx'x",
        "form[1]=0",
        "lower[0]=mcdonald's",
        "prefix1[0]=M",
        "prefix2[0]=Mc",
        "prefix3[0]=McD",
        "prefix4[0]=McDo",
        "suffix1[0]=s",
        "suffix2[0]='s",
        "suffix3[0]=d's",
        "suffix4[0]=ld's",
        "column1[-2]=_B-2",
        "column1[-1]=_B-1",
        "column1[0]=NNP",
        "column1[1]=CD",
        "column1[2]=_B+1",
        "column1[-2:-1]=_B-2 _B-1",
        "column1[-1:0]=_B-1 NNP",
        "column1[0:1]=NNP CD",
        "column1[1:2]=CD _B+1",
        "column1[-2:0]=_B-2 _B-1 NNP",
        "column1[-1:1]=_B-1 NNP CD",
        "column1[0:2]=NNP CD _B+1",
    ]
