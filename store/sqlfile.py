"""SQL files with an executable header.

A file opens with comment lines `-- Key: value`. `Purpose` says why it exists, `Grain` names the columns that make a row
unique (proved after each run), `Reads` lists its input tables (compared with what the query really reads), `Check`
states what a check guards and `Tier` when it runs. A value may continue on the next lines, indented.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from importlib import resources
from typing import TYPE_CHECKING, Any

from fleet.errors import GputallyError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from importlib.resources.abc import Traversable

    import duckdb

_HEADER = re.compile(r"^-- (?P<key>[A-Z][a-z]+): (?P<value>.*)$")
_PARAMETER = re.compile(r"\$([a-z_]+)")


class SqlFileError(GputallyError):
    """A SQL file of the product breaks its own header: a bug, shown with the file's name."""


@dataclass(frozen=True, slots=True)
class SqlFile:
    """One SELECT statement and what its header promises."""

    name: str
    """File name without number and ending: `010_node_hour.sql` -> `node_hour`; the table that its rows become."""
    text: str
    header: Mapping[str, str] = field(default_factory=dict)

    @property
    def grain(self) -> tuple[str, ...]:
        """Columns that identify a row."""
        return _names(self.header.get("Grain", ""))

    @property
    def reads(self) -> tuple[str, ...]:
        """Tables the query reads, as the header claims."""
        return _names(self.header.get("Reads", ""))

    @property
    def parameters(self) -> frozenset[str]:
        """Names of the `$parameters` in the query."""
        return frozenset(_PARAMETER.findall(_without_comments(self.text)))

    def bound(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Pick this query's parameters from `values`; KeyError if one is missing."""
        return {name: values[name] for name in self.parameters}


def parse(file_name: str, text: str) -> SqlFile:
    """Read a file's header. Raises SqlFileError when it has none."""
    header: dict[str, str] = {}
    key = ""
    for line in text.splitlines():
        if not line.startswith("--"):
            break
        match = _HEADER.match(line)
        if match:
            key = match["key"]
            header[key] = match["value"].strip()
        elif key:
            header[key] += " " + line.removeprefix("--").strip()
    if not header:
        raise SqlFileError(f"{file_name}: no header of `-- Key: value` lines")
    stem = file_name.removesuffix(".sql")
    return SqlFile(re.sub(r"^\d+_", "", stem), text, header)


def folder_files(folder: Traversable) -> list[SqlFile]:
    """Parse every `*.sql` of a folder, in the order of their names."""
    names = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".sql"))
    return [parse(name, (folder / name).read_text("utf-8")) for name in names]


def package_files(package: str, folder: str) -> list[SqlFile]:
    """Parse the SQL files that a package carries in `folder`."""
    return folder_files(resources.files(package) / folder)


def materialise(con: duckdb.DuckDBPyConnection, file: SqlFile, values: Mapping[str, Any]) -> int:
    """Run a model file into the temporary table of its name and hold it to its header; return the row count.

    Raises SqlFileError if it reads other tables than `Reads` says, or if `Grain` does not identify its rows.
    """
    _compare_reads(con, file)
    con.execute(f"CREATE OR REPLACE TEMP TABLE {file.name} AS {file.text}", file.bound(values))
    if file.grain:
        _prove_grain(con, file)
    row = con.execute(f"SELECT count(*) FROM {file.name}").fetchone()
    return int(row[0]) if row else 0


def rows_of(
    con: duckdb.DuckDBPyConnection, file: SqlFile, values: Mapping[str, Any]
) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Run a query file and return (column names, rows)."""
    cursor = con.execute(file.text, file.bound(values))
    return [column[0] for column in cursor.description or ()], cursor.fetchall()


def first_rows(
    con: duckdb.DuckDBPyConnection, file: SqlFile, order: str, limit: int
) -> tuple[list[tuple[Any, ...]], int]:
    """Run a query file without parameters; return its first rows by a column, and how many rows there are."""
    query = f"SELECT *, count(*) OVER () FROM ({file.text}) ORDER BY {order} LIMIT {limit}"
    found = con.execute(query).fetchall()
    return [row[:-1] for row in found], int(found[0][-1]) if found else 0


def tables_read(con: duckdb.DuckDBPyConnection, query: str) -> set[str]:
    """Names of the tables and views that a query reads, from its parsed form; its own WITH names are left out."""
    row = con.execute("SELECT json_serialize_sql($query)", {"query": query}).fetchone()
    parsed = json.loads(row[0]) if row else {}
    if parsed.get("error"):
        raise SqlFileError(f"not one SELECT statement: {parsed.get('error_message')}")
    named: set[str] = set()
    defined: set[str] = set()
    pending: list[Any] = [parsed["statements"]]
    while pending:
        part = pending.pop()
        if isinstance(part, dict):
            if part.get("type") == "BASE_TABLE":
                named.add(str(part["table_name"]))
            if isinstance(part.get("cte_map"), dict):
                defined.update(str(entry["key"]) for entry in part["cte_map"]["map"])
            pending.extend(part.values())
        elif isinstance(part, list):
            pending.extend(part)
    return named - defined


def _compare_reads(con: duckdb.DuckDBPyConnection, file: SqlFile) -> None:
    read = tables_read(con, file.text)
    if read != set(file.reads):
        missing, extra = sorted(read - set(file.reads)), sorted(set(file.reads) - read)
        raise SqlFileError(f"{file.name}: header `Reads` lacks {missing} and names {extra}, which it does not read")


def _prove_grain(con: duckdb.DuckDBPyConnection, file: SqlFile) -> None:
    keys = ", ".join(file.grain)
    doubled = con.execute(
        f"SELECT {keys}, count(*) FROM {file.name} GROUP BY {keys} HAVING count(*) > 1 LIMIT 1"
    ).fetchone()
    if doubled:
        raise SqlFileError(f"{file.name}: grain ({keys}) is not unique: {doubled[:-1]} appears {doubled[-1]} times")


def _names(value: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in value.split(",") if part.strip() not in ("", "none", "nothing"))


def _without_comments(text: str) -> str:
    return "\n".join(line.split("--")[0] for line in text.splitlines())
