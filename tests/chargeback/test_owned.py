"""Owned hardware as charges: what it costs, to the cent and the second, and where that goes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chargeback.build import prepare
from fleet.config import parse_config
from tests.chargeback.bill import HOUR, at, booked, charge, exact, held, ledger, node, one, run
from tests.chargeback.ledger import memory_ledger, put

if TYPE_CHECKING:
    from store.lake import Connection

STEPS = ("asset_service", "asset_power", "asset_charge")
OCTOBER, NOVEMBER = at("2026-10-01"), at("2026-11-01")


@pytest.fixture(scope="module")
def con() -> Connection:
    return memory_ledger()


def asset(**more: Any) -> dict[str, Any]:
    """The node of oracle O12, in its first month unless told otherwise."""
    return {
        "cluster": "c", "node": "n1", "capex_amount": "320000", "salvage_amount": "20000", "months": 48,
        "in_service_from": OCTOBER, "power_price_kwh": "0.11", "pue": "1.35", "rated_kw": "10.2",
        "colo_monthly_amount": "1500", "support_monthly_amount": "1600", "staff_monthly_amount": "2100",
        "currency": "USD",
    } | more  # fmt: skip


def bare(**more: Any) -> dict[str, Any]:
    """An asset that costs its depreciation only."""
    nothing = ("power_price_kwh", "colo_monthly_amount", "support_monthly_amount", "staff_monthly_amount")
    return asset(**dict.fromkeys(nothing), **more)


def own(con: Connection, *assets: dict[str, Any]) -> None:
    """Make these the only assets, and no telemetry of any."""
    put(con, "asset", assets, kind="assets")
    put(con, "charge", [], kind="charges")
    prepare(con, parse_config(""), "2026-10")
    run(con, "2026-10", "device_hour")


def costs(con: Connection, period: str) -> dict[str, Decimal]:
    """The charges of a month by part."""
    run(con, period, *STEPS)
    return dict(con.execute("SELECT charge_part, sum(billed_cost) FROM asset_charge GROUP BY ALL").fetchall())


def months_from(start: datetime, count: int) -> list[str]:
    first = start.year * 12 + start.month - 1
    return [f"{number // 12:04}-{number % 12 + 1:02}" for number in range(first, first + count)]


def test_o12_an_owned_node_of_eight_gpus(con: Connection) -> None:
    """Reaches the team that held it; the bridge closes on an invoice to oneself."""
    ledger(con, "2026-10", asset=[asset()], node=[node(1, OCTOBER, NOVEMBER, resource_id=None)],
           holding=[held(1, OCTOBER, NOVEMBER)])  # fmt: skip
    parts = dict(con.execute("SELECT charge_part, billed_cost FROM asset_charge").fetchall())
    assert parts == {
        "depreciation": Decimal(6250), "power_rated": Decimal("1126.9368"), "colo": Decimal(1500),
        "support": Decimal(1600), "staff": Decimal(2100),
    }  # fmt: skip
    assert booked(con) == {("red", "held"): Decimal("12576.94")}
    assert exact(con, "held") == Decimal("12576.9368")
    texts = {text for (text,) in con.execute("SELECT charge_description FROM asset_charge").fetchall()}
    assert {"depreciation of c/n1, month 1 of 48", "rated power of c/n1, 7588.800 kWh x PUE 1.35 x 0.11"} <= texts
    bridge = con.execute(
        "SELECT issuer, invoice_total, billed_total, statement_total, rounding, difference FROM bridge"
    )
    total = Decimal("12576.9368")
    assert bridge.fetchall() == [("on-prem", total, total, Decimal("12576.94"), Decimal("-0.0032"), 0)]
    assert con.execute("SELECT invoice_id, residual, status FROM invoice_total").fetchall() == [
        ("self-issued", 0, "self_issued")
    ]
    assert con.execute("SELECT kind FROM gap").fetchall() == []


def test_o12_the_cents_of_a_division(con: Connection) -> None:
    own(con, bare(capex_amount="100000", salvage_amount=0, months=36))
    found = [costs(con, period)["depreciation"] for period in months_from(OCTOBER, 36)]
    assert sorted(map(str, found)) == ["2777.770000000000"] * 8 + ["2777.780000000000"] * 28
    assert costs(con, "2029-10") == {}
    assert costs(con, "2026-09") == {}


@settings(max_examples=12)
@given(
    total=st.decimals(0, 10**9, places=4),
    months=st.integers(1, 14),
    start=st.datetimes(datetime(2024, 1, 1), datetime(2027, 1, 1)),
    currency=st.sampled_from(["USD", "JPY", "KWD"]),
)
def test_the_months_of_a_life_add_up_to_what_was_paid(
    con: Connection, total: Decimal, months: int, start: datetime, currency: str
) -> None:
    """Whatever the amount, the life and the second of its start; each month but the last is whole minor units."""
    begun = start.replace(microsecond=0, tzinfo=UTC)
    row = bare(capex_amount=total + 7, salvage_amount=7, months=months, in_service_from=begun, currency=currency)
    own(con, row)
    found = [costs(con, period).get("depreciation", Decimal(0)) for period in months_from(begun, months + 2)]
    assert sum(found) == total
    assert found[-1] == 0
    digits = {"USD": 2, "JPY": 0, "KWD": 3}[currency]
    paying = [amount for amount in found if amount]
    assert all(amount == round(amount, digits) for amount in paying[:-1])
    unit = Decimal(1).scaleb(-digits)
    whole = [amount for amount in found[1 : months - 1] if amount]
    assert max(whole, default=0) - min(whole, default=0) <= unit


@settings(max_examples=12)
@given(cut=st.integers(1, 31 * 86400 - 1))
def test_a_month_cut_anywhere_costs_the_same(con: Connection, cut: int) -> None:
    """Monthly amounts and power: up to the cut and from it on, by the second, are the month."""
    cut_at = OCTOBER + timedelta(seconds=cut)
    own(con, asset(in_service_to=cut_at), asset(in_service_from=cut_at, in_service_to=NOVEMBER))
    found = costs(con, "2026-10")
    assert [found[name] for name in ("colo", "support", "staff")] == [1500, 1600, 2100]
    assert 0 <= found["power_rated"] - Decimal("1126.9368") <= Decimal("1e-12")


def test_a_life_that_begins_within_a_month_counts_by_the_second(con: Connection) -> None:
    """From the 17th of October, 31 days: 15 / 31 of a month's 310, and 16 / 31 in the last."""
    own(con, bare(capex_amount=620, salvage_amount=0, months=2, in_service_from=at("2026-10-17")))
    found = [costs(con, period).get("depreciation") for period in months_from(OCTOBER, 4)]
    assert found == [150, 310, 160, None]


