"""Finding model servers in Kubernetes: a real HTTPS server that lists pods well, wrongly, endlessly or not at all."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from collectors.collector import SourceAbsentError
from collectors.exposition import PageError
from collectors.serving.discovery import Kubernetes, discover, in_cluster
from fleet.errors import ConfigError
from tests.certificates import Authority
from tests.collectors.serving.kubernetes_api import NODE, Api, kubernetes_api, pod

if TYPE_CHECKING:
    from collections.abc import Iterator

FIXTURES = Path(__file__).parents[2] / "fixtures" / "kubernetes"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture
def api(authority: Authority, tmp_path: Path) -> Iterator[Api]:
    with kubernetes_api(authority, tmp_path) as found:
        yield found


def refused(api: Api) -> dict[str, int]:
    return {rejected.reason: rejected.count for rejected in discover(api.asks()).rejected}


def why_not(api: Api, **changes: Any) -> str:
    with pytest.raises(PageError) as error:
        discover(api.asks(**changes))
    assert "\n" not in str(error.value)
    assert "s3cret" not in str(error.value)
    return str(error.value).removeprefix(f"{api.address}/api/v1/pods: ")


def test_servers_are_found_on_all_pages_of_a_listing(api: Api) -> None:
    api.pages = [json.loads((FIXTURES / f"pods-page-{number}.json").read_text()) for number in (1, 2)]
    api.pages[0]["metadata"]["continue"] = "after-1"
    found = discover(api.asks())
    assert [(server.pod, server.server, server.url) for server in found.servers] == [
        ("gateways/litellm-7f9c-abcde", "gateways/litellm", "http://[fd00:10:244:3::14]:4000/metrics/"),
        ("inference/llama-70b-6d4b75cb6d-p8q2z", "inference/llama-70b", "http://10.244.3.18:8001/metrics"),
        ("inference/llama-70b-6d4b75cb6d-x2x9k", "inference/llama-70b", "http://10.244.3.17:8000/metrics"),
        ("inference/qwen-0", "inference/qwen", "http://10.244.3.19:30001/metrics"),
        ("inference/triton-grpc", "inference/triton-grpc", "grpc://10.244.3.22:8001"),
        ("inference/triton-mesh", "inference/triton-mesh", "http://10.244.3.21:8002/metrics"),
        ("inference/trt-6c5d-qqqqq", "inference/trt", "https://10.244.3.23:8000/prometheus/metrics"),
        (
            "kube-system/static-server-gpu-node-7",
            "kube-system/static-server-gpu-node-7",
            "http://10.244.3.24:80/metrics",
        ),
    ]
    told = {server.pod_uid[-2:]: (server.kind, server.role, server.model) for server in found.servers}
    assert told["01"] == ("vllm", "prefill", "llama-3.3-70b")
    assert told["02"] == ("vllm", "decode", None)
    assert told["03"] == ("sglang", None, None)
    assert found.rejected == ()
    question = {"path": "/api/v1/pods", "fieldSelector": f"spec.nodeName={NODE}", "limit": "500"}
    assert api.asked == [{**question, "resourceVersion": "0"}, {**question, "continue": "after-1"}]


def test_the_token_is_read_anew_each_time(api: Api) -> None:
    api.serve()
    discover(api.asks())
    api.token_file.write_text("renewed\n")
    discover(api.asks())
    assert api.tokens == ["Bearer s3cret", "Bearer renewed"]


def test_of_ten_thousand_pods_a_bounded_number_is_looked_at(api: Api) -> None:
    api.serve(*(pod(number) for number in range(10_000)))
    found = discover(api.asks())
    assert len(found.servers) == 1024
    assert len(api.asked) == 3
    assert {rejected.reason: rejected.count for rejected in found.rejected} == {"too_many_pods": 476}


def test_a_list_of_exactly_as_many_pods_as_are_looked_at_is_whole(api: Api) -> None:
    api.serve(*(pod(number) for number in range(1024)))
    assert len(discover(api.asks()).servers) == 1024
    assert refused(api) == {}


def test_a_list_without_an_end_is_left(api: Api) -> None:
    api.pages = [{"kind": "PodList", "metadata": {"continue": "after-0"}, "items": [pod()]}]
    assert refused(api) == {"too_many_pages": 1}
    assert len(api.asked) == 8


@pytest.mark.parametrize(("status", "message"), [(401, "Unauthorized"), (403, "Forbidden"), (410, "Gone"), (500, "")])
def test_a_refusal_is_one_line(api: Api, status: int, message: str) -> None:
    api.status = status
    assert why_not(api).startswith(f"HTTP {status} {message}")


def test_an_api_that_hangs_is_given_up(api: Api) -> None:
    api.serve()
    api.hang_seconds = 1
    begun = time.monotonic()
    assert why_not(api, timeout_seconds=0.3) == "no answer within 0.3 seconds"
    assert time.monotonic() - begun < 0.9


def test_the_time_limit_is_for_all_pages_together(api: Api) -> None:
    api.serve(pod(1), pod(2), pod(3), page_pods=1)
    api.hang_seconds = 0.25
    assert why_not(api, timeout_seconds=0.6) == "no answer within 0.6 seconds"


BAD_LISTS = [
    (b"", "is not JSON"),
    (b"{", "is not JSON"),
    (b"[" * 100_000, "is not JSON"),
    (b"[]", "is JSON, but no list of pods"),
    (b'{"kind": "Status"}', "is JSON, but no list of pods"),
    (b'{"kind": "PodList", "items": {"a": 1}}', "is JSON, but no list of pods"),
    (b'{"kind": "PodList", "items": [], "metadata": {"continue": 7}}', "names a next page that cannot be asked for"),
]


@pytest.mark.parametrize(("body", "message"), BAD_LISTS, ids=[str(number) for number in range(len(BAD_LISTS))])
def test_what_is_no_list_of_pods_is_one_line(api: Api, body: bytes, message: str) -> None:
    api.pages = [body]
    assert why_not(api) == message


def test_no_pods_are_no_servers(api: Api) -> None:
    for body in (b'{"kind": "PodList", "items": null}', b'{"kind": "PodList", "metadata": null}'):
        api.pages = [body]
        assert discover(api.asks()) == ((), ())


def test_a_list_that_is_too_large_is_refused(api: Api) -> None:
    api.serve(*(pod(number) for number in range(100)))
    assert why_not(api, byte_limit=1000) == "is larger than 1000 bytes"


def test_an_api_that_nobody_known_signed_gets_no_token(api: Api, tmp_path: Path) -> None:
    api.serve()
    assert why_not(api, ca=Authority(tmp_path, "other").file).startswith("its certificate is not trusted")
    assert api.asked == []


def test_a_redirect_does_not_carry_the_token_away(api: Api) -> None:
    api.status, api.location = 307, "https://127.0.0.2:9/api/v1/pods"
    assert why_not(api) == "redirects to another scheme, host or port, which is not followed"


def test_outside_of_kubernetes_the_source_is_absent(api: Api, tmp_path: Path) -> None:
    with pytest.raises(SourceAbsentError):
        in_cluster(NODE, {})
    with pytest.raises(SourceAbsentError):
        discover(api.asks(token_file=tmp_path / "gone"))


def test_a_pod_knows_its_api_from_its_environment(tmp_path: Path) -> None:
    told = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "6443"}
    assert in_cluster(NODE, told, tmp_path) == Kubernetes(
        NODE, "https://[fd00::1]:6443", tmp_path / "ca.crt", tmp_path / "token"
    )
    assert in_cluster(NODE, {"KUBERNETES_SERVICE_HOST": "10.96.0.1"}).api == "https://10.96.0.1:443"


@pytest.mark.parametrize("node", ["", "a,metadata.namespace=kube-system", "A", "a b", "-a", "a" * 254])
def test_what_is_no_nodes_name_is_asked_for_nowhere(node: str) -> None:
    with pytest.raises(ConfigError, match="is not the name of a node"):
        Kubernetes(node, "https://127.0.0.1")


def test_a_token_is_not_sent_in_the_clear(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="over https only"):
        Kubernetes(NODE, "http://127.0.0.1:8001", token_file=tmp_path / "token")


def test_one_pods_mistakes_cost_that_pod(api: Api) -> None:
    api.serve(None, 7, {}, pod(1, port="x"), pod(2, engine="wllm"), pod(3, engine="wllm"), pod(4))
    found = discover(api.asks())
    assert [server.pod for server in found.servers] == ["ml/pod-4"]
    assert {rejected.reason: rejected.count for rejected in found.rejected} == {"bad_port": 1, "unknown_engine": 2}


def test_a_pod_that_stands_on_two_pages_is_one(api: Api) -> None:
    api.serve(pod(1), pod(1), page_pods=1)
    assert [server.pod for server in discover(api.asks()).servers] == ["ml/pod-1"]
