"""JSON lines: every line is a row with its number, and every number keeps its digits."""

from __future__ import annotations

import gzip
import json
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.errors import InputError
from store.columns import Column, FileSpec, Kind
from store.intake import stage
from store.lake import memory
from store.landing_json import is_json_lines

if TYPE_CHECKING:
    from pathlib import Path

    import duckdb

SPEC = FileSpec(
    kind="test",
    table="test",
    columns=(
        Column("id", "id", Kind.TEXT),
        Column("cost", "cost", Kind.MONEY, required=True, filled=True),
        Column("nested", "nested", Kind.TEXT),
        Column("a.b", "a_b", Kind.TEXT),
    ),
    null_texts=("", "null"),
)


@pytest.fixture(scope="module")
def con() -> duckdb.DuckDBPyConnection:
    return memory()


def staged(con: duckdb.DuckDBPyConnection, path: Path, content: str | bytes) -> list[tuple[object, ...]]:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    stage(con, path, SPEC)
    return con.execute("SELECT source_row, id, cost, nested, a_b FROM staged ORDER BY 1").fetchall()


def test_values_are_text_and_what_is_nested_stays_json(con: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    lines = (
        '{"cost": 1.50, "id": 7, "nested": {"x": [1, "two"]}, "a.b": true}\n'
        '{"id": null, "cost": "2.5"}\n'
        '{"cost": 1e-7, "id": "null", "nested": []}'
    )
    assert staged(con, tmp_path / "a.json", lines) == [
        (1, "7", Decimal("1.5"), '{"x":[1,"two"]}', "true"),
        (2, None, Decimal("2.5"), None, None),
        (3, None, Decimal("0.0000001"), "[]", None),
    ]


def test_rows_have_the_numbers_of_their_lines_blank_ones_included(
    con: duckdb.DuckDBPyConnection, tmp_path: Path
) -> None:
    content = '\n{"cost": 1}\r\n\n  \n{"cost": 2}\n\n'
    assert [row[:3:2] for row in staged(con, tmp_path / "a.json", content)] == [(2, 1), (5, 2)]


@given(st.decimals(min_value=-(10**20), max_value=10**20, places=12, allow_nan=False))
def test_a_number_keeps_every_digit_that_a_double_would_lose(
    con: duckdb.DuckDBPyConnection, tmp_path_factory: pytest.TempPathFactory, number: Decimal
) -> None:
    path = tmp_path_factory.getbasetemp() / "digits.json"
    ((_, text, cost, nested, _),) = staged(
        con, path, f'{{"cost": {number:f}, "id": "x:{number:f},", "nested": [{number:f}]}}'
    )
    assert (cost, text) == (number, f"x:{number:f},")
    (within,) = json.loads(str(nested), parse_float=Decimal, parse_int=Decimal)
    assert Decimal(within) == number


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('{"cost": 1}\n{"cost": 2\n{"cost": 3}\n', "row 2: is not JSON"),
        ('{"cost": 1} {"cost": 2}\n{"cost": 3}', "row 1: is not JSON"),
        ('{"cost": 1}\n[1]\n5\n', "row 2: is not a JSON object"),
        ('{"cost": 1}\n{"cost": 1, "cost": 2}\n', "row 2: has a key twice"),
        (b'{"cost": 1}\n{"cost": 1, "id": "\xff"}\n', "row 2: is not UTF-8"),
        ('{"id": "x"}\n', "column cost: required column is missing"),
        ('{"cost": 1}\n{"id": "x"}\n', "row 2, column cost: must not be empty"),
        ('{"cost": 1, "Cost\'\\"; DROP": 1}\n', "unknown column"),
        ('{"cost": NaN}\n', "a.json: "),
        ('{"cost": ' + "[" * 100_000, "a.json: "),
        ('{"cost": ' + "[" * 5000 + "123456789.123456789012345" + "]" * 5000 + "}", "a.json: "),
        (gzip.compress(b'{"cost": 1}\n' * 9999)[:-9], "a.json: "),
    ],
)
def test_a_line_that_cannot_be_a_row_is_named(
    con: duckdb.DuckDBPyConnection, tmp_path: Path, content: str | bytes, said: str
) -> None:
    with pytest.raises(InputError) as caught:
        staged(con, tmp_path / "a.json", content)
    assert said in str(caught.value)


def test_gzip_is_unpacked(con: duckdb.DuckDBPyConnection, tmp_path: Path) -> None:
    content = gzip.compress(b'{"cost": 1}\n\n{"cost": 2}\n')
    assert [row[:3:2] for row in staged(con, tmp_path / "a.json.gz", content)] == [(1, 1), (3, 2)]


@pytest.mark.parametrize(
    ("content", "is_json"),
    [(b' \n{"a": 1}', True), (b"cost\n1\n", False), (b"PAR1", False), (b"[1]", False), (b"\x1f\x8bno gzip", False)],
)
def test_json_lines_are_told_by_their_first_object(tmp_path: Path, content: bytes, *, is_json: bool) -> None:
    path = tmp_path / "a"
    path.write_bytes(content)
    assert is_json_lines(path) is is_json
