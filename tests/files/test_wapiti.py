"""Patterns of Wapiti against strings worked out by hand from its manual; regexps against what they mean."""

import re
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maxmargin.files.sources import Malformed
from maxmargin.files.templates import parse_template, parsed, search, searching, translated

SENTENCE = [["He", "PRP"], ["reckons", "VBZ"], ["U.S.", "NNP"], ["2nd", "JJ"], ["account", "NN"]]


@pytest.mark.parametrize(
    ("pattern", "feature"),
    [
        ("u:%x[0,0]", "u:U.S."),
        ("u:%x[-1,0]/%x[+1,1]", "u:reckons/JJ"),
        ("u:%X[0,1]", "u:nnp"),
        ("u:%x[@1,0]|%x[@-1,0]|%x[@2,1]", "u:He|account|VBZ"),
        ("u:%x[@9,0]|%x[@-6,0]|%x[@6,0]", "u:_x+4|_x-1|_x+1"),
        ('u:%t[0,0,"\\u"]%t[1,0,"^\\u"]%T[-1,0,"s$"]', "u:truefalsetrue"),
        ('u:%m[1,0,"\\d"]%m[1,0,"\\a\\a*$"]', "u:2nd"),
        ('u:%m[0,0,"^.?.?"]-%M[0,0,".\\.$"]-%m[0,0,"\\d"]', "u:U.-s.-"),
        ('u:%m[-1,0,"e.*o"]', "u:ecko"),
        ('u:%m[-1,0,"k*"]|', "u:|"),
        ("  *both  ", "*both"),
    ],
)
def test_the_third_token_is_expanded_as_documented(pattern: str, feature: str) -> None:
    assert parse_template(f"b\n{pattern}  # a comment\n").features(SENTENCE)[2] == [feature]


def test_edges_of_a_sequence_have_names() -> None:
    template = parse_template("# edges\nu:%x[-1,0] %x[-4,0] %x[-5,0] %x[-9,1]\nu:%x[1,0] %X[5,0] %x[70,0]")
    assert template.features([["a", "b"], ["c", "d"]]) == [
        ["u:_x-1 _x-4 _x-# _x-#", "u:c _x+4 _x+#"],
        ["u:a _x-3 _x-4 _x-#", "u:_x+1 _x+# _x+#"],
    ]


def test_transitions_and_columns_are_recognised() -> None:
    assert parse_template("u:%x[0,3]\nB").transitions
    assert parse_template("*").transitions
    assert not parse_template("u:%x[0,3]").transitions
    assert parse_template("u:%x[0,3]/%x[@1,5]").n_columns == 6


def test_features_of_pairs_are_those_of_two_tokens() -> None:
    template = parse_template('u:%x[0,1]\nb  # all\nb:%X[-9,0]/%m[0,0,"^."]\n*:%x[@1,0]%x[0,1]\nB:%x[-1,1]')
    assert template.describes_pairs
    assert template.features(SENTENCE[:2]) == [["u:PRP", "*:HePRP"], ["u:VBZ", "*:HeVBZ"]]
    assert template.pair_features(SENTENCE[:2]) == [["b", "b:_x-#/r", "*:HeVBZ", "B:PRP"]]
    assert not parse_template("*\nb").describes_pairs


def test_templates_of_crfpp_stay_what_they_are() -> None:
    assert parse_template("U:%x[-1,0]#\nB").features([["a"]]) == [["U:_B-1#"]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("u:%x[0,0]\nx:%x[0,0]", "t:2: expected a pattern that starts with 'u', 'b', '*' or '#', got 'x:"),
        ("u:%x[0,0]\nb:%t[0,0]", "t:2: expected a regexp in %t and %m, and none in %x, got"),
        ("u:%y[0,0]", "t:1: expected %x[row,column], %t[row,column,"),
        ('u:%t[0,0,"a]', "t:1: expected %x[row,column], %t[row,column,"),
        ("u:%x[*1,0]", "t:1: expected %x[row,column], %t[row,column,"),
        ("u:%t[0,0]", "t:1: expected a regexp in %t and %m, and none in %x, got"),
        ('u:%x[0,0,"a"]', "t:1: expected a regexp in %t and %m, and none in %x, got"),
        ("u:%x[101,0]", "t:1: expected rows from -100 to 100, got"),
        ('u:%t[0,0,"a**"]', "t:1: expected a character before * in a regexp (write \\* for itself), got"),
        ('u:%t[0,0,"^?"]', "t:1: expected a character before ? in a regexp"),
    ],
)
def test_faults_name_file_and_line(text: str, message: str) -> None:
    with pytest.raises(Malformed) as caught:
        parse_template(text, "t")
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


CLASSES = {
    "a": str.isalpha,
    "d": str.isdigit,
    "l": str.islower,
    "u": str.isupper,
    "w": str.isalnum,
    "p": set(string.punctuation).__contains__,
}
ITEMS = st.tuples(
    st.sampled_from(["a", "B", "1", ".", "\\.", "\\*", "\\\\", "$x", *(f"\\{c}" for c in "adluwpADLUWP")]),
    st.sampled_from(["", "", "*", "?"]),
)


def fits(item: str, character: str) -> bool:
    """Whether a character is what an item asks for."""
    if item[0] != "\\":
        return item in (".", character)
    known = CLASSES.get(item[1].lower())
    if known is None:
        return item[1] == character
    return known(character) != item[1].isupper()


def ends(items: list[tuple[str, str]], text: str, start: int) -> set[int]:
    """All places at which a match that begins at ``start`` may end."""
    reached = {start}
    for item, count in items:
        further = {k + 1 for k in reached if k < len(text) and fits(item, text[k])}
        if count == "*":
            while not further <= reached:
                reached |= further
                further = {k + 1 for k in reached if k < len(text) and fits(item, text[k])}
        else:
            reached = reached | further if count == "?" else further
    return reached


@given(
    items=st.lists(ITEMS, max_size=4),
    text=st.text("aB1.*\\-x", max_size=6),
    first=st.booleans(),
    last=st.booleans(),
)
def test_regexps_match_what_they_say(
    items: list[tuple[str, str]], text: str, first: bool, last: bool
) -> None:
    items = [(piece, count) for item, count in items for piece, count in _pieces(item, count)]
    regexp = "^" * first + "".join(item + count for item, count in items) + "$" * last
    starts = [0] if first else range(len(text) + 1)
    possible = [(start, end) for start in starts for end in ends(items, text, start)]
    possible = [(start, end) for start, end in possible if not last or end == len(text)]
    found = re.search(translated(parsed(regexp)), text, re.DOTALL)
    assert (found is None) == (not possible)
    if found is not None:
        assert found.span() in possible
        assert found.start() == min(possible)[0]
    # Ours, which takes no longer for many repetitions, prefers the same match as Python's.
    assert search(parsed(regexp), text) == searching(parsed(regexp))(text) == (found and found[0])


@pytest.mark.parametrize("text", ["a" * 4000, "a" * 4000 + "Z"])
def test_many_repetitions_take_no_longer(text: str) -> None:
    """Python's search took 88 s for forty characters."""
    assert searching(parsed(".*" * 8 + "Z"))(text) == (text if text.endswith("Z") else None)
    assert searching(parsed("a?" * 30 + "Z$"))(text) == (text[-31:] if text.endswith("Z") else None)


def _pieces(item: str, count: str) -> list[tuple[str, str]]:
    """A dollar sign that is not the last character stands for itself."""
    return [("$", ""), ("x", count)] if item == "$x" else [(item, count)]
