"""What pods say of themselves: by whoever made them, so anything."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.serving.pods import DEFAULT_PAGES, PodRefusedError, server_of_pod
from collectors.serving.servers import SERVER_KINDS, server_of
from fleet.agent_engine_config import AgentEngine
from tests.collectors.serving.kubernetes_api import NODE, pod


def url(found: dict[str, Any], **prometheus: str) -> str:
    found["metadata"]["annotations"] |= {f"prometheus.io/{name}": value for name, value in prometheus.items()}
    server = server_of_pod(found, NODE)
    assert server
    return server.url


def why_not(found: object) -> str:
    with pytest.raises(PodRefusedError) as error:
        server_of_pod(found, NODE)
    return error.value.reason


def test_every_kind_has_a_default_page() -> None:
    assert sorted(DEFAULT_PAGES) == sorted(SERVER_KINDS)


def test_the_documented_pages_are_those_that_are_asked_for() -> None:
    text = (Path(__file__).parents[3] / "docs" / "telemetry.md").read_text(encoding="utf-8")
    told = dict(re.findall(r"^\| `(\w+)` \| .* \| `(?:grpc://HOST)?(:\d+\S*)` \|$", text, re.MULTILINE))
    assert told == {kind: f":{port}{path}" for kind, (port, path) in DEFAULT_PAGES.items()}


@pytest.mark.parametrize("kind", SERVER_KINDS)
def test_what_is_found_can_be_visited(kind: str) -> None:
    server_of(kind, url(pod(engine=kind))).close()


def test_the_port_of_another_page_is_not_mixed_with_ours() -> None:
    """A service mesh sets these annotations to its own port and path."""
    mesh = {"port": "15020", "path": "/stats/prometheus", "scheme": "https"}
    assert url(pod(), **mesh) == "https://10.244.0.9:15020/stats/prometheus"
    assert url(pod(port="8080"), **mesh) == "http://10.244.0.9:8080/metrics"
    assert url(pod(path="/m"), **mesh) == "https://10.244.0.9:15020/m"
    assert url(pod(port="8080", path="/m", scheme="HTTPS")) == "https://10.244.0.9:8080/m"


def test_a_port_for_prometheus_is_none_for_grpc() -> None:
    assert url(pod(engine="triton_grpc"), port="8002", scheme="https") == "grpc://10.244.0.9:8001"
    assert url(pod(engine="triton_grpc", port="9001", scheme="https")) == "grpcs://10.244.0.9:9001"


def test_labels_tell_as_well_and_annotations_first() -> None:
    found = pod()
    found["metadata"]["labels"] = {"gputally.io/engine": "sglang", "gputally.io/role": "decode"}
    server = server_of_pod(found, NODE)
    assert server
    assert (server.kind, server.role) == ("vllm", "decode")


def test_prometheus_alone_makes_no_model_server() -> None:
    found = pod()
    found["metadata"]["annotations"] = {"prometheus.io/scrape": "true", "prometheus.io/port": "8000"}
    assert server_of_pod(found, NODE) is None


@pytest.mark.parametrize(
    "status", [{"phase": "Pending"}, {"phase": "Failed"}, {"podIP": ""}, {"podIP": None}, {"phase": 7}]
)
def test_a_pod_that_does_not_run_is_no_server(status: dict[str, object]) -> None:
    found = pod()
    found["status"] |= status
    assert server_of_pod(found, NODE) is None


def test_a_pod_of_another_node_is_for_its_own_agent() -> None:
    assert server_of_pod(pod(), "gpu-node-8") is None


HOSTILE = [
    ({"engine": "VLLM"}, "unknown_engine"),
    ({"engine": ""}, "unknown_engine"),
    ({"engine": ["vllm"]}, "unknown_engine"),
    ({"port": "0"}, "bad_port"),
    ({"port": "65536"}, "bad_port"),
    ({"port": "-1"}, "bad_port"),
    ({"port": "８０"}, "bad_port"),
    ({"port": "80@evil.example"}, "bad_port"),
    ({"port": "80/x?y"}, "bad_port"),
    ({"port": "9" * 5000}, "bad_port"),
    ({"port": 8000}, "bad_port"),
    ({"path": "metrics"}, "bad_path"),
    ({"path": "@evil.example/metrics"}, "bad_path"),
    ({"path": ".evil.example/"}, "bad_path"),
    ({"path": "/m?token=1"}, "bad_path"),
    ({"path": "/m#x"}, "bad_path"),
    ({"path": "/m\r\nX: y"}, "bad_path"),
    ({"path": "/a b"}, "bad_path"),
    ({"path": "/" + "a" * 300}, "bad_path"),
    ({"scheme": "file"}, "bad_scheme"),
    ({"scheme": "http://evil.example/"}, "bad_scheme"),
    ({"role": "both"}, "bad_role"),
    ({"model": "a\x1b[2J"}, "bad_model"),
    ({"model": "\u202eabc"}, "bad_model"),
    ({"model": "m" * 257}, "bad_model"),
    ({"ip": "evil.example"}, "bad_address"),
    ({"ip": "10.0.0.1@evil.example"}, "bad_address"),
    ({"ip": "127.0.0.1"}, "bad_address"),
    ({"ip": "::1"}, "bad_address"),
    ({"ip": "0.0.0.0"}, "bad_address"),
    ({"ip": "169.254.169.254"}, "bad_address"),
    ({"ip": "::ffff:169.254.169.254"}, "bad_address"),
    ({"ip": "fe80::1%eth0"}, "bad_address"),
    ({"ip": "fd00::1%a"}, "bad_address"),
    ({"ip": "224.0.0.1"}, "bad_address"),
    ({"ip": 168430081}, "bad_address"),
    ({"ip": ["10.0.0.1"]}, "bad_address"),
]


@pytest.mark.parametrize(
    ("told", "reason"), HOSTILE, ids=[f"{number}-{why}" for number, (_, why) in enumerate(HOSTILE)]
)
def test_what_has_no_meaning_is_refused_with_a_reason(told: dict[str, Any], reason: str) -> None:
    assert why_not(pod(**told)) == reason


@pytest.mark.parametrize(
    "change", [{"name": None}, {"namespace": "a/b"}, {"uid": 7}, {"name": "a\n"}, {"uid": "x" * 254}]
)
def test_a_pod_without_a_proper_name_is_refused(change: dict[str, object]) -> None:
    found = pod()
    found["metadata"] |= change
    assert why_not(found) == "bad_pod"


OWNERS = [
    ([], {}, "ml/pod-1"),
    ("x", {}, "ml/pod-1"),
    ([None, {"kind": "Job", "name": "j"}], {}, "ml/pod-1"),
    ([{"kind": "Job", "name": "j", "controller": True}], {}, "ml/j"),
    ([{"kind": "X", "name": "no"}, {"kind": "Job", "name": "j", "controller": True}], {}, "ml/j"),
    ([{"kind": "Node", "name": NODE, "controller": True}], {}, "ml/pod-1"),
    ([{"kind": "ReplicaSet", "name": "a-b-77", "controller": True}], {"pod-template-hash": "77"}, "ml/a-b"),
    ([{"kind": "ReplicaSet", "name": "a-b-77", "controller": True}], {"pod-template-hash": "7"}, "ml/a-b-77"),
    ([{"kind": "ReplicaSet", "name": "a-b-77", "controller": True}], {"pod-template-hash": ["77"]}, "ml/a-b-77"),
    ([{"kind": "ReplicaSet", "name": "a-b-77", "controller": True}], {}, "ml/a-b-77"),
    ([{"kind": "StatefulSet", "name": "a-77", "controller": True}], {"pod-template-hash": "77"}, "ml/a-77"),
]


@pytest.mark.parametrize(("owners", "labels", "server"), OWNERS, ids=[str(number) for number in range(len(OWNERS))])
def test_a_server_is_named_by_what_made_its_pod(owners: object, labels: dict[str, Any], server: str) -> None:
    found = pod()
    found["metadata"] |= {"ownerReferences": owners, "labels": labels}
    seen = server_of_pod(found, NODE)
    assert seen
    assert seen.server == server


@given(
    told=st.dictionaries(st.sampled_from(["port", "path", "scheme", "role", "model"]), st.text(max_size=40)),
    prometheus=st.dictionaries(st.sampled_from(["port", "path", "scheme"]), st.text(max_size=40)),
    kind=st.sampled_from(SERVER_KINDS),
)
def test_no_annotation_moves_an_address_off_the_pod(
    told: dict[str, str], prometheus: dict[str, str], kind: str
) -> None:
    found = pod(engine=kind, **told)
    found["metadata"]["annotations"] |= {f"prometheus.io/{name}": value for name, value in prometheus.items()}
    try:
        server = server_of_pod(found, NODE)
    except PodRefusedError:
        return
    assert server
    parts = urlsplit(server.url)
    assert (parts.hostname, parts.username, parts.query, parts.fragment) == ("10.244.0.9", None, "", "")
    assert server.url.isascii()
    assert server.url.isprintable()
    AgentEngine(kind, server.url, server.server, server.model or "", server.role or "")


STARTED = "2026-03-04T05:06:07Z"
STARTED_SECOND = 1_772_600_767


@pytest.mark.parametrize(
    ("containers", "began"),
    [
        ([{"state": {"running": {"startedAt": STARTED}}}], STARTED_SECOND),
        ([{"state": {"running": {"startedAt": STARTED}}}, {"state": {"waiting": {}}}], STARTED_SECOND),
        (
            [
                {"state": {"running": {"startedAt": "2026-03-04T05:06:09Z"}}},
                {"state": {"running": {"startedAt": STARTED}}},
            ],
            STARTED_SECOND,
        ),
        ([{"state": {"running": {}}}, {"state": {"running": {"startedAt": STARTED}}}], None),
        ([{"state": {"running": {"startedAt": "2026-13-04T05:06:07Z"}}}], None),
        ([{"state": {"running": {"startedAt": "yesterday"}}}], None),
        ([{"state": {"running": {"startedAt": 7}}}], None),
        ([{"state": {"running": 7}}], None),
        ([None, 7, {"state": 7}], None),
        ("x", None),
        (None, None),
    ],
    ids=range(11),
)
def test_a_pod_began_when_the_oldest_of_its_containers_did(containers: object, began: int | None) -> None:
    found = pod()
    found["status"]["containerStatuses"] = containers
    server = server_of_pod(found, NODE)
    assert server
    assert server.began_second == began


@pytest.mark.parametrize(
    ("told", "reason"),
    [
        ({"engine": "litellm", "role": "decode"}, "bad_role"),
        ({"engine": "litellm", "model": "m"}, "bad_model"),
        ({"engine": "triton_grpc", "model": "m"}, "bad_model"),
        ({"engine": "trtllm_json", "role": "prefill"}, "bad_role"),
    ],
)
def test_what_has_no_meaning_for_the_kind_is_refused(told: dict[str, str], reason: str) -> None:
    assert why_not(pod(**told)) == reason
