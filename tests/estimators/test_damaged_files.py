"""Model files from strangers: whatever was done to a file, it gives a model that predicts, or one line."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.damaged_files import FILES, parts, refusal, whole

HUGE = [-1, 0, 1, 2, 7, 2**31, 2**40, 2**63 - 1, 2**64, -(2**70), 10**400]
ODD = [None, True, 0.5, -0.0, 1e308, "", "linear", "x" * 300, [], [[]], {}, {"float": "inf"}, {"tuple": [1]}]
VALUES = st.sampled_from([*HUGE, *ODD]) | st.recursive(
    st.integers() | st.text(max_size=3) | st.none(), lambda inner: st.lists(inner, max_size=2), max_leaves=4
)
# Zeros, ones, largest numbers, infinity, and small ints of eight bytes.
FILLINGS = [b"\0", b"\1", b"\xff", b"\x7f", b"\0\0\0\0\0\0\xf0\x7f", b"\2\0\0\0\0\0\0\0"]
TYPES = ["BOOL", "U8", "I8", "I16", "U32", "I64", "F16", "F32", "F64", "BF16", "no"]


def places(found: Any) -> list[tuple[Any, Any]]:
    """Return the container and the key of everything in JSON."""
    keys = found if isinstance(found, dict) else range(len(found)) if isinstance(found, list) else []
    inside = [(found, key) for key in keys]
    return inside + [place for key in keys for place in places(found[key])]


@st.composite
def flipped(draw: Any, content: bytes) -> bytes:
    """Change some bytes, of headers or of arrays."""
    changed = bytearray(content)
    for _ in range(draw(st.integers(1, 4))):
        changed[draw(st.integers(0, len(content) - 1))] ^= draw(st.integers(1, 255))
    return bytes(changed)


@st.composite
def cut_or_swapped(draw: Any, content: bytes) -> bytes:
    """Cut an end off, add one, or swap two stretches."""
    a, b, c = sorted(draw(st.integers(0, len(content))) for _ in range(3))
    swapped = content[:a] + content[b:c] + content[a:b] + content[c:]
    return draw(st.sampled_from([content[:a], content + content[a:b], swapped]))


@st.composite
def edited(draw: Any, content: bytes) -> bytes:
    """Replace, remove or rename values of the header of the model."""
    outer, inner, body = parts(content)
    for _ in range(draw(st.integers(1, 2))):
        container, key = draw(st.sampled_from(places(inner)))
        what = draw(st.sampled_from(["replace", "remove", "rename", "copy"]))
        value = container[key] if len(container) > (key if isinstance(container, list) else 0) else None
        if what == "replace" or isinstance(container, list):
            container[key] = draw(VALUES)
        elif what == "copy":
            container[key] = container[draw(st.sampled_from(sorted(container)))]
        else:
            del container[key]
            container |= {draw(st.sampled_from(["C", "more", "_support"])): value} if what == "rename" else {}
    return whole(outer, inner, body)


@st.composite
def retyped(draw: Any, content: bytes) -> bytes:
    """Change the name, the type or the shape of an array, or give it the place of another."""
    outer, inner, body = parts(content)
    name, other = (draw(st.sampled_from(sorted(outer))) for _ in range(2))
    array = outer[name]
    what = draw(st.sampled_from(["dtype", "shape", "offsets", "swap", "rename", "remove"]))
    if what == "dtype":
        array["dtype"] = draw(st.sampled_from(TYPES))
    elif what == "shape":
        array["shape"] = draw(st.lists(st.sampled_from([0, 1, 2, 3, 2**62]), max_size=3))
    elif what == "offsets":
        array["data_offsets"] = draw(st.lists(st.integers(0, len(body) + 1), min_size=2, max_size=2))
    elif what == "swap":
        outer[name], outer[other] = outer[other], outer[name]
    else:
        del outer[name]
        outer |= {draw(st.sampled_from(["more", "_support", other])): array} if what == "rename" else {}
    return whole(outer, inner, body)


@st.composite
def refilled(draw: Any, content: bytes) -> bytes:
    """Give an array other values, of its type and shape, so that only what they mean can be wrong."""
    outer, inner, body = parts(content)
    name = draw(st.sampled_from(sorted(outer)))
    begin, end = outer[name]["data_offsets"]
    filling = draw(st.sampled_from(FILLINGS))
    return whole(outer, inner, body[:begin] + (filling * (end - begin))[: end - begin] + body[end:])


DAMAGES = [flipped, cut_or_swapped, edited, retyped, refilled]


def check_damaged(path: Path, name: str, content: bytes) -> None:
    """Load a damaged file: it predicts, or there is one line."""
    path.write_bytes(content)
    said = refusal(path, name)
    assert "\n" not in said
    assert len(said) < 700


QUICK = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    deadline=None,
    max_examples=60,
)


@pytest.mark.parametrize("damage", DAMAGES)
@QUICK
@given(data=st.data())
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of weights that overflow
def test_damaged_files_are_refused(tmp_path: Path, damage: Any, data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(FILES)))
    check_damaged(tmp_path / "file", name, data.draw(damage(FILES[name])))


@pytest.mark.long
@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", sorted(FILES))
@settings(QUICK, max_examples=400)
@given(data=st.data())
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_many_damaged_files_are_refused(tmp_path: Path, name: str, damage: Any, data: st.DataObject) -> None:
    check_damaged(tmp_path / "file", name, data.draw(damage(FILES[name])))
