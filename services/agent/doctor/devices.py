"""The devices, through the same collector, in a process of its own, as the agent reads them."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from collectors.collector import SourceAbsentError
from collectors.holders.procs import sees_host_processes
from collectors.registry import make_collector
from collectors.runners import OverdueError, ProcessRunner, ThreadRunner
from fleet.errors import GputallyError
from services.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from collectors.runners import Runner
    from collectors.samples import DeviceSample, Reading
    from fleet.agent_config import Agent
    from services.finding import Level

VISIT_SECONDS: Final = 5.0
METERED_SECONDS: Final = 0.3
"""Activity is measured between two visits, which must not follow one another too fast."""
_NO_DRIVER: Final = (
    "install the NVIDIA driver; in a container, run it with the NVIDIA runtime (Kubernetes: runtimeClassName) and "
    "NVIDIA_DRIVER_CAPABILITIES=utility"
)
_HANGS: Final = (
    "the driver hangs, and nvidia-smi will too: look for Xids in the kernel's log, drain the node and reboot it"
)
_STATES: Final[dict[str, tuple[Level, str]]] = {
    "degraded": ("warn", "degraded: it works and has a fault, see its recovery action, remapped rows and Xids"),
    "needs_reset": ("fail", "needs a reset: drain it, then `nvidia-smi --gpu-reset` or reboot the node"),
    "lost": ("fail", "lost: it fell off the bus; drain the node and power-cycle it, then replace the board"),
    "unobserved": ("warn", "unobserved: the source does not show it now"),
}


def look(config: Agent, *, driver_start_seconds: float) -> tuple[list[Finding], tuple[DeviceSample, ...] | None]:
    """What was found, and the devices; None where they cannot be read."""
    runner: Runner[Reading]
    if config.devices == "nvml":
        options = {"host_pids": config.processes and sees_host_processes(Path("/proc"))}
        runner = ProcessRunner("nvml", options, start_seconds=driver_start_seconds)
    else:
        runner = ThreadRunner(lambda: make_collector("dcgm", {"source": config.dcgm_url}))
    try:
        reading = _read(runner)
    except OverdueError as error:
        return [Finding("fail", "driver" if config.devices == "nvml" else "dcgm", f"{error}; {_HANGS}")], None
    except SourceAbsentError as error:
        return [Finding("fail", "driver", f"{error}; {_NO_DRIVER}")], None
    except GputallyError as error:
        return [Finding("fail", "driver" if config.devices == "nvml" else "dcgm", str(error))], None
    finally:
        runner.close()
    return list(_told(config, reading)), reading.samples


def _read(runner: Runner[Reading]) -> Reading:
    """The second visit, which has activity, with what the first refused, which read everything."""
    first = runner.ask(VISIT_SECONDS)
    time.sleep(METERED_SECONDS)
    return replace(runner.ask(VISIT_SECONDS), rejected=first.rejected)


def _told(config: Agent, reading: Reading) -> Iterator[Finding]:
    boards = [sample for sample in reading.samples if sample.parent_uuid is None]
    instances = Counter(sample.parent_uuid for sample in reading.samples if sample.parent_uuid)
    versions = sorted({sample.driver for sample in boards if sample.driver})
    yield Finding("ok", "driver", ", ".join(versions) if versions else "its version is not told")
    yield _count(config, boards, instances.total())
    for board in boards:
        level, words = _STATES.get(board.state, ("ok", "ok"))
        inside = instances[board.uuid or ""]
        cut = f", {inside} MIG instances" if inside else ""
        yield Finding(level, f"device {board.device}", f"{board.model or 'model unknown'}{cut}: {words}")
    # Of a board that is cut, its instances are measured; one that is away has no readings at all.
    measured = [s for s in reading.samples if s.state in {"ok", "degraded"} and not instances[s.uuid or ""]]
    if measured:
        yield _activity(measured)
        if config.devices == "nvml":
            yield _processes(measured, reading)
    if refused := [f"{rejected.count} {rejected.reason}" for rejected in reading.rejected]:
        yield Finding("warn", "refused", f"values that cannot be believed, by reason: {', '.join(refused)}")


def _count(config: Agent, boards: Sequence[DeviceSample], instances: int) -> Finding:
    cut = f" and {instances} MIG instances" if instances else ""
    if not boards:
        return Finding("fail", "devices", f"the driver lists none; {_NO_DRIVER}")
    if len(boards) < config.expected_gpus:
        words = f"{len(boards)} of the {config.expected_gpus} expected; a board is off the bus, or not given to us"
        return Finding("fail", "devices", words)
    return Finding("ok", "devices", f"{len(boards)} GPUs{cut}")


def _activity(measured: Sequence[DeviceSample]) -> Finding:
    """Whether more than `busy` is known. Only Hopper and newer tell it to everybody."""
    with_meter = sum(sample.sm_ratio is not None for sample in measured)
    blind = sum(sample.sm_ratio is None and sample.busy_ratio is None for sample in measured)
    if with_meter == len(measured):
        return Finding("ok", "activity", f"sm, occupancy, tensor and memory are measured on all {with_meter}")
    words = (
        f"the profiling unit is read on {with_meter} of {len(measured)}; it needs Hopper or newer, else dcgm-exporter"
    )
    if blind:
        return Finding("warn", "activity", f"nothing measures {blind} of {len(measured)}, theirs is unknown: {words}")
    return Finding("warn", "activity", f"only `busy` (a kernel ran) is known of the others: {words}")


def _processes(measured: Sequence[DeviceSample], reading: Reading) -> Finding:
    silent = sum(sample.processes is None for sample in measured)
    if silent:
        is_barred = any(rejected.reason == "no_permission" for rejected in reading.rejected)
        why = "not allowed to ask, run as root" if is_barred else "the driver does not tell"
        words = f"unknown on {silent} of {len(measured)} devices ({why}): only the kubelet says who holds them"
        return Finding("warn", "device processes", words)
    count = len({process.pid for sample in reading.samples for process in sample.processes or ()})
    return Finding("ok", "device processes", f"listed on all {len(measured)} devices, {count} now")
