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
from maxmargin import cli, demo, warm
from maxmargin.datasets import load_digit_words
from maxmargin.result import Progress

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
def test_demo_on_all_its_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plot = tmp_path / "demo.png"
    assert cli.main(["demo", "--plot", str(plot)]) == 0
    text = said(capsys)
    assert "700 words" in text
    assert "chosen so that structure helps" in text
    assert "chosen by cross-validation on the training words alone" in text
    assert "pass 10 primal" in text
    assert f"the gap is small enough; tol is {demo.TOL:g}" in text
    assert text.endswith(f"The convergence plot is in {plot}.")
    assert plot.read_bytes()[:8] == PNG


@pytest.mark.compiled
def test_structure_helps_in_the_demo() -> None:
    data = demo.Words(*load_digit_words())
    chain = demo.chain_errors(demo.train(data, quiet=True), data)
    single = demo.single_errors(data)
    assert chain.digits < single.digits - 0.01
    assert chain.words < single.words - 0.03


def test_errors_count_digits_and_words() -> None:
    truth = [np.array([2, 3]), np.array([4]), np.array([5, 6, 7])]
    errors = demo._errors(np.array([2, 3, 9, 5, 9, 9]), truth)
    assert errors == pytest.approx((3 / 6, 2 / 3))


@pytest.mark.compiled
@pytest.mark.usefixtures("few_words")
def test_quiet_demo_says_the_result_only(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plot = tmp_path / "demo.svg"
    assert cli.main(["demo", "--quiet", "--plot", str(plot)]) == 0
    text = said(capsys)
    assert text.startswith("After ")
    assert " pass " not in text
    assert "<svg" in plot.read_text()


@pytest.mark.compiled
@pytest.mark.usefixtures("few_words")
def test_demo_without_matplotlib(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    plot = tmp_path / "demo.png"
    assert cli.main(["demo", "--plot", str(plot)]) == 0
    assert said(capsys).endswith("matplotlib is not installed; run: pip install maxmargin[plot]")
    assert not plot.exists()


@pytest.mark.compiled
@pytest.mark.usefixtures("few_words")
def test_demo_says_that_it_compiles(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    empty = tmp_path / "kernels"
    empty.mkdir()
    for directory, sentence in ((empty, "once per installation"), (None, "at every start")):
        monkeypatch.setattr(demo, "cache_directory", lambda directory=directory: directory)
        assert cli.main(["demo", "--plot", str(tmp_path / "demo.png")]) == 0
        text = said(capsys)
        assert "Compiling kernels" in text
        assert sentence in text


@pytest.mark.usefixtures("few_words")
def test_interrupt_while_training(
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


def test_interrupt_elsewhere(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(demo, "load_digit_words", interrupt)
    assert cli.main(["demo"]) == 130
    assert capsys.readouterr().err == "maxmargin: interrupted (Ctrl-C).\n"


@pytest.mark.compiled
@pytest.mark.usefixtures("few_words")
def test_plot_that_cannot_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
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


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
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


def test_compile_says_what_was_done(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(warm, "compile_kernels", lambda: warm.Compiled(7, 1.5, tmp_path))
    assert cli.main(["compile"]) == 0
    assert capsys.readouterr().out == f"7 kernels ready in 1.5 s, in {tmp_path}\n"
