"""The example scripts run, and print what a reader is promised."""

import gzip
import re
import runpy
import urllib.request
from pathlib import Path
from typing import Any
from urllib.error import URLError

import matplotlib
import pytest

matplotlib.use("Agg")

EXAMPLES = Path(__file__).parents[1] / "examples"
SENTENCES = [
    [("the", "DT", "B-NP"), ("dog", "NN", "I-NP"), ("barks", "VBZ", "B-VP"), (".", ".", "O")],
    [("a", "DT", "B-NP"), ("cat", "NN", "I-NP"), ("sleeps", "VBZ", "B-VP"), (".", ".", "O")],
]


@pytest.fixture(autouse=True)
def _no_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide the user's data, cut the network, and let examples import what lies beside them."""

    def refuse(*args: Any, **kwargs: Any) -> None:
        raise URLError("no route to host")

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("MAXMARGIN_DATA", raising=False)
    monkeypatch.setattr(urllib.request, "urlopen", refuse)
    monkeypatch.syspath_prepend(EXAMPLES)


def printed(name: str, capsys: pytest.CaptureFixture[str]) -> str:
    runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    return capsys.readouterr().out


def number(pattern: str, text: str) -> float:
    found = re.search(pattern, text)
    assert found is not None
    return float(found[1])


