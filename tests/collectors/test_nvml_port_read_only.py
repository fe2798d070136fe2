"""The port never writes to a GPU: no call in its source could, and no other call gets through."""

from __future__ import annotations

import ast
import ctypes
import re

import pynvml
import pytest

from collectors.nvml import calls
from tests.nvml_shim.machine import ROOT

SOURCES = sorted((ROOT / "collectors" / "nvml").glob("*.py"))
NAME = re.compile(r"nvml[A-Z]\w*")
READS = re.compile(
    r"nvml(Init|Shutdown|(Device|System|GpuInstance)Get\w+|DeviceRegisterEvents|EventSet(Create|Free|Wait_v2)"
    r"|Gpm(QueryDeviceSupport|Sample(Alloc|Free|Get)|MigSampleGet|MetricsGet))"
)
WRITES = re.compile(
    r"Set(?!Create|Free|Wait)|Clear|Reset|Restrict|Modify|Remove|Freeze|Power(On|Off)|Create(?!$)|Destroy"
)


def names_in(text: str) -> set[str]:
    """Every NVML function that a source names, as an attribute, a name or a text (also the start of an f-string)."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        words = {ast.Attribute: "attr", ast.Name: "id", ast.Constant: "value"}.get(type(node))
        if words and NAME.fullmatch(str(getattr(node, words))):
            found.add(str(getattr(node, words)))
    return found


def test_every_call_in_the_source_is_allowed() -> None:
    used = {name for path in SOURCES for name in names_in(path.read_text(encoding="utf-8"))}
    used.discard("nvmlReturn")  # a member of two structs
    bases = {name.removesuffix("_v2").removesuffix("_v3") for name in calls.READ_ONLY_CALLS}
    assert used
    assert {name for name in used if name not in calls.READ_ONLY_CALLS and name not in bases} == set()


def test_every_allowed_call_only_reads() -> None:
    assert [name for name in calls.READ_ONLY_CALLS if not READS.fullmatch(name) or WRITES.search(name)] == []


@pytest.mark.parametrize(
    "name",
    ["nvmlDeviceSetPowerManagementLimit", "nvmlDeviceClearEccErrorCounts", "nvmlDeviceResetGpuLockedClocks",
     "nvmlDeviceSetMigMode", "nvmlGpmSetStreamingEnabled", "nvmlDeviceClearFieldValues"],
)  # fmt: skip
def test_a_call_that_writes_is_seen_and_refused(name: str) -> None:
    assert names_in(f"binding.{name}(handle)") == {name}
    assert names_in(f"read(uuid, {name!r}, handle)") == {name}
    assert not READS.fullmatch(name) or WRITES.search(name)
    with pytest.raises(ValueError, match="only read"):
        calls.Calls(pynvml).read(None, name)


def test_the_binding_is_reached_by_name_in_one_place() -> None:
    """So the list is the only way: the module is handed to nothing else."""
    text = "".join(path.read_text(encoding="utf-8") for path in SOURCES)
    assert len(re.findall(r"^\s*(import pynvml|from pynvml)", text, re.MULTILINE)) == 1
    assert set(re.findall(r"self\._binding\b\.?(\w*)", text)) == {"", "NVMLError", "NVMLLibraryMismatchError"}
    assert len(re.findall(r"getattr\(self\._binding, ", text)) == 2  # a call on the list, an empty struct


def test_the_structs_have_the_sizes_that_the_library_writes() -> None:
    sizes = {
        "c_nvmlProcessInfo_v3_t": 24,
        "c_nvmlFieldValue_t": 40,
        "c_nvmlGpmMetric_t": 40,
        "c_nvmlGpmMetricsGet_t": 19_104,
        "c_nvmlEventData_t": 32,
        "c_nvmlMemory_v2_t": 40,
        "c_nvmlProcessUtilizationSample_t": 32,
        "nvmlPciInfo_t": 68,
        "c_nvmlDeviceAttributes": 40,
        "c_nvmlGpuInstanceInfo_t": 24,
    }
    assert {name: ctypes.sizeof(getattr(pynvml, name)) for name in sizes} == sizes
