"""Waste of shared model servers: each GPU-second in one class at most, and never more than the hour holds."""

from __future__ import annotations

import re
from collections import defaultdict
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chargeback.build import model_steps, parameters
from chargeback.checks import failed_checks
from chargeback.server_waste import NEXT_STEPS
from fleet.config import Config, Ledger
from fleet.ledger_config import Server
from store.sqlfile import materialise
from tests.chargeback.ledger import PERIOD, compute, memory_ledger, put, read_rows
from tests.chargeback.test_token_split import at, put_server

if TYPE_CHECKING:
    from store.lake import Connection

Row = dict[str, Any]
CONFIG = Config(ledger=Ledger(servers=(Server("s", match_namespace="serving"),)))
WINDOW_MS = 600_000
HOURS = 4
FIRST_HOUR = int(at(0).timestamp()) // 3600
GPU_MICROSECONDS_PER_MS = 8 * 1000
"""What 8 GPUs hold in a millisecond."""
ASLEEP: Row = {
    "asleep_ms": WINDOW_MS,
    "running_observed_ms": WINDOW_MS,
    "running_request_ms": 0,
    "generation_tokens": 0,
}
IDLE = ASLEEP | {"asleep_ms": 0}
BUSY = IDLE | {"running_request_ms": WINDOW_MS, "generation_tokens": 100, "finished_generation_tokens": 100}


@pytest.fixture(scope="module")
def con() -> Connection:
    con = memory_ledger()
    put_server(con, Decimal(40), hours=HOURS)
    put(con, "team_rule", [], kind="teams")
    compute(con, CONFIG)
    return con


def run(con: Connection, windows: list[Row]) -> dict[tuple[int, str], tuple[Decimal, int]]:
    """(amount, GPU time in ms of 8 GPUs) by hour since the start and class. A window says `tenth`: ten minutes each."""
    put_windows(con, windows)
    return explained(con, GPU_MICROSECONDS_PER_MS)