@pytest.mark.slow
def test_chunking_runs_without_data(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed("chunking.py", capsys)
    assert "Instead: words of scanned digits." in text
    assert number(r"within ([\d.e-]+) of its minimum", text) <= 0.5
    # The commonest of eight digits is a fifth of them.
    assert number(r"Token accuracy on 400 test sequences: ([\d.]+)%", text) > 75
    assert "Chunk F1" not in text
    found, total = (number(pattern, text) for pattern in (r"have (\d+) of", r"of (\d+) wrong labels"))
    assert found > 0.1 * total  # twice as many as among any 5 %
    # Every word ends in 4, 6, 4 (-ing) or 4, 6, 6 (-ion).
    assert "  4 -> 6  +" in text


def test_chunking_runs_with_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [" ".join(token) for sentence in SENTENCES for token in (*sentence, ())]
    packed = gzip.compress("\n".join(lines * 3).encode())
    for name in ("train.txt.gz", "test.txt.gz"):
        (tmp_path / name).write_bytes(packed)
    monkeypatch.setenv("MAXMARGIN_DATA", str(tmp_path))
    text = printed("chunking.py", capsys)
    assert "6 training sequences" in text
    assert "Token accuracy on 6 test sequences: 100.00%" in text
    assert "Chunk F1: 100.00%" in text
    assert "have 0 of 0 wrong labels" in text
    assert "  B-NP -> I-NP  +" in text


@pytest.mark.slow
def test_kernels_run_without_data(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed("plot_kernels.py", capsys)
    assert "Instead: words of scanned digits." in text
    linear = number(r"Linear: ([\d.]+)% of the letters wrong", text)
    assert number(r"Gaussian kernel: ([\d.]+)% of the letters wrong", text) <= linear
    assert "Nystroem, 100 components: " in text


def test_own_problem(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed("own_problem.py", capsys)
    assert number(r"within ([\d.e-]+) of its minimum", text) <= 0.01
    # Guessing one digit for all costs more than 0.7.
    assert number(r"Mean cost on 1397 other digits: ([\d.]+)", text) < 0.15


@pytest.mark.slow
def test_own_model(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed("own_model.py", capsys)
    assert "nothing wrong with the 10 examples" in text
    assert number(r"within ([\d.e-]+) of its minimum", text) <= 0.01
    # Three of ten items are relevant: chance is 0.3.
    assert number(r"Precision at 3 on 300 other lists: ([\d.]+)", text) > 0.85


@pytest.mark.slow
def test_own_method(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed("own_method.py", capsys)
    least = number(r"is between ([\d.]+) and", text)
    last, average = (number(name + r": ([\d.]+) after", text) for name in ("PassiveAggressive", "Averaged"))
    assert least < average < last < 0.3  # zero weights have 1


def test_examples_use_public_names_only() -> None:
    for name in ("own_model.py", "own_method.py", "own_problem.py"):
        text = (EXAMPLES / name).read_text()
        assert not re.findall(r"maxmargin[\w.]*\._\w+", text), name
        assert not re.findall(r"import _\w+", text), name


@pytest.mark.long
def test_alignment_runs_without_data(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import matplotlib.pyplot as plt

    shown: list[Any] = []
    monkeypatch.setattr(plt, "show", lambda: shown.append(plt.gca()))
    text = printed("plot_alignment.py", capsys)
    assert "Instead: rows of scanned digits." in text
    assert number(r"within ([\d.e-]+) of its minimum", text) <= 0.5
    # One row of digits linked to another at random is wrong nine times in ten.
    assert number(r"Alignment error rate on 150 test pairs: ([\d.]+)", text) < 0.4
    (axes,) = shown
    marks = [label.get_text() for label in axes.get_legend().get_texts()]
    assert marks in (["predicted", "sure"], ["predicted", "predicted, wrong", "sure"])
    assert all(0 <= int(label.get_text()) <= 9 for label in axes.get_xticklabels())
    plt.close("all")


@pytest.mark.slow
def test_own_oracle(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    import matplotlib.pyplot as plt

    shown: list[Any] = []
    monkeypatch.setattr(plt, "show", lambda: shown.extend(plt.gcf().axes))
    text = printed("plot_own_oracle.py", capsys)
    assert number(r"within ([\d.e-]+) of its minimum", text) <= 0.1
    # That of random orders is zero.
    assert number(r"Mean rank correlation on 100 other rows: ([\d.]+)", text) > 0.6
    assert len(shown) == 8 * 6
    plt.close("all")


@pytest.mark.long
def test_parsing_runs_without_data(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import matplotlib.pyplot as plt

    shown: list[Any] = []
    monkeypatch.setattr(plt, "show", lambda: shown.append(plt.gca()))
    text = printed("plot_parsing.py", capsys)
    assert "Instead: sentences of a toy grammar." in text
    assert number(r"within ([\d.e-]+) of its minimum", text) <= 0.05
    assert number(r"Attachment score on 100 test sentences: ([\d.]+)", text) > 0.9
    (axes,) = shown
    words = [label.get_text() for label in axes.get_xticklabels()]
    assert words[:2] == ["root", "the"]
    assert len(axes.texts) >= len(words) - 1  # an arc for each word, and one for each head that is missed
    plt.close("all")


@pytest.mark.slow
def test_phrases_run_without_data(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import matplotlib.pyplot as plt

    shown: list[Any] = []
    monkeypatch.setattr(plt, "show", lambda: shown.append(plt.gca()))
    text = printed("plot_phrases.py", capsys)
    assert "Instead: sentences of a toy grammar." in text
    assert number(r"within ([\d.e-]+) of its minimum", text) <= 0.05
    assert number(r"F1 of phrases of 100 test sentences: ([\d.]+)", text) > 0.9
    (axes,) = shown
    assert [label.get_text() for label in axes.get_yticklabels()] == ["NP", "VP", "outside"]
    plt.close("all")


@pytest.mark.slow
def test_snakes_run_without_data(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    import matplotlib.pyplot as plt

    shown: list[str] = []
    monkeypatch.setattr(plt, "show", lambda: shown.extend(axes.get_title() for axes in plt.gcf().axes))
    text = printed("plot_snakes.py", capsys)
    assert "Instead: snakes drawn at random." in text
    assert "labels found by messages" in text
    # All background would be right for 94% of the pixels.
    assert number(r"Right on 20 test pictures: ([\d.]+)%", text) > 99
    assert shown == ["picture", "truth", "predicted"]
    plt.close("all")


@pytest.mark.slow
def test_nuclei_run_without_data(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    import matplotlib.pyplot as plt

    shown: list[str] = []
    monkeypatch.setattr(plt, "show", lambda: shown.extend(axes.get_title() for axes in plt.gcf().axes))
    text = printed("plot_nuclei.py", capsys)
    assert "Instead: discs drawn at random." in text
    assert number(r"within ([\d.e-]+) of", text) <= 0.05 * number(r"of (\d+) pixels", text)
    alone, cut = (number(rf"union, {name}: ([\d.]+)", text) for name in ("pixel by pixel", "cut"))
    assert cut > alone + 0.1
    assert shown == ["pixel by pixel", "cut"]
    plt.close("all")


@pytest.mark.slow
def test_scene_runs_without_data(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    import matplotlib.pyplot as plt

    shown: list[int] = []
    monkeypatch.setattr(plt, "show", lambda: shown.append(len(plt.gcf().axes)))
    text = printed("plot_scene.py", capsys)
    assert "Instead: sets made at random." in text
    for structure in ("independent", "tree", "full"):
        # The commonest set of five labels is a seventh of all.
        assert number(rf"{structure}: ([\d.]+)% of sets right", text) > 15
    assert shown == [2]
    plt.close("all")


@pytest.mark.slow
def test_words_run_without_data(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    import matplotlib.pyplot as plt

    shown: list[str] = []
    monkeypatch.setattr(plt, "show", lambda: shown.append(plt.gcf().axes[0].get_xlabel()))
    text = printed("plot_words.py", capsys)
    assert "Instead: words of scanned digits." in text
    first, second = (number(rf"Order {order}: ([\d.]+)% of the letters", text) for order in (1, 2))
    assert second < first < 50
    # Every word ends in 4, 6, 4 (-ing) or 4, 6, 6 (-ion).
    assert "  464  +" in text
    assert shown == ["what follows 6"]
    plt.close("all")


def test_matrix_completion_beats_the_mean(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import matplotlib.pyplot as plt

    shown: list[str] = []
    monkeypatch.setattr(plt, "show", lambda: shown.extend(axes.get_ylabel() for axes in plt.gcf().axes))
    text = printed("plot_matrix_completion.py", capsys)
    error, without = (number(pattern, text) for pattern in (r"pixels: ([\d.]+),", r"and ([\d.]+) without"))
    assert number(r"within ([\d.e-]+) of its minimum", text) <= 0.02 * without
    assert error < 0.3 * without
    mean, completed = (number(rf"missing pixels, {name}: ([\d.]+)", text) for name in ("mean.*", "completed"))
    assert completed < 0.75 * mean
    assert [name for name in shown if name] == ["seen", "completed", "truth"]
    plt.close("all")


def test_product_finds_the_shares(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import matplotlib.pyplot as plt

    shown: list[str] = []
    monkeypatch.setattr(plt, "show", lambda: shown.extend(axes.get_ylabel() for axes in plt.gcf().axes))
    text = printed("plot_product.py", capsys)
    assert number(r"within ([\d.e-]+) of its minimum", text) <= 0.1
    # Equal shares of all materials are wrong by 0.31 in the mean.
    assert number(r"Mean error of a share: ([\d.]+)", text) < 0.05
    assert number(r"Mean error of the haze: ([\d.]+)", text) < 0.01
    assert [name for name in shown if name] == ["truth", "found"]
    plt.close("all")


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.name)
def test_examples_are_short(path: Path) -> None:
    most = {"own_model.py": 150, "own_method.py": 80}.get(path.name, 70)
    assert len(path.read_text().splitlines()) < most
