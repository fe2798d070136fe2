"""The project's own rules for Python files. Each message says what to do instead."""

from __future__ import annotations

import ast
import re
import sys
from typing import TYPE_CHECKING

from tests.tidy.files import PACKAGES, in_package

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import PurePosixPath

MODULE_LINES = 300
FUNCTION_LINES = 70
# Reading, connecting, asking the clock: work that an import must not do.
WORK = {
    "connect", "execute", "getenv", "import_extension", "mkdir", "now", "open", "read_bytes", "read_text",
    "run", "sleep", "sql", "today", "urlopen", "utcnow", "write_bytes", "write_text",
}  # fmt: skip
SQL_TEXT = re.compile(
    r"\b(select\b.+\bfrom|insert\s+into|update\b.+\bset|delete\s+from|attach|"
    r"(create|drop|alter)\s+(or\s+replace\s+)?(temp(orary)?\s+)?(table|view|schema))\b",
    re.IGNORECASE | re.DOTALL,
)


def module_too_long(path: PurePosixPath, text: str) -> list[str]:
    """A module can be read in one go."""
    lines = text.count("\n")
    if lines <= MODULE_LINES:
        return []
    return [f"{path}: {lines} lines; split it by purpose (at most {MODULE_LINES}, usually 60-250)"]


def function_too_long(path: PurePosixPath, text: str) -> list[str]:
    """A function fits on a screen."""
    functions = [node for node in ast.walk(ast.parse(text)) if isinstance(node, FUNCTION)]
    return [
        f"{path}:{node.lineno}: {node.name} has {length} lines; move its steps into named functions "
        f"(at most {FUNCTION_LINES})"
        for node in functions
        if (length := (node.end_lineno or node.lineno) - node.lineno + 1) > FUNCTION_LINES
    ]


FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)


def docstring_missing(path: PurePosixPath, text: str) -> list[str]:
    """A module opens with what it is for."""
    if not in_package(path) or ast.get_docstring(ast.parse(text)):
        return []
    return [f"{path}:1: open the module with a docstring that says what it is for"]


def work_at_import(path: PurePosixPath, text: str) -> list[str]:
    """An import does nothing but define names. Streamlit runs app/ top to bottom, so it is exempt."""
    if not in_package(path) or in_package(path, "app"):
        return []
    return [
        f"{path}:{line}: {what} runs at import; put it into a function that the caller calls"
        for line, what in _work(ast.parse(text).body)
    ]


def _work(body: list[ast.stmt]) -> Iterator[tuple[int, str]]:
    for node in body:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            yield node.lineno, f"the call {ast.unparse(node.value.func)}()"
        elif isinstance(node, ast.For | ast.While | ast.With):
            yield node.lineno, f"a {type(node).__name__.lower()} block"
        elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value:
            yield from ((node.lineno, f"the call {name}()") for name in _called(node.value) if name in WORK)
        elif isinstance(node, ast.Try):
            yield from _work(node.body)
        elif isinstance(node, ast.If) and "__name__" not in ast.unparse(node.test):
            yield from _work(node.body + node.orelse)


def _called(value: ast.expr) -> Iterator[str]:
    """Yield the names called when an expression is evaluated; the inside of a lambda is not."""
    pending: list[ast.AST] = [value]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Lambda):
            continue
        if isinstance(node, ast.Call):
            yield node.func.attr if isinstance(node.func, ast.Attribute) else ast.unparse(node.func)
        pending.extend(ast.iter_child_nodes(node))


def app_name_clash(path: PurePosixPath, text: str) -> list[str]:
    """``streamlit run`` puts app/ first on sys.path, where app/alerts.py would hide the package alerts."""
    if path.parts[0] != "app" or len(path.parts) < 2 or path.suffix != ".py":
        return []
    name = path.parts[1].removesuffix(".py")
    if name not in PACKAGES and name not in sys.stdlib_module_names:
        return []
    return [f"{path}: hides the module {name} when Streamlit runs app/; rename it, for instance {name}_page"]


def sql_from_pieces(path: PurePosixPath, text: str) -> list[str]:
    """SQL lives in .sql files and takes parameters; only store may put names into it."""
    if not in_package(path) or in_package(path, "store"):
        return []
    return [
        f"{path}:{line}: builds SQL from pieces; put it into a .sql file with $parameters and run it by store"
        for line, pieces in _built(ast.parse(text))
        if SQL_TEXT.search(pieces)
    ]


def _built(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield the constant text of each f-string with values, and of each text that % or format fills."""
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr) and any(isinstance(v, ast.FormattedValue) for v in node.values):
            yield node.lineno, " x ".join(str(v.value) for v in node.values if isinstance(v, ast.Constant))
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod | ast.Add):
            yield node.lineno, node.left.value if _is_text(node.left) else ""
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "format":
            yield node.lineno, node.func.value.value if _is_text(node.func.value) else ""


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def stray_print(path: PurePosixPath, text: str) -> list[str]:
    """Only the programs talk to the terminal."""
    if not in_package(path) or in_package(path, "services"):
        return []
    calls = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
    return [
        f"{path}:{node.lineno}: prints; return the value, or log it, and let services show it"
        for node in calls
        if isinstance(node.func, ast.Name) and node.func.id == "print"
    ]


def fleet_is_stdlib(path: PurePosixPath, text: str) -> list[str]:
    """Everyone imports fleet, so fleet imports nothing that has to be installed."""
    if not in_package(path, "fleet"):
        return []
    names: list[tuple[int, str]] = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names.append((node.lineno, node.module or ""))
    return [
        f"{path}:{line}: imports {name}; fleet uses the standard library only; do this in a package above it"
        for line, name in names
        if (top := name.partition(".")[0]) != "fleet" and top not in sys.stdlib_module_names
    ]


RULES = (
    module_too_long,
    function_too_long,
    docstring_missing,
    work_at_import,
    app_name_clash,
    sql_from_pieces,
    stray_print,
    fleet_is_stdlib,
)
