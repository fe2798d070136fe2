"""The manifests say what the programs can do, and give the agent no more than it needs."""

from __future__ import annotations

import http.client
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from collectors.serving.discovery import SERVICE_ACCOUNT
from exporters.page_server import PageServer, PageSettings
from fleet.address import split_address
from fleet.config import parse_config
from services import agent
from services.agent.discovery import kubernetes_of
from services.commands import gputally
from services.hub.settings import hub_settings
from tests.deploy.manifests import KUBERNETES, KUSTOMIZATION, container, documents, mounts, one, pod_of

AGENT = pod_of("DaemonSet", "gputally-agent")
HUB = pod_of("StatefulSet", "gputally-hub")
CONTAINERS = [(AGENT, "agent"), (HUB, "hub"), (HUB, "maintain")]
BY_NAME = [name for _, name in CONTAINERS]


def config(name: str) -> Any:
    return parse_config(one("ConfigMap", name)["data"]["gputally.toml"])


def ports(pod: dict[str, Any], name: str) -> dict[str, int]:
    return {each["name"]: each["containerPort"] for each in container(pod, name)["ports"]}


def test_all_manifests_are_in_the_kustomization() -> None:
    listed = yaml.safe_load(KUSTOMIZATION.read_text("utf-8"))["resources"]
    assert sorted(listed) == [path.name for path in KUBERNETES]
    for document in documents():
        assert document["apiVersion"]


def test_the_agent_is_not_privileged() -> None:
    context = container(AGENT, "agent")["securityContext"]
    assert context["privileged"] is False
    assert context["allowPrivilegeEscalation"] is False
    assert context["readOnlyRootFilesystem"] is True
    assert context["capabilities"] == {"drop": ["ALL"]}
    assert context["seccompProfile"] == {"type": "RuntimeDefault"}
    assert not AGENT.get("hostNetwork")
    assert not AGENT.get("hostIPC")


@pytest.mark.parametrize(("pod", "name"), CONTAINERS, ids=BY_NAME)
def test_no_container_keeps_a_right_it_does_not_need(pod: dict[str, Any], name: str) -> None:
    context = container(pod, name)["securityContext"]
    assert context["allowPrivilegeEscalation"] is False
    assert context["readOnlyRootFilesystem"] is True
    assert context["capabilities"] == {"drop": ["ALL"]}
    assert container(pod, name)["resources"]["limits"]["memory"]
    if pod is HUB:
        assert pod["securityContext"]["runAsNonRoot"] is True


def test_the_agent_may_list_pods_and_nobody_may_do_more() -> None:
    """The list is of the cluster: a role cannot be limited to the pods of a node."""
    assert one("ServiceAccount", "gputally-agent")["automountServiceAccountToken"] is False
    assert AGENT["automountServiceAccountToken"] is True
    assert HUB["automountServiceAccountToken"] is False
    allowed = [each for each in documents() if each["kind"].startswith(("Role", "ClusterRole"))]
    assert [each["kind"] for each in allowed] == ["ClusterRole", "ClusterRoleBinding"]
    role, binding = allowed
    assert role["rules"] == [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}]
    assert binding["roleRef"]["name"] == role["metadata"]["name"]
    namespace = yaml.safe_load(KUSTOMIZATION.read_text("utf-8"))["namespace"]
    account = {"kind": "ServiceAccount", "name": AGENT["serviceAccountName"], "namespace": namespace}
    assert binding["subjects"] == [account]


def test_the_agent_looks_for_model_servers_as_the_pod_that_it_is() -> None:
    told = config("gputally-agent").agent.kubernetes
    assert (told.discover, told.api, told.token_file) == (True, "", "")
    environment = {each["name"]: each.get("valueFrom") for each in container(AGENT, "agent")["env"]}
    assert environment["NODE_NAME"] == {"fieldRef": {"fieldPath": "spec.nodeName"}}, "the name that its pods know"
    source = kubernetes_of(told, "gpu-1", {"KUBERNETES_SERVICE_HOST": "10.96.0.1"})
    assert (source.node, source.token_file) == ("gpu-1", SERVICE_ACCOUNT / "token")


def test_the_agent_writes_nothing_but_its_spool() -> None:
    seen = mounts(AGENT, "agent")
    assert {path for path, (_, is_read_only) in seen.items() if not is_read_only} == {"/var/lib/gputally"}
    assert Path(config("gputally-agent").agent.spool).parent == Path("/var/lib/gputally")


def test_what_the_agent_is_told_to_read_is_mounted() -> None:
    told = config("gputally-agent").agent
    seen = {path: volume.get("hostPath", {}).get("path") for path, (volume, _) in mounts(AGENT, "agent").items()}
    # The folder and not the socket, which the kubelet makes anew each time it starts.
    assert seen[str(Path(told.kubelet_socket).parent)] == "/var/lib/kubelet/pod-resources"
    assert seen[told.pod_logs] == "/var/log/pods"
    assert seen[told.cgroups] == "/sys/fs/cgroup"
    assert told.cgroups != "/sys/fs/cgroup", "there the container has its own"
    assert AGENT["hostPID"] is True
    for path in (told.hub.token_file, told.hub.ca):
        assert str(Path(path).parent) in seen


