"""The process of a collector whose visits may hang: one visit for each byte on standard input, until it closes.

The answer is a letter for how the visit ended, four bytes of length, and the reading (or the reason) itself. Readings
cross as plain tuples: packing each sample by its fields is several times faster than pickling the objects.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import pickle
import struct
import sys
from dataclasses import fields
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

from collectors.collector import RestartNeededError, SourceAbsentError
from collectors.samples import DeviceProcess, DeviceSample, Reading
from fleet.errors import GputallyError, one_line

if TYPE_CHECKING:
    from collectors.collector import Collector

OK: Final = b"k"
FAILED: Final = b"f"
ABSENT: Final = b"a"
RESTART: Final = b"r"
LENGTH: Final = 4

_SAMPLE: Final = tuple(field.name for field in fields(DeviceSample))
_PROCESSES: Final = _SAMPLE.index("processes")
_values = attrgetter(*_SAMPLE)


def packed(reading: Reading) -> bytes:
    """A reading as bytes for `unpacked`, on the same machine and version only."""
    samples = []
    for sample in reading.samples:
        row = list(_values(sample))
        if sample.processes:
            row[_PROCESSES] = tuple(
                (p.pid, p.memory_bytes, p.sm_ratio, p.gpu_instance_id, p.compute_instance_id) for p in sample.processes
            )
        samples.append(tuple(row))
    rest = (reading.events, reading.rejected, reading.claims, reading.allocatable, reading.lists_holders_only)
    return pickle.dumps((samples, *rest), protocol=5)


def unpacked(body: bytes) -> Reading:
    """The reading in bytes that our own worker wrote."""
    samples, *rest = pickle.loads(body)  # noqa: S301 - from our own child process, over a pipe nobody else has
    return Reading(tuple(_sample(row) for row in samples), *rest)


def _sample(row: tuple[Any, ...]) -> DeviceSample:
    if row[_PROCESSES]:
        processes = tuple(DeviceProcess(*process) for process in row[_PROCESSES])
        row = (*row[:_PROCESSES], processes, *row[_PROCESSES + 1 :])
    return DeviceSample(*row)


def visited(collector: Collector) -> tuple[bytes, bytes]:
    """One visit: how it ended, and the reading or the reason."""
    try:
        return OK, packed(collector.collect())
    except SourceAbsentError as error:
        return ABSENT, str(error).encode()
    except RestartNeededError as error:
        return RESTART, str(error).encode()
    except GputallyError as error:
        return FAILED, str(error).encode()


def serve(collector: Collector, asked: int, answers: int) -> None:
    """Answer each byte on one descriptor with a visit on the other, until the first is closed."""
    while os.read(asked, 1):
        kind, body = visited(collector)
        _write(answers, kind + struct.pack(">I", len(body)) + body)
        if kind == RESTART:
            return


def _write(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def main() -> None:
    """Run the collector named on the command line; its options follow as JSON."""
    from collectors.registry import make_collector

    answers = os.dup(1)
    os.dup2(2, 1)  # a library that prints must not spoil the answers
    collector = make_collector(sys.argv[1], json.loads(sys.argv[2]))
    gc.freeze()  # what is loaded by now stays: it need not be looked through again and again
    with contextlib.suppress(BrokenPipeError, KeyboardInterrupt):
        try:
            serve(collector, 0, answers)
        finally:
            collector.close()


if __name__ == "__main__":
    try:
        main()
    except GputallyError as error:
        sys.stderr.write(f"collector: {one_line(str(error))}\n")
        sys.exit(1)
