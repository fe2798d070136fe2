"""What crosses from a collector's process arrives as it was."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, get_type_hints

from hypothesis import given
from hypothesis import strategies as st

from collectors.samples import Claim, DeviceEvent, DeviceProcess, DeviceSample, Owner, Reading, Rejected
from collectors.worker import packed, unpacked

VALUES = {
    int | None: st.none() | st.integers(),
    float | None: st.none() | st.floats(allow_nan=False),
    str | None: st.none() | st.text(),
    bool | None: st.none() | st.booleans(),
    tuple[int, ...] | None: st.none() | st.lists(st.integers()).map(tuple),
    tuple[DeviceProcess, ...] | None: st.none()
    | st.lists(st.builds(DeviceProcess, pid=st.integers(), sm_ratio=st.none() | st.floats(0, 1))).map(tuple),
    tuple[Owner, ...]: st.lists(st.builds(Owner, pod=st.none() | st.text())).map(tuple),
}
HINTS = get_type_hints(DeviceSample)
SAMPLES = st.builds(
    DeviceSample,
    **{
        field.name: VALUES[HINTS[field.name]] if HINTS[field.name] in VALUES else st.from_type(HINTS[field.name])
        for field in fields(DeviceSample)
        if field.name != "quality"
    },
    quality=st.just(("stale",)),
)


@given(st.lists(SAMPLES, max_size=3), st.booleans())
def test_a_reading_arrives_as_it_was(samples: list[DeviceSample], lists_holders_only: Any) -> None:
    reading = Reading(
        tuple(samples),
        (DeviceEvent(1, "GPU-1", "xid", 79, severity="critical"),),
        (Rejected("range", 3),),
        (Claim("GPU-1::2", "nvidia.com/gpu", Owner(pod="llm-0"), "kubelet"),),
        ("GPU-1",),
        lists_holders_only,
    )
    assert unpacked(packed(reading)) == reading
    assert unpacked(packed(Reading())) == Reading()
