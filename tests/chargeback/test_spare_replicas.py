"""Replicas that are more than a model server's load needs: how many, what they cost, nothing of it counted twice."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chargeback.serving import show_servers
from fleet.config import Config, Ledger
from fleet.ledger_config import Server, SpareReplicas
from tests.chargeback.ledger import compute, put
from tests.chargeback.test_server_waste import explained, put_windows
from tests.chargeback.test_waste_held_in_part import SECOND, held, ledger_of, minutes

if TYPE_CHECKING:
    from store.lake import Connection

Row = dict[str, Any]
HOURS = 30
HOUR_MS = 3_600_000
SERVER = Server("s", match_namespace="serving", max_running_requests=100)


def ledger(server: Server = SERVER) -> Ledger:
    return Ledger(servers=(server,), spare_replicas=SpareReplicas(observed_days=1))


@pytest.fixture(scope="module")
def con() -> Connection:
    """Nodes a, b and c of 10 GPUs, at 36 an hour each; the server holds all of them, but only 4 GPUs of c."""
    con = ledger_of("abc", HOURS)
    rows = [held(minutes(0), minutes(60 * HOURS), 4 if node == "c" else 10, node) for node in "abc"]
    put(con, "holding", rows, kind="holdings")
    compute(con, Config(ledger=ledger()))
    return con


def replica(
    node: str, running: float = 2, kv: float | None = 0.05, hours: range = range(HOURS), **values: Any
) -> list[Row]:
    """An engine that ran so many requests all the time, in windows of an hour."""
    seen = {
        "node": node, "window_ms": HOUR_MS, "running_observed_ms": HOUR_MS,
        "running_request_ms": int(running * HOUR_MS), "running_max_requests": 40 if running else 0,
        "generation_tokens": 100, "finished_generation_tokens": 100,
        "kv_observed_ms": 0 if kv is None else HOUR_MS, "kv_used_ms": None if kv is None else round(kv * HOUR_MS),
    } | values  # fmt: skip
    if not running:
        seen["generation_tokens"] = seen["finished_generation_tokens"] = 0
    return [seen | {"tenth": 6 * hour} for hour in hours]


def run(con: Connection, *replicas: list[Row], server: Server = SERVER) -> dict[tuple[int, str], tuple[Decimal, int]]:
    """(amount, GPU-seconds) by hour since the start and class."""
    show_servers(con, ledger(server))
    put_windows(con, [row for rows in replicas for row in rows])
    return explained(con, SECOND)


def need(con: Connection) -> tuple[int | None, str | None]:
    (row,) = con.execute("SELECT needed_replicas, reason FROM replica_need").fetchall()
    return row


def test_replicas_beyond_those_that_are_enough_cost_what_they_held(con: Connection) -> None:
    """6 requests of 3 replicas of 100 slots: one stays below 10. c (4 GPUs) and one of 10 are spare, of 24 in all."""
    found = run(con, *(replica(node) for node in "abc"))
    assert need(con) == (1, None)
    assert {found[hour, "over_provisioned"] for hour in range(HOURS)} == {(Decimal("50.4"), 14 * 3600)}


@pytest.mark.parametrize(
    ("loads", "needed"),
    [
        ((4, 4, 4), 2),        # 12 of 100 slots: two at 6 each
        ((3.4, 3.3, 3.3), 1),  # 10: one would run at the limit
        ((3.4, 3.3, 3.4), 2),
        ((9.9, 9.9, 9.9), 3),
        ((10, 0, 0), 3),       # one at the limit: the replicas are not all below it
        ((0, 0, 0.001), 1),
    ],
)  # fmt: skip
def test_as_many_are_enough_as_stay_below_the_limit_of_requests(
    con: Connection, loads: tuple[float, ...], needed: int
) -> None:
    run(con, *(replica(node, load) for node, load in zip("abc", loads, strict=True)))
    assert need(con) == (needed, None)


@pytest.mark.parametrize(
    ("shares", "needed"), [((0.1, 0.1, 0.1), 1), ((0.11, 0.1, 0.1), 2), ((0.29, 0.29, 0.29), 3), ((0.3, 0, 0), 3)]
)
def test_as_many_are_enough_as_stay_below_the_limit_of_the_cache(
    con: Connection, shares: tuple[float, ...], needed: int
) -> None:
    run(con, *(replica(node, 1, share) for node, share in zip("abc", shares, strict=True)))
    assert need(con) == (needed, None)


def test_a_load_of_one_hour_in_thirty_is_beyond_the_p95(con: Connection) -> None:
    def with_peak(hours: int) -> list[Row]:
        return [*replica("a", 25, hours=range(hours)), *replica("a", hours=range(hours, HOURS))]

    run(con, with_peak(1), replica("b"))
    assert need(con) == (1, None)
    run(con, with_peak(2), replica("b"))
    assert need(con) == (2, None)


def test_peaks_of_different_replicas_add_up(con: Connection) -> None:
    """Each one's p95 is 1, but in 2 of 30 hours 30 requests run somewhere."""
    peaks = ([row | {"running_request_ms": 30 * HOUR_MS} if i == at_ else row for i, row in enumerate(replica(node, 1))]
             for node, at_ in (("a", 3), ("b", 4)))  # fmt: skip
    run(con, *peaks, replica("c", 1))
    assert need(con) == (4, None), "more than there are: none is spare"


