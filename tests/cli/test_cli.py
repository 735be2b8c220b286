"""The command: what it says, writes and returns."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import maxmargin
from maxmargin import cli
from maxmargin.cli import demo, warm
from maxmargin.datasets import load_digit_words
from maxmargin.solving.result import Progress

PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture
def few_words(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the demo quick: what it says does not depend on how many words there are."""
    monkeypatch.setattr(demo, "load_digit_words", lambda: load_digit_words(n_train=60, n_test=30))


def said(capsys: pytest.CaptureFixture[str]) -> str:
    return " ".join(capsys.readouterr().out.split())


def exit_code(*arguments: str) -> Any:
    with pytest.raises(SystemExit) as caught:
        cli.main(arguments)
    return caught.value.code


@pytest.mark.slow
def test_demo_runs_on_all_its_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plot = tmp_path / "demo.png"
    assert cli.main(["demo", "--plot", str(plot)]) == 0
    text = said(capsys)
    assert "700 words" in text
    assert "chosen so that structure helps" in text
    assert "chosen by cross-validation on the training words alone" in text
    assert all(f"pass {k} primal" in text for k in range(1, 15))
    assert "BCFW, the method of the paper, is certified to be within" in text
    assert f"the gap is small enough; tol is {demo.TOL:g}" in text
    assert text.endswith(f"The convergence and some held-out words are drawn in {plot}.")
    assert plot.read_bytes()[:8] == PNG


@pytest.mark.slow
def test_structure_helps_in_the_demo() -> None:
    data = demo.Words(*load_digit_words())
    result = demo.train(data, quiet=True)
    chain = demo.errors(demo.chain_reading(result, data), data.y_test)
    single = demo.errors(demo.single_reading(data), data.y_test)
    assert chain.digits < single.digits - 0.01
    assert chain.words < single.words - 0.03


def test_errors_count_digits_and_words() -> None:
    truth = [np.array([2, 3]), np.array([4]), np.array([5, 6, 7])]
    errors = demo.errors(np.array([2, 3, 9, 5, 9, 9]), truth)
    assert errors == pytest.approx((3 / 6, 2 / 3))


def test_misread_words_are_drawn_with_what_is_wrong_in_bold() -> None:
    figure = pytest.importorskip("matplotlib.figure").Figure()
    truth = [np.array([2, 3]), np.array([4]), np.array([5, 6, 7])]
    scans = [np.zeros((len(word), 64)) for word in truth]
    readings = demo.Readings(np.array([2, 3, 4, 5, 9, 7]), np.array([2, 8, 4, 5, 6, 7]))
    demo._draw_words(figure, demo.Words(scans, truth, scans, truth), readings)
    written = [[text.get_text() for text in ax.texts] for ax in figure.axes]
    assert written == [
        ["written", "2", "3", "chain", "2", "3", "one by one", "2", "8"],
        ["written", "5", "6", "7", "chain", "5", "9", "7", "one by one", "5", "6", "7"],
    ]
    bold = [[text.get_text() for text in ax.texts if text.get_weight() == "bold"] for ax in figure.axes]
    assert bold == [["8"], ["9"]]
    assert [ax.images[0].get_array().shape for ax in figure.axes] == [(8, 16), (8, 24)]


@pytest.mark.slow
@pytest.mark.usefixtures("few_words")
def test_quiet_demo_says_the_result_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plot = tmp_path / "demo.svg"
    assert cli.main(["demo", "--quiet", "--plot", str(plot)]) == 0
    text = said(capsys)
    assert text.startswith("After ")
    assert " pass " not in text
    assert "<svg" in plot.read_text()


