"""What a doctor finds: one line for each thing that was looked at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from fleet.errors import one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Level = Literal["ok", "warn", "fail"]
_MARKS: Final[dict[Level, str]] = {"ok": "ok  ", "warn": "warn", "fail": "FAIL"}


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing looked at: `warn` is worth a look, `fail` must be mended. The message holds the fix, and no secret."""

    level: Level
    subject: str
    message: str


def lines(findings: Iterable[Finding]) -> Iterator[str]:
    """The findings as plain lines, the same on a terminal and in a pipe."""
    for finding in findings:
        yield f"{_MARKS[finding.level]}  {one_line(finding.subject)}: {one_line(finding.message)}"


def has_failed(findings: Iterable[Finding]) -> bool:
    """Whether anything must be mended."""
    return any(finding.level == "fail" for finding in findings)
