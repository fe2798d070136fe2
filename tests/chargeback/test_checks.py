"""Each invariant of the ledger can fail: a good month passes them all, and one bad change each is seen by its check."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from chargeback.build import build_period, parameters
from chargeback.checking import check_period
from chargeback.checks import check_files, failed_checks
from chargeback.finance_csv import csv_bytes
from fleet.config import parse_config
from fleet.errors import CheckError
from store.snapshots import show_current
from tests.chargeback.ledger import PERIOD, compute, empty_lake, load_rows, memory_ledger, put

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from store.lake import Connection, Lake

CONFIG = parse_config("")
MONTH = {
    "inventory": """
        node,gpu_count,valid_from,valid_to,resource_id
        n,3,2026-02-01T00:00:00Z,2026-02-01T02:00:00Z,i-1
        """,
    "holdings": """
        start,end,gpus,node,team
        2026-02-01T00:00:00Z,2026-02-01T02:00:00Z,1,n,red
        2026-02-01T00:00:00Z,2026-02-01T01:00:00Z,1,n,blue
        """,
    "charges": """
        ChargePeriodStart,ChargePeriodEnd,ResourceId,BilledCost,ChargeCategory
        2026-02-01T00:00:00Z,2026-02-01T02:00:00Z,i-1,20.005,Usage
        2026-02-01T00:00:00Z,2026-02-01T02:00:00Z,,1.00,Tax
        """,
    "invoices": """
        total
        21.01
        """,
}
HELD = (
    "INSERT INTO {} BY NAME SELECT '{}' AS period, 'Cloud' AS issuer, 'USD' AS currency, 'sp' AS commitment, "
    "0 AS opening, 1 AS closing, 'left_over' AS status"
).format
"""A prepaid account that holds 1."""
ASSETS = (
    "INSERT INTO asset_service BY NAME SELECT file AS asset_snapshot_id, 2 AS asset_row, 'n' AS node, "
    "start AS service_from_s, start AS from_s, start + 9 AS to_s, price AS power_price_kwh "
    "FROM (VALUES {}) AS given(file, start, price)"
).format
BAD = [
    ("account_passes_through", "DELETE FROM posting WHERE step = 'pool' AND team = 'red' AND category = 'tax'"),
    ("asset_counted_twice", ASSETS("('a', 0, NULL), ('b', 0, 1)")),
    ("asset_counted_twice", ASSETS("('a', 0, 1), ('b', 8, 1)")),
    ("bridge_closes", "UPDATE bridge SET difference = 0.01"),
    ("bridge_closes", "UPDATE bridge SET invoice_total = invoice_total + 1"),
    ("bridge_closes", "UPDATE bridge SET statement_total = statement_total - 1, rounding = rounding + 1"),
    ("bridge_closes", "DELETE FROM bridge"),
    ("charge_counted_twice", "second file"),
    (
        "charge_fully_posted",
        "UPDATE posting SET amount = amount + 0.000000000001 WHERE step = 'charge' AND charge_row = 3",
    ),
    ("charge_fully_posted", "DELETE FROM posting WHERE charge_row = 2"),
    (
        "gpu_time_is_conserved",
        "UPDATE posting SET gpu_microseconds = gpu_microseconds + 1 WHERE to_account = 'team:red' AND step = 'node'",
    ),
    ("gpu_time_is_conserved", "DELETE FROM posting WHERE to_account = 'team:blue'"),
    ("invoice_fully_posted", "UPDATE posting SET amount = 2 * amount WHERE from_account = 'invoice:Cloud'"),
    ("invoice_fully_posted", "UPDATE posting SET from_account = 'invoice:Other' WHERE step = 'rounding'"),
    ("invoice_reconciles", "UPDATE invoice_total SET status = 'differs'"),
    ("no_gap", f"INSERT INTO gap (period, kind, subject) VALUES ('{PERIOD}', 'unmapped_owner', 'lab//')"),
    ("no_money_is_a_float", "ALTER TABLE statement_line ALTER amount TYPE DOUBLE"),
    ("no_money_is_a_float", "ALTER TABLE node_hour_cost ALTER cost_pico TYPE FLOAT"),
    ("prepaid_is_used_up_in_its_term", HELD("prepaid", PERIOD)),
    ("prepaid_moves_as_bridged", HELD("prepaid", PERIOD)),
    ("prepaid_moves_as_bridged", "UPDATE bridge SET prepaid_change = 1"),
    ("prepaid_moves_as_bridged", "UPDATE posting SET to_account = 'prepaid:sp' WHERE to_account = 'team:blue'"),
    ("prepaid_opens_as_it_closed", HELD("lake.prepaid", "2026-01")),
    ("server_cost_is_split", "UPDATE posting SET to_account = 'server:x' WHERE to_account = 'team:blue'"),
    ("server_cost_is_split", "INSERT INTO token_cost BY NAME SELECT 'x' AS server, 0 AS hour_number, 1 AS amount_pico"),
    (
        "statement_is_postings_rounded_once",
        "UPDATE statement_line SET amount = amount + 0.01 WHERE team = 'red' AND category = 'held'",
    ),
    (
        "statement_is_postings_rounded_once",
        "UPDATE statement_line SET amount = amount + CASE team WHEN 'red' THEN 1 ELSE -1 END WHERE category = 'held'",
    ),
    ("statement_is_postings_rounded_once", "DELETE FROM statement_line"),
    (
        "statement_line_equals_ledger",
        "UPDATE statement_line SET exact_amount = exact_amount + 0.000000000001 WHERE team = 'red'",
    ),
    ("statement_line_equals_ledger", "UPDATE statement_line SET team = 'green' WHERE team = 'red'"),
    ("unknown_is_named", "UPDATE node_hour SET node = 'another'"),
]


@pytest.fixture(scope="module")
def new_lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[], Lake]]:
    yield from empty_lake(tmp_path_factory.mktemp("lakes"))


@pytest.fixture(scope="module")
def built() -> Connection:
    """The month of the tests, computed in memory."""
    con = memory_ledger()
    utc = "2026-02-01T0{}:00:00Z".format
    put(
        con,
        "node",
        [
            {
                "cluster": "c", "node": "n", "gpu_count": 3, "valid_from": utc(0), "valid_to": utc(2), "pool": "p",
                "resource_id": "i-1",
            }
        ],
        kind="inventory",
    )  # fmt: skip
    held = {"held_from": utc(0), "gpus": 1, "node": "n"}
    put(
        con,
        "holding",
        [held | {"held_to": utc(2), "team": "red"}, held | {"held_to": utc(1), "team": "blue"}],
        kind="holdings",
    )
    charge = {
        "invoice_issuer": "Cloud", "billing_currency": "USD", "billing_period_start": utc(0),
        "billing_period_end": "2026-03-01T00:00:00Z", "charge_period_start": utc(0), "charge_period_end": utc(2),
    }  # fmt: skip
    put(
        con,
        "charge",
        [
            charge
            | {"charge_category": "Usage", "billed_cost": "20.005", "effective_cost": "20.005", "resource_id": "i-1"},
            charge | {"charge_category": "Tax", "billed_cost": "1", "effective_cost": "1"},
        ],
        kind="charges",
    )
    put(
        con,
        "invoice",
        [{"issuer": "Cloud", "invoice_id": "1", "period": PERIOD, "currency": "USD", "total_amount": "21.01"}],
        kind="invoices",
    )
    compute(con)
    return con


def failing(con: Connection, *, strict: bool = True) -> list[str]:
    return [name for name, _, _ in failed_checks(con, parameters(PERIOD), strict=strict)]


def test_a_good_month_passes_every_check(built: Connection) -> None:
    assert failing(built) == []


@pytest.mark.parametrize(("check", "change"), BAD)
def test_a_check_sees(check: str, change: str, built: Connection) -> None:
    built.execute("BEGIN")
    try:
        if change == "second file":
            load_the_charges_again(built)
        else:
            built.execute(change)
        failures = {name: (count, text) for name, count, text in failed_checks(built, parameters(PERIOD), strict=True)}
    finally:
        built.execute("ROLLBACK")
    assert check in failures
    count, text = failures[check]
    assert count > 0
    assert text
    assert failing(built) == []


def load_the_charges_again(con: Connection) -> None:
    """As another export's file with the same lines would."""
    con.execute("INSERT INTO lake.charge SELECT * REPLACE ('again' AS snapshot_id) FROM lake.charge")
    con.execute(
        "INSERT INTO lake.snapshot SELECT * REPLACE ('again' AS snapshot_id, 'again.csv' AS source) "
        "FROM lake.snapshot WHERE kind = 'charges'"
    )
    show_current(con)


