"""The progress line on terminals and elsewhere, and what the plot shows."""

import io
import sys
import threading
from types import SimpleNamespace
from typing import Any

import matplotlib
import numpy as np
import pytest

from maxmargin import BlockFrankWolfe, solve
from maxmargin.compiling.progress import announced
from maxmargin.problems import Multiclass
from maxmargin.runtime import limits
from maxmargin.runtime.limits import Limits
from maxmargin.solving import display
from maxmargin.solving.display import CertificateLines, LogLines, ProgressLine, WorkLine, shown_progress
from maxmargin.solving.result import History, Measurement, Progress, plot_convergence

matplotlib.use("Agg")

ROWS = (
    Measurement(5.0, 50, 0.1, primal=1.0, dual=0.2, gap=0.8),
    Measurement(10.0, 100, 0.2, primal=0.7, dual=0.4, gap=0.3),
    Measurement(15.0, 150, 0.3, primal=0.9, dual=0.5, gap=0.4),
)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def progress(passes: int, last: Measurement | None) -> Progress:
    return Progress(float(passes), 10 * passes, 0.1, last, Limits(1e-3, 0.0, 100))


def shown(stream: io.StringIO, **options: Any) -> str:
    with ProgressLine("training", stream=stream, **options) as line:
        line(progress(1, None))
        line(progress(5, ROWS[0]))
        if line._bar is not None and not line._bar.disable:
            line._bar.refresh()  # tqdm draws at most ten times a second
    return stream.getvalue()


def test_a_line_is_shown_on_a_terminal() -> None:
    text = shown(Terminal(), delay=0)
    assert "training: pass 5/100" in text
    assert "training: pass 5/100 [00:00], primal 1 dual 0.2 gap 0.8" in text
    assert "<" not in text  # no time that remains: it would be that until max_passes
    assert text.rstrip(" ").endswith("\r")  # the line is gone afterwards


def test_no_line_is_shown_before_the_delay() -> None:
    stream = Terminal()
    with ProgressLine("training", stream=stream) as line:
        line(progress(1, None))
        line(progress(5, ROWS[0]))
    assert stream.getvalue().strip() == ""


def test_no_line_is_shown_where_nobody_looks() -> None:
    assert shown(io.StringIO(), delay=0) == ""


def test_no_line_is_shown_when_not_enabled() -> None:
    assert shown(Terminal(), delay=0, enabled=False) == ""


def test_line_goes_to_standard_error_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    with ProgressLine("training", delay=0) as line:
        line(progress(5, ROWS[0]))
    assert "training" in stream.getvalue()


class OutStream(io.StringIO):
    """A stream of a notebook."""


OutStream.__module__ = "ipykernel.iostream"


class Outputs:
    """The outputs of a cell, as IPython shows them: the texts of each, and which was written to last."""

    def __init__(self) -> None:
        self.texts: list[list[str]] = []
        self.written = threading.Event()

    def display(self, data: dict[str, str], *, raw: bool, display_id: bool) -> SimpleNamespace:
        assert raw
        assert display_id
        texts: list[str] = []
        self.texts.append(texts)

        def update(data: dict[str, str], *, raw: bool) -> None:
            assert raw
            texts.append(data["text/plain"])
            self.written.set()

        update(data, raw=True)
        return SimpleNamespace(update=update)


@pytest.fixture
def outputs(monkeypatch: pytest.MonkeyPatch) -> Outputs:
    found = Outputs()
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace())
    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(display=found.display))
    return found


def test_a_line_is_one_output_of_a_notebook_and_gone_afterwards(outputs: Outputs) -> None:
    assert shown(OutStream(), delay=0) == ""
    (texts,) = outputs.texts
    assert "training: pass 5/100 [00:00], primal 1 dual 0.2 gap 0.8" in texts
    assert texts[-1] == ""
    assert not any("\r" in text for text in texts)


def test_a_notebook_says_what_is_being_compiled_in_the_same_output(outputs: Outputs) -> None:
    with ProgressLine("training", stream=OutStream(), delay=0.0) as line:
        with announced(plot_convergence, ()):
            assert outputs.written.wait(60)
        line(progress(5, ROWS[0]))
    (texts,) = outputs.texts
    assert texts[0].startswith("compiling plot_convergence (kernel 1, ")
    assert any(text.startswith("training: pass") for text in texts)


