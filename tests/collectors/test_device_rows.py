"""Rows of what a device is: one when it is new, one when it changes, none for its readings."""

from __future__ import annotations

from typing import Any

from collectors.rows.device_rows import DeviceRows
from collectors.samples import DeviceSample
from fleet.telemetry import TEXT_LIMIT, DeviceRow


def gpu(uuid: str | None = "GPU-a", **values: Any) -> DeviceSample:
    return DeviceSample("gpu", uuid, **values)


def test_a_new_device_is_told_once() -> None:
    rows = DeviceRows()
    sample = DeviceSample(
        "mig", None, parent_uuid="GPU-a", slot="7", vendor="nvidia", model="H100", architecture="hopper",
        driver="580.1", pci_bus_id="00000000:1B:00.0", serial="S", profile_hint="1g.10gb",
        memory_total_bytes=10 << 30, busy_ratio=0.4,
    )  # fmt: skip
    assert rows.changed(60, [sample]) == (
        DeviceRow(
            device="GPU-a/gi7", seen_from_second=60, kind="mig", parent="GPU-a", slot="7", vendor="nvidia",
            model="H100", architecture="hopper", driver="580.1", pci_bus_id="00000000:1B:00.0", serial="S",
            profile="1g.10gb", memory_mebibytes=10_240,
        ),
    )  # fmt: skip
    assert rows.changed(61, [sample]) == ()


def test_only_what_a_device_is_makes_a_row() -> None:
    rows = DeviceRows()
    rows.changed(0, [gpu(driver="580.1", busy_ratio=0.1)])
    assert rows.changed(1, [gpu(driver="580.1", busy_ratio=0.9, state="degraded")]) == ()
    (new,) = rows.changed(2, [gpu(driver="590.2")])
    assert (new.driver, new.seen_from_second) == ("590.2", 2)


def test_what_is_not_said_is_as_before() -> None:
    """A page that names no driver, a lost device without memory: nothing has changed, and nothing is unlearnt."""
    rows = DeviceRows()
    rows.changed(0, [gpu(driver="580.1", memory_total_bytes=80 << 30)])
    assert rows.changed(1, [gpu(state="lost")]) == ()
    (moved,) = rows.changed(2, [gpu(slot="5")])
    assert (moved.slot, moved.driver, moved.memory_mebibytes) == ("5", "580.1", 81_920)


def test_a_device_that_comes_again_is_told_again() -> None:
    rows = DeviceRows()
    rows.changed(0, [gpu()])
    rows.changed(1, [])
    assert [row.seen_from_second for row in rows.changed(2, [gpu()])] == [2]


def test_texts_from_outside_are_bounded_and_of_one_line() -> None:
    (row,) = DeviceRows().changed(0, [gpu(model="A\n" * 500, serial="\x1b[2J")])
    assert row.model is not None
    assert (len(row.model), row.model[:6]) == (TEXT_LIMIT, "A\\nA\\n")
    assert row.serial == "\\x1b[2J"


def test_devices_that_cannot_be_named_make_no_row() -> None:
    assert DeviceRows().changed(0, [gpu(None), gpu("G" * (TEXT_LIMIT + 1))]) == ()


def test_a_device_told_twice_at_once_counts_as_told_first() -> None:
    assert [row.slot for row in DeviceRows().changed(0, [gpu(slot="1"), gpu(slot="2")])] == ["1"]
