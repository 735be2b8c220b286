"""Names that are imported when they are first used: complete, the same for type checkers, and light."""

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import maxmargin
import maxmargin.estimators
from maxmargin._lazy import lazy_names

PACKAGES = [maxmargin, maxmargin.estimators]


def said_by(program):
    """What a new interpreter prints, in words."""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return run.stdout.split()


def declared(package):
    """The names of the block for type checkers: {name: module}."""
    tree = ast.parse(Path(package.__file__).read_text())
    (block,) = (node for node in tree.body if isinstance(node, ast.If))
    return {alias.asname: node.module for node in block.body for alias in node.names}


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.__name__)
def test_type_checkers_see_the_same_names(package):
    names = declared(package)
    assert sorted(names) == package.__all__
    for name, module in names.items():
        assert getattr(package, name) is getattr(importlib.import_module(module), name)


@pytest.mark.parametrize("package", PACKAGES, ids=lambda package: package.__name__)
def test_no_name_is_that_of_a_module(package):
    folder = Path(package.__file__).parent
    assert not {path.stem for path in folder.iterdir()} & set(package.__all__)


def test_all_names_are_listed_before_they_are_used():
    program = "import maxmargin; print(*dir(maxmargin))"
    assert set(said_by(program)) >= {*maxmargin.__all__, "__version__", "problems", "methods", "estimators"}


def test_star_and_modules_of_the_package_without_optional_packages():
    optional = ("pandas", "matplotlib", "piqp", "dask", "distributed")
    absent = f"import sys; sys.modules.update(dict.fromkeys({optional}))"
    modules = "import maxmargin; print(maxmargin.problems.Chain.__name__, maxmargin.solve.__name__)"
    star = "from maxmargin import *; print(ChainSVC.__name__, solve.__name__, load.__module__)"
    expected = ["Chain", "solve", "ChainSVC", "solve", "maxmargin.estimators.loading"]
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
    assert "maxmargin.estimators.chain" in loaded
    unused = {"maxmargin.estimators.graph", "maxmargin.estimators.multilabel", "sklearn.model_selection"}
    assert not loaded & unused


def test_unknown_names():
    with pytest.raises(AttributeError, match="module 'maxmargin' has no attribute 'ChainSVM'"):
        maxmargin.ChainSVM  # noqa: B018
    with pytest.raises(ImportError, match="cannot import name 'ChainSVM'"):
        from maxmargin import ChainSVM  # noqa: F401


def test_a_name_is_looked_up_once(monkeypatch):
    module = type(sys)("lazily")
    monkeypatch.setitem(sys.modules, "lazily", module)
    monkeypatch.setitem(sys.modules, "lazily.home", home := type(sys)("lazily.home"))
    home.name = object()
    module.__getattr__ = lazy_names("lazily", {"home": ["name"]}).getattr
    assert module.name is home.name
    home.name = object()
    assert module.name is vars(module)["name"] is not home.name
