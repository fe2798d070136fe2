"""Two ways to run a collector so that a visit that hangs harms nobody: in a thread, or in a process of its own.

A thread suits a source that keeps its own time (a socket, a file). A library call into a driver may never return and
cannot be interrupted, so its collector lives in a process that can be replaced.
"""

from __future__ import annotations

import json
import os
import queue
import select
import struct
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, Protocol, TypeVar

from collectors.collector import RestartNeededError, SourceAbsentError
from collectors.worker import ABSENT, FAILED, LENGTH, RESTART, unpacked
from fleet.errors import GputallyError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from collectors.samples import Reading, Rejected

VISIT: Final = b"v"
MOST_ABANDONED: Final = 4
"""Processes that do not even die when killed sit in the driver; more of them would only fill the machine."""
_HIDING: Final = ("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER")


class OverdueError(GputallyError):
    """A visit did not end in time."""


class Told(Protocol):
    """What a visit yields: whatever it is, it says how much was refused."""

    @property
    def rejected(self) -> tuple[Rejected, ...]:
        """What was refused, by reason."""
        ...


T = TypeVar("T", bound=Told)
T_co = TypeVar("T_co", bound=Told, covariant=True)


class Source(Protocol[T_co]):
    """A collector, of whatever its visits yield; `collectors.collector.Collector` is that of a node's devices."""

    def collect(self) -> T_co:
        """Visit the source. Raises a GputallyError with one line when it has nothing to say."""
        ...

    def close(self) -> None:
        """Give back what the collector holds; may be called twice."""
        ...


class Runner(Protocol[T_co]):
    """Runs the visits of one collector."""

    replaced: int
    """How many processes were replaced."""

    def ask(self, timeout_seconds: float) -> T_co:
        """Make one visit. OverdueError when it takes longer; else what the collector itself raises."""
        ...

    def close(self) -> None:
        """End what runs; one that hangs is left behind."""
        ...


