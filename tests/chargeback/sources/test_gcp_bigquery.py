"""Fetching Google Cloud's export with the real BigQuery client from a local server: whole months or nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from google.api_core.client_options import ClientOptions
from google.auth.credentials import AnonymousCredentials
from google.cloud import bigquery

from chargeback.load import load_exports
from chargeback.sources.gcp_bigquery import fetch
from fleet.errors import SourceError
from store.lake import Lake
from store.snapshots import show_current
from tests.chargeback.sources.bigquery_server import TABLE, Table, bigquery_server
from tests.chargeback.sources.gcp_rows import charges, row

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

COLUMNS = tuple(row())
MONTH = "2026-08"


def exported(cost: float, month: str = "202608", at: int = 1) -> dict[str, Any]:
    return row(cost=cost, invoice={"month": month}) | {"export_microseconds": at}


@pytest.fixture
def table() -> Table:
    rows = [exported(number / 10, at=number) for number in range(1, 6)]
    return Table(
        [*rows, exported(99, "202607"), exported(99, "202609")], columns=(*COLUMNS, "export_time", "new_column")
    )


@pytest.fixture
def client(table: Table) -> Iterator[bigquery.Client]:
    with bigquery_server(table) as address:
        made = bigquery.Client(
            project="billing-project",
            credentials=AnonymousCredentials(),  # type: ignore[no-untyped-call]  # google-auth is not typed
            client_options=ClientOptions(api_endpoint=address),
        )
        yield made
        made.close()


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_month_is_fetched_page_by_page_by_its_invoice_month(
    table: Table, client: bigquery.Client, tmp_path: Path
) -> None:
    told: list[str] = []
    (export,) = fetch(TABLE, MONTH, tmp_path, told.append, client=client)
    assert (export.source, export.period, export.execution_id) == (f"gcp/{TABLE}/{MONTH}", MONTH, "5-5")
    assert (table.pages, told) == (3, ["2026-08: 5 rows"])
    assert len(export.parts[0].path.read_text("utf-8").splitlines()) == 5
    assert files(tmp_path) == [export.parts[0].path.name]
    rows_query = table.queries[1]["query"]
    assert "new_column" not in rows_query, "a column that is not read is not scanned"
    assert "usage_start_time BETWEEN" not in rows_query, "E11: a month holds hours of its neighbours"
    assert (
        "_PARTITIONTIME IS NULL OR _PARTITIONTIME BETWEEN TIMESTAMP('2026-07-29') AND TIMESTAMP('2026-10-15')"
        in rows_query
    )


@pytest.mark.parametrize("partitioned_by", [None, "usage_start_time"])
def test_a_table_that_is_not_cut_by_days_of_export_is_read_whole(
    table: Table, client: bigquery.Client, tmp_path: Path, partitioned_by: str | None
) -> None:
    table.partitioned_by = partitioned_by
    fetch(TABLE, MONTH, tmp_path, client=client)
    assert table.queries[1]["query"].rstrip().endswith("AND TRUE")


def test_what_was_fetched_is_not_fetched_again_until_the_table_grows(
    table: Table, client: bigquery.Client, tmp_path: Path
) -> None:
    first = fetch(TABLE, MONTH, tmp_path, client=client)
    assert fetch(TABLE, MONTH, tmp_path, client=client) == first
    assert table.pages == 3
    table.rows.append(exported(7, at=9))
    (later,) = fetch(TABLE, MONTH, tmp_path, client=client)
    assert later.execution_id == "9-6"
    assert files(tmp_path) == [later.parts[0].path.name]


def test_a_page_that_fails_half_way_leaves_nothing(table: Table, client: bigquery.Client, tmp_path: Path) -> None:
    table.fails_at_page = 2
    with pytest.raises(SourceError, match="quota exceeded"):
        fetch(TABLE, MONTH, tmp_path, client=client)
    assert files(tmp_path) == []
    (export,) = fetch(TABLE, MONTH, tmp_path, client=client)
    assert export.execution_id == "5-5"


def test_an_answer_that_ends_early_is_not_taken_for_the_month(
    table: Table, client: bigquery.Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = table.month
    monkeypatch.setattr(table, "month", lambda query: asked(query)[: None if "COUNT(*)" in query["query"] else 3])
    with pytest.raises(SourceError, match="sent 3 of 5 rows"):
        fetch(TABLE, MONTH, tmp_path, client=client)
    assert files(tmp_path) == []


def test_a_month_without_rows_is_no_delivery(client: bigquery.Client, tmp_path: Path) -> None:
    assert fetch(TABLE, "2025-01", tmp_path, client=client) == ()


@pytest.mark.parametrize("name", ["t", "p.d.t`; DROP TABLE x", "p.d.t t", "", "p.d", "../p.d.t"])
def test_what_is_no_table_is_not_asked_for(client: bigquery.Client, tmp_path: Path, table: Table, name: str) -> None:
    with pytest.raises(SourceError, match="is not a BigQuery table"):
        fetch(name, MONTH, tmp_path, client=client)
    assert table.queries == []


def test_another_table_than_an_export_is_told_apart(table: Table, client: bigquery.Client, tmp_path: Path) -> None:
    table.columns = ("id", "export_time")
    with pytest.raises(SourceError, match="has no column invoice: is it a billing export"):
        fetch(TABLE, MONTH, tmp_path, client=client)


def test_a_restatement_replaces_what_the_month_said(table: Table, client: bigquery.Client, tmp_path: Path) -> None:
    with Lake.open(tmp_path / "catalog.sqlite", tmp_path / "data") as lake:
        for amounts in ([], [-0.5]):
            table.rows += [exported(amount, at=20) for amount in amounts]
            for _ in range(2):
                load_exports(lake, fetch(TABLE, MONTH, tmp_path / "cache", client=client))
        show_current(lake.connection)
        assert charges(lake.connection, "sum(billed_cost), count(*)", table="charge") == [("1", 6)]
        kept = "SELECT provider, export_name, period, execution_id FROM lake.snapshot ORDER BY loaded_at"
        name = TABLE.rpartition(".")[2]
        assert lake.connection.execute(kept).fetchall() == [
            ("gcp", name, MONTH, "5-5"),
            ("gcp", name, MONTH, "20-6"),
        ]
