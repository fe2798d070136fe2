"""Counters of model servers over restarts of the agent: killed or stopped, rows add up to what the engine counted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleet.telemetry import QUALITY_BITS, EngineHistogramRow, EngineWindowRow
from tests.collectors.serving.engine_pages import run
from tests.collectors.serving.two_lives import ADDRESS, T0, Disk, Life, page, restored

if TYPE_CHECKING:
    from collections.abc import Sequence


def windows_of(disk: Disk) -> list[EngineWindowRow]:
    return [row for row in disk.rows if isinstance(row, EngineWindowRow)]


def total(disk: Disk, column: str) -> int:
    return sum(getattr(row, column) or 0 for row in windows_of(disk))


def observed(disk: Disk) -> tuple[int, int]:
    """How many observations there are, and their sum in microunits."""
    found = [row for row in disk.rows if isinstance(row, EngineHistogramRow)]
    return sum(row.count for row in found), sum(row.sum_microunits for row in found)


def test_the_first_visit_after_a_restart_yields_what_was_added_since() -> None:
    """Seen before: nothing of the 130 tokens that the agent was away for. The time counts, and nobody looked."""
    disk = Disk()
    first = Life(disk)
    first.visit(T0, page(100, served=1))
    first.visit(T0 + 15, page(140, served=3))
    first.stop(T0 + 20)
    second = Life(disk)
    second.visit(T0 + 35, page(270, served=8))
    second.visit(T0 + 50, page(280, served=8))
    second.stop(T0 + 50)
    assert total(disk, "generation_tokens") == 180
    assert observed(disk) == (7, 1_750_000)
    assert total(disk, "window_ms") == 50_000
    assert total(disk, "observed_ms") == 30_000, "15 s in either life, and none of the 20 between"
    assert total(disk, "counter_resets") == 0


def test_an_open_window_is_neither_lost_nor_sent_twice_by_a_kill() -> None:
    """Killed with a window half full; what was saved of it goes on, what was seen since is seen again."""
    disk = Disk()
    first = Life(disk)
    for second, tokens in ((0, 10), (15, 25), (30, 40)):
        first.visit(T0 + second, page(tokens))
    first.save()
    first.visit(T0 + 45, page(55))
    later = Life(disk)
    assert disk.rows == []
    later.visit(T0 + 61, page(71))
    later.save()
    (row,) = windows_of(disk)
    assert (row.window_start_second, row.window_ms, row.generation_tokens) == (T0, 60_000, 60)
    assert (row.scrape_count, row.observed_ms, row.running_max_requests) == (2, 30_000, 3)
    later.stop(T0 + 61)
    assert total(disk, "generation_tokens") == 61


def test_rows_that_were_made_and_not_spooled_come_again() -> None:
    disk = Disk()
    first = Life(disk)
    first.visit(T0, page(0))
    first.save()
    first.visit(T0 + 70, page(70))
    assert first.pending, "a window is over, but not yet on disk"
    again = Life(disk)
    again.visit(T0 + 90, page(90))
    again.stop(T0 + 90)
    assert total(disk, "generation_tokens") == 90


@pytest.mark.parametrize(
    ("begun", "tokens", "counted", "flag"),
    [
        (T0 + 30, 7, 7, "reset"),  # started again meanwhile: all it has is new
        (T0 - 500, 900, 0, "partial"),  # another process, older than the visit that is on disk: not ours to count
        (1001, 150, 50, None),  # the same one, its start time off by a second
        (None, 7, 7, "reset"),  # no start time, but it fell
    ],
)
def test_an_engine_that_restarted_meanwhile_counts_whole_only_if_it_began_meanwhile(
    begun: int | None, tokens: int, counted: int, flag: str | None
) -> None:
    disk = Disk()
    first = Life(disk)
    first.visit(T0, page(100, None if begun is None else 1000))
    first.stop(T0)
    second = Life(disk)
    second.visit(T0 + 60, page(tokens, begun))
    second.stop(T0 + 60)
    assert total(disk, "generation_tokens") == counted
    bits = {bit for row in windows_of(disk) for bit in QUALITY_BITS.values() if row.quality_bits & bit}
    assert bits == ({QUALITY_BITS[flag]} if flag else set())


def test_counters_of_another_address_or_kind_are_of_no_use() -> None:
    disk = Disk()
    first = Life(disk)
    first.visit(T0, page(100))
    first.stop(T0)
    for kind, address in (("vllm", "http://other:8000/metrics"), ("nim", ADDRESS)):
        assert Life(Disk(state=disk.state), kind, address).server.counted is None
    assert Life(Disk(state=disk.state)).server.counted is not None
    assert "llm:8000" not in disk.state, "an address may hold what is nobody's business"


def test_a_server_that_does_not_answer_after_the_restart_is_waited_for() -> None:
    """The state is saved again meanwhile; it still holds what the life before counted."""
    disk = Disk()
    first = Life(disk)
    first.visit(T0, page(100))
    first.stop(T0)
    second = Life(disk)
    second.visit(T0 + 15, None)
    second.save()
    third = Life(disk)
    third.visit(T0 + 40, page(160))
    third.stop(T0 + 40)
    assert total(disk, "generation_tokens") == 60


def test_the_order_of_a_stop_may_end_with_a_visit() -> None:
    """So an engine that ends with its node is counted up to its last second."""
    disk = Disk()
    life = Life(disk)
    life.visit(T0, page(100))
    life.visit(T0 + 10, page(110))
    life.visit(T0 + 12, page(119))
    life.stop(T0 + 12)
    assert (total(disk, "generation_tokens"), total(disk, "window_ms")) == (19, 12_000)
    assert restored(life.windows)["servers"]["llm-a"]["engines"][0][1]["windows"] == []


def test_windows_that_no_hub_takes_any_more_are_left_out() -> None:
    """A machine that slept for two months: one such row would cost the batch that it is sent with."""
    disk = Disk()
    first = Life(disk)
    first.visit(T0, page(100))
    first.visit(T0 + 10, page(110))
    first.save()
    second = Life(disk)
    second.visit(T0 + 60 * 86_400, page(150))
    second.stop(T0 + 60 * 86_400)
    assert [row.generation_tokens for row in windows_of(disk)] == [40]
    assert second.windows.rejected == {"too_old": 1}


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["visit", "visit", "visit", "away", "save", "kill", "stop"]),
        st.integers(1, 200),
        st.integers(0, 10**9),
        st.integers(0, 40),
    ),
    max_size=25,
)


@settings(max_examples=150)
@given(STEPS)
def test_rows_of_all_lives_add_up_to_what_the_counter_grew(steps: Sequence[tuple[str, int, int, int]]) -> None:
    """Killed at any moment, saved at any other: no token, no observation and no operation twice or not at all."""
    disk = Disk()
    life, second, tokens, served, flops = Life(disk), T0, 0, 0, 0.0
    life.visit(second, page(0))
    life.save()
    for what, seconds, added, more in [*steps, ("visit", 1, 5, 1), ("stop", 1, 0, 0)]:
        second, tokens, served, flops = second + seconds, tokens + added, served + more, flops + added * 1e9 / 3
        if what == "visit":
            life.visit(second, page(tokens, served=served, busy=flops))
        elif what == "away":
            life.visit(second, None)
        elif what == "save":
            life.save()
        else:
            if what == "stop":
                life.stop(second)
            life = Life(disk)
    # What was added after the last visit belongs to a life to come.
    life.visit(second + 1, page(tokens, served=served, busy=flops))
    life.stop(second + 1)
    assert total(disk, "generation_tokens") == tokens
    assert observed(disk) == (served, served * 250_000)
    assert total(disk, "estimated_gigaflops") == pytest.approx(flops / 1e9, abs=1.001)
    shared: dict[int, int] = {}
    for row in windows_of(disk):
        assert 0 <= row.observed_ms <= row.window_ms
        shared[row.window_start_second] = shared.get(row.window_start_second, 0) + row.window_ms
    assert max(shared.values(), default=0) <= 60_000, "a window is accounted for twice"
    assert total(disk, "window_ms") <= (second + 1 - T0) * 1000


ENGINE_LIVES = st.lists(
    st.tuples(
        st.sampled_from(["visit", "visit", "save", "kill", "restart"]), st.integers(3, 100), st.integers(0, 10**6)
    ),
    max_size=25,
)


@settings(max_examples=100)
@given(ENGINE_LIVES)
def test_of_an_engine_that_restarts_too_only_what_nobody_could_see_is_lost(
    steps: Sequence[tuple[str, int, int]],
) -> None:
    """Lost is what it made between the visit that is on disk and its end; never is anything made up."""
    disk = Disk()
    life, second, tokens, begun = Life(disk), T0, 0, T0 - 100
    life.visit(second, page(0, begun))
    life.save()
    # What the rows must come to, and the counter that they come from (its process, its value): now, and on disk.
    now = saved = (0, begun, 0)
    for what, seconds, added in [*steps, ("visit", 3, 1), ("save", 3, 0)]:
        second, tokens = second + seconds, tokens + added
        if what == "visit":
            life.visit(second, page(tokens, begun))
            sum_, process, value = now
            now = (sum_ + (tokens - value if process == begun else tokens), begun, tokens)
        elif what == "save":
            life.save()
            saved = now
        elif what == "kill":
            life, now = Life(disk), saved
        else:
            tokens, begun = 0, second
    life.stop(second)
    assert total(disk, "generation_tokens") == now[0]


def test_a_recorded_run_adds_up_over_a_life_for_each_page() -> None:
    """Run c, whose engine is killed too; with a new agent for every tenth page, saved or not."""
    disk, life = Disk(), None
    for number, (second, text) in enumerate(run("c")):
        life = Life(disk) if life is None or number % 10 == 9 else life
        life.visit(int(second), text)
        if number % 3 != 1:
            life.save()
    assert life is not None
    life.stop(int(second))
    assert total(disk, "generation_tokens") == 32_979
