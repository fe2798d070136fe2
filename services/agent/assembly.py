"""Put an agent together from its configuration: which collectors, which page, which spool and hub."""

from __future__ import annotations

import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from collectors.guard import Guard
from collectors.holders.pod_folders import PodFolders
from collectors.holders.procs import ProcessOwners, sees_host_processes
from collectors.kernel_log.collector import KMSG
from collectors.registry import make_collector
from collectors.runners import ProcessRunner, ThreadRunner
from exporters.batch import Batch
from exporters.node import NodePage
from exporters.page_server import PageServer, PageSettings
from exporters.push import Push, PushSettings
from exporters.spool import Spool
from fleet.telemetry import WINDOW_SECONDS, DeviceWindowRow
from services.agent.recorder import Recorder, RecorderSettings
from services.agent.runtime import Runtime, agent_measurements

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from collectors.guard import Visit
    from collectors.samples import Reading
    from fleet.agent_config import Agent
    from fleet.measurement import Measurement
    from fleet.telemetry import Row
    from services.agent.engines import Engines

PROC: Final = Path("/proc")
STATE_KEY: Final = "recorder"
DEVICES_DEADLINE_SECONDS: Final = 5.0
PAGE_BYTE_LIMIT: Final = 4 * 1024 * 1024
PLACEMENT_PERIOD_SECONDS: Final = 5.0
KERNEL_LOG_PERIOD_SECONDS: Final = 1.0
DRAIN_SECONDS: Final = 5.0


class NodeAgent:
    """A whole agent. `start` it, and `stop` it before the process ends."""

    def __init__(self, config: Agent, node: str, boot_id: str, version: str) -> None:
        """Open the spool, if there is a hub to fill it for. SpoolError when it cannot be used, ConfigError for what
        only the parts can refuse.
        """
        self._config, self._node, self._boot_id, self._version = config, node, boot_id, version
        self._spool = Spool(Path(config.spool), config.spool_mebibytes * 1024 * 1024) if config.hub.address else None
        self._push = Push(self._spool, _push_settings(config)) if self._spool else None
        state = self._state()
        self._goes_on = state is not None and state.get("log_until_ns") is not None
        period = 1 if config.devices == "nvml" else config.dcgm_period_seconds
        self._recorder = Recorder(
            RecorderSettings(
                node, period, config.bridge_seconds, config.expected_gpus, has_scheduler=bool(config.kubelet_socket)
            ),
            processes=ProcessOwners(PROC, Path(config.job_maps) if config.job_maps else None)
            if config.processes
            else None,
            pods=PodFolders(Path(config.pod_logs), Path(config.cgroups)) if config.kubelet_socket else None,
            state=state,
        )
        self._engines = _engines(node, config, self._recorder)
        self._runtime = Runtime(
            node,
            self._recorder,
            _devices(config),
            [*self._others(), *(self._engines.guards() if self._engines else ())],
            period_seconds=period,
            save=self._save,
            ending=self._engines.close if self._engines else None,
        )
        self._stack = ExitStack()

    def start(self) -> None:
        """Serve the page, read the devices, send to the hub."""
        page = self._config.page
        settings = PageSettings(page.listen, page.tls_certificate, page.tls_key, page.client_ca, page.token_file)
        server = PageServer(
            settings, NodePage(self.measurements).render, health=self._runtime.health, ready=self._runtime.ready
        )
        self._stack.callback(server.stop)
        server.start()
        self.page_port = server.port
        self._runtime.start()
        if self._push:
            self._push.start()

    def stop(self) -> None:
        """Record what is open, give the hub a few seconds to take it, and end. What it does not take stays on disk."""
        self._runtime.stop()
        if self._push:
            self._push.stop(DRAIN_SECONDS)
        if self._spool:
            self._spool.close()
        self._stack.close()

    def measurements(self) -> Iterator[Measurement]:
        """All series of the node's page."""
        yield from agent_measurements(self._node, self._version, self._boot_id)
        yield from self._runtime.measurements()
        if self._push:
            yield from self._push.measurements(self._node)
        # Last: of what others make up, the page leaves out what is too much.
        if self._engines:
            yield from self._engines.measurements()

    def _others(self) -> Iterator[tuple[Guard[Reading], float, Callable[[Visit[Reading]], None]]]:
        config, recorder = self._config, self._recorder
        if config.kubelet_socket:
            guard = _threaded("placement", {"socket_path": config.kubelet_socket}, deadline_seconds=15)
            yield guard, PLACEMENT_PERIOD_SECONDS, lambda visit: _claim(recorder, visit)
        if config.kernel_log:
            # The kernel keeps what it said while no agent ran; where one ran before, that is read up to where it was.
            options = {"path": config.kernel_log, "since_boot": self._goes_on and config.kernel_log == KMSG}
            guard = _threaded("kernel_log", options, deadline_seconds=5)
            yield guard, KERNEL_LOG_PERIOD_SECONDS, lambda visit: _happened(recorder, visit)

    def _state(self) -> Mapping[str, Any] | None:
        found = self._spool.state_get(STATE_KEY) if self._spool else None
        if not isinstance(found, dict):
            return None
        for part in ("windows", "roster", "holdings"):
            # A damaged part costs what it would have bridged, and not the agent.
            found[part] = found.get(part) if isinstance(found.get(part), dict) else None
        # One that was saved while the clock ran ahead would leave the agent blind until time catches up.
        is_of_this_boot = found.get("boot_id") == self._boot_id
        if is_of_this_boot and found.get("saved_at_second", 0) <= time.time():
            return found
        # After a boot all counters begin again; which devices there were is still worth knowing.
        return {"roster": found.get("roster"), "log_until_ns": None if is_of_this_boot else 0}

    def _save(self, rows: Mapping[str, tuple[Row, ...]]) -> None:
        if self._spool is None:
            return

        def make(sequence: int, spool_id: str) -> bytes:
            return Batch(
                cluster=self._config.cluster,
                node=self._node,
                boot_id=self._boot_id,
                spool_id=spool_id,
                sequence=sequence,
                agent_version=self._version,
                tables=rows,
            ).encoded()

        ends = [
            row.window_start_second + WINDOW_SECONDS
            for row in rows.get("device_window", ())
            if isinstance(row, DeviceWindowRow)
        ]
        self._spool.append(
            self._boot_id,
            make,
            row_count=sum(map(len, rows.values())),
            window_end_second=max(ends, default=int(time.time())),
            state={STATE_KEY: self._recorder.state() | {"boot_id": self._boot_id, "saved_at_second": int(time.time())}},
        )
        if self._push:
            self._push.wake()


