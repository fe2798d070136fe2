"""The table of DCGM fields: every name once, every target a field, and sentinels told from values."""

from __future__ import annotations

from collections import Counter
from dataclasses import fields
from typing import TYPE_CHECKING

import pytest

from collectors.dcgm.fields import FIELDS, XID_IN_WINDOW, blank_reason, field_named, is_dcgm
from collectors.samples import COUNTERS, DeviceSample

if TYPE_CHECKING:
    from collectors.dcgm.fields import Field

BY_TARGET = {field.to: field for field in FIELDS}


def test_each_id_name_and_target_stands_once() -> None:
    for values in ([f.field_id for f in FIELDS], [n for f in FIELDS for n in f.names], [f.to for f in FIELDS]):
        assert [value for value, count in Counter(values).items() if count > 1] == []


def test_each_target_is_a_field_of_a_sample() -> None:
    known = {field.name for field in fields(DeviceSample)}
    assert [field.to for field in FIELDS if field.to not in known and not field.to.endswith("_part")] == []


def test_what_grows_without_end_is_a_counter() -> None:
    assert [field.to for field in FIELDS if field.is_wide and field.to not in COUNTERS] == []


@pytest.mark.parametrize("field", FIELDS, ids=lambda field: field.to)
def test_every_name_leads_to_its_field(field: Field) -> None:
    for name in field.names:
        for full in [name] if name.startswith("dcgm_") else [f"DCGM_FI_DEV_{name}", f"DCGM_FI_PROF_{name}"]:
            assert field_named(full) is field
            assert is_dcgm(full)


def test_other_names_lead_nowhere() -> None:
    assert field_named("DCGM_EXP_XID_ERRORS_COUNT") is XID_IN_WINDOW
    assert field_named("dcgm_fi_prof_sm_active") is BY_TARGET["sm_ratio"]
    for name in ("GPU_UTIL", "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL", "DCGM_EXP_CLOCK_EVENTS_COUNT", "vllm:x", ""):
        assert field_named(name) is None


@pytest.mark.parametrize("field", FIELDS, ids=lambda field: field.to)
def test_a_value_in_range_is_no_sentinel(field: Field) -> None:
    for value in (field.low, field.high if not field.is_wide else 2.0**62):
        assert blank_reason(field, value) is None or value >= 2**31 - 16


@pytest.mark.parametrize("field", FIELDS, ids=lambda field: field.to)
def test_the_64_bit_sentinel_is_blank_in_every_field(field: Field) -> None:
    assert blank_reason(field, float(9223372036854775794)) == "blank"
