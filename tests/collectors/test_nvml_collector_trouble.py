"""Devices and drivers in trouble: each says so in its row or its error, and the others go on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from collectors.collector import RestartNeededError, SourceAbsentError
from collectors.nvml.values import NvmlError
from collectors.samples import Rejected
from tests.collectors.nvml_machines import Watched, activity, dgx, mig_uuid, seven
from tests.nvml_shim.machine import h100, uuid

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.nvml_shim.machine import Machine


@pytest.fixture
def watched(machine: Machine) -> Iterator[Watched]:
    machine.describe(dgx(3))
    made = Watched()
    yield made
    made.nvml.close()
    assert machine.library.shim_samples_alive() == 0
    assert machine.library.shim_event_sets_alive() == 0


def states(watched: Watched, seconds: float = 1) -> list[str]:
    return [sample.state for sample in watched.visit(seconds).samples]


@pytest.mark.parametrize(("code", "state"), [("!15", "lost"), ("!16", "needs_reset")])
def test_dcgm_exporter_348_a_board_that_cannot_be_read_stays_as_a_row(
    machine: Machine, watched: Watched, code: str, state: str
) -> None:
    watched.visit()
    machine.change({"1.ALL": code})
    rows = watched.rows()
    row = rows[uuid(1)]
    assert [each.state for each in rows.values()] == ["ok", state, "ok"]
    assert (row.model, row.pci_bus_id, row.serial) == ("NVIDIA H100 80GB HBM3", "00000000:1C:00.0", "1650923000001")
    assert (row.power_watts, row.memory_total_bytes, row.temperature_celsius, row.processes) == (None,) * 4
    assert rows[uuid(2)].sm_ratio == 0.415


def test_a_lost_board_is_looked_for_once_a_minute_and_taken_back(machine: Machine, watched: Watched) -> None:
    watched.visit()
    machine.change({"1.ALL": "!15", "1.handle": "!15"})
    watched.visit()
    asked = machine.asked("1.handle")
    for _ in range(59):
        assert states(watched) == ["ok", "lost", "ok"]
    assert machine.asked("1.handle") == asked
    assert states(watched) == ["ok", "lost", "ok"]
    assert machine.asked("1.handle") == asked + 1
    machine.change({"1.ALL": None, "1.handle": None, "1.temp_c": 33})
    assert states(watched, 59) == ["ok", "lost", "ok"]
    row = watched.rows()[uuid(1)]
    assert (row.state, row.temperature_celsius) == ("ok", 33), "a board that comes back is read whole at once"
    assert watched.rows()[uuid(1)].sm_ratio == 0.415


def test_a_board_that_is_listed_no_more_is_lost_and_not_forgotten(machine: Machine, watched: Watched) -> None:
    watched.visit()
    machine.change({"*.count": 2})
    rows = watched.rows()
    assert [row.state for row in rows.values()] == ["ok", "ok", "lost"]
    assert list(rows) == [uuid(0), uuid(1), uuid(2)]
    machine.change({"*.count": 3})
    assert states(watched) == ["ok", "ok", "ok"], "a count that changed is looked at without delay"


def test_jobstats_34_boards_that_change_places_keep_their_names(machine: Machine, watched: Watched) -> None:
    watched.visit()
    first, second = h100(0), h100(1)
    swapped = {f"0.{key[2:]}": value for key, value in second.items()} | {
        f"1.{key[2:]}": value for key, value in first.items()
    }
    machine.change({**swapped, "*.count": 2, "0.power_mw": 222_000})
    rows = watched.rows()
    assert rows[uuid(1)].power_watts == 222.0
    assert [rows[uuid(number)].state for number in range(3)] == ["ok", "ok", "lost"]
    for _ in range(15):
        rows = watched.rows()
    assert (rows[uuid(1)].slot, rows[uuid(0)].slot) == ("0", "1")


def test_a_board_that_is_added_is_seen(machine: Machine, watched: Watched) -> None:
    watched.visit()
    machine.change({**h100(3), **activity("3"), "*.count": 4})
    assert states(watched) == ["ok"] * 4
    machine.change({"*.events": "3:31"})
    assert [event.uuid for event in watched.visit().events] == [uuid(3)]


def test_a_board_lost_before_the_start_is_counted_as_one_without_a_name(machine: Machine, watched: Watched) -> None:
    machine.change({"1.ALL": "!15", "1.handle": "!15"})
    reading = watched.visit()
    assert [sample.uuid for sample in reading.samples] == [uuid(0), uuid(2)]
    assert reading.rejected == (Rejected("no_uuid", 1),)
    machine.change({"1.ALL": None, "1.handle": None})
    assert len(watched.visit(61).samples) == 3


@pytest.mark.parametrize("code", [2, 6])
def test_a_handle_that_is_not_valid_any_more_is_looked_up_anew(machine: Machine, watched: Watched, code: int) -> None:
    """After a hot removal the driver does not know the handle; the board is not in its list either."""
    watched.visit()
    machine.change({"2.ALL": f"!{code}", "*.count": 2})
    assert states(watched) == ["ok", "ok", "lost"]
    machine.change({"2.ALL": None, "*.count": 3})
    assert states(watched) == ["ok", "ok", "ok"]


def test_one_call_that_refuses_a_good_handle_is_that_calls_trouble(machine: Machine, watched: Watched) -> None:
    watched.visit()
    machine.change({"2.mem_total": "!2"})
    asked = machine.asked("2.handle")
    for _ in range(14):
        row = watched.rows()[uuid(2)]
        assert (row.state, row.memory_used_bytes, row.power_watts) == ("ok", None, 412.345)
    assert machine.asked("2.handle") == asked + 1, "the list is not read again at each visit for it"
    for _ in range(14):
        watched.visit()
    assert machine.asked("2.handle") == asked + 2, "but once in a while, as the board may truly go"


@pytest.mark.parametrize("code", [19, 23, 27, 999])
def test_three_strikes_and_a_board_is_degraded(machine: Machine, watched: Watched, code: int) -> None:
    watched.visit()
    machine.change({"1.power_mw": f"!{code}"})
    assert [states(watched)[1] for _ in range(3)] == ["ok", "ok", "degraded"]
    reading = watched.visit()
    assert reading.samples[1].power_watts is None
    assert reading.samples[1].busy_ratio == 0.97
    assert reading.rejected == (Rejected("driver_error", 1),)
    machine.change({"1.power_mw": 1})
    assert states(watched)[1] == "ok"


def test_two_strikes_are_none(machine: Machine, watched: Watched) -> None:
    for _ in range(2):
        machine.change({"1.power_mw": "!999"})
        assert [states(watched)[1] for _ in range(2)] == ["ok", "ok"]
        machine.change({"1.power_mw": 1})
        assert states(watched)[1] == "ok"


def test_a_corrupted_inforom_degrades_a_board_and_the_rest_is_read(machine: Machine, watched: Watched) -> None:
    machine.change({"1.serial": "!14"})
    row = watched.rows()[uuid(1)]
    assert (row.state, row.serial, row.model, row.power_watts) == ("degraded", None, "NVIDIA H100 80GB HBM3", 412.345)
    machine.change({"1.serial": "1"})
    assert [states(watched)[1] for _ in range(15)][-2:] == ["degraded", "ok"]


@pytest.mark.parametrize(
    ("facts", "state", "action"),
    [
        ({"1.fi230": "1:1"}, "needs_reset", "gpu_reset"),
        ({"1.fi230": "1:4"}, "needs_reset", "drain_and_reset"),
        ({"1.fi230": "1:2"}, "degraded", "node_reboot"),
        ({"1.fi230": "1:77"}, "degraded", "77"),
        ({"1.remapped": "0 1 0 1"}, "degraded", None),
        ({"1.remapped": "0 1 1 0", "1.fi230": "1:0"}, "ok", "none"),
    ],
)
def test_what_the_driver_asks_for_is_the_state(
    machine: Machine, watched: Watched, facts: dict[str, object], state: str, action: str | None
) -> None:
    machine.change(facts)
    row = watched.rows()[uuid(1)]
    assert (row.state, row.recovery_action, row.power_watts) == (state, action, 412.345)


def test_without_permission_a_value_is_unknown_and_counted(machine: Machine, watched: Watched) -> None:
    machine.change({"1.power_mw": "!4"})
    reading = watched.visit()
    assert (reading.samples[1].power_watts, reading.samples[1].state) == (None, "ok")
    assert reading.rejected == (Rejected("no_permission", 1),)


@pytest.mark.parametrize(("key", "code"), [("*.init", 9), ("*.init", 12), ("*.event_set", 9)])
def test_without_a_driver_the_source_is_absent_and_may_come(
    machine: Machine, watched: Watched, key: str, code: int
) -> None:
    machine.change({key: f"!{code}"})
    for _ in range(2):
        with pytest.raises(SourceAbsentError, match="no NVIDIA driver"):
            watched.visit()
    machine.change({key: None})
    assert states(watched) == ["ok"] * 3


@pytest.mark.parametrize("boards", [2, 3])
def test_a_driver_that_is_unloaded_and_loaded_again(machine: Machine, watched: Watched, boards: int) -> None:
    watched.visit()
    machine.change({"0.power_mw": "!9"})
    with pytest.raises(SourceAbsentError):
        watched.visit()
    assert machine.library.shim_samples_alive() == 0
    machine.change({"0.power_mw": 1, "*.count": boards, "*.driver": "570.1"})
    rows = watched.rows()
    assert [row.state for row in rows.values()] == ["ok", "ok", "ok" if boards == 3 else "lost"]
    assert rows[uuid(0)].driver == "570.1"
    machine.change({"*.events": "0:31"})
    assert [event.code for event in watched.visit().events] == [31]


def test_mozilla_translations_1167_a_driver_replaced_underneath_needs_a_new_process(
    machine: Machine, watched: Watched
) -> None:
    watched.visit()
    machine.change({"*.count": "!18"})
    with pytest.raises(RestartNeededError, match="was replaced"):
        watched.visit()
    machine.change({"*.init": "!18"})
    with pytest.raises(RestartNeededError):
        watched.visit()


def test_a_driver_that_does_not_say_how_many_devices_there_are(machine: Machine, watched: Watched) -> None:
    machine.change({"*.count": "!999"})
    with pytest.raises(NvmlError, match="how many"):
        watched.visit()
    machine.change({"*.count": 3})
    assert states(watched) == ["ok"] * 3
    machine.change({"*.count": "!999"})
    assert states(watched) == ["ok"] * 3, "the devices that are known can be read all the same"


@pytest.mark.parametrize("key", ["1.ALL", "1.power_mw"], ids=["at once", "only when it is read"])
def test_the_instances_of_a_lost_board_are_lost_with_it(machine: Machine, watched: Watched, key: str) -> None:
    machine.change(seven(1))
    watched.visit()
    machine.change({key: "!15"})
    rows = watched.rows()
    lost = [device for device, row in rows.items() if row.state == "lost"]
    assert lost == [uuid(1), *(mig_uuid(1, slot) for slot in range(7))]
    assert machine.library.shim_samples_alive() == 2 * 2
    row = rows[mig_uuid(1, 3)]
    assert (row.parent_uuid, row.slot, row.compute_slices, row.profile_hint) == (uuid(1), "10", 1, "1g.10gb")
    assert (row.memory_total_bytes, row.sm_ratio) == (None, None)
    for _ in range(3):
        assert [row.state for row in watched.rows(61).values()].count("lost") == 8, "looked for, and lost again"
    machine.change({key: 1 if key == "1.power_mw" else None})
    rows = watched.rows(61)
    assert {row.state for row in rows.values()} == {"ok"}
    assert len(rows) == 3 + 7
