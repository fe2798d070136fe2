"""Waste of servers that held their GPUs for a part of an hour, or on several nodes: exactly the held time counts."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chargeback.build import model_steps, parameters
from fleet.config import Config, Ledger
from fleet.ledger_config import Server
from store.sqlfile import materialise
from tests.chargeback.ledger import PERIOD, compute, memory_ledger, put
from tests.chargeback.test_server_waste import ASLEEP, BUSY, FIRST_HOUR, HOURS, IDLE, explained, put_windows, windows
from tests.chargeback.test_token_split import END, START, at

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import timedelta

    from store.lake import Connection

Row = dict[str, Any]
Waste = dict[tuple[int, str], tuple[Decimal, int]]
CONFIG = Config(ledger=Ledger(servers=(Server("s", match_namespace="serving"),)))
HOLDING_STEPS = ("holder_interval", "held_hour", "posting_node", "posting_capacity", "server_cost")
SECOND = 1_000_000
HOUR_PRICE = Decimal(36)
"""Of a node of 10 GPUs: a thousandth for each GPU-second."""


def ledger_of(nodes: str, hours: int) -> Connection:
    """Nodes named by one letter each, of 10 GPUs, which cost 36 an hour."""
    con = memory_ledger()
    node = {"cluster": "c", "gpu_count": 10, "valid_from": at(0), "valid_to": at(hours), "pool": "p"}
    put(con, "node", [node | {"node": name, "resource_id": name} for name in nodes], kind="inventory")
    cost = HOUR_PRICE * hours
    charge = {
        "invoice_issuer": "Cloud", "billing_currency": "USD", "billing_period_start": START, "billing_period_end": END,
        "charge_period_start": at(0), "charge_period_end": at(hours), "charge_category": "Usage",
        "billed_cost": cost, "effective_cost": cost,
    }  # fmt: skip
    put(con, "charge", [charge | {"resource_id": name} for name in nodes], kind="charges")
    return con


@pytest.fixture(scope="module")
def con() -> Connection:
    con = ledger_of("now", HOURS)
    compute(con, CONFIG)
    return con


def held(start: timedelta, end: timedelta, gpus: int = 10, node: str = "n") -> Row:
    place = {"pool": "p"} if node == "pool" else {"cluster": "c", "node": node}
    span = {"held_from": START + start, "held_to": START + end, "gpus": gpus}
    return span | place | {"namespace": "serving", "workload": "x", "team": "ml"}


def run(con: Connection, holdings: list[Row], seen: Iterable[Row]) -> Waste:
    """(amount, GPU-seconds) by hour since the start and class."""
    put(con, "holding", holdings, kind="holdings")
    put_windows(con, list(seen))
    con.execute("CREATE OR REPLACE TEMP VIEW holding AS FROM lake.holding")
    for step in model_steps():
        if step.name in HOLDING_STEPS:
            materialise(con, step, parameters(PERIOD))
    return explained(con, SECOND)


def minutes(count: int) -> timedelta:
    return at(0) + count * (at(1) - at(0)) / 60 - START


def idle_on(node: str, *tenths: int, **values: Any) -> list[Row]:
    return [IDLE | {"tenth": tenth, "node": node} | values for tenth in tenths]


def test_unused_hour_held_in_part(con: Connection) -> None:
    """Held from 0:40 and idle from then on: all 20 minutes of 10 GPUs are idle, and not a third of them."""
    found = run(con, [held(minutes(40), minutes(120))], idle_on("n", *range(4, 12)))
    assert found[0, "idle"] == (12, 12_000)
    assert found[1, "idle"] == (36, 36_000)


def test_time_before_the_holding_is_not_held(con: Connection) -> None:
    """Watched all the hour, held for its last 15 minutes: half of the window of 0:40, and the one of 0:50."""
    found = run(con, [held(minutes(45), minutes(60))], idle_on("n", *range(6)))
    assert found[0, "idle"] == (9, 9_000)


def test_a_window_held_in_part_counts_what_was_seen_in_proportion(con: Connection) -> None:
    """Held for 5 of the window's 10 minutes, in which it was idle for 4 of 10: 2 minutes."""
    found = run(con, [held(minutes(5), minutes(10))], idle_on("n", 0, running_observed_ms=240_000, observed_ms=600_000))
    assert found[0, "idle"] == (Decimal("1.2"), 1_200)
    # An engine that was there for those 5 minutes only, and idle for all of them.
    found = run(con, [held(minutes(5), minutes(10))], idle_on("n", 0, running_observed_ms=300_000, observed_ms=300_000))
    assert found[0, "idle"] == (3, 3_000)


