"""The command ``maxmargin``."""

import argparse
import os
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import NoReturn

from maxmargin.cli.options import add_commands, count

_PLOT = "maxmargin-demo.png"
_FORMATS = (".png", ".pdf", ".svg")
_FAILED, _MISUSED, _INTERRUPTED = 1, 2, 130


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(_MISUSED, f"{self.prog}: {message}; see: {self.prog} --help\n")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command.

    Parameters
    ----------
    argv : sequence of str, optional
        Arguments; those of the process by default.

    Returns
    -------
    int
        Exit code: 0, 1 after an error, 2 if the arguments are invalid, 130 after Ctrl-C.
    """
    arguments = _parser().parse_args(argv)
    try:
        return int(arguments.run(arguments))
    except KeyboardInterrupt:
        return _fail("interrupted (Ctrl-C).", _INTERRUPTED)
    except BrokenPipeError:
        # The reader is gone, as in `maxmargin demo | head`. Without this, flushing at exit would fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _FAILED
    except (ImportError, OSError, TypeError, ValueError) as error:
        return _fail(" ".join(str(error).split()), _FAILED)
    except MemoryError:
        return _fail("there is not enough memory for these data.", _FAILED)


def _parser() -> argparse.ArgumentParser:
    from maxmargin import __version__

    parser = _Parser(
        prog="maxmargin",
        description="Structural SVMs, trained fast, with a certificate of how far from optimal they are.",
    )
    parser.add_argument("--version", action="version", version=f"maxmargin {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="command", required=True)

    _add_demo(commands)
    add_commands(commands)
    _add_compile(commands)
    return parser


def _add_demo(commands: "argparse._SubParsersAction[_Parser]") -> None:
    demo = commands.add_parser(
        "demo",
        help="train and certify a chain on data that come with scikit-learn",
        description="Train and certify a chain on data that come with scikit-learn, and draw what it learnt.",
    )
    demo.add_argument(
        "--plot",
        type=_plot_path,
        default=_PLOT,
        metavar="PATH",
        help=f"file of the plot, {', '.join(_FORMATS)} (default: {_PLOT})",
    )
    demo.add_argument("--quiet", action="store_true", help="print only the result")
    demo.set_defaults(run=_demo)


def _add_compile(commands: "argparse._SubParsersAction[_Parser]") -> None:
    compile_ = commands.add_parser(
        "compile",
        help="compile kernels now, so that no first fit has to wait",
        description="Compile kernels now, so that no first fit has to wait: those that estimators need with "
        "their default parameters, for dense, sparse and named features. The command first says how much "
        "time and memory this takes. What is on disk is not compiled again.",
    )
    compile_.add_argument(
        "estimators", nargs="*", type=_estimator, metavar="ESTIMATOR", help="such as ChainSVC (default: all)"
    )
    compile_.add_argument("--all", action="store_true", help="also every model for every method")
    compile_.add_argument("--jobs", type=count, metavar="N", help="processes (default: one per processor)")
    compile_.add_argument(
        "--baseline",
        metavar="DIRECTORY",
        help="compile for a baseline that most processors support, and write to DIRECTORY: for wheels, and "
        "for machines that share it (MAXMARGIN_KERNELS=DIRECTORY)",
    )
    compile_.add_argument(
        "--list",
        action="store_true",
        help="compile nothing, and print what is ready, and where it comes from",
    )
    compile_.set_defaults(run=_compile)


def _estimator(text: str) -> str:
    """Check the name of an estimator."""
    from maxmargin.cli.warm import compiled

    known = compiled()
    if text not in known:
        raise argparse.ArgumentTypeError(f"must be one of {', '.join(known)}, got {text!r}")
    return text


def _plot_path(text: str) -> Path:
    """Check the path before anything is trained."""
    path = Path(text).expanduser()
    if path.suffix.lower() not in _FORMATS:
        raise argparse.ArgumentTypeError(f"must end in {', '.join(_FORMATS)}, got {text!r}")
    if not path.parent.is_dir():
        raise argparse.ArgumentTypeError(f"must be in a directory that exists, got {text!r}")
    return path


def _demo(arguments: argparse.Namespace) -> int:
    from maxmargin.cli.demo import run

    return run(arguments.plot, quiet=arguments.quiet)


def _compile(arguments: argparse.Namespace) -> int:
    if arguments.list:
        return _list()
    from maxmargin.cli import warm

    chosen = arguments.estimators or None
    print(warm.plan(chosen, every_method=arguments.all, n_jobs=arguments.jobs), flush=True)
    compile_ = warm.compile_kernels
    if arguments.baseline is not None:
        compile_ = partial(warm.compile_baseline, arguments.baseline)
    compiled = compile_(chosen, every_method=arguments.all, n_jobs=arguments.jobs)
    print(compiled)
    return _FAILED if compiled.directory is None else 0


def _list() -> int:
    from maxmargin.compiling.kernel_cache import inventories

    ready = [each for each in inventories() if each.functions]
    print("\n".join(map(str, ready)) or "no kernels ready: a first fit compiles those that it needs")
    return 0


def _fail(message: str, code: int) -> int:
    print(f"maxmargin: {message}", file=sys.stderr)
    return code
