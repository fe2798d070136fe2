"""Every case folder under tests/sql: small inputs, and the rows that must come out of them.

`tests/sql/NNN_name/<case>/` runs the one model file `NNN_name.sql`: `in_<table>.csv` holds a table that it reads (a
table without a file is empty, a column that is left out is NULL, types are those of the real table), `out.csv` the
columns that are compared. The period is January 1970, so that hour and second numbers are small; `values.toml` may set
other values of the file's parameters.

`tests/sql/month/<case>/` loads `in_<kind>.csv` (or `in_<kind>.<name>.csv`, several of a kind) into a fresh lake, builds
February 2026 with `config.toml` if there is one, and compares `out.csv` with the finance CSV and every
`out_<table>.csv` with the published table. `out_refused.csv` names the checks that must refuse the build instead.
Columns that every file would repeat are filled in (tests/chargeback/ledger.py).

In each, `why.md` does the arithmetic by hand.
"""

from __future__ import annotations

import csv
import re
import tomllib
from collections import Counter
from datetime import datetime
from decimal import Decimal
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from chargeback.build import build_period, model_steps, parameters
from chargeback.finance_csv import csv_bytes
from chargeback.load import load_files
from fleet.config import parse_config
from fleet.errors import CheckError
from store.sqlfile import materialise
from tests.chargeback.ledger import PERIOD, compute, empty_lake, memory_ledger, read_rows, write_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from store.lake import Connection, Lake

SQL = Path(__file__).parents[1] / "sql"
MONTHS = sorted(path.name for path in (SQL / "month").iterdir())
STEPS = sorted(f"{path.parent.name}/{path.name}" for path in SQL.glob("[0-9]*/*"))
STEP_PERIOD = "1970-01"
MONTH_KINDS = (
    "inventory", "devices", "holdings", "demand", "charges", "invoices", "commitments", "assets", "rates", "quotas",
    "teams", "tokens",
)  # fmt: skip
NUMBER = re.compile(r"-?\d+(\.\d+)?")
MICROSECONDS_PER_HOUR = 3_600_000_000


@pytest.fixture(scope="module")
def ledger() -> tuple[Connection, dict[str, list[tuple[str, str]]]]:
    """A connection on which the model ran over nothing, and the columns that each table then has."""
    con = memory_ledger()
    compute(con, period=STEP_PERIOD)
    named = con.execute("SELECT table_name, column_name, data_type FROM duckdb_columns() WHERE NOT internal").fetchall()
    shapes: dict[str, list[tuple[str, str]]] = {}
    for table, column, kind in dict.fromkeys(named):
        if (column, kind) not in shapes.setdefault(table, []):
            shapes[table].append((column, kind))
    return con, shapes


@pytest.fixture(scope="module")
def new_lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[], Lake]]:
    yield from empty_lake(tmp_path_factory.mktemp("lakes"))


def test_every_model_file_has_a_case() -> None:
    names = {path.parents[1].name for path in SQL.glob("[0-9]*/*/out.csv")}
    files = {path.stem for path in (Path(SQL).parents[1] / "chargeback" / "model").glob("[0-9]*.sql")}
    assert names == files


@pytest.mark.parametrize("name", STEPS)
def test_step(name: str, ledger: tuple[Connection, dict[str, list[tuple[str, str]]]]) -> None:
    con, shapes = ledger
    folder = SQL / name
    step = next(step for step in model_steps() if step.name == folder.parent.name[4:])
    given = {path.stem.removeprefix("in_"): path for path in folder.glob("in_*.csv")}
    assert set(given) <= set(step.reads), "an input that the step does not read"
    for table in step.reads:
        make_table(con, table, shapes[table], read_rows(given[table]) if table in given else [])
    values_file = folder / "values.toml"
    changed = tomllib.loads(values_file.read_text("utf-8")) if values_file.exists() else {}
    materialise(con, step, parameters(STEP_PERIOD) | changed)
    wanted = read_rows(folder / "out.csv")
    columns = header(folder / "out.csv")
    assert as_text(select(con, step.name, columns), columns) == as_text(wanted, columns)


