"""What counts is the newest content of each source, and each content once: compared with a model of a few lines."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from store.intake import Staged
from store.snapshots import Loaded, land, show_current, snapshot_id
from tests.store.worker import open_lake

if TYPE_CHECKING:
    from collections.abc import Iterator

    import duckdb

    from store.lake import Lake

ROWS = {"A": 1, "B": 2, "C": 3}
"""Each content, and how many rows it has."""
RUNS = count()


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    with open_lake(tmp_path_factory.mktemp("snapshots")) as opened:
        yield opened


def load(lake: Lake, source: str, content: str, **options: str) -> Loaded:
    """Land `content` (its last letter says how many rows) as quota file `source`."""

    def change(con: duckdb.DuckDBPyConnection) -> Loaded:
        rows = ROWS[content[-1]]
        con.execute(
            "CREATE OR REPLACE TEMP TABLE staged AS SELECT range + 2 AS source_row, 'p' AS pool, ? AS team, "
            "CAST(1 AS DECIMAL(18, 6)) AS gpus, TIMESTAMPTZ '2026-05-01 00:00:00+00' AS valid_from, "
            "CAST(NULL AS TIMESTAMPTZ) AS valid_to FROM range(?)",
            [content, rows],
        )
        return land(
            con,
            staged=Staged("staged", source, f"sha of {content}", rows, 0),
            kind="quotas",
            table="quota",
            fields=["pool", "team", "gpus", "valid_from", "valid_to"],
            options=options,
            control_field=None,
        )

    return lake.write(change)


@pytest.mark.parametrize(("rows", "number", "is_sorted"), [(3, "-range", True), (40_000, "(range + 7) % 40000", False)])
def test_rows_are_written_in_the_order_of_their_file_unless_they_nearly_are(
    lake: Lake, rows: int, number: str, *, is_sorted: bool
) -> None:
    def change(con: duckdb.DuckDBPyConnection) -> list[tuple[int]]:
        con.execute(
            f"CREATE OR REPLACE TEMP TABLE staged AS SELECT {number} AS source_row, 'p' AS pool FROM range(?)", [rows]
        )
        staged = Staged("staged", "order.csv", f"sha of {rows}", rows, 0)
        landed = land(con, staged=staged, kind="quotas", table="quota", fields=["pool"], options={}, control_field=None)
        query = "SELECT source_row FROM lake.quota WHERE snapshot_id = ?"
        return con.execute(query, [landed.snapshot_id]).fetchall()

    written = lake.write(change)
    assert len(written) == rows
    assert (written == sorted(written)) == is_sorted


def shown(lake: Lake, run: str) -> dict[str, int]:
    """The contents of one run that count now, with their rows."""
    show_current(lake.connection)
    rows = lake.connection.execute(
        "SELECT team, count(*) FROM quota WHERE starts_with(team, ?) GROUP BY team", [run]
    ).fetchall()
    return {team.removeprefix(run): number for team, number in rows}


class Model:
    """What each source says. A copy of what counts already is not worth a note, unless it says so for the first time
    in place of something else.
    """

    def __init__(self) -> None:
        self.says: dict[str, str] = {}

    def load(self, source: str, content: str) -> str:
        before = self.says.get(source)
        if before == content or (before is None and content in self.says.values()):
            return "unchanged"
        self.says[source] = content
        return "replaced" if before else "loaded"


@settings(max_examples=25)
@given(st.lists(st.tuples(st.sampled_from("xyz"), st.sampled_from("ABC")), min_size=1, max_size=6))
def test_any_order_of_loads_leaves_what_the_model_says(lake: Lake, loads: list[tuple[str, str]]) -> None:
    run, model = f"{next(RUNS)}:", Model()
    for source, content in loads:
        loaded = load(lake, run + source, run + content)
        assert (loaded.outcome, loaded.row_count) == (model.load(source, content), ROWS[content])
    assert shown(lake, run) == {content: ROWS[content] for content in set(model.says.values())}


def test_an_earlier_content_becomes_current_again_and_is_stored_once(lake: Lake) -> None:
    outcomes = [load(lake, "again.csv", f"again:{content}").outcome for content in "ABAA"]
    assert outcomes == ["loaded", "replaced", "replaced", "unchanged"]
    assert shown(lake, "again:") == {"A": 1}
    stored = lake.connection.execute("SELECT count(*) FROM lake.quota WHERE team = 'again:A'").fetchall()
    assert stored == [(1,)]


def test_a_copy_names_the_source_that_holds_its_content(lake: Lake) -> None:
    load(lake, "first.csv", "copy:B")
    copy = load(lake, "copy of first.csv", "copy:B")
    assert (copy.outcome, copy.same_as) == ("unchanged", "first.csv")
    load(lake, "first.csv", "copy:C")
    assert shown(lake, "copy:") == {"C": 3}, "a copy does not bring back what its original has replaced"


def test_a_source_that_turns_into_a_copy_no_longer_says_what_it_said(lake: Lake) -> None:
    load(lake, "turn-1.csv", "turn:A")
    load(lake, "turn-2.csv", "turn:B")
    assert load(lake, "turn-2.csv", "turn:A").outcome == "replaced"
    assert shown(lake, "turn:") == {"A": 1}


def test_a_clock_that_was_set_back_does_not_bring_back_old_content(lake: Lake) -> None:
    load(lake, "clock.csv", "clock:A")
    lake.write(
        lambda con: con.execute(
            "UPDATE lake.snapshot SET loaded_at = loaded_at + INTERVAL 1 DAY WHERE source = 'clock.csv'"
        )
    )
    assert load(lake, "clock.csv", "clock:B").outcome == "replaced"
    assert shown(lake, "clock:") == {"B": 2}


def test_a_content_read_in_another_way_is_another_content() -> None:
    ids = {snapshot_id(kind, sha, {"time_zone": zone}) for kind in "kl" for sha in "ab" for zone in ("", "UTC")}
    assert len(ids) == 8
    assert snapshot_id("k", "a", {"x": "1", "y": "2"}) == snapshot_id("k", "a", {"y": "2", "x": "1"})
