"""The canonical row: its lists of fields name fields, and its key is what stays."""

from __future__ import annotations

from dataclasses import fields

from collectors.samples import COUNTERS, IDENTITY, DeviceSample

NAMES = [field.name for field in fields(DeviceSample)]


def test_the_lists_of_fields_name_fields() -> None:
    assert [name for name in (*COUNTERS, *IDENTITY) if name not in NAMES] == []
    assert set(COUNTERS).isdisjoint(IDENTITY)


def test_the_contract_of_read_is_kept() -> None:
    """These names are promised by the documentation; others may be added, none renamed."""
    promised = """uuid parent_uuid slot node owner busy_ratio sm_ratio occupancy_ratio tensor_ratio dram_ratio
        memory_used_bytes power_watts energy_millijoules state quality"""
    assert [name for name in promised.split() if name not in NAMES] == []


def test_all_readings_are_unknown_until_said() -> None:
    sample = DeviceSample("gpu", "GPU-a")
    assert [name for name in (*COUNTERS, "busy_ratio", "power_watts") if getattr(sample, name) is not None] == []


def test_the_key_does_not_hang_on_what_may_change() -> None:
    assert DeviceSample("gpu", "GPU-a", slot="0").key == DeviceSample("gpu", "GPU-a", slot="5").key
    instance = DeviceSample("mig", None, parent_uuid="GPU-a", slot="1")
    assert instance.key == DeviceSample("mig", "MIG-x", parent_uuid="GPU-a", slot="1").key
    assert instance.key != DeviceSample("gpu", "GPU-a").key


def test_compute_instances_of_one_gpu_instance_are_two() -> None:
    first, second = (
        DeviceSample("mig", f"MIG-{n}", parent_uuid="GPU-a", slot="1", compute_instance_id=n) for n in range(2)
    )
    assert first.key != second.key
    assert first.key == DeviceSample("mig", None, parent_uuid="GPU-a", slot="1").key, "as a page knows it"
