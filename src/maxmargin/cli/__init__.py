"""The command ``maxmargin``."""

import argparse
import json
import os
import sys
from collections.abc import Sequence
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import NoReturn, TypeVar

from maxmargin.estimators import commands

# The arguments of the commands, and what their help says. A command imports what it needs when it runs.

Parser = TypeVar("Parser", bound=argparse.ArgumentParser)

# Repeated here from `conllu`, which imports NumPy: the help should appear at once.
FORMATS = ("columns", "attributes", "svmhmm", "svmlight", "conllu", "json")

_TRAIN = """\
formats of FILE (recognised by the first lines):
  columns     a token per line, the last column is the label (CoNLL-2000, -2002, -2003, CRF++)
  attributes  a label and attributes per line, separated by tabs (CRFsuite)
  svmhmm      label qid:sequence number:value ... (SVM^hmm)
  svmlight    label number:value ..., or labels separated by commas
  conllu      dependency trees (Universal Dependencies)
  json        {"tokens": [[names of features], ...], "labels": [...]} per line
All may be gzipped.

the same with other programs:
  crf_learn TEMPLATE FILE MODEL      maxmargin train FILE --template TEMPLATE --model MODEL
  wapiti train -p PATTERN FILE MODEL maxmargin train FILE --template PATTERN --model MODEL
  crfsuite learn -m MODEL FILE       maxmargin train FILE --model MODEL
  svm_hmm_learn -c C FILE MODEL      maxmargin train FILE --model MODEL -C C
The files are the same, but the scale of C is not: try --search.
"""
_ENCODE = """\
formats of FILE: columns, attributes or json, as for train; all files have the same format. They are read
once, in memory that grows only with the number of distinct features, or not at all with --hash-bits.

  maxmargin encode FILE ... --output DIRECTORY
  maxmargin train DIRECTORY --model MODEL

After an interruption, the same command resumes where it stopped.
"""
_TAG = """\
output: columns with one more column, CoNLL-U with the predicted heads; for other formats, a label per
line.

the same with other programs:
  crf_test -m MODEL FILE             maxmargin tag MODEL FILE
  crfsuite tag -m MODEL FILE         maxmargin tag MODEL FILE
  svm_hmm_classify FILE MODEL OUT    maxmargin tag MODEL FILE --output OUT
"""
_EVALUATE = """\
  maxmargin evaluate MODEL FILE         a model on labelled data
  maxmargin evaluate FILE               the last column against the one before it, as conlleval does
  maxmargin evaluate TRUTH PREDICTED    the last columns of two files, or the heads of two CoNLL-U files
  maxmargin evaluate --links TRUTH PREDICTED    links such as 0-1 2?3, a pair of sentences per line
"""


def add_commands(commands: "argparse._SubParsersAction[Parser]") -> None:
    """Add the commands to the parser."""
    _add_train(_command(commands, "train", "train a model on a data file", _TRAIN))
    _add_encode(_command(commands, "encode", "encode data files that are larger than memory", _ENCODE))
    _add_tag(_command(commands, "tag", "predict the labels or heads of a data file", _TAG))
    _add_evaluate(_command(commands, "evaluate", "print the scores of predictions", _EVALUATE))
    _add_inspect(_command(commands, "inspect", "print what a model has learnt", ""))


def _command(
    commands: "argparse._SubParsersAction[Parser]", name: str, text: str, epilog: str
) -> argparse.ArgumentParser:
    form = argparse.RawDescriptionHelpFormatter
    parser = commands.add_parser(
        name, help=text, description=f"{text[0].upper()}{text[1:]}.", epilog=epilog, formatter_class=form
    )
    elsewhere = {"encode": ("train", "encode"), "inspect": ("models", "inspect")}
    module, function = elsewhere.get(name, (name, "run"))

    def run(arguments: argparse.Namespace) -> int:
        return int(getattr(import_module(f"maxmargin.cli.{module}"), function)(arguments))

    parser.set_defaults(run=run)
    return parser


def _add_train(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file", metavar="FILE", help="data to train on, or a directory made by encode; - for standard input"
    )
    parser.add_argument("--model", "-m", required=True, type=_new_file, metavar="MODEL", help="file to write")
    parser.add_argument(
        "--format", choices=("auto", *FORMATS), default="auto", help="format of FILE (default: auto)"
    )
    parser.add_argument(
        "--template", "-t", metavar="TEMPLATE", help="template of features, of CRF++ or Wapiti, for columns"
    )
    parser.add_argument(
        "--estimator", type=_trained, choices=commands(), help="what to train (default: by the format)"
    )
    parser.add_argument(
        "--tags",
        choices=("both", "upos", "xpos"),
        default="both",
        help="tags of CoNLL-U to use (default: both)",
    )
    parser.add_argument(
        "--search",
        action="store_true",
        help="choose C by cross-validation, around the default",
    )
    parser.add_argument(
        "--resume",
        action="store_true",
        help="store the state of training in MODEL.checkpoint every minute, and resume from it if it exists",
    )
    _add_settings(parser)
    _add_jobs(parser)
    _add_encoding(parser)
    _add_quiet(parser)
    _add_json(parser)


