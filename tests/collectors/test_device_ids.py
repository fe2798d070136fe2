"""What ids of claims mean, spelled as each scheduler extension spells them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.holders.device_ids import DeviceIds, Resolved, pci_address, resolve
from collectors.samples import DeviceSample
from tests.collectors.boards import claim, gpu, mig

BOARDS = [gpu(0), gpu(1), gpu(2)]
MIGS = [mig(BOARDS[1], 7), mig(BOARDS[1], 2, "3g"), mig(BOARDS[2], 7), mig(BOARDS[2], 8)]
NODE = [*BOARDS, *MIGS]
FIRST, SECOND, THIRD = (board.uuid or "" for board in BOARDS)
DRA = "dra:gpu.nvidia.com"


def meant(device: str, resource: str = "nvidia.com/gpu", node: list[DeviceSample] = NODE) -> Resolved:
    return resolve(claim(device, resource=resource), node)


def reason(device: str, resource: str = "nvidia.com/gpu", node: list[DeviceSample] = NODE) -> str | None:
    found = meant(device, resource, node)
    assert found.device is None
    return found.reason


def test_whole_devices_instances_and_shares_by_uuid() -> None:
    assert meant(FIRST) == Resolved(FIRST)
    assert meant(FIRST.upper()) == Resolved(FIRST)
    assert meant(f"{FIRST}::3", "nvidia.com/gpu.shared") == Resolved(FIRST, replica=3)
    assert meant(MIGS[0].uuid or "", "nvidia.com/mig-1g.10gb") == Resolved(MIGS[0].uuid, SECOND)
    assert meant(f"{MIGS[1].uuid}::0") == Resolved(MIGS[1].uuid, SECOND, 0)


def test_an_instance_as_old_drivers_name_it() -> None:
    assert meant(f"MIG-{SECOND}/7/0") == Resolved(MIGS[0].uuid, SECOND)
    assert meant(f"MIG-{SECOND}/7/0::1") == Resolved(MIGS[0].uuid, SECOND, 1)
    assert reason(f"MIG-{SECOND}/9/0") == "unknown_device"
    parts = [mig(BOARDS[0], 1, "3g", uuid=f"MIG-{n}", compute_instance_id=n) for n in range(3)]
    assert meant(f"MIG-{FIRST}/1/2", node=[BOARDS[0], *parts]).device == "MIG-2"


def test_dcgm_exporter_92_gke_counts_by_minor_number() -> None:
    assert meant("nvidia7") == Resolved(FIRST)
    assert meant("nvidia7/vgpu2") == Resolved(FIRST, replica=2)
    assert meant("nvidia6/gi7") == Resolved(MIGS[0].uuid, SECOND)
    assert meant("nvidia6/gi7/vgpu1") == Resolved(MIGS[0].uuid, SECOND, 1)
    assert reason("nvidia6/gi9") == "unknown_device"
    assert reason("nvidia9") == "unknown_device"


def test_jobstats_34_minor_number_is_not_the_index() -> None:
    """Board 0 of the driver's list has minor number 7: `nvidia0` is no board here, least of all the first."""
    assert reason("nvidia0") == "unknown_device"
    assert reason("gpu-0", DRA) == "unknown_device"


@pytest.mark.parametrize("text", ["0", "1", "gpu0", "0::1"])
def test_slurm_job_exporter_63_an_index_is_no_identity(text: str) -> None:
    assert reason(text) == "index_is_no_identity"


def test_dra_devices_by_minor_number() -> None:
    assert meant("node-a/gpu-7", DRA) == Resolved(FIRST)
    assert meant(f"node-a/{FIRST}", DRA) == Resolved(FIRST)
    assert meant("k8s.gpu.nvidia.com/device=gpu-7", DRA) == Resolved(FIRST)
    assert meant(f"nvidia.com/gpu={MIGS[0].uuid}", DRA) == Resolved(MIGS[0].uuid, SECOND)


def test_dra_instances_by_size_where_there_is_only_one_of_it() -> None:
    assert meant("node-a/gpu-6-mig-9-4-4", DRA) == Resolved(MIGS[1].uuid, SECOND)
    assert meant("node-a/gpu-6-mig-19-0-1", DRA) == Resolved(MIGS[0].uuid, SECOND)
    assert meant("node-a/gpu-6-mig-3g40gb-9-4", DRA) == Resolved(MIGS[1].uuid, SECOND)
    assert meant("node-a/gpu-6-mig-1g10gb-me-20-0", DRA) == Resolved(MIGS[0].uuid, SECOND)


@pytest.mark.parametrize(
    "text",
    [
        "gpu-5-mig-19-6-1",  # two of that size
        "gpu-6-mig-14-0-2",  # none of that size
        "gpu-6-mig-1g20gb-15-0",  # one has its compute slices, but not its memory
        "gpu-7-mig-19-6-1",  # a board that is not cut, as far as is known
        "gpu-6-mig-",
        "gpu-6-mig-of-tomorrow",
    ],
)
def test_dcgm_exporter_714_dynamic_instance_is_unattributed_never_the_boards(text: str) -> None:
    found = meant(f"node-a/{text}", DRA)
    assert (found.device, found.reason) == (None, "instance_unproven")
    assert found.parent in {FIRST, SECOND, THIRD}


