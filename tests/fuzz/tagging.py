"""Chains of random attribute and column files, tagged as the command chooses and by the estimator."""

from functools import cache
from pathlib import Path

import numpy as np
from hypothesis import strategies as st

from fuzz.garbage import Draw
from support.damaged_files import resealed

_NAMES = ["a", "b", "w=the", "x\\:y", "back\\\\slash", "é", "語", "n" * 300, "a b", "@", "1", "c:", "d:x"]
_VALUES = ["", "", "", ":1", ":0.5", ":-2", ":2e3", ":1e-300", ":0"] * 3 + [":1e150", ": 1", ":1_0", ":+.5"]
_ENDS = ["\n", "\n", "\n", "\r\n", "\n\n", "\n\n\n", " \n", "\t\n"]
_LABELS = ["B-NP", "I-NP", "O", "é", "a b", "1"]
_WORDS = [
    "the",
    "dog",
    "Dog",
    "U.S.",
    "2nd",
    "é",
    "語",
    "w" * 200,
    "-",
    "%x[0,0]",
    "a:b",
    "-DOCSTART-",
    "1,5",
]
_TAGS = ["DT", "NN", "_", "é", "#"]
_TEMPLATES = [
    "U00:%x[0,0]\nU01:%x[-1,0]/%x[0,1]\nB\n",
    "U:%x[2,0]\nU:%x[0,0]%x[0,0]\nU%x[-8,1]\n",
    'u:%X[0,0]\nu:%m[0,0,"^.?.?"]\n*:%t[0,0,"\\\\u.*\\\\d*"]\nb\n'.replace("*:", "u:"),
    'u:%x[@1,0]\nu:%t[1,0,"^\\\\u"]/%M[-1,1,"..$"]\n',
]
_N_MODELS = 24


def _line(rng: np.random.Generator, labels: list[str]) -> str:
    chosen = [str(rng.choice(_NAMES[:11])) + str(rng.choice(_VALUES[:9])) for _ in range(rng.integers(0, 4))]
    return "\t".join([str(rng.choice(labels)), *chosen]) + "\n"


def training_text(number: int) -> bytes:
    """Return a small attribute file that can be learnt from."""
    rng = np.random.default_rng(number)
    labels = [str(label) for label in rng.permutation(_LABELS)[: 1 + number % 5]]
    sequences = ["".join(_line(rng, labels) for _ in range(rng.integers(1, 5))) for _ in range(5)]
    return "\n".join(sequences).encode()


def training_columns(number: int) -> bytes:
    """Return a small column file that can be learnt from."""
    rng = np.random.default_rng(number)
    labels = [str(label).replace(" ", "") for label in rng.permutation(_LABELS)[: 2 + number % 4]]
    lines = [f"{rng.choice(_WORDS)} {rng.choice(_TAGS)} {rng.choice(labels)}\n" for _ in range(14)]
    return "".join(line + "\n" * bool(rng.random() < 0.3) for line in lines).encode()


@cache
def _trained(number: int) -> bytes | str:
    """Return a model file, or why there is none."""
    import tempfile

    from fuzz.files import run_command

    is_columns, number = number >= _N_MODELS, number % _N_MODELS
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "data").write_bytes(training_columns(number) if is_columns else training_text(number))
        (folder / "template").write_text(_TEMPLATES[number % len(_TEMPLATES)])
        options = [["--set", "order=2"], ["--min-count", "2"], ["--set", 'forbidden="bio"'], [], [], []]
        form = ["--format", "columns" if is_columns else "attributes", "-q", "--max-iter", "3", "--seed", "0"]
        if is_columns and number % 3:
            form += ["-t", "template"]
        code, _, err = run_command(["train", "data", "-m", "model", *form, *options[number % 6]], folder)
        return err if code else (folder / "model").read_bytes()


def _attributes(draw: Draw) -> bytes:
    """Draw lines of attributes, known and unknown, right and wrong."""
    names = st.sampled_from([*_NAMES[:11] * 4, *_NAMES[11:]])
    attribute = st.tuples(names, st.sampled_from(_VALUES)).map("".join)
    line = st.tuples(st.sampled_from(["", *_LABELS]), st.lists(attribute, max_size=4), st.sampled_from(_ENDS))
    found = draw(st.lists(line, max_size=8))
    return "".join("\t".join([label, *attributes]) + end for label, attributes, end in found).encode()


def _columns(draw: Draw) -> bytes:
    """Draw lines of columns, with labels or not, some of them one too few or too many."""
    fields = st.lists(st.sampled_from([*_WORDS, *_TAGS]), min_size=1, max_size=4)
    right = st.tuples(st.sampled_from(_WORDS), st.sampled_from(_TAGS))
    space, has_labels = draw(st.sampled_from([" ", " ", "\t", "  "])), draw(st.booleans())
    line = st.tuples(st.one_of([right] * 9 + [fields]), st.sampled_from(_ENDS))
    found = draw(st.lists(line, max_size=8))
    return "".join(space.join([*given, *["O"] * has_labels]) + end for given, end in found).encode()


def tagging(draw: Draw, folder: Path) -> None:
    """Both ways give the same lines, or the same error.

    Of damaged models that somebody has sealed again, the estimator refuses more: it checks all parts.
    """
    from fuzz.files import damaged, edited, run_command

    number = draw(st.integers(0, 2 * _N_MODELS - 1))
    model = _trained(number)
    if isinstance(model, str):
        return
    is_whole = draw(st.integers(0, 2)) > 0
    if not is_whole:
        model = draw(st.sampled_from([damaged, edited]))(draw, model)
    again = not is_whole and draw(st.booleans())
    (folder / "model").write_bytes(resealed(model) if again else model)
    text = (_columns if number >= _N_MODELS else _attributes)(draw)
    (folder / "data").write_bytes(damaged(draw, text) if draw(st.integers(0, 3)) == 0 else text)
    found = run_command(["tag", "model", "data", "-q"], folder)
    expected = run_command(["tag", "model", "data", "-q", "--jobs", "1"], folder)
    if not again or not expected[2].startswith("maxmargin: model: "):
        assert found == expected, (found, expected)
