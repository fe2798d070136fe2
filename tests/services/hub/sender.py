"""What a node agent does, in few lines: batches made with pyarrow, pushed over a real gRPC stream.

As a program, `python -m tests.services.hub.sender ADDRESS NODE FOLDER SECONDS` pushes for a while and writes down what
was answered.
"""

from __future__ import annotations

import os
import queue
import sys
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import grpc
import pyarrow as pa

from exporters.ingest_pb2 import Answer, Batch, Table
from fleet.telemetry import columns
from store.telemetry_arrow import ARROW_TYPES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

METHOD = "/gputally.ingest.v1.Ingest/Push"
STORED, REFUSED, LATER = Answer.STORED, Answer.REFUSED, Answer.LATER
BOOT, SPOOL = "boot-1", "spool-1"


def arrow_table(name: str, rows: Sequence[Mapping[str, Any]]) -> Any:
    """Rows of a wire table; columns that a row leaves out are NULL."""
    return pa.Table.from_pylist(list(rows), pa.schema([(c.name, ARROW_TYPES[c.kind]) for c in columns(name)]))


def stream_bytes(table: Any, **options: Any) -> bytes:
    """A table as an Arrow IPC stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue().to_pybytes())


def this_minute() -> int:
    """Start of the window before this one, so that it is over."""
    return int(time.time()) // 60 * 60 - 60


def window(device: str, start_second: int, **values: Any) -> dict[str, Any]:
    """One device window in which the device was watched throughout."""
    return {
        "device": device, "window_start_second": start_second, "window_ms": 60_000, "observed_ms": 60_000,
        "state": "ok", "busy_observed_ms": 60_000, "busy_ms": 30_000, "profile_observed_ms": 0,
        "memory_observed_ms": 0, "power_observed_ms": 0, "quality_bits": 0, "driver_epoch": 0,
    } | values  # fmt: skip


def holding(device: str, from_second: int, to_second: int, **values: Any) -> dict[str, Any]:
    """A whole device held by one pod."""
    return {
        "device": device, "from_second": from_second, "to_second": to_second, "gpu_millionths": 1_000_000,
        "owner_kind": "pod", "source": "kubelet", "confidence": "exact", "namespace": "ml", "pod": "train-0",
    } | values  # fmt: skip


def event(event_id: str, microsecond: int, **values: Any) -> dict[str, Any]:
    """An Xid."""
    return {
        "event_id": event_id, "event_microsecond": microsecond, "source": "nvml", "code_space": "xid", "code": 79,
        "severity": "fatal",
    } | values  # fmt: skip


def wire_table(name: str, rows: Sequence[Mapping[str, Any]]) -> Table:
    """Rows as they stand in a message."""
    return Table(name=name, row_count=len(rows), arrow_stream=stream_bytes(arrow_table(name, rows)))


def make_batch(node: str, sequence: int, tables: Iterable[Table] | None = None, **fields: Any) -> Batch:
    """A batch; without tables it holds one window of each of two devices."""
    if tables is None:
        start = this_minute()
        tables = [
            wire_table("device_window", [window(f"GPU-{node}-{n}", start, busy_ms=sequence % 60_000) for n in (0, 1)])
        ]
    known = {"cluster": "c1", "boot_id": BOOT, "spool_id": SPOOL, "sent_at_nanoseconds": time.time_ns()}
    return Batch(node=node, sequence=sequence, tables=tables, agent_version="test", **(known | fields))


class Pushing:
    """One open stream: `send` batches, `answer` waits for the next answer."""

    def __init__(self, channel: grpc.Channel, metadata: Sequence[tuple[str, str]] = ()) -> None:
        self._outgoing: queue.SimpleQueue[Batch | None] = queue.SimpleQueue()
        call = channel.stream_stream(
            METHOD, request_serializer=Batch.SerializeToString, response_deserializer=Answer.FromString
        )
        self.call = call(iter(self._outgoing.get, None), metadata=metadata)
        self._answers: queue.SimpleQueue[Answer | None] = queue.SimpleQueue()
        threading.Thread(target=self._listen, daemon=True).start()

    def send(self, *batches: Batch) -> None:
        for batch in batches:
            self._outgoing.put(batch)

    def answer(self, seconds: float = 30.0) -> Answer:
        """The next answer; AssertionError when the stream ended, queue.Empty when none came in time."""
        found = self._answers.get(timeout=seconds)
        assert found is not None, f"the stream ended: {self.call.code()} {self.call.details()}"
        return found

    def push(self, *batches: Batch) -> list[tuple[int, int, str]]:
        """Send batches; return (sequence, outcome, reason) of as many answers, by sequence."""
        self.send(*batches)
        answers = [self.answer() for _ in batches]
        return sorted((answer.sequence, answer.outcome, answer.reason) for answer in answers)

    def close(self) -> None:
        self._outgoing.put(None)

    def has_ended(self, seconds: float = 30.0) -> bool:
        """Whether the hub closed the stream in time; answers still to come are dropped."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            try:
                if self._answers.get(timeout=0.1) is None:
                    return True
            except queue.Empty:
                continue
        return False

    def _listen(self) -> None:
        try:
            for answer in self.call:
                self._answers.put(answer)
        except grpc.RpcError:
            pass
        finally:
            self._answers.put(None)


@contextmanager
def pushing(
    address: str, credentials: grpc.ChannelCredentials | None = None, token: str | None = None, name: str | None = None
) -> Iterator[Pushing]:
    """A stream on a channel of its own. `name` is what the hub's certificate must say."""
    options = [("grpc.ssl_target_name_override", name)] if name else []
    options.append(("grpc.use_local_subchannel_pool", 1))
    channel = (
        grpc.secure_channel(address, credentials, options) if credentials else grpc.insecure_channel(address, options)
    )
    with channel:
        stream = Pushing(channel, [("authorization", f"Bearer {token}")] if token else [])
        yield stream
        stream.close()


def push_until(address: str, node: str, folder: Path, until: float) -> None:
    """Push batches in order, a few at once, across restarts of the hub; each stored sequence goes to FOLDER/NODE.acked.

    When the time is over, no new batch is made and what is not answered is pushed until it is. FOLDER/NODE.made says
    how many there were.
    """
    made = 0
    unanswered: dict[int, Batch] = {}
    with (folder / f"{node}.acked").open("a") as acked:
        while unanswered or time.time() < until:
            try:
                with pushing(address) as stream:
                    stream.send(*unanswered.values())
                    while unanswered or time.time() < until:
                        while len(unanswered) < 4 and time.time() < until:
                            unanswered[made] = make_batch(node, made)
                            stream.send(unanswered[made])
                            made += 1
                        answer = stream.answer(seconds=20)
                        if answer.outcome == STORED:
                            del unanswered[answer.sequence]
                            acked.write(f"{answer.sequence}\n")
                            acked.flush()
                            os.fsync(acked.fileno())
                        elif answer.outcome == LATER:
                            time.sleep(0.05)
                            stream.send(unanswered[answer.sequence])
                        else:
                            raise SystemExit(f"refused: {answer.reason}")
            except (AssertionError, queue.Empty):
                time.sleep(0.05)  # the hub is gone: try again soon
    (folder / f"{node}.made").write_text(str(made))


if __name__ == "__main__":
    push_until(sys.argv[1], sys.argv[2], Path(sys.argv[3]), time.time() + float(sys.argv[4]))
