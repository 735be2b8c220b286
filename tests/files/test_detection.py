"""The format of a file is recognised by its first lines."""

from pathlib import Path

import pytest

from maxmargin.files.detection import detect
from maxmargin.files.sources import Malformed, Source


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("He PRP B-NP\nruns VBZ B-VP\n", "columns"),
        ("He\tPRP\tB-NP\n\nruns\tVBZ\tB-VP\n", "columns"),
        ("# # B-NP\n1 CD I-NP\n", "columns"),
        ("-DOCSTART- -X- O O\n\nEU NNP B-NP B-ORG\n", "columns"),
        ("12:30 CD O\n", "columns"),
        ("B-NP\tw[0]=An\tpos=DT\nI-NP\tw[0]=A\tpos=NN\n", "attributes"),
        ("A\tx\ty\nB\tx\n", "attributes"),
        ("He PRP B-NP\nruns\tVBZ\tB-VP\nfast\tRB B-ADVP\n", "columns"),
        ("A\tw x\nB\tw y\tz\n", "attributes"),
        ("1 qid:1 1:1 2:1\n2 qid:1 3:1\n", "svmhmm"),
        ("# first\n+1 1:1 2:1\n-1 3:1\n", "svmlight"),
        ("1,3 1:1\n 2:1\n", "svmlight"),
        ("# text\n1\tw\t_\tX\tX\t_\t0\t_\t_\t_\n", "conllu"),
        ("1-2\tw\t_\t_\t_\t_\t_\t_\t_\t_\n1\tw\t_\tX\tX\t_\t0\t_\t_\t_\n", "conllu"),
    ],
)
def test_formats_are_detected_by_the_first_lines(tmp_path: Path, text: str, form: str) -> None:
    (tmp_path / "data").write_text(text)
    with Source(tmp_path / "data") as source:
        assert detect(source).name == form
        assert source.peek() == text.encode()  # nothing is read


def test_a_file_without_data_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("\n \n")
    with Source(tmp_path / "data") as source, pytest.raises(Malformed, match="expected data, got no line"):
        detect(source)