def test_a_load_counts_from_when_the_gpus_were_held(con: Connection) -> None:
    shown = [IDLE | {"tenth": 9, "node": "n", "model_load_ms": 3_600_000}]
    found = run(con, [held(minutes(50), minutes(120))], shown)
    assert found[0, "cold_start"] == (6, 6_000)
    assert found[1, "cold_start"] == (18, 18_000)
    assert found[1, "idle"] == (6, 6_000)


def test_each_node_counts_by_the_gpus_held_on_it(con: Connection) -> None:
    """n: 10 GPUs, busy. o: 2 GPUs from 0:30 on, idle. An hour of alike nodes would call half of it idle."""
    holdings = [held(minutes(0), minutes(60)), held(minutes(30), minutes(60), 2, "o")]
    found = run(con, holdings, [*(BUSY | {"tenth": tenth} for tenth in range(6)), *idle_on("o", 3, 4, 5)])
    assert found[0, "idle"] == (Decimal("3.6"), 3_600)


def test_workers_of_an_engine_of_several_nodes_do_what_it_does(con: Connection) -> None:
    """w and what is held by pool are never watched: they go with the nodes that are."""
    hour = minutes(0), minutes(60)
    holdings = [held(*hour), held(*hour, 10, "w"), held(*hour, 5, "pool")]
    assert run(con, holdings, idle_on("n", *range(6)))[0, "idle"] == (90, 90_000)
    two = run(con, holdings, [*idle_on("n", *range(6)), *(BUSY | {"tenth": tenth, "node": "o"} for tenth in range(6))])
    assert two[0, "idle"][1] == 36_000 + 27_000
    # o is watched, but not in hour 1: what it does then is not known, and not what n does.
    holdings = [held(minutes(0), minutes(120)), held(minutes(0), minutes(120), 10, "o")]
    found = run(con, holdings, [*idle_on("n", *range(12)), *idle_on("o", *range(6))])
    assert (found[0, "idle"], found[1, "idle"]) == ((72, 72_000), (36, 36_000))


moments = st.integers(0, HOURS * 3600)


@st.composite
def holdings_(draw: st.DrawFn) -> list[Row]:
    rows = []
    for node in draw(st.lists(st.sampled_from(["n", "o", "pool"]), min_size=1, max_size=6)):
        first, last = sorted(draw(st.tuples(moments, moments)))
        if first < last:
            second = (at(1) - at(0)) / 3600
            rows.append(held(first * second, last * second, draw(st.integers(1, 3)), node))
    return rows


def held_gpu_seconds(con: Connection) -> dict[int, tuple[Decimal, int]]:
    found = con.execute(
        "SELECT hour_number, from_pico(CAST(sum(cost_pico) AS HUGEINT)), sum(gpu_microseconds) // 1000000 "
        "FROM server_cost GROUP BY hour_number"
    ).fetchall()
    return {hour - FIRST_HOUR: (cost, gpu) for hour, cost, gpu in found}


@settings(max_examples=10)
@given(holdings_(), st.sampled_from([IDLE, ASLEEP]))
def test_all_held_time_of_idle_engines_is_waste(con: Connection, holdings: list[Row], state: Row) -> None:
    """To the GPU-second and the last unit of money, whenever and by whom it was held."""
    watched = [state | {"tenth": tenth, "node": node} for node in "no" for tenth in range(HOURS * 6)]
    found = run(con, holdings, watched)
    name = "idle" if state is IDLE else "asleep"
    assert {hour: found[hour, name] for hour, _ in found} == held_gpu_seconds(con)
    assert {amount for (_, other), (amount, _) in found.items() if other != name} <= {0}


@settings(max_examples=15)
@given(holdings_(), st.lists(windows, max_size=20))
def test_classes_never_exceed_what_was_held(con: Connection, holdings: list[Row], seen: list[Row]) -> None:
    found = run(con, holdings, seen)
    bounds = held_gpu_seconds(con)
    for hour in {hour for hour, _ in found}:
        parts = [values for (other, _), values in found.items() if other == hour]
        assert min(amount for amount, _ in parts) >= 0
        assert sum(amount for amount, _ in parts) <= bounds[hour][0]
        assert sum(gpu for _, gpu in parts) <= bounds[hour][1]
