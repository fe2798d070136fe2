"""The roster: what was shown once is expected, and its absence has a name."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from hypothesis import given
from hypothesis import strategies as st

from collectors.rows.roster import Roster
from collectors.samples import DeviceSample, Owner

if TYPE_CHECKING:
    from collections.abc import Iterable


def gpu(uuid: str | None, **values: Any) -> DeviceSample:
    return DeviceSample("gpu", uuid, **values)


def mig(board: str, slot: str, **values: Any) -> DeviceSample:
    return DeviceSample("mig", f"MIG-{board}-{slot}", parent_uuid=board, slot=slot, **values)


def states(samples: Iterable[DeviceSample]) -> dict[str | None, str]:
    return {sample.device: sample.state for sample in samples}


def test_dcgm_exporter_348_a_missing_gpu_is_lost_with_its_identity_and_owner() -> None:
    roster = Roster()
    held = gpu("GPU-b", slot="3", model="H100", owner=(Owner(pod="llama-0"),), busy_ratio=0.9, energy_millijoules=7)
    roster.complete([gpu("GPU-a"), held])
    assert (roster.expected, roster.seen) == (2, 2)
    _, lost = roster.complete([gpu("GPU-a")])
    assert (lost.uuid, lost.slot, lost.model, lost.state, lost.quality) == ("GPU-b", "3", "H100", "lost", ("stale",))
    assert (lost.busy_ratio, lost.energy_millijoules, lost.counters) == (None, None, "total")
    assert lost.owner == held.owner
    assert (roster.expected, roster.seen) == (2, 1)
    assert states(roster.complete([gpu("GPU-a"), held])) == {"GPU-a": "ok", "GPU-b": "ok"}


def test_dcgm_exporter_569_what_only_lists_holders_leaves_others_unobserved() -> None:
    roster = Roster()
    roster.complete([gpu("GPU-a"), gpu("GPU-b")])
    assert states(roster.complete([gpu("GPU-a")], lists_holders_only=True))["GPU-b"] == "unobserved"
    assert states(roster.complete([gpu("GPU-a")]))["GPU-b"] == "lost"


def test_nobody_could_be_asked() -> None:
    roster = Roster()
    roster.complete([gpu("GPU-a"), mig("GPU-a", "1")])
    assert states(roster.complete([], lists_holders_only=True)) == {"GPU-a": "unobserved", "MIG-GPU-a-1": "unobserved"}
    assert (roster.expected, roster.seen) == (1, 0)


def test_gpu_operator_2482_an_instance_of_a_present_board_is_gone() -> None:
    roster = Roster()
    roster.complete([gpu("GPU-a"), mig("GPU-a", "1"), mig("GPU-a", "2")])
    assert states(roster.complete([gpu("GPU-a"), mig("GPU-a", "2")])) == {"GPU-a": "ok", "MIG-GPU-a-2": "ok"}
    assert "MIG-GPU-a-1" not in states(roster.complete([]))


def test_a_board_that_is_lost_takes_its_instances_along() -> None:
    """Whether the source leaves the board out, or names it as lost."""
    for left in ([], [gpu("GPU-a", state="lost")]):
        roster = Roster()
        roster.complete([gpu("GPU-a"), mig("GPU-a", "1")])
        assert states(roster.complete(left)) == {"GPU-a": "lost", "MIG-GPU-a-1": "lost"}
        assert (roster.expected, roster.seen) == (1, 0)


def test_a_board_that_nobody_saw_leaves_its_instances_unobserved() -> None:
    roster = Roster()
    roster.complete([gpu("GPU-a"), mig("GPU-a", "1")])
    told = states(roster.complete([gpu("GPU-a", state="unobserved")]))
    assert told == {"GPU-a": "unobserved", "MIG-GPU-a-1": "unobserved"}


def test_a_board_that_was_taken_out_is_not_missed() -> None:
    roster = Roster()
    roster.complete([gpu("GPU-a"), gpu("GPU-b"), mig("GPU-b", "1")])
    roster.forget("GPU-b")
    assert states(roster.complete([gpu("GPU-a")])) == {"GPU-a": "ok"}
    assert roster.expected == 1
    roster.complete([gpu("GPU-a"), gpu("GPU-b")])
    assert roster.expected == 2


def test_a_board_that_another_took_the_place_of_was_replaced() -> None:
    """After a repair the machine comes back with another board at the same address."""
    old = [gpu("GPU-b", pci_bus_id="00000000:1B:00.0"), mig("GPU-b", "1")]
    other, new = gpu("GPU-a", pci_bus_id="00000000:0A:00.0"), gpu("GPU-c", pci_bus_id="00000000:1b:00.0")
    before = Roster()
    before.complete([other, *old])
    roster = Roster(json.loads(json.dumps(before.state())))
    assert states(roster.complete([], lists_holders_only=True))["GPU-b"] == "unobserved"
    assert states(roster.complete([other, new])) == {"GPU-a": "ok", "GPU-c": "ok"}
    assert roster.expected == 2
    still_named = [other, gpu("GPU-b", state="lost", pci_bus_id="00000000:1B:00.0"), new]
    assert states(roster.complete(still_named)) == {"GPU-a": "ok", "GPU-c": "ok"}
    assert states(roster.complete([other, old[0]])) == {"GPU-a": "ok", "GPU-b": "ok"}, "and back again"


def test_a_known_board_that_moved_replaces_nobody() -> None:
    """Addresses may be dealt anew at a boot: where a known board sits now, a lost one has not been replaced."""
    roster = Roster()
    roster.complete([gpu("GPU-a", pci_bus_id="1"), gpu("GPU-b", pci_bus_id="2")])
    assert states(roster.complete([gpu("GPU-a", pci_bus_id="2")])) == {"GPU-a": "ok", "GPU-b": "lost"}


def test_device_metrics_exporter_233_devices_without_identity_are_not_one_device() -> None:
    roster = Roster()
    nameless = [gpu(None, slot="0"), gpu(None, slot="1")]
    assert roster.complete(nameless) == tuple(nameless)
    assert (roster.expected, roster.complete([])) == (0, ())


def test_the_next_process_misses_what_this_one_saw() -> None:
    roster = Roster()
    roster.complete([gpu("GPU-a", model="H100", owner=(Owner(pod="p"),)), mig("GPU-a", "1")])
    again = Roster(json.loads(json.dumps(roster.state())))
    assert again.expected == 1
    assert [(s.device, s.model, s.state) for s in again.complete([])] == [
        ("GPU-a", "H100", "lost"),
        ("MIG-GPU-a-1", None, "lost"),
    ]


def test_a_state_of_something_else_is_no_device() -> None:
    for state in ({}, {"devices": 3}, {"devices": [1, {"uuid": "x"}, {"kind": "gpu"}, {"kind": "gpu", "uuid": 4}]}):
        assert Roster(state).complete([]) == ()


def test_made_up_names_do_not_fill_the_memory() -> None:
    roster = Roster()
    for first in (0, 1000, 2000):
        roster.complete([gpu(f"GPU-{n}") for n in range(first, first + 1000)])
    assert roster.expected == 1024


@given(st.lists(st.sets(st.sampled_from("abcdef")), min_size=1, max_size=8))
def test_no_board_is_ever_forgotten(visits: list[set[str]]) -> None:
    roster, seen = Roster(), set()
    for names in visits:
        seen |= names
        told = states(roster.complete([gpu(name) for name in sorted(names)]))
        assert set(told) == seen
        assert {name for name, state in told.items() if state == "ok"} == names
        assert (roster.expected, roster.seen) == (len(seen), len(names))