def _add_settings(parser: argparse.ArgumentParser) -> None:
    """Add the parameters of estimators."""
    parser.add_argument(
        "-C", type=_positive, metavar="C", help="inverse regularisation strength (default: the estimator's)"
    )
    parser.add_argument("--loss", metavar="LOSS", help="loss, such as hamming (default: the estimator's)")
    parser.add_argument(
        "--tol",
        type=_positive,
        metavar="TOL",
        help="stop when the gap is below this fraction of the objective",
    )
    parser.add_argument("--max-iter", type=count, metavar="N", help="largest number of passes over the data")
    parser.add_argument("--time-limit", type=_positive, metavar="SECONDS", help="largest number of seconds")
    parser.add_argument(
        "--min-count", type=count, metavar="N", help="ignore features that occur in fewer tokens"
    )
    parser.add_argument(
        "--set",
        action="append",
        type=_setting,
        metavar="NAME=VALUE",
        help="another parameter of the estimator, such as order=2",
    )
    parser.add_argument(
        "--seed", type=int, default=0, metavar="N", help="seed of the order of examples (default: 0)"
    )


def _add_encode(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", metavar="FILE", nargs="+", help="labelled data")
    parser.add_argument("--output", "-o", required=True, metavar="DIRECTORY", help="directory to write")
    parser.add_argument(
        "--format",
        choices=("auto", "columns", "attributes", "json"),
        default="auto",
        help="format of all files (default: auto)",
    )
    parser.add_argument(
        "--template", "-t", metavar="TEMPLATE", help="template of features, in CRF++'s syntax, for columns"
    )
    parser.add_argument(
        "--min-count", type=count, metavar="N", help="leave out features that occur in fewer tokens"
    )
    parser.add_argument(
        "--hash-bits", type=count, metavar="B", help="hash the names of features to B bits, up to 30"
    )
    _add_encoding(parser)
    _add_quiet(parser)
    _add_json(parser)


def _add_tag(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL", help="file that train wrote")
    parser.add_argument(
        "file",
        metavar="FILE",
        nargs="?",
        default="-",
        help="data, with or without labels; - for standard input, the default",
    )
    parser.add_argument(
        "--output",
        "-o",
        default="-",
        type=_new_file,
        metavar="FILE",
        help="file to write; - for standard output, the default",
    )
    parser.add_argument(
        "--margins",
        "--confidence",
        action="store_true",
        help="add margins: by how much the score falls if a label has to differ",
    )
    _add_jobs(parser)
    _add_encoding(parser)
    _add_quiet(parser)


def _add_evaluate(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "files", metavar="FILE", nargs="+", action=_OneOrTwo, help="one or two files, as below"
    )
    parser.add_argument("--links", action="store_true", help="the files hold word alignments")
    _add_encoding(parser)
    _add_json(parser)


def _add_inspect(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL", help="file that train wrote")
    parser.add_argument("--label", metavar="LABEL", help="features of this label only")
    parser.add_argument(
        "-k",
        type=count,
        default=10,
        metavar="K",
        help="how many features and transitions (default: 10)",
    )
    _add_json(parser)


def _add_jobs(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--jobs", type=count, metavar="N", help="threads (default: 1)")


def _add_encoding(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--encoding",
        type=_encoding,
        default="utf-8",
        metavar="NAME",
        help="encoding of data, template and output, such as latin-1 (default: utf-8)",
    )


def _add_quiet(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--quiet", "-q", action="store_true", help="no notes and no progress on standard error"
    )


def _add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print the result as a JSON object")


class _OneOrTwo(argparse.Action):
    """Takes one value or two."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[object] | None,
        option: str | None = None,
    ) -> None:
        n = len(values or ())
        if n > 2:
            parser.error(f"expected one or two files, got {n}")
        setattr(namespace, self.dest, values)


def _positive(text: str) -> float:
    """Check a number above zero."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0.0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"must be a number > 0, got {text!r}")
    return number


def count(text: str) -> int:
    """Check a number of things."""
    if not (text.isdecimal() and int(text) >= 1):
        raise argparse.ArgumentTypeError(f"must be an int >= 1, got {text!r}")
    return int(text)


def _encoding(text: str) -> str:
    """Check the name of an encoding."""
    from maxmargin.files.sources import encoding_named

    found = encoding_named(text)
    if found is None:
        raise argparse.ArgumentTypeError(f"must be an encoding that Python knows, got {text!r}")
    return found


def _new_file(text: str) -> str:
    """Check the path of a file to write before anything is trained."""
    path = Path(text)
    if text != "-" and (path.is_dir() or not path.parent.is_dir()):
        raise argparse.ArgumentTypeError(f"must be a file in a directory that exists, got {text!r}")
    return text


def _setting(text: str) -> tuple[str, object]:
    """Read a parameter: its value as JSON if it is, else as a text."""
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise argparse.ArgumentTypeError(f"must be NAME=VALUE, got {text!r}")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


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


def _trained(text: str) -> str:
    """Return the name of an estimator among those of commands; say so if it is a former one."""
    if text != "parser":
        return text
    print("maxmargin: --estimator parser is now dependency; the old name goes in 0.4", file=sys.stderr)
    return "dependency"


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
