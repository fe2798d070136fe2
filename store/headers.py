"""Which columns a delivered file has, where the columns themselves say in which form it was written."""

from __future__ import annotations

import csv
from io import TextIOWrapper
from typing import TYPE_CHECKING

import duckdb

from fleet.errors import InputError, Problem
from store.gzipped import CUT_OFF, GZIP_ERRORS, opened
from store.landing import PARQUET_MAGIC
from store.sqltext import only_file

if TYPE_CHECKING:
    from pathlib import Path

ZIP_MAGIC = b"PK\x03\x04"


def column_names(path: Path) -> tuple[str, ...]:
    """Column names of a Parquet file or of a CSV, plain or gzip, without reading its rows.

    InputError when it cannot be read or is neither; what is wrong with single names is for `store.intake` to say.
    """
    try:
        with path.open("rb") as stream:
            magic = stream.read(4)
        if magic == ZIP_MAGIC:
            raise InputError([Problem(path.name, "is a ZIP archive: unpack it first")])
        return _of_parquet(path) if magic == PARQUET_MAGIC else _of_csv(path)
    except GZIP_ERRORS as error:
        raise InputError([Problem(path.name, CUT_OFF)]) from error
    except OSError as error:
        raise InputError([Problem(path.name, f"cannot be read: {error.strerror}")]) from error


def _of_csv(path: Path) -> tuple[str, ...]:
    try:
        # Bytes that are not UTF-8 become lone surrogates, so that only the header row itself is judged here.
        with TextIOWrapper(opened(path), "utf-8-sig", "surrogateescape", newline="") as stream:
            headers = tuple(next(csv.reader(stream, strict=True), ()))
        "".join(headers).encode()
    except (UnicodeEncodeError, csv.Error) as error:
        raise InputError([Problem(path.name, "has no readable UTF-8 header row", row=1)]) from error
    return headers


def _of_parquet(path: Path) -> tuple[str, ...]:
    try:
        # A connection of its own, with nothing loaded: the reader of Parquet is part of DuckDB.
        with duckdb.connect(config={"autoinstall_known_extensions": "false", "threads": 1}) as con:
            found = con.execute(
                f"SELECT column_name FROM (DESCRIBE FROM read_parquet({only_file(path)}, hive_partitioning = false))"
            ).fetchall()
    except duckdb.Error as error:
        raise InputError([Problem(path.name, "is not a complete Parquet file (cut off or damaged)")]) from error
    return tuple(str(name) for (name,) in found)
