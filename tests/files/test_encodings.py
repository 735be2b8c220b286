"""Files in other encodings are read as the same text in UTF-8 is, and what is not text is refused."""

import gzip
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from maxmargin.files.detection import detect
from maxmargin.files.sources import Malformed, Source, encoding_named

SOME = st.text(st.characters(exclude_characters="\0\ufeff", exclude_categories=["Cs"]), max_size=40)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50, deadline=None)
@given(
    st.lists(SOME.filter(lambda text: "\n" not in text and "\r" not in text), max_size=5),
    st.sampled_from(
        ["latin-1", "cp1252", "koi8-r", "shift_jis", "gb18030", "utf-16", "utf-16-be", "utf-8-sig"]
    ),
    st.booleans(),
    st.integers(1, 50),
)
def test_lines_and_blocks_are_those_of_the_same_text_in_utf_8(
    tmp_path: Path, lines: list[str], encoding: str, compressed: bool, size: int
) -> None:
    text = "".join(f"{line}\r\n" for line in lines).encode(encoding, "ignore").decode(encoding)
    content = text.encode(encoding)
    (tmp_path / "data").write_bytes(gzip.compress(content) if compressed else content)
    name = encoding_named(encoding) or ""
    with Source(tmp_path / "data", name) as source:
        found = [line.text for line in source.lines()]
    with Source(tmp_path / "data", name) as source:
        blocks = b"".join(source.line_blocks(size))
    assert found == [line.rstrip("\r") for line in text.split("\n")[:-1]]
    assert blocks == text.encode()


def test_characters_may_lie_across_the_pieces_that_are_read(tmp_path: Path) -> None:
    text = "x" + "\u3042" * 100_000 + "\n"
    (tmp_path / "data").write_bytes(text.encode("shift_jis"))
    with Source(tmp_path / "data", "shift_jis") as source:
        assert [line.text for line in source.lines()] == [text[:-1]]


@pytest.mark.parametrize(
    ("content", "encoding", "message"),
    [
        (
            "ja\nn\xe9 x\n".encode("latin-1"),
            "utf-8",
            "data:2: expected text in UTF-8, got byte 0xe9; give the",
        ),
        (
            b"ja\n\x81 x\n",
            "cp1252",
            "data:2: expected text in cp1252, got byte 0x81; give the encoding of the",
        ),
        (
            "ja\n".encode("utf-16"),
            "utf-8",
            "data:1: expected text in UTF-8, got a byte order mark of UTF-16; g",
        ),
        (
            "ja\nx".encode("utf-16-le"),
            "utf-8",
            "data:1: expected text, got a zero byte: the file is binary, o",
        ),
        (
            b"\x89PNG\r\n\x1a\n\0\0",
            "iso8859-1",
            "data:3: expected text, got a zero byte: the file is binary, or",
        ),
        (b"BZh91AY&SY\xcd\x14", "utf-8", "data:1: expected text in UTF-8, got byte 0xcd"),
    ],
)
def test_what_is_not_text_is_refused_before_a_format_is_named(
    tmp_path: Path, content: bytes, encoding: str, message: str
) -> None:
    (tmp_path / "data").write_bytes(content)
    with pytest.raises(Malformed) as caught, Source(tmp_path / "data", encoding) as source:
        detect(source)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("content", "encoding"), [(b"ja\n\x83", "shift_jis"), (b"j\0a\0\n\0\xe9", "utf-16-le")]
)
def test_half_a_character_at_the_end_is_refused(tmp_path: Path, content: bytes, encoding: str) -> None:
    (tmp_path / "data").write_bytes(content)
    message = f"data:2: expected text in {encoding}, got byte 0x"
    with Source(tmp_path / "data", encoding) as source, pytest.raises(Malformed, match=message):
        list(source.lines())


@pytest.mark.parametrize("name", ["", "utf8x", "hex", "rot13", "a\0b"])
def test_only_encodings_of_text_have_names(name: str) -> None:
    assert encoding_named(name) is None


def test_an_encoding_has_one_name() -> None:
    assert encoding_named("Latin_1") == encoding_named("ISO-8859-1") == "iso8859-1"
    assert encoding_named("UTF8") == "utf-8"
