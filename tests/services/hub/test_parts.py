"""The hub's parts on their own: who speaks for a node, how much may wait, what its page keeps."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from exporters.hub import MAX_NODES, HubMetrics
from services.hub.claims import MAX_ORIGINS, SILENCE_SECONDS, NodeClaims
from services.hub.health import STUCK_SECONDS, Health
from services.hub.waiting import Budget

if TYPE_CHECKING:
    import pytest

NODE = ("c", "n")
ONE, TWO = ("boot-1", "spool-1"), ("boot-2", "spool-2")


def test_a_silent_stream_gives_way_after_three_minutes() -> None:
    claims = NodeClaims()
    first, second = object(), object()
    assert claims.admit(first, NODE, ONE, 0)
    assert not claims.admit(second, NODE, TWO, SILENCE_SECONDS)
    assert claims.admit(second, NODE, TWO, SILENCE_SECONDS + 1)
    assert not claims.admit(first, NODE, ONE, SILENCE_SECONDS + 2), "now the first one is the second"


def test_pushing_keeps_the_claim() -> None:
    claims = NodeClaims()
    first, second = object(), object()
    for now in range(0, 1000, 100):
        assert claims.admit(first, NODE, ONE, now)
        assert not claims.admit(second, NODE, TWO, now + 50)


def test_a_clone_of_a_machine_with_its_spool_is_told_apart() -> None:
    """Both bring the old boot's batches; once they differ, one of them waits."""
    claims = NodeClaims()
    first, second = object(), object()
    old, first_boot, second_boot = ("boot-0", "spool"), ("boot-1", "spool"), ("boot-2", "spool")
    assert claims.admit(first, NODE, old, 0)
    assert claims.admit(first, NODE, first_boot, 1)
    assert not claims.admit(second, NODE, second_boot, 2)


def test_the_end_of_a_stream_frees_its_nodes_only() -> None:
    claims = NodeClaims()
    first, second = object(), object()
    claims.admit(first, NODE, ONE, 0)
    claims.admit(second, ("c", "m"), TWO, 0)
    claims.release(second)
    assert not claims.admit(second, NODE, TWO, 1)
    claims.release(first)
    assert claims.admit(second, NODE, TWO, 1)


def test_a_sender_cannot_make_the_hub_remember_without_end() -> None:
    claims = NodeClaims()
    stream = object()
    for number in range(10 * MAX_ORIGINS):
        assert claims.admit(stream, NODE, (str(number), "s"), 0)
    assert len(claims._claims[NODE].origins) <= MAX_ORIGINS


@given(
    st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), max_size=40),
    st.integers(1, 40),
    st.integers(1, 40),
    st.data(),
)
def test_a_budget_is_kept_in_order_and_always_moves_on(
    wants: list[tuple[int, int]], row_limit: int, byte_limit: int, data: st.DataObject
) -> None:
    """Never beyond the limits but for one alone that is larger; first come, first served; nobody waits for ever."""

    async def run() -> None:
        budget = Budget(row_limit, byte_limit)
        admitted: list[int] = []

        async def sender(number: int) -> None:
            await budget.take(*wants[number])
            admitted.append(number)

        tasks = [asyncio.create_task(sender(number)) for number in range(len(wants))]
        gone = data.draw(st.sets(st.integers(0, max(len(wants) - 1, 0))))
        given_back = 0
        for _ in range(3 * len(wants) + 3):
            await asyncio.sleep(0)
            held = [wants[number] for number in admitted[given_back:]]
            assert (budget.rows, budget.bytes) == (sum(r for r, _ in held), sum(s for _, s in held))
            assert len(held) <= 1 or (budget.rows <= row_limit and budget.bytes <= byte_limit)
            for number in gone - set(admitted):
                if number < len(tasks):
                    tasks[number].cancel()
            if given_back < len(admitted):
                budget.give(*wants[admitted[given_back]])
                given_back += 1
        await asyncio.gather(*tasks, return_exceptions=True)
        assert admitted == sorted(admitted)
        assert set(admitted) | gone >= set(range(len(wants)))

    asyncio.run(run())


def test_the_page_forgets_the_node_heard_of_longest_ago() -> None:
    metrics = HubMetrics()
    for number in range(MAX_NODES + 10):
        metrics.clock_skew(f"n{number}", 0.0)
    metrics.clock_skew("n10", 1.0)
    metrics.clock_skew('one "more"\n', 2.0)
    shown = [line for line in metrics.page().decode().splitlines() if line.startswith("gputally_hub_clock_skew")]
    assert len(shown) == MAX_NODES
    assert 'gputally_hub_clock_skew_seconds{node="n10"} 1.0' in shown
    assert 'gputally_hub_clock_skew_seconds{node="one \\"more\\"\\n"} 2.0' in shown
    assert not any('"n11"' in line for line in shown)


def test_health_is_that_of_the_last_commit_and_of_those_that_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr("services.hub.health.time.monotonic", lambda: now)
    health = Health()
    assert health.health() == (True, "ok")
    now += 10 * STUCK_SECONDS
    assert health.health() == (True, "ok"), "nothing is due"
    health.arrived()
    now += STUCK_SECONDS + 1
    assert health.health() == (False, "1 batches have waited 61 s for a commit")
    health.failed("disk full")
    health.answered(1)
    assert health.health() == (False, "the last commit failed: disk full")
    health.worked()
    assert health.health() == (True, "ok")