def put_windows(con: Connection, windows: list[Row]) -> None:
    con.execute("DELETE FROM lake.engine_window")
    for row in windows:
        second = int((at(0) + timedelta(milliseconds=row["tenth"] * WINDOW_MS)).timestamp())
        filled = {"cluster": "c", "node": "n", "server": "s", "model": "m", "window_ms": WINDOW_MS, "counter_resets": 0}
        filled |= {name: value for name, value in row.items() if name != "tenth"}
        filled |= {"day": second // 86400, "second": second % 86400}
        marks = ", ".join("?" for _ in filled)
        con.execute(f"INSERT INTO lake.engine_window ({', '.join(filled)}) VALUES ({marks})", list(filled.values()))


def explained(con: Connection, unit_microseconds: int) -> dict[tuple[int, str], tuple[Decimal, int]]:
    """(amount, GPU time) by hour since the start and class, where it is known.

    Only the steps of waste run again: what the servers cost does not hang on what their engines tell.
    """
    names = [step.name for step in model_steps()]
    for step in model_steps()[names.index("engine_seen") : names.index("server_waste") + 1]:
        if step.name != "pool_weight":
            materialise(con, step, parameters(PERIOD))
    found = con.execute(
        "SELECT hour_number, class, from_pico(amount_pico), gpu_microseconds FROM server_waste "
        "WHERE amount_pico IS NOT NULL"
    ).fetchall()
    return {(hour - FIRST_HOUR, name): (amount, gpu // unit_microseconds) for hour, name, amount, gpu in found}


def windows_of(hour: int, **values: Any) -> list[Row]:
    return [values | {"tenth": hour * 6 + tenth} for tenth in range(6)]


def test_waste_in_money_and_gpu_time(con: Connection) -> None:
    found = run(con, [*windows_of(1, **IDLE), *windows_of(2, **ASLEEP), *windows_of(3, **BUSY)])
    assert found[1, "idle"] == (10, 3_600_000)
    assert found[2, "asleep"] == (10, 3_600_000)
    assert found[2, "idle"] == (0, 0), "asleep is not idle once more"
    assert found[3, "idle"] == (0, 0)
    assert found[3, "wasted_work"] == (0, 0)
    assert (3, "cold_start") not in found, "the engine does not show its load"


def test_an_unknown_gauge_is_not_idle(con: Connection) -> None:
    assert run(con, windows_of(1, generation_tokens=0, running_observed_ms=0)) == {}


def test_a_load_counts_once_and_takes_its_time_from_no_other_class(con: Connection) -> None:
    """Idle all the time; a reload of 20 minutes shows at 2:10, so that it took from 1:50."""
    shown = [row | {"model_load_ms": 60_000} for row in windows_of(1, **IDLE)]
    reloaded = [row | {"model_load_ms": 1_200_000} for row in windows_of(2, **IDLE)]
    reloaded[0]["model_load_ms"] = 60_000
    found = run(con, [*windows_of(0, **IDLE, model_load_ms=60_000), *shown, *reloaded])
    assert found[0, "cold_start"] == (0, 0), "who knows when it loaded: before the period began"
    assert (found[1, "cold_start"][1], found[1, "idle"][1]) == (600_000, 3_000_000)
    assert (found[2, "cold_start"][1], found[2, "idle"][1]) == (600_000, 3_000_000)


def test_a_load_of_before_the_period_is_not_one_of_it(con: Connection) -> None:
    """The first window of the month's first hour shows how long the last load took, and not when that was."""
    assert run(con, [{**BUSY, "tenth": 3, "model_load_ms": 600_000}])[0, "cold_start"] == (0, 0)


def test_time_that_may_be_both_is_asleep_only(con: Connection) -> None:
    """Watched for half of the window: all of its sleep may lie in that half."""
    found = run(con, windows_of(1, **IDLE | {"running_observed_ms": 300_000, "asleep_ms": 200_000}))
    assert (found[1, "asleep"][1], found[1, "idle"][1]) == (1_200_000, 600_000)


def test_a_request_without_a_token_yet_is_not_idle(con: Connection) -> None:
    found = run(con, windows_of(1, **IDLE | {"running_request_ms": 1}))
    assert found[1, "idle"] == (0, 0)


def test_a_load_that_follows_a_load_begins_after_it(con: Connection) -> None:
    """Two engines, loaded one after the other by 2:00 and 2:10, show 50 minutes each: 60 minutes of the node in all."""
    found = run(con, [{**BUSY, "tenth": tenth, "model": str(tenth), "model_load_ms": 3_000_000} for tenth in (12, 13)])
    assert (found[1, "cold_start"][1], found[2, "cold_start"][1]) == (3_000_000, 600_000)


def test_engines_that_load_together_are_one_load(con: Connection) -> None:
    ranks = [row | {"model_load_ms": 900_000, "engine_index": rank} for rank in "01" for row in windows_of(2, **BUSY)]
    assert run(con, ranks)[1, "cold_start"] == (Decimal("2.5"), 900_000)


def test_a_gpu_that_another_engine_works_on_is_not_idle(con: Connection) -> None:
    found = run(con, [*windows_of(1, **IDLE), *windows_of(1, **BUSY | {"model": "other"})])
    assert found[1, "idle"] == (0, 0)


def test_tokens_under_way_at_the_hours_end_are_not_wasted(con: Connection) -> None:
    """600 made in hour 1, of which 200 finish then and 300 in hour 2: 100 are lost, a sixth of hour 1."""
    first = windows_of(1, **BUSY)
    for row, finished in zip(first, (0, 0, 0, 0, 100, 100), strict=True):
        row["finished_generation_tokens"] = finished
    second = windows_of(2, **BUSY | {"finished_generation_tokens": 150})
    found = run(con, [*first, *second])
    assert found[1, "wasted_work"][1] == 600_000
    assert found[2, "wasted_work"] == (0, 0)


def test_tokens_counted_at_finish_tell_nothing_of_lost_ones(con: Connection) -> None:
    found = run(con, windows_of(1, **BUSY | {"generation_is_at_finish": True, "finished_generation_tokens": 1}))
    assert {name for _, name in found} == {"asleep", "idle"}


def test_lost_prompts_weigh_as_prompts_do(con: Connection) -> None:
    """1000 prompt tokens, half of them cached, weigh 550, and 110 generated ones 440: 300 lost prompts are a sixth."""
    row = BUSY | {"generation_tokens": 110, "finished_generation_tokens": 110, "prompt_tokens": 1000}
    row |= {"prompt_cached_tokens": 500}
    assert run(con, windows_of(1, **row, finished_prompt_tokens=700))[1, "wasted_work"][1] == 600_000
    unknown = run(con, windows_of(1, **row))
    assert unknown[1, "wasted_work"] == (0, 0), "of the generated tokens nothing was lost"


def test_prompts_that_finish_in_a_later_hour_are_not_lost(con: Connection) -> None:
    rows = [BUSY | {"tenth": tenth, "prompt_tokens": 1000, "finished_prompt_tokens": 1000} for tenth in (6, 12)]
    rows[0]["finished_prompt_tokens"], rows[1]["finished_prompt_tokens"] = 400, 1600
    assert run(con, rows)[1, "wasted_work"] == (0, 0)


def test_preemptions_are_shown_without_a_guess_at_their_cost(con: Connection) -> None:
    preempted = windows_of(1, **BUSY, preemption_events=2, aborted_requests=1)
    found = run(con, [*preempted, *windows_of(2, **BUSY, preemption_events=0)])
    assert found[2, "preempted"] == (0, 0)
    assert (1, "preempted") not in found
    told = con.execute("SELECT hour_number, class, events, amount_pico, reason FROM server_waste").fetchall()
    reason = "preemptions are counted, not the tokens that were computed again"
    assert (FIRST_HOUR + 1, "preempted", 12, None, reason) in told
    assert (FIRST_HOUR + 1, "wasted_work", 6, 0, None) in told
    assert (FIRST_HOUR + 2, "preempted", 0, 0, None) in told


def maybe(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | strategy


spans = st.sampled_from([0, 1, 200_000, 599_999, WINDOW_MS])
counts = maybe(st.integers(0, 1000))
windows = st.fixed_dictionaries(
    {
        "tenth": st.integers(0, HOURS * 6 - 1), "node": st.sampled_from(["n", "o"]),
        "model": st.sampled_from(["m", None]), "role": st.sampled_from([None, "prefill", "decode"]),
        "engine_index": st.sampled_from(["0", "1"]), "running_observed_ms": spans,
        "running_request_ms": maybe(st.sampled_from([0, 0, 5_000])), "asleep_ms": maybe(spans),
        "prompt_tokens": maybe(st.sampled_from([0, 0, 7])), "generation_tokens": counts,
        "finished_generation_tokens": counts, "counter_resets": st.integers(0, 1),
        "finished_prompt_tokens": maybe(st.sampled_from([0, 3, 9])), "prompt_cached_tokens": maybe(st.integers(0, 9)),
        "preemption_events": maybe(st.integers(0, 2)), "kv_used_ms": maybe(st.integers(0, 999)),
        "kv_observed_ms": st.sampled_from([0, 1000]), "running_max_requests": maybe(st.integers(0, 9)),
        "model_load_ms": maybe(st.sampled_from([0, 1, 300_000, 5_000_000, 2**62])),
        "generation_is_at_finish": st.sampled_from([None, False, True]),
    }
)  # fmt: skip


@settings(max_examples=12)
@given(st.lists(windows, max_size=30))
def test_classes_never_exceed_the_hour(con: Connection, seen: list[Row]) -> None:
    found = run(con, seen)
    amounts: dict[int, Decimal] = defaultdict(Decimal)
    for (hour, _), (amount, gpu_ms) in found.items():
        assert amount >= 0
        assert gpu_ms >= 0
        amounts[hour] += amount
    assert all(amount <= 10 for amount in amounts.values())
    for hour in {hour for hour, _ in found}:
        assert sum(gpu_ms for (other, _), (_, gpu_ms) in found.items() if other == hour) <= 3_600_000


@settings(max_examples=12)
@given(st.lists(st.tuples(spans, maybe(st.sampled_from([1, 300_000, 900_000, 5_000_000]))), min_size=24, max_size=24))
def test_classes_never_overlap(con: Connection, seen: list[tuple[int, int | None]]) -> None:
    """Of an engine that never works every moment is in exactly one class, whenever and however long it loads."""
    found = run(con, [
        IDLE | {"tenth": tenth, "asleep_ms": asleep_ms, "model_load_ms": load_ms, "counter_resets": 1}
        for tenth, (asleep_ms, load_ms) in enumerate(seen)
    ])  # fmt: skip
    for hour in range(HOURS):
        of_hour = [values for (other, _), values in found.items() if other == hour]
        assert sum(amount for amount, _ in of_hour) == 10
        assert sum(gpu_ms for _, gpu_ms in of_hour) == 3_600_000


def test_every_class_has_a_next_step() -> None:
    """The one case of the model's step has a row of each class."""
    rows = read_rows(Path(__file__).parents[1] / "sql" / "099_server_waste" / "each_once" / "out.csv")
    text = next(step.text for step in model_steps() if step.name == "server_waste")
    named = set(re.findall(r"(?:\d, |AS class_order, |hour_number, )'(\w+)'", text))
    assert {row["class"] for row in rows} == named == set(NEXT_STEPS)


def test_waste_changes_no_total(con: Connection) -> None:
    """It stands beside the ledger: the same statement with and without it, and every check holds."""
    lines = "SELECT team, category, exact_amount FROM statement_line ORDER BY ALL"
    idle = windows_of(1, **IDLE | {"prompt_tokens": 0})
    compute(con, CONFIG)
    before = con.execute(lines).fetchall()
    assert run(con, idle)[1, "idle"] == (10, 3_600_000)
    compute(con, CONFIG)
    assert con.execute("SELECT count(*) FROM server_waste WHERE class = 'idle'").fetchall() == [(1,)]
    assert failed_checks(con, parameters(PERIOD), strict=False) == []
    after = con.execute(lines).fetchall()
    assert sum(amount for *_, amount in after) == sum(amount for *_, amount in before) == 40