class ThreadRunner(Generic[T]):
    """Runs a collector in one thread. An overdue visit goes on; the next `ask` waits for it instead of adding one."""

    def __init__(self, make: Callable[[], Source[T]]) -> None:
        """Take how to make the collector; it is made by the first visit."""
        self.replaced = 0
        self._make = make
        self._asked: queue.SimpleQueue[Literal["visit", "end"]] = queue.SimpleQueue()
        self._answers: queue.SimpleQueue[T | Exception] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._is_waiting = False

    def ask(self, timeout_seconds: float) -> T:
        """Make one visit, or go on waiting for the one that is overdue."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, daemon=True, name="collector")
            self._thread.start()
        if not self._is_waiting:
            self._is_waiting = True
            self._asked.put("visit")
        try:
            answer = self._answers.get(timeout=timeout_seconds)
        except queue.Empty:
            raise OverdueError(f"no answer within {timeout_seconds:g} seconds") from None
        self._is_waiting = False
        if isinstance(answer, Exception):
            raise answer
        return answer

    def close(self) -> None:
        """Tell the thread to end; it is not waited for."""
        self._asked.put("end")

    def _run(self) -> None:
        collector: Source[T] | None = None
        while self._asked.get() == "visit":
            try:
                collector = collector or self._make()
                self._answers.put(collector.collect())
            except Exception as error:  # noqa: BLE001 - a bug in one collector must not stop the others: it is told
                self._answers.put(error)
        if collector:
            collector.close()


class ProcessRunner:
    """Runs a collector in a process of its own, and kills and replaces one that is overdue."""

    def __init__(
        self, name: str, options: Mapping[str, object], *, start_seconds: float = 60.0, waits_for_start: bool = True
    ) -> None:
        """Take the collector's name in the registry and its options (plain values).

        The first visit of a process may take `start_seconds` longer: a driver that is not held open has to set up
        each device first. Who must not wait so long is told that it is overdue meanwhile, and asks again.
        """
        self.replaced = 0
        self._command = [sys.executable, "-P", "-m", "collectors.worker", name, json.dumps(dict(options))]
        self._start_seconds = start_seconds
        self._waits_for_start = waits_for_start
        self._process: subprocess.Popen[bytes] | None = None
        self._abandoned: list[subprocess.Popen[bytes]] = []
        self._failures = 0
        self._not_before = 0.0
        self._patient_until = 0.0
        self._is_asked = False
        self._received = bytearray()

    @property
    def pid(self) -> int | None:
        """The process that runs now."""
        return self._process.pid if self._process else None

    def ask(self, timeout_seconds: float) -> Reading:
        """Make one visit, in a new process if the last was replaced; or go on waiting for one that begins."""
        process, allowed = self._process, timeout_seconds
        if process is None:
            process = self._start()
            allowed += self._start_seconds if self._waits_for_start else 0
        try:
            kind, body = self._exchange(process, allowed)
        except OverdueError:
            if time.monotonic() < self._patient_until:
                raise OverdueError("no answer yet: the driver sets up its devices") from None
            self._replace()
            raise
        except OSError as error:
            status = self._gone(process)
            raise GputallyError(f"the collector's process ended ({status})") from error
        self._patient_until = 0.0
        if kind == RESTART:
            self._replace()
            raise RestartNeededError(body.decode())
        self._failures = 0
        if kind in {ABSENT, FAILED}:
            raise (SourceAbsentError if kind == ABSENT else GputallyError)(body.decode())
        return unpacked(body)

    def close(self) -> None:
        """Let the process end by itself; kill it when it does not."""
        if self._process is None:
            return
        process, self._process = self._process, None
        _close_pipes(process)
        try:
            process.wait(timeout=1)
        except subprocess.TimeoutExpired:
            process.kill()

    def _start(self) -> subprocess.Popen[bytes]:
        self._abandoned = [process for process in self._abandoned if process.poll() is None]
        if len(self._abandoned) >= MOST_ABANDONED:
            raise GputallyError(f"{MOST_ABANDONED} processes hang in the driver and cannot be killed: reboot the node")
        if time.monotonic() < self._not_before:
            raise GputallyError("the collector's process ended; it is started again in a moment")
        environment = {name: value for name, value in os.environ.items() if name not in _HIDING}
        self._process = subprocess.Popen(  # noqa: S603 - our own interpreter and module
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
        )
        self._patient_until = time.monotonic() + (0 if self._waits_for_start else self._start_seconds)
        self._is_asked, self._received = False, bytearray()
        return self._process

    def _exchange(self, process: subprocess.Popen[bytes], timeout_seconds: float) -> tuple[bytes, bytes]:
        assert process.stdin
        assert process.stdout
        deadline = time.monotonic() + timeout_seconds
        if not self._is_asked:
            os.write(process.stdin.fileno(), VISIT)
            self._is_asked = True
        descriptor, received, head = process.stdout.fileno(), self._received, LENGTH + 1
        _read(descriptor, received, head, deadline)
        (length,) = struct.unpack(">I", received[1:head])
        _read(descriptor, received, head + length, deadline)
        self._is_asked, self._received = False, bytearray()
        return bytes(received[:1]), bytes(received[head:])

    def _replace(self) -> None:
        """Kill the process; the next visit starts another. It is waited for later, if it can die at all."""
        process, self._process = self._process, None
        assert process
        self.replaced += 1
        process.kill()
        _close_pipes(process)
        self._abandoned.append(process)
        self._pause()

    def _gone(self, process: subprocess.Popen[bytes]) -> str:
        self._process = None
        _close_pipes(process)
        self._pause()
        try:
            code: int | None = process.wait(timeout=1)
        except subprocess.TimeoutExpired:
            process.kill()
            self._abandoned.append(process)
            code = None
        return "closed its pipe" if code is None else f"signal {-code}" if code < 0 else f"status {code}"

    def _pause(self) -> None:
        """The first replacement starts at once; one that fails again waits, a second at first and a minute at most."""
        self._failures += 1
        if self._failures > 1:
            self._not_before = time.monotonic() + min(60.0, 2.0 ** (self._failures - 2))


def _close_pipes(process: subprocess.Popen[Any]) -> None:
    for pipe in (process.stdin, process.stdout):
        if pipe:
            pipe.close()


def _read(descriptor: int, received: bytearray, size: int, deadline: float) -> None:
    """Read on until there are `size` bytes. OverdueError past the deadline, OSError when the other end is gone."""
    while len(received) < size:
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([descriptor], [], [], left)[0]:
            raise OverdueError("no answer in time: the call may hang in the driver")
        part = os.read(descriptor, size - len(received))
        if not part:
            raise ConnectionResetError
        received += part
