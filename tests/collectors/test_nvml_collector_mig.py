"""Boards that are cut into instances, and cut anew while they are watched."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from collectors.nvml.instance import profile
from collectors.nvml.values import MigAttributes
from collectors.samples import DeviceProcess
from tests.collectors.nvml_machines import START_NS, Watched, activity, cut, dgx, instance, mig_uuid, seven
from tests.nvml_shim.machine import GIB, uuid

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.nvml_shim.machine import Machine


@pytest.fixture
def watched(machine: Machine) -> Iterator[Watched]:
    machine.describe({**dgx(2), **seven(1)})
    made = Watched()
    yield made
    made.nvml.close()
    assert machine.library.shim_samples_alive() == 0


def slots(watched: Watched) -> list[str | None]:
    return [sample.slot for sample in watched.visit().samples if sample.kind == "mig"]


def test_each_instance_is_a_row_of_its_own(watched: Watched) -> None:
    watched.visit()
    rows = watched.rows()
    assert [row.kind for row in rows.values()] == ["gpu", "gpu", *["mig"] * 7]
    row = rows[mig_uuid(1, 2)]
    assert (row.parent_uuid, row.slot, row.gpu_instance_id, row.compute_instance_id) == (uuid(1), "9", 9, 0)
    assert (row.compute_slices, row.profile_hint, row.state, row.quality) == (1, "1g.10gb", "ok", ())
    assert (row.model, row.pci_bus_id, row.minor_number) == ("NVIDIA H100 80GB HBM3", "00000000:1C:00.0", 1)
    assert (row.sm_ratio, row.occupancy_ratio, row.tensor_ratio, row.dram_ratio) == (0.2, 0.2025, 0.125, 0.77)


def test_dcgm_exporter_714_the_place_of_an_instance_is_told_where_it_may_be(machine: Machine, watched: Watched) -> None:
    """To root; to others it stays unknown, and each instance is asked for once."""
    machine.change({"1.gi7.placement": "0 1", "1.gi8.placement": "6 1", "1.gi9.handle": "!4"})
    rows = watched.rows()
    assert [rows[mig_uuid(1, slot)].placement_start for slot in range(4)] == [0, 6, None, None]
    assert {rows[uuid(0)].placement_start, rows[uuid(1)].placement_start} == {None}
    for _ in range(3):
        rows = watched.rows()
    assert (rows[mig_uuid(1, 1)].placement_start, machine.asked("1.gi8.placement")) == (6, 1)


def test_dcgm_exporter_216_there_is_no_utilisation_under_mig(machine: Machine, watched: Watched) -> None:
    """Not of an instance and not of its board, even where the driver answers 0 instead of `not supported`."""
    for answer in ("0", "!3"):
        machine.change({"1.util_gpu": answer})
        rows = watched.rows()
        assert {rows[device].busy_ratio for device in (uuid(1), mig_uuid(1, 0))} == {None}
        assert rows[uuid(0)].busy_ratio == 0.97


def test_dcgm_exporter_380_an_instance_has_memory_of_its_own(machine: Machine, watched: Watched) -> None:
    machine.change({"1.mig4.mem_used": 7 * GIB})
    row = watched.rows()[mig_uuid(1, 4)]
    assert (row.memory_total_bytes, row.memory_used_bytes) == (10 * GIB, 7 * GIB)


def test_dcgm_exporter_317_power_and_energy_are_the_boards(watched: Watched) -> None:
    rows = watched.rows()
    assert sum(row.power_watts or 0 for row in rows.values()) == pytest.approx(2 * 412.345)
    assert [row.energy_millijoules for row in rows.values() if row.kind == "mig"] == [None] * 7


@pytest.mark.parametrize(
    ("name", "size", "board_gib", "expected"),
    [
        ("NVIDIA H100 80GB HBM3 MIG 1g.10gb+me", (1, 1, 9.6), 80, "1g.10gb+me"),
        (None, (1, 1, 9.6), 80, "1g.10gb"),
        (None, (3, 3, 39.4), 80, "3g.40gb"),
        (None, (3, 1, 39.4), 80, "1c.3g.40gb"),
        (None, (7, 7, 78.75), 80, "7g.80gb"),
        (None, (1, 1, 4.75), 40, "1g.5gb"),
        (None, (2, 2, 9.75), 40, "2g.10gb"),
        ("NVIDIA A100-SXM4-40GB", (7, 7, 39.25), 40, "7g.40gb"),
        (None, (1, 1, 9.6), None, None),
    ],
)
def test_dcgm_exporter_544_the_profile_is_what_nvml_says(
    name: str | None, size: tuple[int, int, float], board_gib: int | None, expected: str | None
) -> None:
    gpu_slices, compute_slices, gib = size
    attributes = MigAttributes(16, gpu_slices, compute_slices, round(gib * GIB))
    assert profile(name, attributes, board_gib and board_gib * GIB - 10 * 2**20) == expected


@pytest.mark.parametrize("by_event", [True, False], ids=["told by an event", "a handle that is gone"])
def test_gpu_operator_2482_a_board_cut_anew_is_listed_at_once(
    machine: Machine, watched: Watched, *, by_event: bool
) -> None:
    watched.visit()
    gone = {f"1.mig{slot}.uuid": None for slot in range(7)}
    new = {**instance(1, 0, 1, (64, 4, 4, 40)), **instance(1, 1, 2, (60, 3, 3, 40)), **activity("1.gi1", 90)}
    new = {key: value for key, value in new.items() if not key.endswith(".uuid")} | {
        "1.mig0.uuid": "MIG-four",
        "1.mig1.uuid": "MIG-three",
    }
    machine.change({**gone, **new} | ({"*.events": "1:0:256"} if by_event else {}))
    rows = watched.rows()
    assert [(row.uuid, row.slot) for row in rows.values() if row.kind == "mig"] == [
        ("MIG-four", "1"),
        ("MIG-three", "2"),
    ]
    assert machine.library.shim_samples_alive() == 2 * (2 + 2), "the meters of what went are closed"
    assert watched.rows()["MIG-four"].sm_ratio == 0.9


def test_an_instance_more_is_seen_with_the_next_slow_visit(machine: Machine, watched: Watched) -> None:
    machine.change({"1.mig6.uuid": None})
    assert len(slots(watched)) == 6
    machine.change({"1.mig6.uuid": mig_uuid(1, 6)})
    assert [len(slots(watched)) for _ in range(15)] == [*[6] * 14, 7]


def test_the_mode_itself_is_watched_at_each_visit(machine: Machine, watched: Watched) -> None:
    machine.change({"1.procs": "7:1"})
    watched.visit()
    machine.change({"1.mig_mode": 0, "1.util_gpu": 55} | {f"1.mig{slot}.uuid": None for slot in range(7)})
    rows = watched.rows()
    assert [row.kind for row in rows.values()] == ["gpu", "gpu"]
    assert rows[uuid(1)].busy_ratio == 0.55
    machine.change({"1.putil": f"7:{START_NS // 1000 + 10_000_000}:50:0:0:0"})
    for _ in range(15):
        rows = watched.rows()
    shares = [each.sm_ratio for each in rows[uuid(1)].processes or ()]
    assert shares == [0.5], "what the board did not support while it was cut is asked for again"
    machine.change(seven(0) | seven(1))
    assert len(slots(watched)) == 14


def test_a_mode_that_is_not_told_just_now_changes_nothing(machine: Machine, watched: Watched) -> None:
    watched.visit()
    machine.change({"1.mig_mode": "!999"})
    assert len(slots(watched)) == 7


def test_instances_do_not_pile_up_in_memory(machine: Machine, watched: Watched) -> None:
    watched.visit()
    calls = watched.nvml._port._calls._lasting  # type: ignore[union-attr]  # it was visited
    before = len(calls)
    for turn in range(20):
        machine.change({"1.mig0.uuid": f"MIG-{turn}", "*.events": " ".join(["1:0:256"] * (turn + 1))})
        watched.visit()
    assert len(watched.nvml._port._calls._lasting) == before  # type: ignore[union-attr]  # it was visited


def test_an_instance_more_is_seen_at_once_when_the_driver_tells(machine: Machine, watched: Watched) -> None:
    machine.change({"1.mig6.uuid": None})
    assert len(slots(watched)) == 6
    machine.change({"1.mig6.uuid": mig_uuid(1, 6), "*.events": "1:0:256"})
    assert len(slots(watched)) == 7


@pytest.mark.parametrize("key", ["1.mig3.gi", "1.mig_max"])
def test_while_the_list_cannot_be_read_whole_the_old_one_stands(machine: Machine, watched: Watched, key: str) -> None:
    machine.change({"1.mig6.uuid": None})
    assert len(slots(watched)) == 6
    machine.change({"1.mig6.uuid": mig_uuid(1, 6), "*.events": "1:0:256", key: "!999"})
    assert [len(slots(watched)) for _ in range(2)] == [6, 6]
    machine.change({key: 7 if key == "1.mig_max" else 10})
    assert len(slots(watched)) == 7, "it is asked for at each visit until it can be read"


def test_compute_instances_that_share_a_gpu_instance_share_its_meter(machine: Machine, watched: Watched) -> None:
    machine.change({f"1.mig{slot}.uuid": None for slot in range(7)})
    machine.change(
        {**cut(1), **activity("1.gi1")}
        | instance(1, 0, 1, (20, 3, 1, 40), ci=0)
        | instance(1, 1, 1, (20, 3, 2, 40), ci=1)
        | {"1.mig0.uuid": mig_uuid(1, 0), "1.mig1.uuid": mig_uuid(1, 1)}
    )
    watched.visit()
    one, two = (row for row in watched.visit().samples if row.kind == "mig")
    assert (one.slot, two.slot, one.compute_instance_id, two.compute_instance_id) == ("1", "1", 0, 1)
    assert (one.profile_hint, two.profile_hint) == ("1c.3g.40gb", "2c.3g.40gb")
    assert (one.sm_ratio, one.quality, two.quality) == (0.415, ("estimated",), ("estimated",))


def test_a_process_stands_in_the_row_of_its_instance(machine: Machine, watched: Watched) -> None:
    machine.change({"1.procs": "4242:1000:7:0 4243:2000:9:0 4244:3000"})
    rows = watched.rows()
    assert rows[uuid(1)].processes == (DeviceProcess(4244, 3000),)
    assert rows[mig_uuid(1, 0)].processes == (DeviceProcess(4242, 1000, None, 7, 0),)
    assert rows[mig_uuid(1, 2)].processes == (DeviceProcess(4243, 2000, None, 9, 0),)
    assert rows[mig_uuid(1, 1)].processes == ()
    machine.change({"1.procs": "!4"})
    for _ in range(15):
        rows = watched.rows()
    assert {rows[mig_uuid(1, slot)].processes for slot in range(7)} == {None}, "not told is not nobody"


def test_an_instance_in_trouble_degrades_its_board(machine: Machine, watched: Watched) -> None:
    watched.visit()
    machine.change({"1.mig2.mem_total": "!999"})
    states = [watched.rows()[uuid(1)].state for _ in range(3)]
    assert states == ["ok", "ok", "degraded"]


def test_an_impossible_value_of_an_instance_is_its_own(machine: Machine, watched: Watched) -> None:
    machine.change({"1.gi9.gpm2": 1980})
    watched.visit()
    rows = watched.rows()
    assert (rows[mig_uuid(1, 2)].sm_ratio, rows[mig_uuid(1, 2)].quality) == (None, ("rejected",))
    assert (rows[mig_uuid(1, 3)].quality, rows[uuid(1)].quality) == ((), ())
