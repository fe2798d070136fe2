"""Files of Google Cloud's billing export: every shape says the same, and what means nothing is refused."""

from __future__ import annotations

import gzip
import shutil
from typing import TYPE_CHECKING

import pytest

from fleet.errors import InputError
from store.snapshots import show_current
from tests.chargeback.sources.gcp_rows import (
    charges,
    credit,
    credited,
    ledger,
    load,
    row,
    staged,
    write_csv,
    write_json,
    write_parquet,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from store.lake import Connection, Lake

BY_CATEGORY = "charge_category, sum(billed_cost), sum(effective_cost), count(*)"


@pytest.fixture(scope="module")
def con() -> Connection:
    return ledger()


def test_every_shape_of_the_export_says_the_same(con: Connection, tmp_path: Path) -> None:
    tags = [{"key": "env", "value": "prod", "inherited": True, "namespace": "acme.com"}]
    rows = [credited(tags=tags), row(cost=0.1), row(cost_type="tax", cost=1.1, labels=[], resource=None)]
    found = []
    for path in (
        write_json(tmp_path / "rows.json", rows),
        write_parquet(tmp_path / "rows.parquet", rows),
        write_csv(tmp_path / "rows.csv", rows),
    ):
        staged(con, path)
        found.append(charges(con, "* EXCLUDE (source_row, part, part_row)"))
    assert found[0] == found[1] == found[2]
    assert len(found[0]) == 4
    zipped = tmp_path / "rows.json.gz"
    with (tmp_path / "rows.json").open("rb") as plain, gzip.open(zipped, "wb") as stream:
        shutil.copyfileobj(plain, stream)
    staged(con, zipped)
    assert charges(con, "* EXCLUDE (source_row, part, part_row)") == found[0]


def test_amounts_are_the_decimals_that_name_their_doubles_and_are_summed_exactly(
    con: Connection, tmp_path: Path
) -> None:
    rows = [
        row(cost=0.1),
        row(cost=0.2),
        row(cost=1e-07),
        row(cost=0.3, credits=[credit("-0.1256348", "DISCOUNT"), credit(-1e-07, "DISCOUNT")]),
    ]
    for path in (write_json(tmp_path / "a.json", rows), write_parquet(tmp_path / "a.parquet", rows)):
        staged(con, path)
        assert charges(con, "billed_cost") == [("0.1",), ("0.2",), ("0.0000001",), ("0.1743651",)]


def test_quantities_of_any_size_are_kept_and_are_no_reason_to_refuse_a_row(con: Connection, tmp_path: Path) -> None:
    rows = [row(usage={"amount": 3.6e18}), row(usage=None)]
    for path in (write_json(tmp_path / "a.json", rows), write_parquet(tmp_path / "a.parquet", rows)):
        staged(con, path)
        assert charges(con, "consumed_quantity") == [("3600000000000000000",), (None,)]


BAD_ROWS = [
    ({"invoice": {"month": "2026-08"}}, "BillingPeriodStart"),
    ({"invoice": {"month": "202613"}}, "BillingPeriodStart"),
    ({"usage_start_time": "yesterday"}, "ChargePeriodStart"),
    ({"usage_end_time": "2026-08-40 00:00:00 UTC"}, "ChargePeriodEnd"),
    ({"credits": [credit(-1, "DISCOUNT"), credit("-0,25", "DISCOUNT")]}, "BilledCost"),
    ({"credits": [credit("NaN", "PROMOTION")]}, "BilledCost"),
    ({"credits": [credit(None, "DISCOUNT")]}, "BilledCost"),
    ({"credits": {"amount": "-1"}}, "BilledCost"),
    ({"cost_type": "surprise"}, "ChargeCategory"),
]
"""Rows whose parts mean nothing, and the column of the charge that they leave empty."""
BAD_CELLS = [
    ({"cost": "12 USD"}, "cost", "'12 USD' is not a plain decimal number"),
    ({"cost": None}, "cost", "must not be empty"),
    ({"currency": "$"}, "currency", "'$' is not an ISO 4217 currency code"),
]


def test_rows_that_have_no_meaning_are_named_and_nothing_is_kept(fresh: Callable[[], Lake], tmp_path: Path) -> None:
    lake = fresh()
    with pytest.raises(InputError) as caught:
        load(lake, write_json(tmp_path / "a.json", [row(), *(row() | bad for bad, _ in BAD_ROWS)]))
    found = [(problem.row, problem.column) for problem in caught.value.problems]
    assert found == [(number, column) for number, (_, column) in enumerate(BAD_ROWS, start=2)]
    with pytest.raises(InputError) as caught:
        load(lake, write_json(tmp_path / "a.json", [row(), *(row() | bad for bad, *_ in BAD_CELLS)]))
    cells = [(problem.row, problem.column, problem.message) for problem in caught.value.problems]
    assert cells == [(number, *said) for number, (_, *said) in enumerate(BAD_CELLS, start=2)]
    with pytest.raises(InputError, match="column costs: unknown column, did you mean cost"):
        load(lake, write_json(tmp_path / "a.json", [row(), row(costs=1)]))
    assert lake.connection.execute("SELECT count(*) FROM lake.snapshot").fetchall() == [(0,)]


def test_credits_written_with_apostrophes_are_read_unless_that_would_be_a_guess(
    con: Connection, tmp_path: Path
) -> None:
    def written(name: str) -> str:
        return str([{"name": name, "amount": -0.55, "type": "DISCOUNT"}])

    names = ["free", "it's", 'x", "amount": "-99']
    staged(con, write_csv(tmp_path / "a.csv", [row(credits=written(name)) for name in names]))
    assert charges(con, "billed_cost") == [("9.95",), (None,), (None,)]


def test_the_numbered_files_of_one_extract_are_one_delivery(fresh: Callable[[], Lake], tmp_path: Path) -> None:
    lake = fresh()
    shards = [write_json(tmp_path / f"bill-{number:012}.json", [row(cost=number + 1)]) for number in range(3)]
    (verdict,) = load(lake, *shards[::-1])
    assert (verdict.loaded.source, verdict.loaded.row_count) == ("bill-*.json", 3)
    load(lake, *shards[:2])
    show_current(lake.connection)
    found = charges(lake.connection, "part, part_row, billed_cost", table="charge")
    assert found == [("bill-000000000000.json", 1, "1"), ("bill-000000000001.json", 1, "2")]
    with pytest.raises(InputError, match=r"bill-\*\.json: lacks the file numbered 000000000001"):
        load(lake, shards[0], shards[2])
    (tmp_path / "again").mkdir()
    with pytest.raises(InputError, match="has 000000000000 twice"):
        load(lake, *shards, write_json(tmp_path / "again" / shards[0].name, [row()]))


def test_a_file_loaded_again_counts_once_and_a_later_one_replaces_it(fresh: Callable[[], Lake], tmp_path: Path) -> None:
    lake = fresh()
    path = write_json(tmp_path / "a.json", [credited(), row()])
    load(lake, path)
    (again,) = load(lake, path)
    assert again.loaded.outcome == "unchanged"
    load(lake, write_json(path, [credited()]))
    show_current(lake.connection)
    assert charges(lake.connection, BY_CATEGORY, "GROUP BY ALL", "charge") == [
        ("Credit", "-0.25", "-0.25", 1),
        ("Usage", "8.5", "8.5", 1),
    ]