def test_an_asset_that_leaves_early_leaves_a_gap_and_no_cost(con: Connection) -> None:
    """Half of October (15.5 of 31 days) of the first of 10 months: 5 of 100 are written off, 95 are named."""
    gone = OCTOBER + timedelta(days=15, hours=12)
    row = bare(capex_amount=100, salvage_amount=0, months=10, in_service_to=gone, rated_kw=None)
    ledger(con, "2026-10", asset=[row], node=[node(1, OCTOBER, gone)], holding=[held(1, OCTOBER, gone)])
    assert booked(con) == {("red", "held"): Decimal(5)}
    rows = con.execute("SELECT kind, subject, amount FROM gap ORDER BY kind").fetchall()
    assert rows == [("asset_cost_not_stated", "c/n1", None), ("asset_retired_early", "c/n1", Decimal(95))]
    assert costs(con, "2026-11") == {}


def test_after_its_life_an_asset_costs_what_runs_on(con: Connection) -> None:
    own(con, asset(months=1, power_price_kwh=None))
    assert costs(con, "2026-11") == {"colo": Decimal(1500), "support": Decimal(1600), "staff": Decimal(2100)}


def test_owned_and_rented_nodes_share_a_month(con: Connection) -> None:
    """The asset names no cluster: it goes to the only one that has its node. An unknown node's cost is overhead."""
    end = OCTOBER + HOUR
    assets = [
        bare(cluster=None, capex_amount=744, salvage_amount=0, months=1),
        bare(node="n9", capex_amount=74, salvage_amount=0, months=1),
    ]
    rented = charge(OCTOBER, end, 50, resource_id="i-2", invoice_id="1")
    stated = {"issuer": "Cloud", "invoice_id": "1", "period": "2026-10", "currency": "USD", "total_amount": 50}
    ledger(
        con,
        "2026-10",
        asset=assets,
        charge=[rented],
        invoice=[stated],
        node=[node(1, OCTOBER, NOVEMBER), node(2, OCTOBER, end)],
        holding=[held(1, OCTOBER, NOVEMBER), held(2, OCTOBER, end, "blue")],
    )
    assert sum(amount for (_, category), amount in booked(con).items() if category == "overhead") == 74
    assert {key: amount for key, amount in booked(con).items() if key[1] == "held"} == {
        ("red", "held"): 744, ("blue", "held"): 50,
    }  # fmt: skip
    gaps = con.execute("SELECT subject, amount FROM gap WHERE kind = 'unmatched_charge'").fetchall()
    assert gaps == [("c/n9", 74)]
    assert con.execute("SELECT issuer, difference FROM bridge ORDER BY issuer").fetchall() == [
        ("Cloud", 0),
        ("on-prem", 0),
    ]