def test_dcgm_exporter_714_an_instance_is_known_by_its_place_where_the_driver_tells_it() -> None:
    parts = [mig(BOARDS[0], 7 + n, placement_start=n) for n in (0, 1, 6)]
    node = [BOARDS[0], *parts]
    for n, part in zip((0, 1, 6), parts, strict=True):
        assert meant(f"node-a/gpu-7-mig-19-{n}-1", DRA, node) == Resolved(part.uuid, FIRST)
        assert meant(f"node-a/gpu-7-mig-1g10gb-19-{n}", DRA, node) == Resolved(part.uuid, FIRST)
    assert reason("node-a/gpu-7-mig-19-4-1", DRA, node) == "instance_unproven"
    assert reason("node-a/gpu-7-mig-14-6-2", DRA, node) == "instance_unproven", "another size than what is there"
    half_known = [BOARDS[0], parts[0], mig(BOARDS[0], 8)]
    assert reason("node-a/gpu-7-mig-19-0-1", DRA, half_known) == "instance_unproven"


def test_an_instance_that_two_places_seem_to_be_is_neither() -> None:
    claims = [claim("n/gpu-6-mig-19-0-1", "a", DRA), claim("n/gpu-6-mig-19-1-1", "b", DRA), claim(FIRST, "c")]
    found = [resolved for _, resolved in DeviceIds(NODE).resolve_all(claims)]
    unproven = Resolved(None, SECOND, reason="instance_unproven")
    assert found == [unproven, unproven, Resolved(FIRST)]
    again = [resolved for _, resolved in DeviceIds(NODE).resolve_all([claims[0], claims[0]])]
    assert [resolved.device for resolved in again] == [MIGS[0].uuid] * 2


def test_amd_by_pci_address_however_it_is_written() -> None:
    for text in ("0000:C0:00.0", "0000:c0:00.0", "00000000:c0:00.0", "c0:00.0"):
        assert meant(text, "amd.com/gpu") == Resolved(FIRST)
    assert reason("0001:c0:00.0", "amd.com/gpu") == "unknown_device"
    assert reason("amdgpu_xcp_30", "amd.com/gpu") == "index_is_no_identity"
    assert pci_address(None) is None
    assert pci_address("0000:c0:00.8") is None


def test_cores_and_chips_by_their_place_on_the_node() -> None:
    cores = [DeviceSample(kind="core", uuid=f"core-{n}", parent_uuid="trn", slot=str(n)) for n in range(4)]
    assert meant("2", "aws.amazon.com/neuroncore", cores) == Resolved("core-2", "trn")
    assert meant("neuron-3", "aws.amazon.com/neuroncore", cores) == Resolved("core-3", "trn")
    chips = [DeviceSample(kind="chip", uuid=f"tpu-{n}", slot=str(n), serial=f"AC{n}") for n in range(4)]
    assert meant("1", "google.com/tpu", chips) == Resolved("tpu-1")
    assert meant("ac3", "habana.ai/gaudi", chips) == Resolved("tpu-3")
    assert reason("9", "google.com/tpu", chips) == "unknown_device"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("GPU-99999999-0000-4000-8000-000000000000", "unknown_device"),
        ("MIG-99999999-0000-4000-8000-000000000000", "unknown_device"),
        (f"{FIRST}-3", "unknown_device"),
        (f"{FIRST}::", "bad_replica"),
        (f"{FIRST}::-1", "bad_replica"),
        (f"{FIRST}::99999", "bad_replica"),
        (f"{FIRST}::\u0663", "bad_replica"),
        ("tegra", "unknown_form"),
        ("", "unknown_form"),
        ("x" * 300, "id_too_long"),
    ],
)
def test_unknown_ids_have_their_reason(text: str, why: str) -> None:
    assert reason(text) == why


PIECES = [
    FIRST,
    "GPU-",
    "MIG-",
    "nvidia",
    "/gi",
    "/vgpu",
    "gpu-",
    "-mig-",
    "::",
    "/",
    "0",
    "7",
    "\u0663",
    "0000:c0:00.0",
    "=",
    "9" * 30,
]


@given(
    st.one_of(st.text(), st.lists(st.sampled_from(PIECES), max_size=6).map("".join)),
    st.one_of(st.sampled_from(["nvidia.com/gpu", DRA, "google.com/tpu", "amd.com/gpu"]), st.text()),
    st.lists(
        st.sampled_from(
            [*NODE, DeviceSample(kind="gpu", uuid=None), DeviceSample(kind="mig", uuid="x", parent_uuid="y")]
        )
    ),
)
def test_no_text_raises(text: str, resource: str, node: list[DeviceSample]) -> None:
    found = meant(text, resource, node)
    assert (found.device is None) == (found.reason is not None)
    assert found.device in {None, *(sample.device for sample in node)}
