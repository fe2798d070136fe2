"""Xids that a metric page shows, as events.

A page holds a gauge that keeps the last code until the driver is loaded anew (dcgm-exporter#500), and leaves the series
out at times (dcgm-exporter#646). So only a code that was not there before is news, and absent is neither news nor the
end of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from collectors.samples import DeviceEvent

if TYPE_CHECKING:
    from collections.abc import Iterable

    from collectors.samples import DeviceSample

_DEVICE_LIMIT: Final = 1024


class PageXids:
    """The codes that each device showed last."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[int, ...]] = {}

    def news(self, samples: Iterable[DeviceSample]) -> list[DeviceEvent]:
        """The codes that are new on devices that were seen before; what a device shows at first is old, as it may be.

        A device without a UUID has no events: nobody could tell which one it is.
        """
        events = []
        for sample in samples:
            if sample.uuid is None:
                continue
            before, now = self._known.get(sample.uuid), sample.xid_codes
            if before is None:
                if len(self._known) < _DEVICE_LIMIT:
                    self._known[sample.uuid] = now or ()
                continue
            if now is not None and now != before:
                self._known[sample.uuid] = now
                events += [
                    DeviceEvent(sample.ts_nanoseconds, sample.uuid, "xid", code) for code in now if code not in before
                ]
        return events
