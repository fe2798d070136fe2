"""Put an agent together from its configuration: which collectors, which page, which spool and hub."""

from __future__ import annotations

import logging
import threading
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
from exporters.spool_file import SpoolError
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

log = logging.getLogger(__name__)

PROC: Final = Path("/proc")
STATE_KEY: Final = "recorder"
ENGINES_KEY: Final = "engines"
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
        self._engines = _engines(node, boot_id, config, self._spool)
        self._saving = threading.Lock()
        self._runtime = Runtime(
            node,
            self._recorder,
            _devices(config),
            list(self._others()),
            period_seconds=period,
            save=self._save,
            ending=self._engines.close if self._engines else None,
        )
        if self._engines:
            self._visit_engines(self._engines)
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

    def _visit_engines(self, engines: Engines) -> None:
        """Have the model servers visited that the configuration lists, and those found while the agent runs."""
        from services.agent.targets import configured

        for engine in self._config.engines:
            self._runtime.watch(engines.asking(engines.watch(configured(engine))))
        if self._config.kubernetes.discover:
            from services.agent.discovery import PodVisits

            visits = PodVisits(engines, self._runtime)
            self._runtime.watch(visits.asking(self._config.kubernetes, self._node, self._config.engines))
        engines.close_unwatched(but_pods=self._config.kubernetes.discover)

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
        """Put rows on disk with the states that follow from them, both or neither. Mostly there is nothing to do."""
        # One at a time: a state that is older than one on disk would count again what is in rows.
        with self._saving:
            # That of the devices stays as it is without rows of theirs: those it follows from wait in the recorder.
            state = {STATE_KEY: self._recorder.state() | self._now()} if rows and self._spool else {}
            if self._engines and ("device_window" in rows or self._engines.is_due(int(time.time()))):
                more, servers = self._engines.taken()
                rows = {**rows, **more}
                state[ENGINES_KEY] = {"servers": servers} | self._now()
            if self._spool is None:
                return
            if rows:
                self._append(self._spool, rows, state)
            elif state:
                try:
                    self._spool.state_put(ENGINES_KEY, state[ENGINES_KEY])
                except SpoolError as error:
                    log.warning("the state of model servers is not on disk", extra={"reason": str(error)})

    def _now(self) -> dict[str, Any]:
        return {"boot_id": self._boot_id, "saved_at_second": int(time.time())}

    def _append(self, spool: Spool, rows: Mapping[str, tuple[Row, ...]], state: Mapping[str, Any]) -> None:
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
        spool.append(
            self._boot_id,
            make,
            row_count=sum(map(len, rows.values())),
            window_end_second=max(ends, default=int(time.time())),
            state=state,
        )
        if self._push:
            self._push.wake()


def _engines(node: str, boot_id: str, config: Agent, spool: Spool | None) -> Engines | None:
    before = spool.state_get(ENGINES_KEY) if spool else None
    has_left = isinstance(before, dict) and before.get("servers")
    if not config.engines and not config.kubernetes.discover and not has_left:
        return None
    # Here and not above: a node without model servers need not hold in memory what reads them. The mappings of engines
    # are imported with the first server that is visited, as on most nodes where pods are looked for there is none.
    from services.agent.engine_states import restored
    from services.agent.engines import Engines

    return Engines(node, restored(before, boot_id, int(time.time())))


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