def test_every_check_has_a_bad_case() -> None:
    assert {file.name for file in check_files()} == {check for check, _ in BAD}


def test_a_check_of_the_strict_tier_is_asked_only_then(built: Connection) -> None:
    built.execute("BEGIN")
    try:
        built.execute(f"INSERT INTO gap (period, kind, subject) VALUES ('{PERIOD}', 'unmapped_owner', 'lab//')")
        assert failing(built, strict=False) == []
        assert failing(built, strict=True) == ["no_gap"]
    finally:
        built.execute("ROLLBACK")


def test_a_build_that_fails_publishes_nothing(new_lake: Callable[[], Lake], tmp_path: Path) -> None:
    lake = new_lake()
    load_rows(lake, tmp_path, **MONTH)
    first = build_period(lake, CONFIG, PERIOD)
    before = csv_bytes(lake.connection, PERIOD)
    load_rows(lake, tmp_path, invoices="total\n99.00", holdings=MONTH["holdings"].replace("blue", "green"))
    snapshot = lake.snapshot()
    with pytest.raises(CheckError) as caught:
        build_period(lake, CONFIG, PERIOD)
    assert [failure.check for failure in caught.value.failures] == ["bridge_closes", "invoice_reconciles"]
    assert lake.snapshot() == snapshot
    assert csv_bytes(lake.connection, PERIOD) == before
    builds = lake.connection.execute("SELECT build_id, version FROM lake.build").fetchall()
    assert builds == [(first.build_id, 1)]


