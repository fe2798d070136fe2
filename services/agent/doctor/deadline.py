"""Do looks within a deadline; what hangs is left behind and told."""

from __future__ import annotations

import queue
import threading
import time
from typing import TYPE_CHECKING, TypeAlias

from fleet.errors import GputallyError
from services.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    Look: TypeAlias = Callable[[], Iterable[Finding]]


def within(seconds: float, subject: str, look: Look) -> list[Finding]:
    """The findings of `look`, or one `fail` that says it gave no answer in time, or what stopped it."""
    return list(all_within(seconds, [(subject, look)]))


def all_within(seconds: float, looks: Iterable[tuple[str, Look]]) -> Iterator[Finding]:
    """The findings of several looks in their order, all begun now, so that one deadline is enough for all."""
    deadline = time.monotonic() + seconds
    for subject, answers in [(subject, _begun(subject, look)) for subject, look in looks]:
        try:
            yield from answers.get(timeout=max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            yield Finding("fail", subject, f"no answer within {seconds:g} seconds; the agent goes on without it")


def _begun(subject: str, look: Look) -> queue.SimpleQueue[list[Finding]]:
    answers: queue.SimpleQueue[list[Finding]] = queue.SimpleQueue()

    def run() -> None:
        try:
            found = list(look())
        except (GputallyError, OSError) as error:
            found = [Finding("fail", subject, str(error))]
        except Exception as error:  # noqa: BLE001 - a bug in one look must not hide what the others find
            found = [Finding("fail", subject, f"{type(error).__name__}: {error}")]
        answers.put(found)

    threading.Thread(target=run, daemon=True, name=f"doctor-{subject}").start()
    return answers