@pytest.mark.parametrize("name", MONTHS)
def test_month(name: str, new_lake: Callable[[], Lake], tmp_path: Path) -> None:
    folder = SQL / "month" / name
    config_file = folder / "config.toml"
    config = parse_config(config_file.read_text("utf-8") if config_file.exists() else "")
    lake = new_lake()
    for kind in MONTH_KINDS:
        files = sorted({*folder.glob(f"in_{kind}.csv"), *folder.glob(f"in_{kind}.*.csv")})
        copies = [write_rows(tmp_path / path.name.removeprefix("in_"), kind, read_rows(path)) for path in files]
        for copy in copies:
            load_files(lake, kind, [copy])
    if (folder / "out_refused.csv").exists():
        with pytest.raises(CheckError) as caught:
            build_period(lake, config, PERIOD)
        assert {failure.check for failure in caught.value.failures} == {
            row["check"] for row in read_rows(folder / "out_refused.csv")
        }
        assert lake.connection.execute("SELECT count(*) FROM lake.statement_line").fetchall() == [(0,)]
        return
    build_period(lake, config, PERIOD)
    compare(folder / "out.csv", list(csv.DictReader(StringIO(csv_bytes(lake.connection, PERIOD).decode(), newline=""))))
    for path in sorted(folder.glob("out_*.csv")):
        compare(path, published(lake.connection, path.stem.removeprefix("out_")))


def make_table(con: Connection, name: str, shape: list[tuple[str, str]], rows: list[dict[str, str]]) -> None:
    """Put a temporary table of that name and shape, with these rows, in the place of what was there."""
    is_view = con.execute(
        "SELECT 1 FROM duckdb_views() WHERE view_name = ? AND database_name = 'temp'", [name]
    ).fetchall()
    con.execute(f"DROP {'VIEW' if is_view else 'TABLE'} IF EXISTS temp.{name}")
    columns = ", ".join(f'"{column}" {kind}' for column, kind in shape)
    con.execute(f"CREATE TEMP TABLE {name} ({columns})")
    for row in rows:
        names, marks = ", ".join(f'"{column}"' for column in row), ", ".join("?" for _ in row)
        con.execute(f"INSERT INTO {name} ({names}) VALUES ({marks})", [value or None for value in row.values()])


def select(con: Connection, table: str, columns: list[str]) -> list[dict[str, Any]]:
    cursor = con.execute(f"SELECT {', '.join(columns)} FROM {table}")
    return [dict(zip(columns, row, strict=True)) for row in cursor.fetchall()]


def published(con: Connection, table: str) -> list[dict[str, Any]]:
    cursor = con.execute(f"SELECT * FROM lake.{table} WHERE period = ?", [PERIOD])
    names = [column[0] for column in cursor.description]
    rows = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
    for row in rows:
        for column in [name for name in names if name.endswith("gpu_microseconds") and row[name] is not None]:
            row[column.replace("microseconds", "hours")] = Decimal(row[column]) / MICROSECONDS_PER_HOUR
    return rows


def compare(expected: Path, found: list[dict[str, Any]]) -> None:
    columns = header(expected)
    assert as_text(found, columns) == as_text(read_rows(expected), columns), expected.name


def header(path: Path) -> list[str]:
    with path.open(encoding="utf-8", newline="") as stream:
        return next(csv.reader(stream))


def as_text(rows: list[dict[str, Any]], columns: list[str]) -> Counter[str]:
    """The rows as a multiset of text, each value in one spelling."""
    return Counter(", ".join(f"{name}={spelt(row.get(name))}" for name in columns) for row in rows)


def spelt(value: Any) -> str:
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%dT%H:%M:%SZ")
    if isinstance(value, bool):
        return str(value).lower()
    text = "" if value is None else str(value) if not isinstance(value, Decimal) else f"{value:f}"
    if NUMBER.fullmatch(text):
        return f"{Decimal(text).normalize():f}"
    return text
