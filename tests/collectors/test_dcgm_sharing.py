"""Devices that are shared: by pods, by MIG instances, by Slurm jobs. Device truth once, owners beside it."""

from __future__ import annotations

import random
from dataclasses import asdict
from typing import TYPE_CHECKING

import pytest

from collectors.dcgm.collector import Dcgm
from collectors.samples import Owner
from tests.collectors.dcgm_pages import FIXTURES, UUID, counts, only, page, recorded

if TYPE_CHECKING:
    from collectors.samples import Reading

MIB = 2**20


def test_dcgm_exporter_582_energy_counted_once() -> None:
    """Three pods share a GPU; the page names its energy three times: 3.5e9 mJ, not 1.05e10."""
    reading = recorded("timeslice-virtualgpus")
    assert sum(sample.energy_millijoules or 0 for sample in reading.samples) == 3_500_000_000
    assert sum(sample.power_watts or 0 for sample in reading.samples) == 68.5
    assert [(owner.pod, owner.replica) for owner in only(reading).owner] == [
        ("ts-a", "0"),
        ("ts-b", "1"),
        ("ts-c", "2"),
    ]
    assert {owner.pod_uid for owner in only(reading).owner} == {
        f"7b0b0a4e-0000-4000-8000-0000000000{end}" for end in ("aa", "bb", "cc")
    }


def test_dcgm_exporter_587_profiling_is_of_the_device() -> None:
    """A ratio copied to three pods is the device's, once; what was split per pod comes from the series without one."""
    sample = only(recorded("timeslice-virtualgpus"))
    assert (sample.busy_ratio, sample.memory_used_bytes) == (0.9, 18000 * MIB)
    assert sample.quality == ()


def test_shares_without_the_whole_are_marked_partial() -> None:
    sample = only(page(*(f'DCGM_FI_DEV_GPU_UTIL{{pod="p{i}",namespace="n",vgpu="{i}"}} {i * 10}' for i in range(4))))
    assert (sample.busy_ratio, sample.quality) == (0.3, ("partial",))


def test_slurm_jobs_on_one_gpu_do_not_multiply_it() -> None:
    first, second = recorded("slurm").samples
    assert (first.energy_millijoules, second.energy_millijoules) == (100_000_000, 200_000_000)
    assert first.owner == (Owner(hpc_job="4711"),)
    assert second.owner == (Owner(hpc_job="4712"), Owner(hpc_job="4713"))
    assert only(page('DCGM_FI_DEV_GPU_UTIL{hpc_job=""} 5')).owner == ()


def test_dcgm_exporter_307_one_labelled_pod_is_only_a_hint() -> None:
    """A page may name one of three holders: what it names is listed, and no reading depends on it."""
    sample = only(page('DCGM_FI_DEV_POWER_USAGE{pod="last",namespace="n"} 300', "DCGM_FI_DEV_GPU_UTIL{} 40"))
    assert (sample.owner, sample.power_watts) == ((Owner(namespace="n", pod="last"),), 300.0)


@pytest.mark.parametrize("name", ["timeslice-virtualgpus", "a100-mig", "slurm", "h100x8-k8s"])
def test_dcgm_exporter_432_order_of_lines_does_not_matter(name: str) -> None:
    lines = (FIXTURES / f"{name}.prom").read_text().splitlines()
    expected = recorded(name)
    random.Random(5).shuffle(lines)
    shuffled = Dcgm("page").read("\n".join(lines))

    def in_order(reading: Reading) -> list[str]:
        return sorted(repr({**asdict(s), "owner": sorted(map(repr, s.owner))}) for s in reading.samples)

    assert in_order(shuffled) == in_order(expected)


