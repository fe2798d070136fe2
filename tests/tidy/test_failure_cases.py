"""The table of public failure cases names tests that are there."""

from __future__ import annotations

import ast
import re

import pytest

from tests.tidy.files import ROOT

TABLE = ROOT / "tests/collectors/README.md"
NAMED = re.compile(r"`([\w/]+\.py)::(test_\w+)`")


def cases() -> dict[int, str]:
    """The last column of each row by the number of its case."""
    rows = [line.split("|") for line in TABLE.read_text(encoding="utf-8").splitlines() if re.match(r"\| \d+ ", line)]
    return {int(cells[1]): cells[-2].strip() for cells in rows}


def names_in(path: str) -> set[str]:
    """The names of the tests in a file."""
    tree = ast.parse((ROOT / "tests" / path).read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_each_case_stands_once_with_a_test_or_a_reason() -> None:
    assert list(cases()) == list(range(1, 57))
    assert [number for number, cell in cases().items() if not NAMED.match(cell) and not cell.startswith("– ")] == []


@pytest.mark.parametrize("path", sorted({path for cell in cases().values() for path, _ in NAMED.findall(cell)}))
def test_what_a_case_names_exists(path: str) -> None:
    named = {name for cell in cases().values() for where, name in NAMED.findall(cell) if where == path}
    assert sorted(named - names_in(path)) == []
