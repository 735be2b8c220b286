"""Which imports of a module run when it is imported."""

import ast
from functools import cache
from pathlib import Path


@cache
def tree_of(path: Path) -> ast.Module:
    """Return the syntax of a module."""
    return ast.parse(path.read_text())


def later_blocks(tree: ast.AST) -> list[ast.AST]:
    """Return functions, and what only type checkers read: their imports do not run with the module's.

    Blocks within such blocks are not listed again.
    """
    found, rest = list[ast.AST](), [tree]
    while rest:
        for node in ast.iter_child_nodes(rest.pop()):
            (found if _is_later(node) else rest).append(node)
    return found


def _is_later(node: ast.AST) -> bool:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return True
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