def test_dcgm_exporter_216_mig_instance_without_utilisation_is_not_idle() -> None:
    """The compute engine's ratio stands in, marked; a GPU_UTIL of 0 on an instance is not believed."""
    board, *instances = recorded("a100-mig").samples
    assert board.busy_ratio is None
    assert [(i.busy_ratio, i.sm_ratio, i.quality) for i in instances] == [
        (0.41, 0.66, ("estimated",)),
        (0.2, 0.35, ("estimated",)),
        (0.0, 0.0, ("estimated",)),
    ]
    lying = page('DCGM_FI_DEV_GPU_UTIL{GPU_I_ID="1"} 0', 'DCGM_FI_PROF_SM_ACTIVE{GPU_I_ID="1"} 0.5').samples[1]
    assert (lying.busy_ratio, lying.sm_ratio) == (None, 0.5)


def test_dcgm_exporter_380_memory_missing_on_mig_is_none() -> None:
    instance = page('DCGM_FI_PROF_SM_ACTIVE{GPU_I_ID="1"} 0.5', "DCGM_FI_DEV_FB_USED{} 100").samples[1]
    assert instance.memory_used_bytes is None


def test_dcgm_exporter_317_power_of_mig_counted_once() -> None:
    """Three instances repeat their board: 252.636 W in all."""
    reading = recorded("a100-mig")
    assert sum(sample.power_watts or 0 for sample in reading.samples) == 252.636
    assert sum(sample.energy_millijoules or 0 for sample in reading.samples) == 77_000_000_000
    board, *instances = reading.samples
    assert (board.kind, board.uuid, board.owner, board.temperature_celsius) == ("gpu", UUID, (), 52)
    assert [(i.kind, i.uuid, i.parent_uuid, i.slot) for i in instances] == [
        ("mig", None, UUID, slot) for slot in ("1", "3", "9")
    ]
    assert [[owner.pod for owner in i.owner] for i in instances] == [["mig-a-0"], ["mig-b-0"], []]


def test_dcgm_exporter_544_profile_label_is_a_hint() -> None:
    assert [sample.profile_hint for sample in recorded("a100-mig").samples] == [None, "3g.40gb", "2g.20gb", "1g.10gb"]


def test_dcgm_exporter_714_claim_without_its_instance_has_no_owner() -> None:
    """A dynamic MIG device has no UUID yet: its pod is neither the board's nor some instance's."""
    claim = 'dra_claim_name="c",dra_device_name="gpu-0-mig-19-6-1",pod="p",namespace="n"'
    for where in ("", 'dra_mig_profile="1g.12gb",', 'GPU_I_ID="7",', 'GPU_I_ID="7",dra_mig_device_uuid="<<<NULL>>>",'):
        reading = page(f"DCGM_FI_PROF_GR_ENGINE_ACTIVE{{{where}{claim}}} 0.35")
        assert [sample.owner for sample in reading.samples if sample.owner] == []
        assert counts(reading) == {"mig_owner_unproven": 1}


def test_dcgm_exporter_718_claim_without_pod_uid_names_the_pod() -> None:
    board, instance = recorded("dra-mig").samples
    assert board.owner == ()
    assert instance.owner == (Owner(namespace="team-b", pod="dra-pod-1", container="c"),)
    assert (instance.uuid, instance.parent_uuid, instance.slot) == (
        "MIG-24c6a0e5-0000-0000-0000-000000000001",
        UUID,
        "7",
    )


def test_dcgm_exporter_340_exported_pod_is_the_workload() -> None:
    assert only(recorded("honorlabels-false")).owner == (Owner(namespace="team-a", pod="llama-0", container="vllm"),)


def test_dcgm_exporter_85_the_exporters_own_pod_holds_nothing() -> None:
    """Beside a series with exported_pod, a bare pod is the exporter's: the second GPU is idle."""
    text = (
        f'DCGM_FI_DEV_GPU_UTIL{{UUID="{UUID}",exported_pod="llama-0",exported_namespace="a",pod="dcgm-x"}} 77\n'
        'DCGM_FI_DEV_GPU_UTIL{UUID="GPU-b",namespace="monitoring",pod="dcgm-x"} 0\n'
    )
    first, second = Dcgm("page").read(text).samples
    assert (first.owner, second.owner) == ((Owner(namespace="a", pod="llama-0"),), ())