@pytest.mark.slow
@pytest.mark.usefixtures("few_words")
def test_demo_without_matplotlib_says_what_to_install(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    plot = tmp_path / "demo.png"
    assert cli.main(["demo", "--plot", str(plot)]) == 0
    assert said(capsys).endswith("matplotlib is not installed; run: pip install maxmargin[plot]")
    assert not plot.exists()


@pytest.mark.slow
@pytest.mark.usefixtures("few_words")
def test_demo_says_that_it_compiles(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo, "has_kernels", lambda: False)
    for directory, sentence in ((tmp_path, "once per installation"), (None, "at every start")):
        monkeypatch.setattr(demo, "cache_directory", lambda directory=directory: directory)
        assert cli.main(["demo", "--plot", str(tmp_path / "demo.png")]) == 0
        text = said(capsys)
        assert "Compiling kernels" in text
        assert sentence in text


@pytest.mark.usefixtures("few_words")
def test_an_interrupt_while_training_ends_the_demo(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(progress: Progress) -> None:
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(demo, "CertificateLines", lambda: interrupt)
    plot = tmp_path / "demo.png"
    assert cli.main(["demo", "--plot", str(plot)]) == 130
    text = said(capsys)
    assert "the run was interrupted" in text
    assert text.endswith("Interrupted; run the demo again to see it to the end.")
    assert not plot.exists()


def test_an_interrupt_elsewhere_is_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(demo, "load_digit_words", interrupt)
    assert cli.main(["demo"]) == 130
    assert capsys.readouterr().err == "maxmargin: interrupted (Ctrl-C).\n"


@pytest.mark.slow
@pytest.mark.usefixtures("few_words")
def test_a_plot_that_cannot_be_written_is_an_error_of_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plot = tmp_path / "demo.png"
    plot.mkdir()
    assert cli.main(["demo", "--plot", str(plot)]) == 1
    error = capsys.readouterr().err
    assert error.startswith("maxmargin: ")
    assert "demo.png" in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "maxmargin: the following arguments are required: command; see: maxmargin --help"),
        (("dance",), "invalid choice: 'dance'"),
        (("demo", "--plot", "demo.xyz"), "must end in .png, .pdf, .svg, got 'demo.xyz'"),
        (("demo", "--plot", "nowhere/demo.png"), "must be in a directory that exists"),
        (("compile", "TreeSVC"), "must be one of ChainSVC, DependencySVC, GraphSVC, MatchingSVC,"),
        (("compile", "--jobs", "0"), "must be an int >= 1, got '0'"),
    ],
)
def test_misuse_is_told_in_one_line(
    arguments: tuple[str, ...],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert exit_code(*arguments) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1


def test_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("--version") == 0
    assert capsys.readouterr().out == f"maxmargin {maxmargin.__version__}\n"


def test_module_is_the_command() -> None:
    source = Path(maxmargin.__file__).parents[1]
    environment = {**os.environ, "PYTHONPATH": str(source)}
    run = subprocess.run(
        [sys.executable, "-m", "maxmargin", "--version"],
        capture_output=True,
        text=True,
        env=environment,
        check=True,
    )
    assert run.stdout == f"maxmargin {maxmargin.__version__}\n"


@pytest.mark.parametrize("command", ["demo", "train", "encode", "tag", "evaluate", "inspect", "compile"])
def test_each_command_says_what_it_does(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main([command, "--help"])
    usage, _, rest = capsys.readouterr().out.partition("\n\n")
    assert usage.startswith(f"usage: maxmargin {command} ")
    assert rest[0].isupper()
    assert rest.split("\n\n")[0].endswith(".")


def test_compile_says_what_was_done(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked = []

    def compile_kernels(*args: object, **kwargs: object) -> warm.Compiled:
        asked.append((args, kwargs))
        return warm.Compiled(7, 1.5, tmp_path, 432.1)

    monkeypatch.setattr(warm, "compile_kernels", compile_kernels)
    assert cli.main(["compile", "ChainSVC", "MatchingSVC", "--jobs", "2"]) == 0
    assert asked == [((["ChainSVC", "MatchingSVC"],), {"every_method": False, "n_jobs": 2})]
    before, after = capsys.readouterr().out.splitlines()
    assert before.startswith("compiling for 5 kinds of fits in 2 processes of at most 1 GB: about ")
    assert after == f"7 kernels ready in 1.5 s and at most 432 MB a process, in {tmp_path}"


def test_compile_fails_where_nothing_can_be_kept(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(warm, "cache_directory", lambda: None)
    assert cli.main(["compile", "ChainSVC"]) == 1
    assert capsys.readouterr().out.endswith(
        "no kernels compiled: no directory to keep them is writeable; set NUMBA_CACHE_DIR\n"
    )
