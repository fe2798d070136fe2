"""A batch as it stands in the spool and goes over the wire: what a node saw in one window, under one name.

(node, boot id, spool id, sequence) names it, so that the hub can tell a batch sent twice from two batches.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from exporters import ingest_pb2
from exporters.arrow import encode

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fleet.telemetry import Row


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """The rows of one window by table; tables without rows are left out."""

    cluster: str
    node: str
    boot_id: str
    spool_id: str
    sequence: int
    agent_version: str
    tables: Mapping[str, Sequence[Row]]

    def encoded(self) -> bytes:
        """The batch as a protobuf message, still without the time of sending. Errors as `exporters.arrow.encode`."""
        message = ingest_pb2.Batch(
            cluster=self.cluster,
            node=self.node,
            boot_id=self.boot_id,
            spool_id=self.spool_id,
            sequence=self.sequence,
            agent_version=self.agent_version,
            tables=[
                ingest_pb2.Table(name=name, row_count=len(rows), arrow_stream=encode(name, rows))
                for name, rows in self.tables.items()
                if rows
            ],
        )
        encoded: bytes = message.SerializeToString()
        return encoded


def stamped(encoded: bytes, sent_at_nanoseconds: int) -> bytes:
    """An encoded batch with the time at which it is sent.

    Messages that follow one another in a buffer are merged by whoever parses it, so the spooled bytes stay as they
    are (https://protobuf.dev/programming-guides/encoding/#last-one-wins).
    """
    stamp: bytes = ingest_pb2.Batch(sent_at_nanoseconds=sent_at_nanoseconds).SerializeToString()
    return encoded + stamp
