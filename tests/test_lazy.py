"""Names that are imported when they are first used: complete, the same for type checkers, and light."""

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import maxmargin
from maxmargin import compiling, datasets, displays, methods, problems, product

LAZY = [maxmargin, compiling, datasets, displays, methods, problems, product]


def said_by(program):
    """What a new interpreter prints, in words."""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return run.stdout.split()


def declared(module):
    """The names in the stub beside a module: {name: module}."""
    tree = ast.parse(Path(module.__file__).with_suffix(".pyi").read_text())
    package = module.__spec__.parent
    return {
        alias.asname: f"{package}.{node.module}"
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
    }


@pytest.mark.parametrize("module", LAZY, ids=lambda module: module.__name__)
def test_every_name_of_a_stub_is_what_its_module_defines(module):
    names = declared(module)
    assert sorted(names) == sorted(module.__all__)
    for name, home in names.items():
        assert getattr(module, name) is getattr(import_module(home), name)


@pytest.mark.parametrize("module", LAZY, ids=lambda module: module.__name__)
def test_no_name_is_that_of_a_module(module):
    folder = Path(module.__file__).parent
    assert not {path.stem for path in folder.iterdir()} & set(module.__all__)


def test_all_names_are_listed_before_they_are_used():
    program = "import maxmargin; print(*dir(maxmargin))"
    assert set(said_by(program)) >= {*maxmargin.__all__, "problems", "methods", "estimators"}


def test_star_and_modules_work_without_optional_packages():
    optional = ("pandas", "matplotlib", "piqp", "dask", "distributed")
    absent = f"import sys; sys.modules.update(dict.fromkeys({optional}))"
    modules = "import maxmargin; print(maxmargin.problems.Chain.__name__, maxmargin.solve.__name__)"
    star = "from maxmargin import *; print(ChainSVC.__name__, solve.__name__, load.__module__)"
    expected = ["Chain", "solve", "ChainSVC", "solve", "maxmargin.estimators.model_files"]
    assert said_by(f"{absent}; {modules}; {star}") == expected
    with pytest.raises(subprocess.CalledProcessError):  # had they been needed
        said_by(f"{absent}; import pandas")


def test_nothing_is_imported_ahead():
    program = "import sys; before = set(sys.modules); import maxmargin; print(*set(sys.modules) - before)"
    packages = {name.partition(".")[0] for name in said_by(program)}
    assert "maxmargin" in packages
    assert not packages & {"numpy", "scipy", "sklearn", "numba", "pandas"}


def test_a_chain_needs_no_other_estimator():
    program = "import sys; from maxmargin import ChainSVC, load; print(*sys.modules)"
    loaded = set(said_by(program))
    assert "maxmargin.structures.sequences.estimator" in loaded
    unused = {
        "maxmargin.structures.graphs.estimator",
        "maxmargin.structures.label_sets.estimator",
        "sklearn.model_selection",
    }
    assert not loaded & unused


def test_unknown_names_are_errors():
    with pytest.raises(AttributeError, match="ChainSVM"):
        maxmargin.ChainSVM  # noqa: B018
    with pytest.raises(ImportError, match="cannot import name 'ChainSVM'"):
        from maxmargin import ChainSVM  # noqa: F401
