"""Templates against strings worked out by hand from CRF++'s documentation."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maxmargin.encoding.sequences import numbered
from maxmargin.files import numbered_features
from maxmargin.files.columns import ColumnFeatures
from maxmargin.files.sources import Malformed
from maxmargin.files.templates import parse_template

SENTENCE = [
    ["He", "PRP"],
    ["reckons", "VBZ"],
    ["the", "DT"],
    ["current", "JJ"],
    ["account", "NN"],
]


@pytest.mark.parametrize(
    ("template", "feature"),
    [
        ("U:%x[0,0]", "U:the"),
        ("U:%x[0,1]", "U:DT"),
        ("U:%x[-1,0]", "U:reckons"),
        ("U:%x[-2,1]", "U:PRP"),
        ("U:%x[0,0]/%x[0,1]", "U:the/DT"),
        ("UABC%x[0,1]123", "UABCDT123"),
        ("U:%x[+1,0]", "U:current"),
        ("U:%x[-2,0]|%x[2,0]|%x[0,0]", "U:He|account|the"),
    ],
)
def test_the_third_token_is_expanded_as_documented(template: str, feature: str) -> None:
    assert parse_template(template).features(SENTENCE)[2] == [feature]


def test_edges_count_from_the_ends_of_the_sentence() -> None:
    template = parse_template("U00:%x[-2,0]\nU01:%x[-1,0]\nU03:%x[1,0]\nU04:%x[2,0]\nU05:%x[-1,0]/%x[0,0]")
    first, second = template.features([["He", "PRP"], ["runs", "VBZ"]])
    assert first == ["U00:_B-2", "U01:_B-1", "U03:runs", "U04:_B+1", "U05:_B-1/He"]
    assert second == ["U00:_B-1", "U01:He", "U03:_B+1", "U04:_B+2", "U05:He/runs"]


def test_far_edges_of_a_single_token_have_names() -> None:
    template = parse_template("U0:%x[-8,0]\nU1:%x[8,0]\nU2:%x[-3,1]%x[3,0]")
    assert template.features([["Yes", "UH"]]) == [["U0:_B-8", "U1:_B+8", "U2:_B-3_B+3"]]


def test_comments_and_blank_lines_are_skipped_and_constants_kept() -> None:
    template = parse_template("# Unigram\n\nU00:%x[0,0]\n  Ubias  \n# Bigram\nB\n")
    assert template.features([["a"], ["b"]]) == [["U00:a", "Ubias"], ["U00:b", "Ubias"]]
    assert template.transitions
    assert not parse_template("U00:%x[0,0]").transitions
    assert parse_template("U:%x[0,3]/%x[1,1]").n_columns == 4


def test_features_of_pairs_are_those_of_two_tokens() -> None:
    """They are those of a token and the one before it: rows count from the token, and the first has none."""
    template = parse_template("U:%x[0,0]\nB\nB01:%x[0,1]\nBABC%x[-1,0]/%x[0,0]123\nB03:%x[-2,0]%x[+1,1]\n")
    assert template.transitions
    assert template.describes_pairs
    assert template.features(SENTENCE)[2] == ["U:the"]
    assert template.pair_features(SENTENCE) == [
        ["B", "B01:VBZ", "BABCHe/reckons123", "B03:_B-1DT"],
        ["B", "B01:DT", "BABCreckons/the123", "B03:HeJJ"],
        ["B", "B01:JJ", "BABCthe/current123", "B03:reckonsNN"],
        ["B", "B01:NN", "BABCcurrent/account123", "B03:the_B+1"],
    ]
    assert template.pair_features(SENTENCE[:1]) == []
    assert parse_template("U\nB:%x[0,3]").n_columns == 4
    plain = parse_template("U:%x[0,0]\nB\nBagain")
    assert plain.transitions
    assert not plain.describes_pairs
    assert not ColumnFeatures("U:%x[0,0]\nB", 3).describes_pairs
    assert not ColumnFeatures(None, 3).describes_pairs
    rows = [[*row, "label"] for row in SENTENCE]
    assert ColumnFeatures("U\nB%x[0,1]", 3).of_pairs(rows) == [["BVBZ"], ["BDT"], ["BJJ"], ["BNN"]]


def test_a_shared_identifier_makes_a_bag_of_words() -> None:
    template = parse_template("U:%x[-1,0]\nU:%x[1,0]")
    assert template.features([["a"], ["b"], ["a"]])[1] == ["U:a", "U:a"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "U00:%x[0,0]\nX01:%x[0,0]",
            "t:2: expected a template that starts with 'U', 'B' or '#', got 'X01:%x[0,0]'",
        ),
        ("U00:%x[0]", "t:1: expected %x[row,column] after each %"),
        ("U00:%y[0,0]", "t:1: expected %x[row,column] after each %"),
        ("U00:100%", "t:1: expected %x[row,column] after each %"),
        ("U00:%x[0,0]\nU01:%x[-9,0]", "t:2: expected rows from -8 to 8 in %x[row,column], got -9"),
        ("U00:%x[0,0]\nB01:%x[0]", "t:2: expected %x[row,column] after each %, got 'B01:%x[0]'"),
        ("U00:%x[0,0]\nB:%x[9,0]", "t:2: expected rows from -8 to 8 in %x[row,column], got 9"),
        ("# nothing else", "t: expected a template such as U00:%x[0,0], got none"),
    ],
)
def test_faults_name_file_and_line(text: str, message: str) -> None:
    with pytest.raises(Malformed) as caught:
        parse_template(text, "t")
    assert str(caught.value).startswith(message)


ENTRIES = st.sampled_from(["a", "B", "a/b", "_B-1", "é", "%s", "1x"])
MACROS = st.lists(
    st.sampled_from(["U1:%x[0,0]", "U2:%x[-1,0]/%x[0,1]", "U2:%x[2,1]", "U3", "U:%x[-8,0]%x[8,1]%x[0,0]"]),
    min_size=1,
) | st.lists(
    st.sampled_from(["u1:%X[0,0]", 'u2:%m[-1,0,"."]/%t[6,1,"a"]', "u3:%x[@2,1]", "u4:%x[@-1,0]%x[-6,0]"]),
    min_size=1,
)


@settings(deadline=None)
@given(
    sentences=st.lists(st.lists(st.tuples(ENTRIES, ENTRIES), min_size=1, max_size=5), min_size=1, max_size=5),
    macros=MACROS,
    is_default=st.booleans(),
    large=st.sampled_from([1, 1 << 40]),
)
def test_features_of_many_sentences_are_numbered_as_those_of_each(
    sentences: list[list[tuple[str, str]]], macros: list[str], is_default: bool, large: int
) -> None:
    features = ColumnFeatures(None if is_default else "\n".join(macros), 3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(numbered_features, "_LARGE", large)
        found = features.numbered([[[*row, "label"] for row in rows] for rows in sentences])
    expected = numbered([features.of([[*row, "label"] for row in rows]) for rows in sentences], "strings", "")
    assert found.names == expected.names
    assert np.array_equal(found.codes, expected.codes)
    assert np.array_equal(found.counts, expected.counts)
    assert np.array_equal(found.offsets, expected.offsets)


@pytest.mark.parametrize("text", ["B\n# nothing else", "B01:%x[0,0]", "b:%x[0,0]", "b"])
def test_lines_for_pairs_alone_leave_tokens_without_features(text: str) -> None:
    template = parse_template(text)
    assert template.describes_pairs
    assert template.features([["a"], ["b"]]) == [[], []]
    assert template.pair_features([["a"], ["b"]]) == [[text.split("\n")[0].replace("%x[0,0]", "b")]]
