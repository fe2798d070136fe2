"""The kubelet's claims, asked from a real gRPC server on a unix socket."""

from __future__ import annotations

import random
import socket
import time
from typing import TYPE_CHECKING

import pytest
from grpc import StatusCode
from hypothesis import given
from hypothesis import strategies as st

from collectors.collector import SourceAbsentError
from collectors.placement import podresources_pb2 as messages
from collectors.placement.collector import ACCELERATORS, Placement, read_claims
from collectors.placement.podresources import KubeletError
from collectors.samples import Claim, Owner, Rejected
from fleet.identity import bounded_name
from tests.collectors.kubelet import Clock, Kubelet, allocatable, listing, pod, wire_field

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

GPU = "nvidia.com/gpu"


@pytest.fixture
def kubelet(tmp_path: Path) -> Iterator[Kubelet]:
    made = Kubelet(tmp_path / "kubelet.sock").start()
    yield made
    made.stop()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def placement(kubelet: Kubelet, clock: Clock) -> Iterator[Placement]:
    made = Placement(kubelet.socket, clock=clock)
    yield made
    made.close()
    made.close()


def claim(device: str, name: str, resource: str = GPU, **more: str) -> Claim:
    return Claim(device, resource, Owner("ml", name, "main"), "kubelet", **more)


def test_pods_and_their_devices(kubelet: Kubelet, placement: Placement) -> None:
    kubelet.pods = listing(pod("b", (GPU, ["GPU-2"])), pod("a", (GPU, ["GPU-1", "GPU-0"])), pod("idle"))
    kubelet.allocatable = allocatable((GPU, ["GPU-1", "GPU-0", "GPU-2", "GPU-3"]), ("cpu", ["1"]))
    reading = placement.collect()
    assert reading.claims == (claim("GPU-0", "a"), claim("GPU-1", "a"), claim("GPU-2", "b"))
    assert reading.allocatable == ("GPU-0", "GPU-1", "GPU-2", "GPU-3")
    assert (reading.samples, reading.rejected) == ((), ())


def test_nobody_holds_anything_is_not_unknown(placement: Placement) -> None:
    assert placement.collect().claims == ()


def test_only_accelerators_are_claims(kubelet: Kubelet, clock: Clock) -> None:
    resources = [
        "amd.com/gpu", "aws.amazon.com/neuroncore", "example.com/npu", "google.com/tpu", "habana.ai/gaudi",
        "hugepages-2Mi", "intel.com/sriov", "nvidia.com/gpu.shared", "nvidia.com/mig-1g.10gb", "rdma/hca", "cpu",
    ]  # fmt: skip
    kubelet.pods = listing(pod("p", *((resource, ["x"]) for resource in resources)))
    with_more = Placement(kubelet.socket, clock=clock, resources=["example.com/"])
    found = [claim.resource for claim in with_more.collect().claims or ()]
    with_more.close()
    assert found == [
        "amd.com/gpu", "aws.amazon.com/neuroncore", "example.com/npu", "google.com/tpu", "habana.ai/gaudi",
        "nvidia.com/gpu.shared", "nvidia.com/mig-1g.10gb",
    ]  # fmt: skip


def test_a_resource_listed_for_each_numa_node_is_merged(kubelet: Kubelet, placement: Placement) -> None:
    kubelet.pods = listing(pod("a", (GPU, ["GPU-0"]), (GPU, ["GPU-1"]), (GPU, ["GPU-0"])))
    assert placement.collect().claims == (claim("GPU-0", "a"), claim("GPU-1", "a"))


def test_dcgm_exporter_432_order_of_the_list_does_not_matter(kubelet: Kubelet, placement: Placement) -> None:
    pods = [pod(f"p{number}", (GPU, [f"GPU-{number % 5}::{number}"])) for number in range(20)]
    kubelet.pods = listing(*pods)
    expected = placement.collect().claims
    random.Random(3).shuffle(pods)
    kubelet.pods = listing(*pods)
    assert placement.collect().claims == expected
    assert len(expected or ()) == 20


