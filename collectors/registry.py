"""The collectors by name: what `gputally read KIND` and the agent can read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from collectors.collector import Collector


# Each is imported when it is made: the process of the NVML collector needs neither gRPC nor HTTP.
def _dcgm(source: str, **options: Any) -> Collector:
    from collectors.dcgm.collector import Dcgm

    return Dcgm(source, **options)


def _nvml(**options: Any) -> Collector:
    from collectors.nvml.collector import Nvml

    return Nvml(**options)


def _kernel_log(**options: Any) -> Collector:
    from collectors.kernel_log.collector import KernelLog

    return KernelLog(**options)


def _placement(**options: Any) -> Collector:
    from collectors.placement.collector import Placement

    return Placement(**options)


PAGE_COLLECTORS: Mapping[str, Callable[..., Collector]] = {
    "dcgm": _dcgm,
}
"""Collectors of a page, at a path or an http(s) address, with an optional `token`: the kinds of `gputally read`."""

AGENT_COLLECTORS: Mapping[str, Callable[..., Collector]] = {
    "nvml": _nvml,
    "dcgm": _dcgm,
    "kernel_log": _kernel_log,
    "placement": _placement,
}
"""Collectors of the agent; a name is that of the collector's folder."""


def make_collector(name: str, options: Mapping[str, Any]) -> Collector:
    """A collector of the agent, with its options; KeyError for a name that is none, TypeError for an option."""
    return AGENT_COLLECTORS[name](**options)