def test_building_again_writes_only_what_changed(new_lake: Callable[[], Lake], tmp_path: Path) -> None:
    lake = new_lake()
    load_rows(lake, tmp_path, **MONTH)
    first = build_period(lake, CONFIG, PERIOD)
    snapshot = lake.snapshot()
    again = build_period(lake, CONFIG, PERIOD)
    assert (first.is_new, again.is_new) == (True, False)
    assert (again.build_id, again.version) == (first.build_id, 1)
    assert lake.snapshot() == snapshot
    load_rows(lake, tmp_path, holdings=MONTH["holdings"].replace("blue", "green"))
    changed = build_period(lake, CONFIG, PERIOD)
    assert (changed.is_new, changed.version) == (True, 2)
    assert changed.build_id != first.build_id
    teams = lake.connection.execute("SELECT DISTINCT team FROM lake.statement_line").fetchall()
    assert ("blue",) not in teams


def test_check_period_sees_what_was_changed_after_publishing(new_lake: Callable[[], Lake], tmp_path: Path) -> None:
    lake = new_lake()
    load_rows(lake, tmp_path, **MONTH)
    build_period(lake, CONFIG, PERIOD)
    con = lake.connection
    assert check_period(con, CONFIG, PERIOD, strict=True) == []
    for table, change, check in (
        ("statement_line", "amount = amount + 1", "statement_is_postings_rounded_once"),
        ("statement_line", "exact_amount = exact_amount + 1", "statement_line_equals_ledger"),
        ("posting", "amount = amount + 1", "charge_fully_posted"),
        ("bridge", "invoice_total = invoice_total + 1", "bridge_closes"),
        ("statement_line", "cost_centre = 'CC-9'", "published_equals_rebuild"),
        ("held_hour", "held_gpu_microseconds = held_gpu_microseconds + 1", "published_equals_rebuild"),
    ):
        saved = con.execute(f"SELECT * FROM lake.{table}").fetchall()
        lake.write(lambda writing, t=table, c=change: writing.execute(f"UPDATE lake.{t} SET {c}"))
        assert check in [name for name, _, _ in check_period(con, CONFIG, PERIOD, strict=False)]
        lake.write(lambda writing, t=table, rows=saved: restore(writing, t, rows))
    assert check_period(con, CONFIG, PERIOD, strict=True) == []


def restore(con: Connection, table: str, rows: list[tuple[object, ...]]) -> None:
    con.execute(f"DELETE FROM lake.{table}")
    con.executemany(f"INSERT INTO lake.{table} VALUES ({', '.join('?' for _ in rows[0])})", rows)


def test_a_strict_check_asks_for_gaps_and_for_a_current_build(new_lake: Callable[[], Lake], tmp_path: Path) -> None:
    lake = new_lake()
    unpriced = MONTH["inventory"].replace("T02:00", "T03:00")
    load_rows(lake, tmp_path, **MONTH | {"inventory": unpriced})
    build_period(lake, CONFIG, PERIOD)
    con = lake.connection
    assert check_period(con, CONFIG, PERIOD, strict=False) == []
    assert [name for name, _, _ in check_period(con, CONFIG, PERIOD, strict=True)] == ["no_gap"]
    other = parse_config('[pools]\nidle.policy = "even"')
    stale = check_period(con, other, PERIOD, strict=True)
    assert [name for name, _, _ in stale] == ["no_gap", "build_is_current"]
    assert "build again" in stale[-1][2]


def test_the_deciding_quota_file_is_part_of_the_build_id(new_lake: Callable[[], Lake], tmp_path: Path) -> None:
    """Without a configured one it is the file that was loaded first, so the order of loading decides amounts."""
    quotas = "team,gpus,valid_from\n{},1,2026-01-01T00:00:00Z".format
    ids = []
    for order in (("red", "blue"), ("blue", "red")):
        lake = new_lake()
        load_rows(lake, tmp_path, **MONTH)
        for team in order:
            load_rows(lake, tmp_path, quotas=quotas(team), name=f"{team}.csv")
        ids.append(build_period(lake, CONFIG, PERIOD).build_id)
    assert ids[0] != ids[1]