def test_dynamic_resources_are_claims(kubelet: Kubelet, placement: Placement) -> None:
    def dynamic(name: str, *parts: messages.ClaimResource) -> messages.PodResources:
        given = messages.DynamicResource(claim_name="c", claim_namespace="ml", claim_resources=parts)
        return messages.PodResources(
            name=name,
            namespace="ml",
            containers=[messages.ContainerResources(name="main", dynamic_resources=[given])],
        )

    part = messages.ClaimResource
    cdi = messages.CDIDevice(name="k8s.gpu.nvidia.com/device=gpu-1")
    kubelet.pods = listing(
        dynamic("named", part(driver_name="gpu.nvidia.com", pool_name="node-a", device_name="gpu-0")),
        dynamic("older", part(driver_name="gpu.nvidia.com", cdi_devices=[cdi])),
        dynamic("network", part(driver_name="dra.net", pool_name="node-a", device_name="eth1")),
        dynamic("channel", part(driver_name="compute-domain.nvidia.com", pool_name="node-a", device_name="channel-0")),
        dynamic(
            "shares",
            part(driver_name="gpu.nvidia.com", pool_name="node-a", device_name="gpu-2", share_id="s1"),
        ),
    )
    resource = "dra:gpu.nvidia.com"
    assert placement.collect().claims == (
        claim("k8s.gpu.nvidia.com/device=gpu-1", "older", resource, resource_claim="ml/c"),
        claim("node-a/gpu-0", "named", resource, resource_claim="ml/c"),
        Claim("node-a/gpu-2", resource, Owner("ml", "shares", "main", replica="s1"), "kubelet", "ml/c"),
    )


def test_fields_that_are_not_read_do_no_harm(kubelet: Kubelet, placement: Placement) -> None:
    """A real answer holds topology, CPU numbers and memory beside what is read."""
    numa = wire_field(1, wire_field(1, 1))
    devices = wire_field(1, GPU.encode()) + wire_field(2, b"GPU-0") + wire_field(3, numa)
    memory = wire_field(1, b"memory") + wire_field(2, 1 << 40) + wire_field(3, numa)
    container = wire_field(1, b"main") + wire_field(2, devices) + wire_field(3, b"\x01\x02\x03") + wire_field(4, memory)
    body = wire_field(1, b"a") + wire_field(2, b"ml") + wire_field(3, container) + wire_field(4, b"\x07")
    kubelet.pods = wire_field(1, body + wire_field(5, memory) + wire_field(99, b"of tomorrow"))
    assert placement.collect().claims == (claim("GPU-0", "a"),)


def test_an_answer_beyond_the_usual_4_mebibytes(kubelet: Kubelet, placement: Placement) -> None:
    long = "x" * 200
    kubelet.pods = listing(*(pod(f"p{n}", ("cpu", [f"{long}{i}" for i in range(40)])) for n in range(700)))
    assert isinstance(kubelet.pods, bytes)
    assert len(kubelet.pods) > 5 << 20
    assert placement.collect().claims == ()


def test_kubernetes_116459_rate_limit_keeps_the_last_answer_for_a_minute(
    kubelet: Kubelet, placement: Placement, clock: Clock
) -> None:
    kubelet.pods = listing(pod("a", (GPU, ["GPU-0"])))
    first = placement.collect()
    kubelet.pods = StatusCode.RESOURCE_EXHAUSTED
    clock.now += 60
    assert placement.collect() == first
    clock.now += 1
    with pytest.raises(KubeletError, match="did not answer List: RESOURCE_EXHAUSTED"):
        placement.collect()
    kubelet.pods = listing(pod("b", (GPU, ["GPU-0"])))
    assert placement.collect().claims == (claim("GPU-0", "b"),)


def test_a_refusal_before_the_first_answer_is_an_error(kubelet: Kubelet, placement: Placement) -> None:
    kubelet.pods = StatusCode.UNAVAILABLE
    with pytest.raises(KubeletError):
        placement.collect()


def test_an_old_kubelet_does_not_know_what_could_be_given(kubelet: Kubelet, placement: Placement) -> None:
    kubelet.pods = listing(pod("a", (GPU, ["GPU-0"])))
    kubelet.allocatable = StatusCode.UNIMPLEMENTED
    reading = placement.collect()
    assert (reading.claims, reading.allocatable) == ((claim("GPU-0", "a"),), None)
    placement.collect()
    assert kubelet.asked == ["List", "GetAllocatableResources", "List"]


def test_k8s_device_plugin_234_allocatable_is_asked_once_a_minute_and_shown(
    kubelet: Kubelet, placement: Placement, clock: Clock
) -> None:
    """A device that the plugin took away for good is seen by its absence from what could be given."""
    kubelet.allocatable = allocatable((GPU, ["GPU-0", "GPU-1"]))
    assert placement.collect().allocatable == ("GPU-0", "GPU-1")
    kubelet.allocatable = allocatable((GPU, ["GPU-0"]))
    clock.now += 59
    assert placement.collect().allocatable == ("GPU-0", "GPU-1")
    clock.now += 1
    assert placement.collect().allocatable == ("GPU-0",)
    kubelet.allocatable = StatusCode.INTERNAL
    clock.now += 60
    assert placement.collect().allocatable == ("GPU-0",)


