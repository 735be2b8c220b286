"""Progress of a run as a line on terminals and in notebooks, or as lines in a log."""

import sys
from importlib import import_module
from types import TracebackType
from typing import IO, Any, Self

from tqdm import tqdm

from maxmargin.compiling.progress import Compilation, CompilingLine, Screen, watched
from maxmargin.runtime.limits import now
from maxmargin.solving.result import Measurement, Progress, certificate_text

_DELAY, _SECOND_LINE = 2.0, 10.0
# No bar and no remaining time: most runs end long before max_passes.
_FORMAT = "{desc}: pass {n_fmt}/{total_fmt} [{elapsed}]{postfix}"


class Due:
    """When lines of a log are due: after 2, 10, 20, 40, 80, ... seconds."""

    def __init__(self) -> None:
        self._begin, self._next = now(), _DELAY

    def seconds(self) -> float | None:
        """Return the seconds since the beginning if a line is due, else None."""
        elapsed = now() - self._begin
        if elapsed < self._next:
            return None
        while self._next <= elapsed:
            self._next = _SECOND_LINE if self._next == _DELAY else 2.0 * self._next
        return elapsed


class WorkLine:
    """Show the progress of some work: by a bar on a terminal or in a notebook, by lines in a log.

    Parameters
    ----------
    name : str
        Text at the beginning.
    total : int
        The amount of work, in bytes.
    verbose : int
        0 for nothing, 1 for a bar where a line can be rewritten, 2 for lines in a log, too.
    """

    def __init__(self, name: str, total: int, verbose: int) -> None:
        self.name, self.total = name, max(total, 1)
        screen = screen_of(sys.stderr)
        can_rewrite = screen.isatty()
        self._due = Due() if verbose >= 2 and not can_rewrite else None
        self._bar = tqdm(
            total=self.total,
            desc=name,
            unit="B",
            unit_scale=True,
            disable=not (verbose and can_rewrite),
            delay=_DELAY,
            leave=False,
            dynamic_ncols=True,
            file=screen,
        )

    def __enter__(self) -> Self:
        return self

    def update(self, done: int) -> None:
        """Show that this many bytes are done."""
        self._bar.update(done - self._bar.n)
        seconds = None if self._due is None else self._due.seconds()
        if seconds is not None:
            share = done / self.total
            print(f"{self.name}: {share:.0%}, {seconds:.0f} s", file=sys.stderr, flush=True)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._bar.close()


class ProgressLine:
    """A callback that shows passes, primal, dual and gap in one line.

    The line appears on a terminal or in a notebook once a run has lasted two seconds, or at once with
    ``delay=0``, and disappears when the run ends. Nothing is written to other streams; use `LogLines` for
    them. Before the first pass, the line says what is being compiled. It has no estimate of the remaining
    time, as the number of passes until the gap is small enough is unknown.

    Parameters
    ----------
    name : str
        Text at the beginning of the line.
    enabled : bool or None
        False for no line at all; True and None mean the same.
    delay : float
        Seconds before the line appears.
    stream : text stream, optional
        Where to write; standard error by default.

    Examples
    --------
    >>> from maxmargin import BlockFrankWolfe, solve
    >>> from maxmargin.problems import Multiclass
    >>> problem = Multiclass.from_arrays([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
    >>> with ProgressLine("training") as line:
    ...     result = solve(problem, BlockFrankWolfe(lam=0.1), callbacks=[line], random_state=0)
    >>> result.gap <= 1e-3
    True
    """

    def __init__(
        self,
        name: str = "solve",
        *,
        enabled: bool | None = None,
        delay: float = _DELAY,
        stream: IO[str] | None = None,
    ) -> None:
        self.name, self.enabled, self.delay, self.stream = name, enabled, delay, stream
        self._bar: tqdm | None = None
        self._compiling: CompilingLine | None = None
        self._screen: Screen | None = None

    def __enter__(self) -> Self:
        self._screen = None
        if self.enabled is not False:
            self._compiling = CompilingLine(self.delay, self._out()).__enter__()
        return self

    def _out(self) -> Screen:
        if self._screen is None:
            self._screen = screen_of(sys.stderr if self.stream is None else self.stream)
        return self._screen

    def __call__(self, progress: Progress) -> None:
        """Update the line; called after each pass."""
        if self._bar is None:
            self._bar = self._open(progress.limits.max_passes)
        if self._bar.disable:
            return
        if progress.last is not None:
            self._bar.set_postfix_str(certificate_text(progress.last), refresh=False)
        self._bar.set_description_str(self.name, refresh=False)  # of several runs, each may have one
        self._bar.update(int(progress.passes) - self._bar.n)

    def _open(self, max_passes: int) -> tqdm:
        stream = self._out()
        return tqdm(
            total=max_passes,
            desc=self.name,
            bar_format=_FORMAT,
            disable=self.enabled is False or not stream.isatty(),
            delay=self.delay,
            leave=False,
            dynamic_ncols=True,
            file=stream,
        )

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.close()
        if self._compiling is not None:
            self._compiling.__exit__(kind, error, traceback)


