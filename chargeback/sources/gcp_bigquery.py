"""Fetch an invoice month of Google Cloud's billing export from BigQuery, with the client's own credentials.

The rows land in a file of JSON lines, which is loaded as an exported one. They are chosen by `invoice.month`, never by
usage time. To bound what is scanned (and paid for), days of export are bounded too, but generously: a month's rows are
exported from a little before its first day (other time zones) until its invoice is issued early in the next.
"""

from __future__ import annotations

import re
from datetime import date, timedelta
from importlib import resources
from typing import TYPE_CHECKING, Final, NamedTuple

from google.api_core.exceptions import GoogleAPIError
from google.auth.exceptions import GoogleAuthError
from google.cloud import bigquery

from chargeback.sources.export import Export, Part
from chargeback.sources.gcp import GCP, TABLE_COLUMNS
from fleet.errors import SourceError, quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

TABLE = re.compile(r"[A-Za-z0-9.:-]{1,100}\.\w{1,1024}\.[\w-]{1,1024}", re.ASCII)
PAGE_ROWS = 20_000
DAYS_BEFORE, DAYS_AFTER = 3, 45
EXPORT_PARTITIONS: Final = frozenset({None, "export_time"})
"""Partitions that are days of export: those of the export's own tables (None: by ingestion), and of some copies."""


class TableState(NamedTuple):
    """How far a month of the export has come."""

    row_count: int
    exported_microseconds: int | None

    @property
    def execution_id(self) -> str:
        """Name of this content; a later one of the month replaces it."""
        return f"{self.exported_microseconds or 0}-{self.row_count}"


def fetch(
    table: str,
    period: str,
    cache: Path,
    progress: Callable[[str], None] = lambda _: None,
    *,
    location: str = "",
    client: bigquery.Client | None = None,
) -> tuple[Export, ...]:
    """Fetch month `period` (YYYY-MM) of `table` (`project.dataset.table`) into folder `cache`; none if it has no rows.

    A content that was fetched before is not fetched again. SourceError with one line; then `cache` is as it was before.
    """
    if not TABLE.fullmatch(table):
        raise SourceError(f"{quoted(table)} is not a BigQuery table like project.dataset.table")
    try:
        client = client or bigquery.Client(project=table.rsplit(".", 2)[0], location=location or None)
        source = _Source(client, table, period)
        state = source.state()
        if not state.row_count:
            return ()
        path = _file(cache, table, period, state)
        if not path.is_file():
            progress(f"{period}: {state.row_count:,} rows")
            state = _write(source.rows(), cache / f"{period}.part", state.row_count)
            path = _file(cache, table, period, state)
            (cache / f"{period}.part").replace(path)
            _forget_earlier(path)
    # Faults of the connection are OSErrors, as those of the disk are.
    except (GoogleAPIError, GoogleAuthError, OSError) as error:
        raise SourceError(f"BigQuery table {table}: {_first_line(error)}") from error
    export_name = table.rpartition(".")[2]
    return (Export(f"gcp/{table}/{period}", GCP, (Part(path.name, path),), export_name, period, state.execution_id),)


class _Source:
    """The queries of one table and month, fitted to the table's own description."""

    def __init__(self, client: bigquery.Client, table: str, period: str) -> None:
        described = client.get_table(table)
        known = {field.name for field in described.schema}
        missing = sorted({"invoice", "export_time"} - known)
        if missing:
            raise SourceError(f"BigQuery table {table} has no column {missing[0]}: is it a billing export?")
        self._client = client
        self._names = {
            "`columns`": ", ".join(name for name in TABLE_COLUMNS if name in known),
            "`export_table`": f"`{table}`",
            "`is_in_scanned_days`": _scanned_days(described, period),
        }
        self._month = period.replace("-", "")

    def state(self) -> TableState:
        (row,) = self._run("gcp_bigquery_state.sql")
        return TableState(row["row_count"], row["exported_microseconds"])

    def rows(self) -> Iterator[tuple[str, int | None]]:
        """Each row as JSON, and when it was exported (Unix microseconds)."""
        for row in self._run("gcp_bigquery_rows.sql"):
            yield row["line"], row["exported_microseconds"]

    def _run(self, name: str) -> bigquery.table.RowIterator:
        query = (resources.files("chargeback") / "sources" / name).read_text("utf-8")
        for placeholder, text in self._names.items():
            query = query.replace(placeholder, text)
        month = bigquery.ScalarQueryParameter("invoice_month", "STRING", self._month)
        config = bigquery.QueryJobConfig(query_parameters=[month])
        return self._client.query(query, job_config=config).result(page_size=PAGE_ROWS)


def _scanned_days(table: bigquery.Table, period: str) -> str:
    """BigQuery SQL that bounds the partitions read, where these are days of export; else all are read.

    Rows that were only just appended have no partition yet.
    """
    partitioning = table.time_partitioning
    if partitioning is None or partitioning.field not in EXPORT_PARTITIONS:
        return "TRUE"
    column = partitioning.field or "_PARTITIONTIME"
    year, month = (int(part) for part in period.split("-"))
    first = date(year, month, 1) - timedelta(days=DAYS_BEFORE)
    last = date(year, month, 28) + timedelta(days=3 + DAYS_AFTER)
    return f"({column} IS NULL OR {column} BETWEEN TIMESTAMP('{first}') AND TIMESTAMP('{last}'))"


def _file(cache: Path, table: str, period: str, state: TableState) -> Path:
    return cache / f"{table.rpartition('.')[2]}-{period}-{state.execution_id}.jsonl"


def _forget_earlier(path: Path) -> None:
    """Remove what was fetched of the month before."""
    stem = path.stem.rsplit("-", 2)[0]
    for earlier in path.parent.glob("*.jsonl"):
        if earlier != path and earlier.stem.rsplit("-", 2)[0] == stem:
            earlier.unlink()


def _write(rows: Iterator[tuple[str, int | None]], part: Path, expected: int) -> TableState:
    """Write rows as JSON lines; what they say of themselves names the content, as the table may grow meanwhile."""
    part.parent.mkdir(parents=True, exist_ok=True)
    row_count, newest = 0, 0
    try:
        with part.open("w", encoding="utf-8", newline="\n") as stream:
            for line, exported in rows:
                stream.write(f"{line}\n")
                row_count, newest = row_count + 1, max(newest, exported or 0)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    if row_count < expected:
        part.unlink()
        raise SourceError(f"BigQuery sent {row_count:,} of {expected:,} rows")
    return TableState(row_count, newest)


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0] or type(error).__name__