def test_the_bytes_of_files_are_one_output_of_a_notebook(
    outputs: Outputs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stderr", OutStream())
    monkeypatch.setattr(display, "_DELAY", 0.0)
    with WorkLine("encode", 100, 1) as line:
        line.update(50)
        line._bar.refresh()
    (texts,) = outputs.texts
    assert any("encode:  50%" in text for text in texts)
    assert texts[-1] == ""


def test_logs_say_what_is_being_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    stream, clock = io.StringIO(), SimpleNamespace(time=0.0)
    monkeypatch.setattr(limits, "time", SimpleNamespace(perf_counter=lambda: clock.time))
    for _ in range(2):  # the first is not told what the second is
        with LogLines("training", stream) as lines:
            for clock.time in (1.0, 3.0, 4.0):
                with announced(plot_convergence, ()):
                    pass
            clock.time = 11.0
            lines(progress(1, None))
        clock.time = 0.0
    text = "training: compiling plot_convergence, 3 s\ntraining: pass 1, 11 s\n"
    assert stream.getvalue() == 2 * text


def test_log_lines_come_less_and_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    stream, clock = io.StringIO(), SimpleNamespace(time=0.0)
    monkeypatch.setattr(limits, "time", SimpleNamespace(perf_counter=lambda: clock.time))
    with LogLines("training", stream) as lines:
        for second in range(1, 100):
            clock.time = float(second)
            lines(progress(second, ROWS[0] if second > 5 else None))
    assert stream.getvalue().splitlines() == [
        "training: pass 2, 2 s",
        *(f"training: pass {s}, {s} s, primal 1 dual 0.2 gap 0.8" for s in (10, 20, 40, 80)),
    ]


@pytest.mark.parametrize(
    ("stream", "verbose", "kind"),
    [
        (Terminal(), 1, ProgressLine),
        (Terminal(), 2, ProgressLine),
        (io.StringIO(), 1, ProgressLine),
        (io.StringIO(), 2, LogLines),
    ],
)
def test_verbosity_chooses_the_display(
    stream: io.StringIO, verbose: int, kind: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stderr", stream)
    assert type(shown_progress("training", verbose)) is kind


def test_each_certificate_is_written_once() -> None:
    stream = io.StringIO()
    lines = CertificateLines(stream)
    for passes, last in ((1, None), (5, ROWS[0]), (6, ROWS[0]), (10, ROWS[1])):
        lines(progress(passes, last))
    assert stream.getvalue().splitlines() == [
        "pass    5  primal 1 dual 0.2 gap 0.8",
        "pass   10  primal 0.7 dual 0.4 gap 0.3",
    ]


def test_plotted_curves_are_those_of_the_history() -> None:
    objectives, gap = plot_convergence(History(ROWS))
    primal, dual = objectives.get_lines()
    np.testing.assert_array_equal(primal.get_xdata(), [5, 10, 15])
    np.testing.assert_array_equal(primal.get_ydata(), [1.0, 0.7, 0.9])
    np.testing.assert_array_equal(dual.get_ydata(), [0.2, 0.4, 0.5])
    # best primal less best dual so far, not the gap of each point
    np.testing.assert_allclose(gap.get_lines()[0].get_ydata(), [0.8, 0.3, 0.2])
    assert gap.get_yscale() == "log"
    assert objectives.get_title() == "Certified: at most 0.2 above the minimum after 15 passes"
    close(objectives)


def test_the_plot_has_labels() -> None:
    objectives, gap = plot_convergence(History(ROWS), tol=0.25)
    assert (objectives.get_ylabel(), gap.get_ylabel()) == ("objective", "certified gap (log)")
    assert gap.get_xlabel() == "passes over the data"
    objectives.figure.canvas.draw()
    assert all(float(tick).is_integer() for tick in gap.get_xticks())
    assert gap.get_lines()[1].get_ydata() == [0.25, 0.25]
    names = [text.get_text() for ax in (objectives, gap) for text in ax.get_legend().get_texts()]
    assert [name.partition(":")[0] for name in names] == ["primal", "dual", "gap", "tol = 0.25"]
    close(objectives)


def test_runs_are_compared_by_name() -> None:
    """Histories and results, in one colour each: the dual, and the gap below."""
    problem = Multiclass.from_arrays(np.eye(3), [0, 1, 2])
    result = solve(problem, BlockFrankWolfe(0.1), tol=0.0, max_passes=3, check_every=1)
    objectives, gap = plot_convergence({"first": History(ROWS), "BCFW": result}, tol=0.25)
    for ax, expected in ((objectives, ["first", "BCFW"]), (gap, ["first", "BCFW", "tol = 0.25"])):
        assert [text.get_text() for text in ax.get_legend().get_texts()] == expected
    primal, dual, other_primal, other_dual = objectives.get_lines()
    np.testing.assert_array_equal(dual.get_ydata(), [0.2, 0.4, 0.5])
    np.testing.assert_array_equal(other_primal.get_ydata(), result.history.primal)
    np.testing.assert_array_equal(other_dual.get_ydata(), result.history.dual)
    first, second, _ = gap.get_lines()
    assert primal.get_color() == dual.get_color() == first.get_color()
    assert other_primal.get_color() == other_dual.get_color() == second.get_color() != first.get_color()
    assert second.get_ydata()[-1] == result.gap
    assert len(plot_convergence(result, (objectives, gap))[0].get_lines()) == 6
    close(objectives)


def test_the_plot_can_be_in_the_users_panels() -> None:
    from matplotlib.figure import Figure

    axes = Figure().subplots(2, 1)
    assert plot_convergence(History(ROWS), axes) is axes
    assert len(axes[0].get_lines()) == 2
    logarithmic = Figure().subplots(2, 1, sharex=True)
    logarithmic[1].set_xscale("log")
    plot_convergence(History(ROWS), logarithmic)
    assert logarithmic[0].get_xscale() == "log"


def test_a_gap_of_zero_is_drawn() -> None:
    exact = Measurement(20.0, 200, 0.4, primal=0.5, dual=0.5, gap=0.0)
    objectives, gap = plot_convergence(History((*ROWS, exact)))
    objectives.figure.canvas.draw()
    assert gap.get_lines()[0].get_ydata()[-1] == 0.0
    close(objectives)


def test_an_empty_history_cannot_be_plotted() -> None:
    with pytest.raises(ValueError, match=r"^plot_convergence: history must hold .* got an empty one\.$"):
        plot_convergence(History())
    with pytest.raises(ValueError, match=r"^plot_convergence: history must hold .* got an empty one\.$"):
        plot_convergence({})
    with pytest.raises(TypeError, match=r"^plot_convergence: history must be a History, .* got 3\.$"):
        plot_convergence({"run": 3})  # type: ignore[dict-item]


def test_a_plot_without_matplotlib_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"pip install maxmargin\[plot\]"):
        plot_convergence(History(ROWS))


def close(ax: Any) -> None:
    import matplotlib.pyplot as plt

    plt.close(ax.figure)