def test_another_bill_of_an_issuer_called_on_prem_is_not_taken_for_ones_own(con: Connection) -> None:
    rows = [charge(OCTOBER, OCTOBER + HOUR, 3, invoice_issuer="on-prem")]
    ledger(con, "2026-10", asset=[bare(months=1)], charge=rows, node=[node(1, OCTOBER, NOVEMBER)])
    assert con.execute("SELECT invoice_total FROM bridge").fetchall() == [(None,)]
    assert one(con, "SELECT amount FROM gap WHERE kind = 'missing_invoice'") == 3


def meter(con: Connection, rows: list[tuple[str, int, int | None, int | None]]) -> None:
    """Put device hours: (device, hours after the start of October, energy in mJ, ms of windows with energy)."""
    con.execute("DELETE FROM device_hour")
    start = int(OCTOBER.timestamp()) // 3600
    for device, hour, energy, window_ms in rows:
        con.execute(
            "INSERT INTO device_hour BY NAME SELECT 'c' AS cluster, 'n1' AS node, ? AS device, ? AS hour_number, "
            "? AS energy_millijoules, ? AS energy_window_ms",
            [device, start + hour, energy, window_ms],
        )


def power(
    con: Connection, gpus: int, hours: int, rows: list[tuple[str, int, int | None, int | None]], **more: Any
) -> dict[str, Decimal]:
    """Power of a node of `gpus` that ran for the first hours of October, at 1 a kWh and PUE 1."""
    put(con, "node", [node(1, OCTOBER, NOVEMBER, gpu_count=gpus)], kind="inventory")
    terms: dict[str, Any] = {"rated_kw": 10, "base_kw": 1, "pue": 1, "power_price_kwh": 1} | more
    own(con, bare() | terms | {"in_service_to": OCTOBER + hours * HOUR})
    meter(con, rows)
    found = costs(con, "2026-10")
    return {name: amount for name, amount in found.items() if name != "depreciation"}


FULL = 3_600_000
KWH = 3_600_000_000


def test_measured_energy_counts_with_what_no_meter_sees(con: Connection) -> None:
    """Hour 0: two boards of 2 and 3 kWh and the base of 1; hour 1: one board is missing, so 10 rated."""
    found = power(con, 2, 2, [("a", 0, 2 * KWH, FULL), ("b", 0, 3 * KWH, FULL), ("a", 1, 2 * KWH, FULL)])
    assert found == {"power_measured": 6, "power_rated": 10}


def test_a_meter_that_was_blind_for_a_while_is_rated_for_it(con: Connection) -> None:
    """Both boards were read in half an hour: half of a's 4 kWh, b's 3, half of the base; half an hour is rated."""
    found = power(con, 2, 1, [("a", 0, 4 * KWH, FULL), ("b", 0, 3 * KWH, FULL // 2)])
    assert found == {"power_measured": Decimal("5.5"), "power_rated": 5}


def test_unknown_power_is_no_power_and_named(con: Connection) -> None:
    found = power(con, 2, 2, [("a", 0, KWH, FULL), ("b", 0, KWH, FULL)], rated_kw=None, base_kw=None, pue=None)
    assert found == {"power_measured": 2}
    run(con, "2026-10", "asset_gap")
    reason = one(con, "SELECT reason FROM asset_gap WHERE kind = 'asset_cost_not_stated'")
    for word in ("no meter saw it (no rated_kw)", "beside the GPUs (no base_kw)", "no PUE", "colo"):
        assert word in reason


@settings(max_examples=15)
@given(
    energies=st.lists(st.lists(st.integers(0, 10**11), min_size=2, max_size=2), min_size=1, max_size=5),
    more=st.integers(0, 3),
)
def test_energy_is_conserved(con: Connection, energies: list[list[int]], more: int) -> None:
    """All that the boards of metered hours measured is charged, and every other hour as rated."""
    rows = [(f"d{board}", hour, value, FULL) for hour, pair in enumerate(energies) for board, value in enumerate(pair)]
    found = power(con, 2, len(energies) + more, [row for row in rows if row[3]], base_kw=0)
    measured = sum(map(sum, energies))
    assert found.get("power_rated", 0) == 10 * more
    assert 0 <= found.get("power_measured", Decimal(0)) * KWH - measured < Decimal("0.01")
