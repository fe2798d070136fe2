"""Whether the hub does its work: what `/healthz` and `/readyz` say."""

from __future__ import annotations

import threading
import time
from typing import Final

STUCK_SECONDS: Final = 60.0
"""Batches that wait for longer than this without any commit mean that the hub is stuck."""


class Health:
    """Written by the committer and the event loop, read by the pages; any thread may call."""

    def __init__(self) -> None:
        """Not ready, nothing failed."""
        self._lock = threading.Lock()
        self._failure: str | None = None
        self._due = 0
        self._progress_at = time.monotonic()
        self.is_ready = False

    def arrived(self) -> None:
        """A batch waits."""
        with self._lock:
            if self._due == 0:
                self._progress_at = time.monotonic()
            self._due += 1

    def answered(self, count: int) -> None:
        """So many batches wait no longer."""
        with self._lock:
            self._due -= count
            self._progress_at = time.monotonic()

    def worked(self) -> None:
        """A commit worked."""
        with self._lock:
            self._failure = None

    def failed(self, reason: str) -> None:
        """A commit failed: so the hub stays unwell until one works."""
        with self._lock:
            self._failure = reason

    def health(self) -> tuple[bool, str]:
        """True when the last commit worked or nothing is due; else what is wrong, in one line."""
        with self._lock:
            if self._failure:
                return False, f"the last commit failed: {self._failure}"
            waited = time.monotonic() - self._progress_at
            if self._due and waited > STUCK_SECONDS:
                return False, f"{self._due} batches have waited {waited:.0f} s for a commit"
            return True, "ok"

    def ready(self) -> tuple[bool, str]:
        """Whether batches are taken."""
        return self.is_ready, "ok" if self.is_ready else "not taking batches"
