"""Rows of agents are inputs of a build: more of them in a period is another build, elsewhere it is not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chargeback.build import prepare
from fleet.config import Config
from tests.chargeback.ledger import memory_ledger

if TYPE_CHECKING:
    from store.lake import Connection

FEBRUARY = 20485
"""Days from 1970 to 2026-02-01."""


def held(con: Connection, day: int) -> str:
    """The id of February's build after one more holding on a day."""
    con.execute("INSERT INTO lake.held_window (day, dh, second, seconds) VALUES (?, 24, 0, 60)", [day])
    return prepare(con, Config(), "2026-02")


def test_a_build_is_of_the_rows_that_agents_sent_for_its_days() -> None:
    con = memory_ledger()
    none = prepare(con, Config(), "2026-02")
    assert prepare(con, Config(), "2026-02") == none
    assert held(con, FEBRUARY - 1) == none
    assert held(con, FEBRUARY + 28) == none
    first = held(con, FEBRUARY)
    assert first != none
    last = held(con, FEBRUARY + 27)
    assert last not in {none, first}
    assert held(con, FEBRUARY + 27) not in {none, first, last}


def test_what_agents_saw_of_model_servers_is_an_input_too() -> None:
    con = memory_ledger()
    ids = {prepare(con, Config(), "2026-02")}
    for table in ("engine_window", "engine_histogram", "device_window"):
        con.execute(f"INSERT INTO lake.{table} (day, second) VALUES (?, 0)", [FEBRUARY])
        ids.add(prepare(con, Config(), "2026-02"))
    assert len(ids) == 4
