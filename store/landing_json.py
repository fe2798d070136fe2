"""Read JSON lines (one object a line) as text, as `store.landing` reads CSV and Parquet: lists and objects stay JSON.

A number in a line is kept digit by digit: DuckDB's reader makes a float of it, and 11749.161576856112 comes back as
11749.161576856111.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import duckdb

from fleet.errors import InputError, Problem
from store.gzipped import CUT_OFF, GZIP_ERRORS, is_gzip, opened
from store.sqltext import identifier, literal, only_file

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from store.columns import FileSpec

LONG_NUMBER = r"[:,\[]\s*-?(0\.0*)?[1-9](\.?\d){15,}"
"""A number of 16 digits or more may come back from a double with others; text that looks so is looked at twice."""
LINES_AT_ONCE = 10_000


def is_json_lines(path: Path) -> bool:
    """Whether a file, gzipped or not, begins with a JSON object. False too for a file that cannot be unpacked."""
    try:
        with opened(path) as stream:
            return stream.read(64).lstrip().startswith(b"{")
    except GZIP_ERRORS:
        return False


def land_json_lines(con: duckdb.DuckDBPyConnection, path: Path, spec: FileSpec) -> list[str]:
    """Create temporary table `landed` of the columns that `spec` knows; return the names of all keys of all objects.

    `source_row` is the number of the line. InputError names the first line that is no JSON object.
    """
    zipped = "gzip" if is_gzip(path) else "uncompressed"
    try:
        con.execute(
            "CREATE OR REPLACE TEMP TABLE json_line AS SELECT row_number() OVER () AS source_row, json FROM "
            f"read_json_objects({only_file(path)}, format = 'newline_delimited', compression = '{zipped}')"
        )
    except duckdb.Error as error:
        raise InputError([_bad_line(path, error)]) from error
    _number_lines(con, path)
    keys = _keys(con, path.name)
    _keep_long_numbers(con, path.name)
    known = [column.name for column in spec.columns if column.name in keys]
    _land(con, known, spec.null_texts)
    return keys


def _land(con: duckdb.DuckDBPyConnection, names: Sequence[str], null_texts: Sequence[str]) -> None:
    """Create table `landed` of these keys' values; each line is read once for all of them."""
    paths, nulls = (", ".join(map(literal, texts)) for texts in ([_path(name) for name in names], null_texts))
    texts = "".join(
        f", CASE WHEN text[{number}] NOT IN ({nulls}) THEN text[{number}] END AS {identifier(name)}"
        for number, name in enumerate(names, start=1)
    )
    con.execute(
        f"CREATE OR REPLACE TEMP TABLE landed AS SELECT source_row{texts} "
        f"FROM (SELECT source_row, json_extract_string(json, CAST([{paths}] AS VARCHAR[])) AS text FROM json_line)"
    )
    con.execute("DROP TABLE json_line")


def _path(key: str) -> str:
    """The JSON path of a key of the outer object, whatever characters it has."""
    return f'$."{key}"'


def _number_lines(con: duckdb.DuckDBPyConnection, path: Path) -> None:
    """DuckDB skips blank lines; editors count them. Number the rows again in the rare file that has some."""
    try:
        with opened(path) as stream:
            lines = [number for number, line in enumerate(stream, start=1) if line.strip()]
    except GZIP_ERRORS as error:  # DuckDB takes a gzip file that lacks its end
        raise InputError([Problem(path.name, CUT_OFF)]) from error
    if lines[-1] != len(lines):
        con.execute("UPDATE json_line SET source_row = $lines[source_row]", {"lines": lines})


def _keys(con: duckdb.DuckDBPyConnection, file: str) -> list[str]:
    """Every key of every line. InputError for lines that are no objects, and so have none, and for keys given twice."""
    found = con.execute(
        "SELECT json_keys(json), json_type(json) = 'OBJECT', min(source_row) FROM json_line GROUP BY 1, 2 ORDER BY 3"
    ).fetchall()
    problems = [
        Problem(file, "has a key twice" if is_object else "is not a JSON object", row)
        for keys, is_object, row in found
        if not is_object or len(set(keys)) < len(keys)
    ]
    if problems:
        raise InputError(problems)
    return sorted({key for keys, _, _ in found for key in keys})


def _keep_long_numbers(con: duckdb.DuckDBPyConnection, file: str) -> None:
    """Make text of all numbers of the lines in which one has more digits than a double surely keeps."""
    ((last,),) = con.execute("SELECT max(source_row) FROM json_line").fetchall()
    for first in range(0, last + 1, LINES_AT_ONCE):
        block = f"source_row BETWEEN {first} AND {first + LINES_AT_ONCE - 1}"
        lines = con.execute(
            f"SELECT source_row, json FROM json_line WHERE {block} AND regexp_matches(json, {literal(LONG_NUMBER)})"
        ).fetchall()
        exact = {row: _with_numbers_as_text(line, file, row) for row, line in sorted(lines)}
        if exact:
            con.execute(
                "UPDATE json_line SET json = exact.json "
                "FROM (SELECT unnest($rows) AS source_row, unnest($texts) AS json) AS exact "
                f"WHERE json_line.source_row = exact.source_row AND json_line.{block}",
                {"rows": list(exact), "texts": list(exact.values())},
            )


def _with_numbers_as_text(line: str, file: str, row: int) -> str:
    try:
        return json.dumps(json.loads(line, parse_float=str, parse_int=str))
    except RecursionError as error:
        raise InputError([Problem(file, "is nested too deeply", row)]) from error


def _bad_line(path: Path, error: duckdb.Error) -> Problem:
    """The first line that is not JSON, found by reading again: the number in DuckDB's report is off by one."""
    number = 0
    try:
        with opened(path) as stream:
            for number, line in enumerate(stream, start=1):  # noqa: B007 - the line in which reading ends is told
                if line.strip():
                    json.loads(line)
    except UnicodeDecodeError:
        return Problem(path.name, "is not UTF-8", number)
    except RecursionError:
        return Problem(path.name, "is nested too deeply", number)
    except ValueError as found:
        return Problem(path.name, f"is not JSON: {found}", number)
    except (EOFError, OSError):
        return Problem(path.name, CUT_OFF)
    return Problem(path.name, f"cannot be read as JSON lines: {str(error).splitlines()[0]}")
