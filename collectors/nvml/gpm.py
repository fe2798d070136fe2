"""GPU performance monitoring: how busy the parts of a device were between two samples (Hopper and newer).

A sample is memory of the driver's library and is lost unless it is freed, so a meter is a context
manager that owns exactly two and reuses them in turn.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from collectors.nvml.device import NvmlDevice
from collectors.nvml.values import MEBIBYTE, PERCENT_RANGE, Reading, Reason, checked

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from collectors.nvml.calls import Calls
    from collectors.nvml.device import MigInstance

SHORTEST_SECONDS: Final = 0.1
"""Below this the driver's answers are noise or an error."""
RATE_RANGE: Final = (0, 2**33)
METRIC_IDS: Final = (1, 2, 3, 5, 10, 20, 21, 60, 61)
"""In the order of GpmReading; the first five are percent, the others MiB a second."""
ACTIVITY_IDS: Final = (2, 3, 5, 10)
"""In the order of Activity."""


@dataclass(frozen=True, slots=True)
class GpmReading:
    """Averages between two samples: percent of time or of slots, and traffic."""

    graphics_percent: Reading[float]
    sm_percent: Reading[float]
    occupancy_percent: Reading[float]
    tensor_percent: Reading[float]
    dram_percent: Reading[float]
    pcie_tx_bytes_per_second: Reading[int]
    pcie_rx_bytes_per_second: Reading[int]
    nvlink_rx_bytes_per_second: Reading[int]
    nvlink_tx_bytes_per_second: Reading[int]


class Activity(NamedTuple):
    """How busy the parts of a device were between two samples, in percent; None for what `absent` gives reasons for."""

    sm_percent: float | None
    occupancy_percent: float | None
    tensor_percent: float | None
    dram_percent: float | None
    absent: tuple[Reading[float], ...] = ()


class GpmMeter:
    """Averages of one device or MIG instance since the meter was opened or last read."""

    def __init__(
        self,
        calls: Calls,
        target: NvmlDevice | MigInstance,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Made by the port; nothing is allocated before the meter is entered."""
        self._calls = calls
        device = target if isinstance(target, NvmlDevice) else target.parent
        self._gpu_instance_id = None if isinstance(target, NvmlDevice) else target.gpu_instance_id
        self._uuid, self._handle = device.uuid, device.handle
        self._clock, self._sleep = clock, sleep
        self._samples: list[Any] = []
        self._taken_seconds = 0.0
        self._absent: Reading[Any] | None = None
        self._request: Any = None
        self._answers: list[Any] = []

    def __enter__(self) -> GpmMeter:
        """Allocate both samples and take the first; what is not supported shows in `read`."""
        try:
            self._absent = self._unsupported() or self._allocated() or self._taken(0)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Free both samples, whatever happened."""
        self.close()

    def close(self) -> None:
        """Free both samples, also those of a device that was lost meanwhile."""
        while self._samples:
            self._calls.release("nvmlGpmSampleFree", self._samples.pop())

    def read(self) -> Reading[GpmReading]:
        """The averages since the last sample; waits when that is less than a tenth of a second ago."""
        if self._absent:
            return self._absent.absent()
        self._sleep(max(0.0, self._taken_seconds + SHORTEST_SECONDS - self._clock()))
        if failed := self._taken(1):
            return failed.absent()
        found = self._metrics()
        self._samples.reverse()  # the second is the next one's first
        return found

    @property
    def is_absent(self) -> bool:
        """Whether nothing can be measured: not supported, or it could not be begun."""
        return self._absent is not None

    def activity(self) -> Reading[Activity] | None:
        """How busy the device was since the last sample; None, without waiting, when that was just now."""
        if self._absent:
            return self._absent.absent()
        if self._clock() < self._taken_seconds + SHORTEST_SECONDS:
            return None
        if failed := self._taken(1):
            return failed.absent()
        # The struct is large and asked for in each visit: it is made once, and so are the views of its answers.
        if self._request is None and (request := self._asking(ACTIVITY_IDS)):
            self._request, self._answers = request, [request.metrics[slot] for slot in range(len(ACTIVITY_IDS))]
        found = self._answered(self._request)
        self._samples.reverse()
        if found.reason:
            return found.absent()
        percents: list[float | None] = []
        absent: list[Reading[float]] = []
        for answer in self._answers:
            percent = None if answer.nvmlReturn else answer.value
            if percent is None or not 0 <= percent <= 100:
                absent.append(checked(self._metric(answer), PERCENT_RANGE))
                percent = None
            percents.append(percent)
        sm, occupancy, tensor, dram = percents
        return Reading(Activity(sm, occupancy, tensor, dram, tuple(absent)))

    def _unsupported(self) -> Reading[Any] | None:
        found = self._calls.read(self._uuid, "nvmlGpmQueryDeviceSupport", self._handle)
        if found.reason:
            return found
        return None if found.known.isSupportedDevice else Reading(None, Reason.NOT_SUPPORTED)

    def _allocated(self) -> Reading[Any] | None:
        for _ in range(2):
            found = self._calls.read(self._uuid, "nvmlGpmSampleAlloc")
            if found.reason:
                return found
            self._samples.append(found.known)
        return None

    def _taken(self, which: int) -> Reading[Any] | None:
        """Take a sample; what is returned is a failure. A device may let its instances be measured and not itself."""
        if self._gpu_instance_id is None:
            found = self._calls.read(self._uuid, "nvmlGpmSampleGet", self._handle, self._samples[which])
        else:
            found = self._calls.read(
                self._uuid, "nvmlGpmMigSampleGet", self._handle, self._gpu_instance_id, self._samples[which]
            )
        self._taken_seconds = self._clock()
        return found if found.reason else None

    def _asking(self, ids: tuple[int, ...]) -> Any:
        """A request for some metrics; None where the binding is too old to have one."""
        request = self._calls.struct("c_nvmlGpmMetricsGet_t")
        if request is not None:
            request.version, request.numMetrics = 1, len(ids)
            for slot, metric_id in enumerate(ids):
                request.metrics[slot].metricId = metric_id
        return request

    def _answered(self, request: Any) -> Reading[Any]:
        """Have a request filled in from both samples."""
        if request is None:
            return Reading(None, Reason.FUNCTION_MISSING)
        request.sample1, request.sample2 = self._samples
        return self._calls.read(self._uuid, "nvmlGpmMetricsGet", request)

    def _metrics(self) -> Reading[GpmReading]:
        request = self._asking(METRIC_IDS)
        found = self._answered(request)
        if found.reason:
            return found.absent()
        raw = [self._metric(request.metrics[slot]) for slot in range(len(METRIC_IDS))]
        graphics, sm, occupancy, tensor, dram = (checked(reading, PERCENT_RANGE) for reading in raw[:5])
        pcie_tx, pcie_rx, nvlink_rx, nvlink_tx = (_bytes(checked(reading, RATE_RANGE)) for reading in raw[5:])
        return Reading(GpmReading(graphics, sm, occupancy, tensor, dram, pcie_tx, pcie_rx, nvlink_rx, nvlink_tx))

    def _metric(self, raw: Any) -> Reading[float]:
        return self._calls.judged(self._uuid, raw.nvmlReturn) if raw.nvmlReturn else Reading(float(raw.value))


def _bytes(mebibytes: Reading[float]) -> Reading[int]:
    return mebibytes.absent() if mebibytes.value is None else Reading(round(mebibytes.value * MEBIBYTE))
