"""The agent's half of the wire: a spool on disk and the thread that empties it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from exporters.batch import Batch
from exporters.push import Push
from exporters.push_channel import PushSettings
from exporters.spool import Spool

if TYPE_CHECKING:
    from pathlib import Path


class Agent:
    """A spool on disk and the thread that empties it."""

    def __init__(self, path: Path, limit_bytes: int = 10_000_000) -> None:
        self.spool = Spool(path, limit_bytes)
        self.push: Push | None = None

    def append(self, count: int = 1) -> None:
        for _ in range(count):
            self.spool.append("boot", self._make, row_count=0, window_end_second=1_700_000_000)
            if self.push:
                self.push.wake()

    def start(self, port: int, **settings: Any) -> Push:
        quick = {"first_pause_seconds": 0.02, "longest_pause_seconds": 0.1}
        self.push = Push(self.spool, PushSettings(address=f"127.0.0.1:{port}", **quick | settings))
        self.push.start()
        return self.push

    def counts(self) -> dict[str, float]:
        """The series of the pusher: the end of the name, and the reason if it has one."""
        assert self.push is not None
        found = {}
        for measured in self.push.measurements("n1"):
            assert measured.labels[0] == "n1"
            short = measured.metric.name.removeprefix("gputally_push_")
            found[":".join((short, *measured.labels[1:]))] = measured.value
        return found

    def stop(self, drain_seconds: float = 0.0) -> None:
        if self.push:
            self.push.stop(drain_seconds)
            assert not self.push._thread.is_alive()
        self.spool.close()

    @staticmethod
    def _make(sequence: int, spool_id: str) -> bytes:
        return Batch(
            cluster="c1",
            node="n1",
            boot_id="boot",
            spool_id=spool_id,
            sequence=sequence,
            agent_version="0",
            tables={},
        ).encoded()