def test_ports_are_those_of_the_configuration() -> None:
    agent_page = split_address(config("gputally-agent").agent.page.listen)[1]
    hub = config("gputally-hub").hub
    ingest, pages = split_address(hub.listen)[1], split_address(hub.metrics_listen)[1]
    assert ports(AGENT, "agent") == {"metrics": agent_page}
    assert ports(HUB, "hub") == {"ingest": ingest, "metrics": pages}
    service = one("Service", "gputally-hub")["spec"]["ports"]
    assert {each["name"]: each["port"] for each in service} == {"ingest": ingest, "metrics": pages}
    host, told = split_address(config("gputally-agent").agent.hub.address)
    namespace = yaml.safe_load(KUSTOMIZATION.read_text("utf-8"))["namespace"]
    assert (host, told) == (f"gputally-hub.{namespace}.svc", ingest)


def test_the_hubs_settings_are_safe_as_they_stand(tmp_path: Path) -> None:
    hub = config("gputally-hub").hub
    seen = mounts(HUB, "hub")
    for path in (hub.tls_certificate, hub.tls_key, hub.token_file):
        assert str(Path(path).parent) in seen
    lake = config("gputally-hub").lake
    assert all(str(path).startswith("/data/") for path in (lake.catalog, lake.data))
    assert seen["/data"][1] is False
    # What `hub_settings` refuses is a hub that others can reach without TLS or without knowing them.
    from dataclasses import replace

    for name in ("cert", "key", "tokens"):
        (tmp_path / name).touch()
    hub_settings(tmp_path, replace(hub, tls_certificate="cert", tls_key="key", token_file="tokens"))


@pytest.mark.parametrize(("pod", "name"), CONTAINERS, ids=BY_NAME)
def test_arguments_are_commands_that_exist(pod: dict[str, Any], name: str) -> None:
    arguments = [text.replace("$(NODE_NAME)", "gpu-1") for text in container(pod, name)["args"]]
    if pod is AGENT:
        told = agent.parser().parse_args(arguments)
        assert (told.verb, told.node) == ("run", "gpu-1")
        assert str(told.config.parent) in mounts(pod, name)
    else:
        assert arguments[0] in gputally.commands


@pytest.mark.parametrize(("pod", "name"), [(AGENT, "agent"), (HUB, "hub")], ids=["agent", "hub"])
def test_probes_ask_for_pages_that_the_server_has(pod: dict[str, Any], name: str) -> None:
    server = PageServer(PageSettings("127.0.0.1:0"), lambda: b"", lambda: (True, "ok"), lambda: (True, "ok"))
    server.start()
    try:
        for probe in ("livenessProbe", "readinessProbe"):
            asked = container(pod, name)[probe]["httpGet"]
            assert asked["port"] in ports(pod, name)
            connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
            connection.request("GET", asked["path"])
            assert connection.getresponse().status == 200
            connection.close()
    finally:
        server.stop()


def test_monitors_select_services_that_exist() -> None:
    for each in (found for found in documents() if found["kind"] == "ServiceMonitor"):
        service = one("Service", each["metadata"]["name"])
        assert each["spec"]["selector"]["matchLabels"] == service["metadata"]["labels"]
        offered = {port["name"] for port in service["spec"]["ports"]}
        assert {endpoint["port"] for endpoint in each["spec"]["endpoints"]} <= offered


CONNECT = """
import socket, subprocess, sys
folder, place = sys.argv[1:]
subprocess.run(["mount", "--bind", folder, place], check=True)
subprocess.run(["mount", "-o", "remount,bind,ro", place], check=True)
try:
    open(f"{place}/new", "w")
except OSError as error:
    print(error.strerror)
with socket.socket(socket.AF_UNIX) as client:
    client.connect(f"{place}/s")
    print(client.recv(9).decode())
"""


def test_a_socket_can_be_connected_to_through_a_read_only_mount(tmp_path: Path) -> None:
    """Why `readOnly: true` is right for the kubelet's folder."""
    if sys.platform != "linux":
        pytest.skip("bind mounts are Linux's")
    if subprocess.run(["unshare", "-rm", "true"], capture_output=True, check=False).returncode:
        pytest.skip("this machine allows no mount namespaces")
    folder, place = tmp_path / "a", tmp_path / "b"
    folder.mkdir()
    place.mkdir()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(folder / "s"))
        server.listen()
        command = ["unshare", "-rm", sys.executable, "-c", CONNECT, str(folder), str(place)]
        client = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        server.settimeout(30)
        connection, _ = server.accept()
        with connection:
            connection.sendall(b"welcome")
        assert client.communicate(timeout=30)[0].split("\n")[:2] == ["Read-only file system", "welcome"]
