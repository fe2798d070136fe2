"""Rows of holdings: each second of each share once, cut at windows, bridged only between the same owner."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from hypothesis import given
from hypothesis import strategies as st

from collectors.rows.holding_rows import HoldingRows
from collectors.samples import Held

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fleet.telemetry import HoldingRow

DAY = 86_400
Ticks = dict[int, tuple[Held, ...] | None]


def holds(pod: str, millionths: int = 1_000_000, device: str = "GPU-a", **values: Any) -> Held:
    known: dict[str, Any] = {"owner_kind": "pod", "source": "kubelet", "confidence": "exact", "namespace": "n"}
    return Held(device=device, gpu_millionths=millionths, pod=pod, **(known | values))


def walk(ticks: Ticks, rows: HoldingRows | None = None) -> list[HoldingRow]:
    rows = rows or HoldingRows()
    finished = [row for second, held in ticks.items() for row in rows.advance(second, held)]
    return [*finished, *rows.close(max(ticks))]


def every(seconds: Iterable[int], *held: Held) -> Ticks:
    return dict.fromkeys(seconds, held)


def unknown(seconds: Iterable[int]) -> Ticks:
    return dict.fromkeys(seconds)


def told(rows: Iterable[HoldingRow]) -> list[tuple[str | None, int, int, int, str]]:
    return [(row.pod, row.from_second, row.to_second, row.gpu_millionths, row.confidence) for row in rows]


def test_one_holding_is_one_row_cut_where_windows_meet() -> None:
    rows = HoldingRows()
    finished = [row for second in range(30, 131) for row in rows.advance(second, (holds("p"),))]
    assert told(finished) == [("p", 30, 60, 10**6, "exact"), ("p", 60, 120, 10**6, "exact")]
    assert told(rows.close(130)) == [("p", 120, 130, 10**6, "exact")]
    assert rows.close(130) == ()


def test_a_row_says_all_that_is_known_of_the_owner() -> None:
    held = Held(
        device="GPU-a", gpu_millionths=500_000, owner_kind="job", source="slurm", confidence="split", namespace="ns",
        workload="w", pod="p", pod_uid="u", container="c", job_id="7", user_name="ada", conflict="pod b",
    )  # fmt: skip
    (row,) = walk(every(range(3), held))
    assert {name: getattr(row, name) for name in held.__dataclass_fields__} == {
        name: getattr(held, name) for name in held.__dataclass_fields__
    }


def test_holders_change_at_the_second_they_are_told() -> None:
    """`b` is told at 11, so it held from 10."""
    ticks = every(range(11), holds("a")) | every(range(11, 21), holds("b"))
    assert told(walk(ticks)) == [("a", 0, 10, 10**6, "exact"), ("b", 10, 20, 10**6, "exact")]


def test_a_share_that_changes_is_another_row() -> None:
    ticks = every(range(11), holds("a", 500_000)) | every(range(11, 21), holds("a", 250_000))
    assert told(walk(ticks)) == [("a", 0, 10, 500_000, "exact"), ("a", 10, 20, 250_000, "exact")]


def test_one_owner_told_in_two_parts_is_one_row() -> None:
    assert told(walk(every(range(3), holds("a", 250_000), holds("a", 250_000)))) == [("a", 0, 2, 500_000, "exact")]


def test_a_device_that_nobody_holds_has_no_row() -> None:
    assert walk(every(range(100))) == []


def test_time_in_which_nobody_can_say_has_no_row() -> None:
    ticks = every(range(11), holds("a")) | unknown(range(11, 21)) | every(range(21, 31), holds("a"))
    assert told(walk(ticks)) == [("a", 0, 10, 10**6, "exact"), ("a", 20, 30, 10**6, "exact")]


def test_kubernetes_116459_a_short_silence_is_bridged_for_the_same_owner() -> None:
    ticks = every(range(11), holds("a")) | unknown(range(11, 91)) | every(range(91, 101), holds("a"))
    rows = walk(ticks, HoldingRows(bridge_seconds=120))
    assert told(sorted(rows, key=lambda row: row.from_second)) == [
        ("a", 0, 10, 10**6, "exact"),
        ("a", 10, 60, 10**6, "assumed"),
        ("a", 60, 90, 10**6, "assumed"),
        ("a", 90, 100, 10**6, "exact"),
    ]


def test_a_silence_is_not_bridged_for_another_owner_or_beyond_its_bound() -> None:
    changed = every(range(11), holds("a")) | unknown(range(11, 21)) | every(range(21, 31), holds("b"))
    assert [row.confidence for row in walk(changed, HoldingRows(bridge_seconds=120))] == ["exact", "exact"]
    long = every(range(11), holds("a")) | unknown(range(11, 200)) | every(range(200, 211), holds("a"))
    assert {row.confidence for row in walk(long, HoldingRows(bridge_seconds=120))} == {"exact"}


def test_a_bridge_is_as_wide_as_its_narrower_side() -> None:
    ticks = every(range(11), holds("a", 500_000)) | unknown([11]) | every(range(12, 20), holds("a"))
    bridge = [row for row in walk(ticks, HoldingRows(bridge_seconds=60)) if row.confidence == "assumed"]
    assert told(bridge) == [("a", 10, 11, 500_000, "assumed")]


def test_a_bridge_holds_no_more_than_the_owner_held_before() -> None:
    """Half a device before, and two halves by two sources after: one half is assumed in between."""
    after = (holds("a", 500_000), holds("a", 500_000, source="page"))
    ticks = every(range(11), holds("a", 500_000)) | unknown([11]) | every(range(12, 20), *after)
    bridge = [row for row in walk(ticks, HoldingRows(bridge_seconds=60)) if row.confidence == "assumed"]
    assert told(bridge) == [("a", 10, 11, 500_000, "assumed")]


def test_ticks_far_apart_leave_unknown_time() -> None:
    """A machine that slept from 10 to 40: who held meanwhile is not known, at most assumed."""
    ticks = every([*range(11), *range(40, 51)], holds("a"))
    assert told(walk(ticks)) == [("a", 0, 10, 10**6, "exact"), ("a", 40, 50, 10**6, "exact")]
    assert told(walk(ticks, HoldingRows(bridge_seconds=60)))[1] == ("a", 10, 40, 10**6, "assumed")


def test_a_clock_that_goes_back_bills_no_second_twice() -> None:
    rows = HoldingRows()
    finished = [row for s in (*range(21), *range(5, 31)) for row in rows.advance(s, (holds("a"),))]
    assert told([*finished, *rows.close(30)]) == [("a", 0, 30, 10**6, "exact")]


def test_a_clock_set_years_ahead_and_back_goes_on() -> None:
    rows, far = HoldingRows(bridge_seconds=300), 400 * DAY
    ticks = (*range(11), *range(far, far + 5), *range(20, 31))
    finished = [row for s in ticks for row in rows.advance(s, (holds("a"),))]
    assert sorted(row[1:3] for row in told([*finished, *rows.close(30)])) == [(0, 10), (20, 30), (far, far + 4)]


def test_a_process_that_dies_is_bridged_by_the_next() -> None:
    """Killed after 95 with the state of 60, back at 100: what held at 60 and at 100 is assumed to have held."""
    rows, finished, state = HoldingRows(bridge_seconds=60), [], {}
    for second in range(96):
        if closed := rows.advance(second, (holds("a", 500_000), holds("b", 500_000))):
            finished += closed
            state = json.loads(json.dumps(rows.state()))
    again = HoldingRows(bridge_seconds=60, state=state)
    for second in range(100, 121):
        finished += again.advance(second, (holds("a", 500_000), holds("c", 500_000)))
    assert told(finished) == [
        ("a", 0, 60, 500_000, "exact"),
        ("b", 0, 60, 500_000, "exact"),
        ("a", 60, 100, 500_000, "assumed"),
        ("a", 100, 120, 500_000, "exact"),
        ("c", 100, 120, 500_000, "exact"),
    ]


def test_a_restart_is_told_from_watching_however_short_it_was() -> None:
    rows = HoldingRows(bridge_seconds=60)
    walked = walk(every(range(11), holds("a")), rows)
    walked += walk(every(range(12, 15), holds("a")), HoldingRows(bridge_seconds=60, state=rows.state()))
    assert told(walked)[1] == ("a", 10, 12, 10**6, "assumed")


def test_a_restart_with_a_clock_that_is_behind_waits() -> None:
    rows = HoldingRows(bridge_seconds=60)
    walked = walk(every(range(40), holds("a")), rows)
    again = HoldingRows(bridge_seconds=60, state=rows.state())
    walked += [row for second in range(20, 51) for row in again.advance(second, (holds("a"),))]
    assert [row[1:3] for row in told([*walked, *again.close(50)])] == [(0, 39), (39, 40), (40, 50)]


def test_a_state_that_cannot_be_read_is_as_none() -> None:
    rows = HoldingRows()
    walk(every(range(3), holds("a")), rows)
    good = rows.state()
    for state in ({}, {"version": 9}, {"version": 1}, good | {"open": [3]}, good | {"before": [{"x": 1}]}):
        assert HoldingRows(state=state).state()["open"] == []
        assert HoldingRows(bridge_seconds=60, state=state).advance(3, (holds("a"),)) == ()


def test_names_that_nobody_can_store_are_cut_or_left_out() -> None:
    rows = walk(every(range(3), holds("p" * 300), holds("q", device="G" * 300)))
    assert [len(row.pod or "") for row in rows] == [256]


SHARES = st.lists(st.integers(1, 10**6), min_size=1, max_size=4).map(
    # Cut down to what one device has.
    lambda shares: [share * 10**6 // max(sum(shares), 10**6) for share in shares]
)
HELD = SHARES.map(lambda shares: tuple(holds(f"p{i}", share) for i, share in enumerate(shares) if share))
TICKS = st.lists(st.tuples(st.integers(1, 5), st.none() | HELD), min_size=2, max_size=40)


@given(TICKS, st.sampled_from([0, 7, 300]))
def test_every_second_of_every_share_is_in_the_rows_once(
    ticks: Sequence[tuple[int, tuple[Held, ...] | None]], bridge_seconds: int
) -> None:
    rows, second = HoldingRows(bridge_seconds=bridge_seconds), 40
    rows.advance(second, ())
    finished: list[HoldingRow] = []
    expected: dict[tuple[str | None, int], int] = {}
    for seconds, held in ticks:
        finished += rows.advance(second + seconds, held)
        for known in held or ():
            expected |= {(known.pod, s): known.gpu_millionths for s in range(second, second + seconds)}
        second += seconds
    finished += rows.close(second)
    found: dict[tuple[str | None, int], int] = {}
    for row in finished:
        assert row.from_second // 60 == (row.to_second - 1) // 60
        for s in range(row.from_second, row.to_second):
            assert (row.pod, s) not in found
            found[row.pod, s] = row.gpu_millionths
    for s in {s for _, s in found}:
        assert sum(share for (_, at), share in found.items() if at == s) <= 10**6
    exact = {
        (row.pod, s): row.gpu_millionths
        for row in finished
        if row.confidence == "exact"
        for s in range(row.from_second, row.to_second)
    }
    assert exact == expected
    assert bridge_seconds or found == exact
