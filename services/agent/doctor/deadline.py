"""Do one look within a deadline; what hangs is left behind and told."""

from __future__ import annotations

import queue
import threading
from typing import TYPE_CHECKING

from fleet.errors import GputallyError
from services.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


def within(seconds: float, subject: str, look: Callable[[], Iterable[Finding]]) -> list[Finding]:
    """The findings of `look`, or one `fail` that says it gave no answer in time, or what stopped it."""
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
    try:
        return answers.get(timeout=seconds)
    except queue.Empty:
        return [Finding("fail", subject, f"no answer within {seconds:g} seconds; the agent goes on without it")]
