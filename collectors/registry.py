"""The collectors by name: what `gputally read KIND` and the agent can read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from collectors.dcgm.collector import Dcgm

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from collectors.collector import Collector
    from collectors.samples import Reading


class PageCollector(Protocol):
    """Reads one page, at a path or an http(s) address."""

    def __init__(self, source: str, *, token: str | None = None) -> None: ...

    def collect(self) -> Reading:
        """Fetch the page and return what it says; PageError when it cannot be had or is of another kind."""
        ...


PAGE_COLLECTORS: Mapping[str, type[PageCollector]] = {
    "dcgm": Dcgm,
}
"""Collectors of pages; a name is that of the collector's file."""


# Each is imported when it is made: the NVML process needs no gRPC, and a node without a kubelet does neither.
def _nvml(**options: Any) -> Collector:
    from collectors.nvml.collector import Nvml

    return Nvml(**options)


def _kernel_log(**options: Any) -> Collector:
    from collectors.kernel_log.collector import KernelLog

    return KernelLog(**options)


def _placement(**options: Any) -> Collector:
    from collectors.placement.collector import Placement

    return Placement(**options)


AGENT_COLLECTORS: Mapping[str, Callable[..., Collector]] = {
    "nvml": _nvml,
    "dcgm": Dcgm,
    "kernel_log": _kernel_log,
    "placement": _placement,
}
"""Collectors of the agent; a name is that of the collector's file."""


def make_collector(name: str, options: Mapping[str, Any]) -> Collector:
    """A collector of the agent, with its options; KeyError for a name that is none, TypeError for an option."""
    return AGENT_COLLECTORS[name](**options)
