"""The tables of public failure cases name tests that are there."""

from __future__ import annotations

import ast
import re

import pytest

from tests.tidy.files import ROOT

TABLES = {
    "tests/collectors/README.md": [str(number) for number in range(1, 57)],
    "tests/chargeback/README.md": [
        *(f"E{number}" for number in range(1, 43)),
        *(f"O{number}" for number in range(1, 21)),
    ],
}
"""Each table, and the cases that it must have."""
NAMED = re.compile(r"`([\w/]+\.py)::(test_\w+)`")


def cases(table: str) -> dict[str, str]:
    """The last column of each row by its case."""
    lines = (ROOT / table).read_text(encoding="utf-8").splitlines()
    rows = [line.split("|") for line in lines if re.match(r"\| [EO]?\d+ ", line)]
    return {cells[1].strip(): cells[-2].strip() for cells in rows}


def named() -> dict[str, set[str]]:
    """The tests that the tables name, by file."""
    found: dict[str, set[str]] = {}
    for table in TABLES:
        for cell in cases(table).values():
            for path, name in NAMED.findall(cell):
                found.setdefault(path, set()).add(name)
    return found


def names_in(path: str) -> set[str]:
    """The names of the tests in a file."""
    tree = ast.parse((ROOT / "tests" / path).read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("table", TABLES)
def test_each_case_stands_once_with_a_test_or_a_reason(table: str) -> None:
    assert list(cases(table)) == TABLES[table]
    assert [case for case, cell in cases(table).items() if not NAMED.match(cell) and not cell.startswith("– ")] == []


@pytest.mark.parametrize("path", sorted(named()))
def test_what_a_case_names_exists(path: str) -> None:
    assert sorted(named()[path] - names_in(path)) == []
