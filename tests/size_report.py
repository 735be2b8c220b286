"""Print how large the package is, and how much of it one change or one call meets.

    python tests/size_report.py

The figures are for comparing versions: files and lines, modules that only one other imports, generic
functions, files that name a structure, bases of an estimator, and functions and files that `fit` and
`predict` pass through when kernels are interpreted.
"""

import ast
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType

ROOT = Path(__file__).resolve().parents[1] / "src"
GENERIC = {"generic", "generic_with_default", "python_generic", "singledispatch"}
# The words by which a file is recognised as one about a structure.
STRUCTURES = {"segments": ("segment",), "trees": ("arborescence", "dependency")}


def main() -> None:
    """Print all figures."""
    trees = {_module(path): ast.parse(path.read_text()) for path in sorted(ROOT.rglob("*.py"))}
    texts = [path.read_text() for path in ROOT.rglob("*.py")]
    _say("files", len(texts))
    _say("lines", sum(text.count("\n") for text in texts))
    importers = Counter(
        imported for name, tree in trees.items() for imported in _imports(name, tree, set(trees))
    )
    _say("modules with exactly one importer", sum(count == 1 for count in importers.values()))
    _say("generic functions", sum(_is_generic(node) for tree in trees.values() for node in ast.walk(tree)))
    for structure, words in STRUCTURES.items():
        named = [name for name, tree in trees.items() if any(word in _names(tree) for word in words)]
        _say(f"files that name {structure}", len(named))
    _walks()


def _walks() -> None:
    os.environ["NUMBA_DISABLE_JIT"] = "1"
    from maxmargin import ChainSVC

    ours = [cls for cls in ChainSVC.__mro__ if cls.__module__.startswith("maxmargin")]
    _say("classes of ours in ChainSVC.__mro__", len(ours))
    X, y = [[["the"], ["dog"], ["barks"]], [["a"], ["cat"]]], [["D", "N", "V"], ["D", "N"]]
    model = ChainSVC(C=10.0, random_state=0, verbose=0)
    _say("functions / files passed by ChainSVC().fit", _passed(lambda: model.fit(X, y)))
    _say("functions / files passed by predict", _passed(lambda: model.predict(X)))


def _passed(call: Callable[[], object]) -> str:
    """Return how many functions and files of the package a second call passes through."""
    call()  # imports and caches
    seen: set[tuple[str, str]] = set()

    def note(frame: FrameType, event: str, argument: object) -> None:
        code = frame.f_code
        if event == "call" and "maxmargin" in code.co_filename and not code.co_name.startswith("<"):
            seen.add((code.co_filename, code.co_qualname))

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    return f"{len(seen)} / {len({file for file, _ in seen})}"


def _module(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imports(name: str, tree: ast.Module, modules: set[str]) -> set[str]:
    """Return the modules of the package that a module imports, anywhere in its text."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            inner = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= (inner & modules) or {node.module}
    return (found & modules) - {name}


def _is_generic(node: ast.AST) -> bool:
    return isinstance(node, ast.FunctionDef) and any(_last_name(d) in GENERIC for d in node.decorator_list)


def _last_name(node: ast.expr) -> str:
    node = node.func if isinstance(node, ast.Call) else node
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _names(tree: ast.Module) -> str:
    """Return all names that a module defines or uses, in lower case; texts do not count."""
    return " ".join(_identifiers(tree)).lower()


def _identifiers(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.ClassDef | ast.FunctionDef):
            yield node.name
        elif isinstance(node, ast.ImportFrom):
            yield " ".join([node.module or "", *(alias.name for alias in node.names)])


def _say(what: str, figure: object) -> None:
    print(f"{what:<45} {figure}")


if __name__ == "__main__":
    main()