class LogLines:
    """A callback that writes lines to a log, after 2, 10, 20, 40, 80, ... seconds.

    Before the first pass, the lines say what is being compiled.

    Parameters
    ----------
    name : str
        Text at the beginning of each line.
    stream : text stream, optional
        Where to write; standard error by default.
    """

    def __init__(self, name: str = "solve", stream: IO[str] | None = None) -> None:
        self.name, self.stream = name, stream
        self._due = Due()

    def __enter__(self) -> Self:
        self._watching = watched(self._note)
        self._watching.__enter__()
        return self

    def __call__(self, progress: Progress) -> None:
        """Write a line if it is time for one."""
        known = "" if progress.last is None else f", {certificate_text(progress.last)}"
        self._write(f"pass {progress.passes:.0f}", known)

    def _note(self, compilation: Compilation) -> None:
        """Write what is being compiled, if it is time for a line."""
        if not compilation.ended:
            self._write(f"compiling {compilation}")

    def _write(self, text: str, known: str = "") -> None:
        elapsed = self._due.seconds()
        if elapsed is not None:
            stream = sys.stderr if self.stream is None else self.stream
            print(f"{self.name}: {text}, {elapsed:.0f} s{known}", file=stream, flush=True)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Write nothing: the lines stay."""
        self._watching.__exit__(kind, error, traceback)


class _Notebook:
    """A terminal of one line: an output of a notebook that is changed, so that saved notebooks have one."""

    def __init__(self) -> None:
        self._line, self._shown = "", ""
        self._output: Any = None

    def isatty(self) -> bool:
        """Return True."""
        return True

    def write(self, text: str) -> int:
        """Change the line; a carriage return begins it anew."""
        begun = "" if "\r" in text else self._line
        self._line = begun + text.rpartition("\r")[2]
        return len(text)

    def flush(self) -> None:
        """Show the line."""
        line = self._line.rstrip()
        if line == self._shown:
            return
        self._shown, data = line, {"text/plain": line}
        if self._output is None:
            display = import_module("IPython.display").display  # which every notebook has
            self._output = display(data, raw=True, display_id=True)
        else:
            self._output.update(data, raw=True)


def screen_of(stream: IO[str]) -> Screen:
    """Return the terminal on which a line is rewritten; the stream if it is one, or no terminal at all."""
    in_notebook = type(stream).__module__.partition(".")[0] == "ipykernel"
    return _Notebook() if in_notebook and not stream.isatty() else stream


def shown_progress(name: str, verbose: int) -> ProgressLine | LogLines:
    """Return the callback for a level of verbosity: a line where it can be rewritten, or a log too."""
    if verbose >= 2 and not screen_of(sys.stderr).isatty():
        return LogLines(name)
    return ProgressLine(name)


class CertificateLines:
    """A callback that writes a line per certificate, for files and pipes.

    Parameters
    ----------
    stream : text stream, optional
        Where to write; standard output by default.
    """

    def __init__(self, stream: IO[str] | None = None) -> None:
        self.stream = stream
        self._shown: Measurement | None = None

    def __call__(self, progress: Progress) -> None:
        """Write the last certificate, unless it has been written before."""
        last = progress.last
        if last is not None and last is not self._shown:
            print(f"pass {last.passes:4.0f}  {certificate_text(last)}", file=self.stream, flush=True)
            self._shown = last
