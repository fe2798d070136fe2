"""An agent of which everything is real but its devices, which are told."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from collectors.samples import DeviceSample, Reading
from exporters.push import Push
from fleet.agent_config import Agent, AgentHub
from services.agent.assembly import STATE_KEY, NodeAgent, _push_settings

if TYPE_CHECKING:
    from pathlib import Path

BOOTS = ("8080f6b8-106c-44af-8a88-cba615df6397", "f0f0f6b8-106c-44af-8a88-cba615df6397")


class Fed(NodeAgent):
    """An agent that is told what its devices say, and that tries its hub often."""

    def __init__(self, spool: Path, address: str, boot_id: str, node: str = "n1") -> None:
        config = Agent(
            cluster="c", kubelet_socket="", kernel_log="", processes=False, spool=str(spool),
            hub=AgentHub(address=address),
        )  # fmt: skip
        super().__init__(config, node, boot_id, "1")
        assert self._spool
        settings = replace(_push_settings(config), first_pause_seconds=0.05, longest_pause_seconds=0.2)
        self.spool, self.push = self._spool, Push(self._spool, settings)
        self._push = self.push

    def watch(self, start: int, seconds: int, devices: dict[str, int]) -> None:
        """Meters that begin at some value and add 100 mJ a second; what is left open is spooled too."""
        for second in range(seconds + 1):
            samples = tuple(
                DeviceSample(kind="gpu", uuid=uuid, energy_millijoules=begin_mj + 100 * second)
                for uuid, begin_mj in devices.items()
            )
            at = start + second
            self._runtime._record(self._recorder.tick("nvml", at, Reading(samples), at * 1_000_000_000))
        self._runtime._record(self._recorder.finish(start + seconds))

    @property
    def saved(self) -> dict[str, Any]:
        """What it left for its next start."""
        state: dict[str, Any] = self.spool.state_get(STATE_KEY)
        return state

    def series(self, name: str) -> dict[tuple[str, ...], float]:
        """The series of one metric by their labels but the node."""
        return {m.labels[1:]: m.value for m in self.measurements() if m.metric.name == f"gputally_{name}"}

    def end(self) -> None:
        self.push.stop(0)
        self.spool.close()
