"""The README is short, its links lead somewhere, and the site's reference has every public name."""

import re
from pathlib import Path
from types import ModuleType

import pytest

import maxmargin
from maxmargin import crfsuite, dask, datasets, displays, methods, problems, product

MODULES = [maxmargin, problems, product, datasets, displays, dask, crfsuite]
REPOSITORY = Path(__file__).parents[1]
DOCS = REPOSITORY / "docs"
PAGES = sorted(
    path.relative_to(REPOSITORY).as_posix()
    for path in (*REPOSITORY.glob("*.md"), *DOCS.rglob("*.md"))
    if not path.is_relative_to(DOCS / "_build")
)
# Pages that Sphinx makes: it checks links to them itself.
MADE = re.compile(r"(^|/)(gallery/|reference/generated/)")


def public_names(module: ModuleType) -> set[str]:
    """Return the names that a module offers; without ``__all__``, those that it imports for others."""
    if hasattr(module, "__all__"):
        return set(module.__all__)
    text = Path(str(module.__file__)).read_text()
    return set(re.findall(r"^from \S+ import (\w+) as \1$", text, re.MULTILINE))


def listed_names() -> set[str]:
    """Return the names in the tables of the reference, with their modules."""
    found, module = set(), ""
    for line in (DOCS / "reference" / "index.rst").read_text().splitlines():
        if line.startswith((".. module:: ", ".. currentmodule:: ")):
            module = line.split()[-1]
        elif module and re.fullmatch(r"   \w+", line):
            found.add(f"{module}.{line.strip()}")
    return found


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_the_reference_lists_every_public_name(module: ModuleType) -> None:
    names = public_names(module)
    assert len(names) > 3
    assert {f"{module.__name__}.{name}" for name in names} - listed_names() == set()


def test_methods_are_listed_where_users_import_them() -> None:
    assert public_names(methods) <= public_names(maxmargin)


def test_the_reference_lists_nothing_else() -> None:
    known = {f"{module.__name__}.{name}" for module in MODULES for name in public_names(module)}
    assert listed_names() - known == set()


def test_the_readme_is_short() -> None:
    assert len((REPOSITORY / "README.md").read_text().splitlines()) <= 130


@pytest.mark.parametrize("page", PAGES)
def test_links_between_files_lead_somewhere(page: str) -> None:
    path = REPOSITORY / page
    for target in re.findall(r"\]\(([^)#\s]+)", path.read_text()):
        if "://" not in target and not MADE.search(target):
            assert (path.parent / target).exists(), target
