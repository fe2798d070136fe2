"""The section `[agent]` of `gputally.toml`: what the node agent reads, where it shows it, and where it sends it.

The agent knows nothing else of a workspace, so its file may hold this section alone.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from fleet.agent_engine_config import ENGINES_TEMPLATE, KUBERNETES_TEMPLATE, MOST_ENGINES, AgentEngine, AgentKubernetes
from fleet.binding import FieldError, checked_address
from fleet.errors import quoted
from fleet.identity import bounded_name


@dataclass(frozen=True, slots=True)
class AgentPage:
    """Where the agent's metrics page listens, and who may read it."""

    listen: str = "0.0.0.0:9472"
    tls_certificate: str = ""
    tls_key: str = ""
    client_ca: str = ""
    token_file: str = ""

    def __post_init__(self) -> None:
        """Refuse what is no address, and half of a certificate."""
        checked_address("listen", self.listen)
        if bool(self.tls_certificate) != bool(self.tls_key):
            raise FieldError("tls_key", "tls_certificate and tls_key belong together")
        if self.client_ca and not self.tls_certificate:
            raise FieldError("client_ca", "needs tls_certificate and tls_key")


@dataclass(frozen=True, slots=True)
class AgentHub:
    """The hub that gets this node's rows; without an address they stay on the node's page."""

    address: str = ""
    ca: str = ""
    certificate: str = ""
    key: str = ""
    token_file: str = ""
    insecure: bool = False

    def __post_init__(self) -> None:
        """Refuse what is no address, and half of a certificate."""
        if self.address:
            checked_address("address", self.address)
        if bool(self.certificate) != bool(self.key):
            raise FieldError("key", "certificate and key belong together")


@dataclass(frozen=True, slots=True)
class Agent:
    """What the agent on a node does."""

    cluster: str = "default"
    node: str = ""
    devices: Literal["nvml", "dcgm"] = "nvml"
    dcgm_url: str = ""
    dcgm_period_seconds: int = 15
    expected_gpus: int = 0
    kernel_log: str = "/dev/kmsg"
    kubelet_socket: str = "/var/lib/kubelet/pod-resources/kubelet.sock"
    pod_logs: str = "/var/log/pods"
    cgroups: str = "/sys/fs/cgroup"
    processes: bool = True
    job_maps: str = ""
    bridge_seconds: int = 300
    spool: str = "/var/lib/gputally/spool.sqlite"
    spool_mebibytes: int = 256
    page: AgentPage = field(default_factory=AgentPage)
    hub: AgentHub = field(default_factory=AgentHub)
    kubernetes: AgentKubernetes = field(default_factory=AgentKubernetes)
    engines: tuple[AgentEngine, ...] = ()

    def __post_init__(self) -> None:
        """Refuse what is no name and what is out of range."""
        for name in ("cluster", "node"):
            if name == "cluster" or self.node:
                try:
                    bounded_name(getattr(self, name))
                except ValueError as error:
                    raise FieldError(name, str(error)) from None
        if self.devices == "dcgm" and not self.dcgm_url:
            raise FieldError("dcgm_url", 'is needed where devices = "dcgm"')
        names = [engine.name for engine in self.engines]
        for name in names:
            if names.count(name) > 1:
                raise FieldError("engines", f"two are called {quoted(name)}; give each a server of its own")
        if len(names) > MOST_ENGINES:
            raise FieldError("engines", f"are {len(names)}, more than {MOST_ENGINES}")
        for name, low, high in (
            ("dcgm_period_seconds", 1, 300),
            ("expected_gpus", 0, 1024),
            ("bridge_seconds", 0, 3600),
            ("spool_mebibytes", 1, 65536),
        ):
            if not low <= getattr(self, name) <= high:
                raise FieldError(name, f"must be from {low} to {high}, not {getattr(self, name)}")


AGENT_TEMPLATE = """
# The node agent. On a node the file may hold these sections alone.
[agent]
# Cluster under which the inventory knows this node.
cluster = "default"
# Name of the node there; empty is the host name.
node = ""
# What the devices are read from: "nvml" (the NVIDIA driver) or "dcgm" (a dcgm-exporter's page).
devices = "nvml"
# Address of that page.
dcgm_url = ""
# How often it is read.
dcgm_period_seconds = 15
# How many GPUs this node should have; 0 is as many as it has shown.
expected_gpus = 0
# The kernel's log, for Xid errors; empty reads none.
kernel_log = "/dev/kmsg"
# The kubelet's socket, for who holds what; empty is a node without Kubernetes.
kubelet_socket = "/var/lib/kubelet/pod-resources/kubelet.sock"
# The host's folder of pods' logs: its names tell their uids. Nothing in it is read.
pod_logs = "/var/log/pods"
# The host's cgroups: their names tell which pods live.
cgroups = "/sys/fs/cgroup"
# Whether compute processes tell who holds a device where the kubelet does not.
processes = true
# Folder with a file per GPU that lists the Slurm jobs on it, as dcgm-exporter's; empty is none.
job_maps = ""
# How long a gap in what is known of holders may be to be filled, when they are the same after it.
bridge_seconds = 300
# File of the rows that the hub has not acknowledged.
spool = "/var/lib/gputally/spool.sqlite"
# Its size; beyond it the oldest rows are dropped.
spool_mebibytes = 256

[agent.page]
# Where the metrics page listens.
listen = "0.0.0.0:9472"
# Certificate of the page, which then speaks TLS.
tls_certificate = ""
# Its key.
tls_key = ""
# CA that signs the certificates of those who may read the page; empty asks for none.
client_ca = ""
# File with the bearer token that the page asks for; empty asks for none.
token_file = ""

[agent.hub]
# HOST:PORT of the hub; empty sends nothing.
address = ""
# CA of the hub's certificate; empty trusts the system's.
ca = ""
# Certificate of this node, for a hub that asks for one.
certificate = ""
# Its key.
key = ""
# File with the bearer token for the hub.
token_file = ""
# Whether rows and token may leave this machine without TLS.
insecure = false
"""
AGENT_TEMPLATE += KUBERNETES_TEMPLATE + ENGINES_TEMPLATE
