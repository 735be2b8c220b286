"""Which imports of a module run when it is imported."""

import ast


def later_blocks(tree: ast.AST) -> list[ast.AST]:
    """Return functions, and what only type checkers read: their imports do not run with the module's."""
    functions = ast.FunctionDef | ast.AsyncFunctionDef
    return [node for node in ast.walk(tree) if isinstance(node, functions) or _is_for_types(node)]


def _is_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