def _engines(node: str, config: Agent, recorder: Recorder) -> Engines | None:
    if not config.engines:
        return None
    # Here and not above: a node without model servers need not hold the mappings of all engines in memory.
    from services.agent.engines import Engines

    return Engines(node, config.engines, recorder.keep)


def _devices(config: Agent) -> Guard[Reading]:
    if config.devices == "nvml":
        host_pids = config.processes and sees_host_processes(PROC)
        # Time is kept by the thread that waits for it, so a driver that is slow to start may not hold it up.
        runner = ProcessRunner("nvml", {"host_pids": host_pids}, waits_for_start=False)
        return Guard("nvml", runner, deadline_seconds=DEVICES_DEADLINE_SECONDS)
    options = {"source": config.dcgm_url, "byte_limit": PAGE_BYTE_LIMIT}
    return _threaded("dcgm", options, deadline_seconds=DEVICES_DEADLINE_SECONDS)


def _threaded(name: str, options: Mapping[str, Any], *, deadline_seconds: float) -> Guard[Reading]:
    return Guard(name, ThreadRunner(lambda: make_collector(name, options)), deadline_seconds=deadline_seconds)


def _claim(recorder: Recorder, visit: Visit[Reading]) -> None:
    """A node without a kubelet has no claims; one that cannot be asked, or has gone, leaves the holders unknown."""
    if visit.reading:
        recorder.claim(visit.reading.claims, visit.reading.allocatable, is_known=True)
    else:
        recorder.claim(None, None, is_known=visit.outcome == "absent")


def _happened(recorder: Recorder, visit: Visit[Reading]) -> None:
    recorder.happened("kernel_log", visit.reading.events if visit.reading else None)


def _push_settings(config: Agent) -> PushSettings:
    hub = config.hub
    return PushSettings(
        address=hub.address,
        ca=hub.ca,
        certificate=hub.certificate,
        key=hub.key,
        token_file=hub.token_file,
        insecure=hub.insecure,
    )
