"""What an agent can and cannot see on this node, with the fix for each.

It looks where the agent would look, with the rights of whoever runs it: run it as the agent runs. Nothing is changed,
and nothing that hangs (a driver, a kubelet, a network disk) is waited for beyond a deadline.
"""

from __future__ import annotations

import os
import platform
from importlib import metadata
from typing import TYPE_CHECKING, Final

from fleet.agent_config import Agent
from fleet.config import load_config_file
from fleet.errors import GputallyError
from fleet.identity import bounded_name
from services.agent.doctor.deadline import within
from services.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PACKAGES: Final = ("grpcio", "nanoarrow", "nvidia-ml-py", "prometheus-client", "protobuf")
"""What the extra `agent` installs."""
LOOK_SECONDS: Final = 10.0
KUBELET_SECONDS: Final = 15.0
DRIVER_START_SECONDS: Final = 25.0
"""A driver that nobody holds open sets up each device first."""


def examine_node(
    file: Path | None = None, node: str | None = None, *, driver_start_seconds: float = DRIVER_START_SECONDS
) -> list[Finding]:
    """Look at this node as its agent would: packages, configuration, devices, holders, model servers, kernel log, page,
    spool, hub.

    Without a file the defaults hold, as for the agent itself. Never raises, whatever the node is like.
    """
    findings = [_machine(), *_packages()]
    if any(finding.level == "fail" for finding in findings):
        return findings
    try:
        config = _config(file)
        name = bounded_name(node or config.node or platform.node())
    except (GputallyError, OSError, ValueError) as error:
        return [*findings, Finding("fail", "config", str(error))]
    source = str(file) if file else "none given, defaults"
    findings.append(Finding("ok", "config", f"{source}; node {name} of cluster {config.cluster}"))
    return [*findings, *_looks(config, name, driver_start_seconds)]


def _looks(config: Agent, node: str, driver_start_seconds: float) -> Iterator[Finding]:
    # Here and not above: these need what `_packages` has just looked for.
    from services.agent.doctor import devices, engines, holders, hub, outputs

    seen, samples = devices.look(config, driver_start_seconds=driver_start_seconds)
    yield from seen
    yield from within(LOOK_SECONDS, "processes", lambda: holders.processes(config))
    yield from within(KUBELET_SECONDS, "kubelet", lambda: holders.kubelet(config, samples))
    yield from within(LOOK_SECONDS, "pods", lambda: holders.pods(config))
    yield from within(LOOK_SECONDS, "job maps", lambda: holders.job_maps(config))
    yield from engines.configured(config)
    yield from engines.in_pods(config, node)
    yield from within(LOOK_SECONDS, "kernel log", lambda: outputs.kernel_log(config))
    yield from within(LOOK_SECONDS, "page", lambda: outputs.page(config))
    yield from within(LOOK_SECONDS, "spool", lambda: outputs.spool(config))
    yield from within(hub.DEADLINE_SECONDS, "hub", lambda: hub.look(config))
    yield from within(LOOK_SECONDS, "clock", outputs.clock)


def _machine() -> Finding:
    system = f"{platform.system()} {platform.release()}, Python {platform.python_version()}, user id {os.geteuid()}"
    return Finding("ok", "machine", system)


def _packages() -> Iterator[Finding]:
    found = {}
    for name in PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            yield Finding("fail", "packages", f"{name} is not installed: install gputally[agent]")
    if len(found) == len(PACKAGES):
        yield Finding("ok", "packages", ", ".join(f"{name} {version}" for name, version in found.items()))


def _config(file: Path | None) -> Agent:
    return load_config_file(file).agent if file else Agent()