def test_slots_are_the_most_that_ever_ran_where_none_are_configured(con: Connection) -> None:
    unknown = Server("s", match_namespace="serving")
    run(con, *(replica(node) for node in "abc"), server=unknown)
    assert need(con) == (2, None), "6 of 40"
    found = run(con, *(replica(node, 0) for node in "abc"), server=unknown)
    assert need(con) == (None, "slots unknown: no request was seen to run and no max_running_requests is configured")
    assert (0, "over_provisioned") not in found


def test_what_is_not_known_is_named(con: Connection) -> None:
    run(con, replica("a"), replica("b", kv=None))
    assert need(con) == (None, "the engine does not show at all times how much of its cache is in use")
    told = con.execute(
        "SELECT DISTINCT amount_pico, gpu_microseconds, reason FROM server_waste WHERE class = 'over_provisioned'"
    )
    assert told.fetchall() == [(None, None, need(con)[1])]
    # Two replicas at a time for 23 hours only.
    run(con, replica("a"), replica("b", hours=range(23)))
    assert need(con) == (None, "watched with two replicas or more for less than 1 x 24 hours")


def test_one_replica_is_never_spare(con: Connection) -> None:
    found = run(con, replica("a"))
    assert con.execute("SELECT count(*) FROM replica_need").fetchall() == [(0,)]
    assert "over_provisioned" not in {name for _, name in found}
    # A pod that moved to another node is one replica all the time.
    run(con, replica("a", hours=range(15)), replica("b", hours=range(15, HOURS)))
    assert con.execute("SELECT count(*) FROM replica_need").fetchall() == [(0,)]


def test_replicas_of_other_models_or_roles_stand_in_for_nobody(con: Connection) -> None:
    run(con, replica("a", model="x"), replica("b", model="y"), replica("c", model="x", role="prefill"))
    assert con.execute("SELECT count(*) FROM replica_need").fetchall() == [(0,)]


def test_idle_time_is_not_counted_as_spare_once_more(con: Connection) -> None:
    """Of 24 GPUs 14 are spare: with b idle 10 of them are named already, with b and c all, and the load is the same."""
    found = run(con, replica("a", 6), replica("b", 0), replica("c", 1))
    assert (found[0, "idle"][1], found[0, "over_provisioned"][1]) == (36_000, 4 * 3600)
    found = run(con, replica("a", 6), replica("b", 0), replica("c", 0))
    assert (found[0, "idle"][1], found[0, "over_provisioned"][1]) == (14 * 3600, 0)


def test_wasted_work_is_not_counted_as_spare_once_more(con: Connection) -> None:
    """A quarter of 24 GPUs' work is lost: 6 of the 14 spare ones."""
    found = run(con, *(replica(node, finished_generation_tokens=75) for node in "abc"))
    assert (found[0, "wasted_work"][1], found[0, "over_provisioned"][1]) == (6 * 3600, 8 * 3600)


def test_a_replica_that_comes_for_an_hour_is_spare_in_that_hour(con: Connection) -> None:
    found = run(con, replica("a"), replica("b"), replica("c", hours=range(1)))
    assert found[0, "over_provisioned"][1] == 14 * 3600
    assert found[1, "over_provisioned"][1] == 10 * 3600


loads = st.sampled_from([0, 0, 0.5, 3, 12])


@settings(max_examples=8, deadline=None)
@given(st.lists(st.tuples(loads, loads, loads, st.sampled_from([0, 60, 100])), min_size=HOURS, max_size=HOURS))
def test_spare_and_all_other_waste_never_exceed_the_hour(
    con: Connection, seen: list[tuple[float, float, float, int]]
) -> None:
    rows = [
        replica(node, hour[place], hours=range(number, number + 1), finished_generation_tokens=hour[3])
        for number, hour in enumerate(seen) for place, node in enumerate("abc")
    ]  # fmt: skip
    found = run(con, *rows)
    for hour in range(HOURS):
        parts = [values for (other, _), values in found.items() if other == hour]
        assert min(gpu for _, gpu in parts) >= 0
        assert sum(gpu for _, gpu in parts) <= 24 * 3600
        assert sum(amount for amount, _ in parts) <= Decimal("86.4")