def test_kubernetes_104122_allocatable_is_taken_as_listed(kubelet: Kubelet, placement: Placement) -> None:
    """Unhealthy devices are in the list too: it is what was once offered, not what works."""
    kubelet.allocatable = allocatable((GPU, ["GPU-broken", "GPU-0", ""]))
    assert placement.collect().allocatable == ("GPU-0", "GPU-broken")


def test_no_socket_is_an_absent_source(tmp_path: Path, clock: Clock) -> None:
    missing = Placement(tmp_path / "none.sock", clock=clock)
    with pytest.raises(SourceAbsentError, match=r"no kubelet at .*none\.sock: No such file"):
        missing.collect()
    (tmp_path / "plain.sock").touch()
    with pytest.raises(SourceAbsentError, match="not a socket"):
        Placement(tmp_path / "plain.sock", clock=clock).collect()


def test_a_socket_without_a_kubelet_behind_it(tmp_path: Path, clock: Clock) -> None:
    path = tmp_path / "left.sock"
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(path))
    left_behind = Placement(path, clock=clock, timeout_seconds=1)
    with pytest.raises(KubeletError, match="UNAVAILABLE"):
        left_behind.collect()
    left_behind.close()


def test_a_kubelet_that_hangs_is_left_at_the_deadline(kubelet: Kubelet, clock: Clock) -> None:
    kubelet.hangs = True
    hanging = Placement(kubelet.socket, clock=clock, timeout_seconds=0.3)
    started = time.monotonic()
    with pytest.raises(KubeletError, match="DEADLINE_EXCEEDED"):
        hanging.collect()
    assert time.monotonic() - started < 5
    hanging.close()


def test_a_kubelet_that_starts_again_is_asked_through_its_new_socket(
    kubelet: Kubelet, placement: Placement, clock: Clock
) -> None:
    kubelet.pods = listing(pod("a", (GPU, ["GPU-0"])))
    first = placement.collect()
    kubelet.stop()
    assert placement.collect() == first
    clock.now += 61
    with pytest.raises(SourceAbsentError):
        placement.collect()
    again = Kubelet(kubelet.socket)
    again.pods = listing(pod("b", (GPU, ["GPU-0"])))
    again.start()
    try:
        assert placement.collect().claims == (claim("GPU-0", "b"),)
    finally:
        again.stop()


def test_hostile_texts_are_refused_and_counted(kubelet: Kubelet, placement: Placement) -> None:
    kubelet.pods = listing(
        pod("good", (GPU, ["GPU-0"])),
        pod("bad\nname", (GPU, ["GPU-1"])),
        pod("long", (GPU, ["G" * 257])),
        pod("", (GPU, ["GPU-2"])),
        pod("turned", (GPU, ["GPU-\u202e3"])),
    )
    reading = placement.collect()
    assert reading.claims == (claim("GPU-0", "good"),)
    assert reading.rejected == (Rejected("bad_text", 4),)


def test_pods_and_claims_beyond_their_limits_are_counted() -> None:
    many = messages.ListPodResourcesResponse(pod_resources=[pod("p", (GPU, ["GPU-0"]))] * 4100)
    claims, refused = read_claims(many, ACCELERATORS)
    assert (len(claims), dict(refused)) == (1, {"too_many_pods": 4})
    one = messages.ListPodResourcesResponse(pod_resources=[pod("p", (GPU, [f"GPU-{n}" for n in range(16_390)]))])
    claims, refused = read_claims(one, ACCELERATORS)
    assert (len(claims), dict(refused)) == (16_384, {"too_many_claims": 6})


def test_grpc_38142_the_kubelet_is_named_localhost(kubelet: Kubelet, placement: Placement) -> None:
    """Left to itself, gRPC names the host by the socket's path, and some servers refuse that."""
    placement.collect()
    assert kubelet.authorities == {"localhost"}


def test_the_connection_is_kept(kubelet: Kubelet, placement: Placement) -> None:
    placement.collect()
    channel = placement._kubelet._channel
    placement.collect()
    assert placement._kubelet._channel is channel


@given(st.lists(st.tuples(st.text(max_size=20), st.text(max_size=20), st.lists(st.text(max_size=300), max_size=3))))
def test_any_text_yields_claims_or_refusals(pods: list[tuple[str, str, list[str]]]) -> None:
    def encodable(text: str) -> str:
        return text.encode("utf-8", "replace").decode()

    made = [pod(encodable(name), (GPU, map(encodable, ids)), namespace=encodable(space)) for name, space, ids in pods]
    claims, refused = read_claims(messages.ListPodResourcesResponse(pod_resources=made), ACCELERATORS)
    listed = {(space, name, text) for name, space, ids in pods for text in ids}
    assert len(claims) <= len(listed) <= len(claims) + sum(refused.values())
    assert all(bounded_name(claim.owner.pod or "") == claim.owner.pod for claim in claims)
