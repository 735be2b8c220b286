"""Chains of random attribute files, tagged in both ways: as the command chooses, and by the estimator."""

from functools import cache
from pathlib import Path

import numpy as np
from hypothesis import strategies as st

from fuzz.garbage import Draw

_NAMES = ["a", "b", "w=the", "x\\:y", "back\\\\slash", "é", "語", "n" * 300, "a b", "@", "1", "c:", "d:x"]
_VALUES = ["", "", "", ":1", ":0.5", ":-2", ":2e3", ":1e-300", ":0"] * 3 + [":1e150", ": 1", ":1_0", ":+.5"]
_ENDS = ["\n", "\n", "\n", "\r\n", "\n\n", "\n\n\n", " \n", "\t\n"]
_LABELS = ["B-NP", "I-NP", "O", "é", "a b", "1"]
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


@cache
def _trained(number: int) -> bytes | str:
    """Return a model file, or why there is none."""
    import tempfile

    from fuzz.files import run_command

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "data").write_bytes(training_text(number))
        options = [["--set", "order=2"], ["--min-count", "2"], ["--set", 'forbidden="bio"'], [], [], []]
        form = ["--format", "attributes", "-q", "--max-iter", "3", "--seed", "0"]
        code, _, err = run_command(["train", "data", "-m", "model", *form, *options[number % 6]], folder)
        return err if code else (folder / "model").read_bytes()


def _text(draw: Draw) -> bytes:
    """Draw lines of attributes, known and unknown, right and wrong."""
    attribute = st.tuples(st.sampled_from([*_NAMES[:11] * 4, *_NAMES[11:]]), st.sampled_from(_VALUES)).map(
        "".join
    )
    line = st.tuples(st.sampled_from(["", *_LABELS]), st.lists(attribute, max_size=4), st.sampled_from(_ENDS))
    found = draw(st.lists(line, max_size=8))
    return "".join("\t".join([label, *attributes]) + end for label, attributes, end in found).encode()


def tagging(draw: Draw, folder: Path) -> None:
    """Both ways give the same lines, or the same error; the estimator refuses more damaged models."""
    from fuzz.files import damaged, edited, run_command

    model = _trained(draw(st.integers(0, _N_MODELS - 1)))
    if isinstance(model, str):
        return
    is_whole = draw(st.integers(0, 2)) > 0
    (folder / "model").write_bytes(
        model if is_whole else draw(st.sampled_from([damaged, edited]))(draw, model)
    )
    text = _text(draw)
    (folder / "data").write_bytes(damaged(draw, text) if draw(st.integers(0, 3)) == 0 else text)
    found = run_command(["tag", "model", "data", "-q"], folder)
    expected = run_command(["tag", "model", "data", "-q", "--jobs", "1"], folder)
    if is_whole or not expected[2].startswith("maxmargin: model: "):
        assert found == expected, (found, expected)
