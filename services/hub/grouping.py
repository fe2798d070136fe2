"""From what arrived to what can be stored: decode each batch, hold all of a group to the rules at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from services.hub.waiting import REFUSED, Answered, Waiting, answer_to
from store.telemetry import StoredBatch
from store.telemetry_arrow import RefusedError, decode
from store.telemetry_checks import check_batch, check_batches

if TYPE_CHECKING:
    from collections.abc import Sequence

    from store.telemetry_arrow import BatchLimits


def decoded(group: Sequence[Waiting], limits: BatchLimits) -> tuple[list[tuple[Waiting, StoredBatch]], list[Answered]]:
    """Read the tables of each batch; those that cannot be read are answered "refused"."""
    kept: list[tuple[Waiting, StoredBatch]] = []
    answers: list[Answered] = []
    for waiting in group:
        try:
            kept.append((waiting, _stored(waiting, limits)))
        except RefusedError as error:
            answers.append((waiting, answer_to(waiting.batch, REFUSED, f"{error.reason}: {error}")))
    return kept, answers


def refused_rows(batches: Sequence[StoredBatch], now_second: int) -> dict[int, RefusedError]:
    """Places of the batches with rows that cannot be true. All are looked at together; one by one only in doubt."""
    try:
        check_batches([batch.tables for batch in batches], now_second)
    except RefusedError:
        refused = {}
        for place, batch in enumerate(batches):
            try:
                check_batch(batch.tables, now_second)
            except RefusedError as error:
                refused[place] = error
        return refused
    return {}


def _stored(waiting: Waiting, limits: BatchLimits) -> StoredBatch:
    batch = waiting.batch
    names = [table.name for table in batch.tables]
    if len(set(names)) != len(names):
        raise RefusedError("table", "a table stands twice in the batch")
    tables = {table.name: decode(table.name, table.row_count, table.arrow_stream, limits) for table in batch.tables}
    devices: set[str] = set()
    for table in tables.values():
        if table.num_rows > limits.devices:
            devices.update(table.column("device").unique().to_pylist())
    if len(devices) > limits.devices:
        raise RefusedError("size", f"{len(devices)} devices, more than {limits.devices} in a batch")
    return StoredBatch(
        batch.cluster, batch.node, batch.boot_id, batch.spool_id, batch.sequence, waiting.received_at, tables
    )
