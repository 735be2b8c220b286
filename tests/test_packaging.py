"""What `pyproject.toml` declares is what the package has and needs."""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

import yaml

import maxmargin
from support.imports import later_blocks, tree_of

REPOSITORY = Path(__file__).parents[1]
PACKAGE = Path(maxmargin.__file__).parent
PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
HATCH = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["tool"]["hatch"]
# What a user may leave out; such packages are imported in functions, or for types alone.
OPTIONAL = ("plot", "frame", "qp")
FILES = sorted(path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py"))
ONLY_PACKAGE_WITH_PRIVATE_NAMES = "compiling/numba_private/"


known = cache(packages_distributions)  # takes a second


def declared(requirements: list[str]) -> set[str]:
    """Return the names of distributions, in small letters."""
    return {re.split(r"[<>=!~\[ ]", requirement)[0].lower() for requirement in requirements}


def imports(node: ast.AST) -> Iterator[str]:
    """Yield the full names that a piece of code imports from other packages."""
    for each in ast.walk(node):
        if isinstance(each, ast.Import):
            yield from (alias.name for alias in each.names)
        elif isinstance(each, ast.ImportFrom) and each.level == 0 and each.module:
            yield from (f"{each.module}.{alias.name}" for alias in each.names)


def distributions(names: Iterator[str]) -> set[str]:
    """Return the distributions of the packages outside the standard library to which names belong."""
    packages = {name.partition(".")[0] for name in names} - set(sys.stdlib_module_names) - {"maxmargin"}
    return {distribution.lower() for package in packages for distribution in known()[package]}


def test_what_is_imported_is_declared() -> None:
    always = declared(PROJECT["dependencies"])
    optional = declared([each for name in OPTIONAL for each in PROJECT["optional-dependencies"][name]])
    of_dask = declared(PROJECT["optional-dependencies"]["dask"])
    for file in FILES:
        needed = always | of_dask if file.startswith("dask/") else always  # which no other module imports
        later = {name for block in later_blocks(tree_of(PACKAGE / file)) for name in imports(block)}
        assert distributions(iter(set(imports(tree_of(PACKAGE / file))) - later)) <= needed, file
        assert distributions(iter(later)) <= needed | optional, file


def test_one_package_uses_private_names_of_numba() -> None:
    for file in FILES:
        names = {name for name in imports(tree_of(PACKAGE / file)) if name.startswith("numba")}
        private = {name for name in names if name.startswith(("numba.core", "numba.np")) or "._" in name}
        assert not private or file.startswith(ONLY_PACKAGE_WITH_PRIVATE_NAMES), file


def test_every_dependency_is_imported() -> None:
    names = {name for file in FILES for name in imports(tree_of(PACKAGE / file))}
    assert declared(PROJECT["dependencies"]) <= distributions(iter(names))


def test_the_version_stands_in_one_place() -> None:
    assert "version" not in PROJECT
    assert PROJECT["dynamic"] == ["version"]
    source = REPOSITORY / HATCH["version"]["path"]
    assert source == PACKAGE / "__init__.py"
    assert re.findall(r'^__version__ = "(.+)"$', source.read_text(), re.MULTILINE) == [maxmargin.__version__]


def test_what_is_cited_is_this_version_of_the_software_and_the_paper_of_the_readme() -> None:
    cited = yaml.safe_load((REPOSITORY / "CITATION.cff").read_text())
    assert cited["version"] == maxmargin.__version__
    assert cited["authors"] == PROJECT["authors"]
    assert cited["license"] == PROJECT["license"]
    assert cited["keywords"] == PROJECT["keywords"]
    assert (
        cited["title"] == f"{PROJECT['name']}: {PROJECT['description'].replace('Structural', 'structural')}"
    )
    (paper,) = cited["references"]
    authors = ", ".join(author["family-names"] for author in paper["authors"])
    readme = " ".join((REPOSITORY / "README.md").read_text().split())
    assert f"the paper *{paper['title']}* ({authors}, ICML {paper['year']})" in readme


def test_continuous_integration_runs_the_jobs_of_contributors() -> None:
    workflow = yaml.safe_load((REPOSITORY / ".github" / "workflows" / "ci.yml").read_text())
    (job,) = workflow["jobs"].values()
    *_, python, run = job["steps"]
    assert run == {"run": ".ci/run"}
    assert (REPOSITORY / ".ci" / "run").stat().st_mode & 0o100
    newest, oldest = python["with"]["python-version"].split()
    assert PROJECT["requires-python"] == f">={oldest}"
    assert [int(part) for part in newest.split(".")] > [int(part) for part in oldest.split(".")]


def test_jobs_that_templates_name_exist() -> None:
    jobs = re.findall(r"^(\w+)\(\) \{$", (REPOSITORY / ".ci" / "run").read_text(), re.MULTILINE)
    texts = [path.read_text() for path in (REPOSITORY / ".github").rglob("*.md")]
    named = {
        job for text in texts for jobs in re.findall(r"`\.ci/run ([\w ]+)`", text) for job in jobs.split()
    }
    assert named
    assert named <= set(jobs)


def test_the_changelog_has_the_version() -> None:
    text = (REPOSITORY / "CHANGELOG.md").read_text()
    sections = re.findall(r"^## (\S+)", text, re.MULTILINE)
    assert sections[0] == "Unreleased"
    assert sections[1] == maxmargin.__version__
