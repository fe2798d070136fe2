"""Tokens of model servers over the lives of agents: whatever ends one, rows on disk say what the counters grew by."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collectors.samples import DeviceSample, Reading
from exporters.spool_file import SpoolError
from services.agent.engine_states import MOST_CHARACTERS, states_of
from tests.services.agent.engine_lives import MINUTE, T0, Life, Spooled
from tests.services.agent.fed import BOOTS

if TYPE_CHECKING:
    from collections.abc import Sequence

STEPS = st.lists(
    st.tuples(
        st.sampled_from(["visit", "visit", "visit", "away", "tick", "minute", "kill", "kill", "stop"]),
        st.integers(1, 200),
        st.integers(0, 10**9),
    ),
    max_size=14,
)


@pytest.fixture
def spool(tmp_path: Path) -> Path:
    return tmp_path / "spool.sqlite"


@settings(max_examples=20)
@given(STEPS)
def test_rows_of_all_lives_say_what_was_generated(steps: Sequence[tuple[str, int, int]]) -> None:
    """Killed at any moment: what is on disk, and what the next life adds to it, is no token more or less."""
    with tempfile.TemporaryDirectory() as folder:
        spool = Path(folder) / "spool.sqlite"
        life, second, tokens = Life(spool, "a"), T0, 0
        life.visit(second, tokens)
        life.save()
        for what, seconds, added in [*steps, ("visit", 1, 5)]:
            second, tokens = second + seconds, tokens + added
            if what in {"visit", "away"}:
                life.visit(second, tokens if what == "visit" else None)
            elif what in {"tick", "minute"}:
                life.save(MINUTE if what == "minute" else None)
            else:
                life.stop_at(second) if what == "stop" else life.drop()
                life = Life(spool, "a")
        life.stop_at(second)
        found = Spooled(spool)
        assert found.tokens == tokens
        assert found.fullest_window_ms <= 60_000


def test_the_first_visit_of_all_is_on_disk_with_the_next_tick(spool: Path) -> None:
    """Not only when a window is over: an agent may be killed before that."""
    life = Life(spool, "a")
    life.save()
    life.visit(T0, 100)
    life.save()
    life.visit(T0 + 10, 130)
    life.drop()
    found = Spooled(spool)
    assert (found.batches, list(found.state["servers"])) == ([], ["server:a"])
    later = Life(spool, "a")
    later.visit(T0 + 20, 150)
    later.stop_at(T0 + 20)
    assert Spooled(spool).tokens == 50


@pytest.mark.parametrize("refused", ["state WHEN NEW.key = 'engines'", "batch"], ids=["state", "batch"])
def test_rows_are_on_disk_with_the_state_that_follows_from_them_or_not_at_all(spool: Path, refused: str) -> None:
    """A file that refuses one of the two: what the other would have been is not there either, and nothing is lost."""
    life = Life(spool, "a")
    life.visit(T0, 100)
    life.save()
    life.drop()
    before = Spooled(spool).state
    _change(spool, f"CREATE TRIGGER refuses BEFORE INSERT ON {refused} BEGIN SELECT RAISE(ABORT, 'no'); END")
    life = Life(spool, "a")
    life.visit(T0 + 70, 170)
    with pytest.raises(SpoolError):
        life.save(MINUTE)
    life.drop()
    found = Spooled(spool)
    assert (found.batches, found.state) == ([], before)
    _change(spool, "DROP TRIGGER refuses")
    life = Life(spool, "a")
    life.visit(T0 + 80, 180)
    life.stop_at(T0 + 80)
    assert Spooled(spool).tokens == 80


def _change(spool: Path, statement: str) -> None:
    with contextlib.closing(sqlite3.connect(spool)) as connection:
        connection.execute(statement)


def test_after_a_reboot_windows_are_sent_and_counters_begin_anew(spool: Path) -> None:
    """Also for the life after the next, which is of the same boot and finds the state of a server not visited since."""
    life = Life(spool, "a")
    for second, tokens in ((0, 100), (30, 130)):
        life.visit(T0 + second, tokens)
    life.save()
    life.drop()
    idle = Life(spool, "a", boot_id=BOOTS[1])
    idle.visit(T0 + 90, None)
    idle.save(MINUTE)
    idle.drop()
    life = Life(spool, "a", boot_id=BOOTS[1])
    for second, tokens in ((120, 500), (150, 507)):
        life.visit(T0 + second, tokens)
    life.stop_at(T0 + 150)
    found = Spooled(spool)
    assert found.tokens == 30 + 7
    assert found.state["boot_id"] == BOOTS[1]


@pytest.mark.parametrize("others", [(), ("b",)], ids=["none is left", "another is left"])
def test_what_was_open_of_a_server_that_is_configured_no_more_is_sent_once(
    spool: Path, others: tuple[str, ...]
) -> None:
    life = Life(spool, "a", *others)
    for second, tokens in ((0, 100), (30, 130)):
        life.visit(T0 + second, tokens)
    life.save()
    life.drop()
    killed = Life(spool, *others)
    killed.drop()
    for _ in range(2):
        later = Life(spool, *others)
        later.save(MINUTE)
        later.drop()
        found = Spooled(spool)
        assert (found.tokens, list(found.state["servers"])) == (30, [])
    assert (later.engines is None) == (not others), "nothing is held in memory for none"
    again = Life(spool, "a")
    again.visit(T0 + 90, 190)
    again.stop_at(T0 + 90)
    assert Spooled(spool).tokens == 30, "its counters were forgotten with it"


def test_rows_of_servers_alone_leave_the_state_of_devices_as_it_is(spool: Path) -> None:
    """Rows of devices wait for the end of their window: a state that follows from them may not be ahead of them."""
    life = Life(spool, "a")
    life._recorder.tick("nvml", T0, Reading((DeviceSample(kind="gpu", uuid="GPU-1"),)), T0 * 10**9)
    for second in (0, 70):
        life.visit(T0 + second, second)
    life.save()
    life.drop()
    found = Spooled(spool)
    assert (len(found.batches), found.of_devices, len(found.rows)) == (1, None, 1)


def test_a_state_of_the_far_future_is_as_none(spool: Path) -> None:
    life = Life(spool, "a")
    for second in (0, 10):
        life.visit(T0 + second, second)
    life.save()
    assert life._spool
    life._spool.state_put("engines", life._spool.state_get("engines") | {"saved_at_second": T0 + 10**6})
    life.drop()
    later = Life(spool, "a")
    later.visit(T0 + 20, 20)
    later.stop_at(T0 + 20)
    assert Spooled(spool).tokens == 0


@pytest.mark.parametrize("state", [7, {"servers": [1]}, {"servers": {"server:a": 1}, "saved_at_second": T0}, {}])
def test_a_state_that_is_damaged_stops_nobody(spool: Path, state: object) -> None:
    first = Life(spool, "a")
    assert first._spool
    first._spool.state_put("engines", state)
    first.drop()
    life = Life(spool, "a")
    for second in (0, 10):
        life.visit(T0 + second, second)
    life.stop_at(T0 + 10)
    assert Spooled(spool).tokens == 10


def test_states_have_a_bound_and_who_came_first_has_its_room(spool: Path) -> None:
    life = Life(spool, "a", "b")
    for key in ("server:a", "server:b"):
        for second in (0, 10):
            life.visit(T0 + second, second, key)
    a, b = (life.watched[key].windows for key in ("server:a", "server:b"))
    for index in range(30_000):
        a._servers["server:a"].engines[next(iter(a._servers["server:a"].engines))].carried[f"{index:030}"] = 0.5
    states, left_out = states_of((("server:a", a), ("server:b", b)))
    assert (list(states), left_out) == (["server:b"], 1)
    many = [(f"server:{number}", b) for number in range(MOST_CHARACTERS // 1_000)]
    states, left_out = states_of(many)
    assert (list(states), left_out) == ([key for key, _ in many[: len(states)]], len(many) - len(states))
    assert 0.99 * MOST_CHARACTERS < sum(len(json.dumps(state)) for state in states.values()) <= MOST_CHARACTERS
    life.save(MINUTE)
    refused = {m.labels[2]: m.value for m in life.engines.measurements() if m.labels[1] == "engines"}
    assert refused == {"state_too_large": 1}
    life.drop()


def test_without_a_hub_rows_are_let_go() -> None:
    life = Life(None, "a")
    for second in (0, 70, 140):
        life.visit(T0 + second, second)
        life.save()
    assert life.engines.taken()[0] == {}
