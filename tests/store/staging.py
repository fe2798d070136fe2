"""A kind of file with every kind of column, and how tests stage one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from fleet.errors import InputError, Problem
from store.columns import Column, FileSpec, Kind
from store.intake import Staged, stage

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import duckdb

SPEC = FileSpec(
    kind="things",
    table="thing",
    columns=(
        Column("id", "id", Kind.NAME, required=True, filled=True),
        Column("note", "note", Kind.TEXT),
        Column("cost", "cost", Kind.MONEY),
        Column("gpus", "gpus", Kind.GPUS, minimum=0),
        Column("count", "count", Kind.COUNT, minimum=0),
        Column("seen", "seen", Kind.TIME),
        Column("currency", "currency", Kind.CURRENCY),
        Column("month", "month", Kind.MONTH),
    ),
    other_columns=("colour",),
    custom_prefixes=("x_",),
    null_texts=("", "NULL"),
)
EITHER = FileSpec(
    kind="places",
    table="place",
    columns=(Column("node", "node", Kind.NAME), Column("pool", "pool", Kind.NAME), Column("n", "n", Kind.COUNT)),
    one_of=("node", "pool"),
)


def rows(con: duckdb.DuckDBPyConnection, columns: str) -> list[tuple[Any, ...]]:
    return con.execute(f"SELECT {columns} FROM staged ORDER BY source_row").fetchall()


def staged(con: duckdb.DuckDBPyConnection, path: Path, content: str | bytes, **options: Any) -> Staged:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return stage(con, path, options.pop("spec", SPEC), **options)


def problems(con: duckdb.DuckDBPyConnection, path: Path, content: str | bytes, **options: Any) -> list[Problem]:
    with pytest.raises(InputError) as caught:
        staged(con, path, content, **options)
    assert {problem.file for problem in caught.value.problems} == {path.name}
    return list(caught.value.problems)


def only(found: Sequence[Problem]) -> tuple[int | None, str | None, str]:
    (problem,) = found
    return problem.row, problem.column, problem.message
