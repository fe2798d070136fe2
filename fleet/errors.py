"""The whole family of errors that a user can cause.

A mistake in somebody's file is data, not an accident: it is collected as a list of `Problem`
values and shown whole, so that a bad file is mended in one go. Exceptions of other classes
mean a defect of the program and keep their traceback.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

NAME_LIMIT = 200


def quoted(value: str, limit: int = 60) -> str:
    """Text from a user, fit for one line of a message.

    Printable characters stay, all others (control characters, line ends, direction marks) are
    escaped as `repr` would; text longer than `limit` characters is cut and followed by `...`.
    """
    if len(value) <= limit:
        return repr(value)
    return f"{value[:limit]!r}..."


def one_line(text: str) -> str:
    """The same text with each unprintable character escaped, so that it cannot break a line."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def _name(text: str) -> str:
    """A file or column name: shown bare when harmless, cut when long."""
    safe = one_line(text)
    return safe if len(safe) <= NAME_LIMIT else f"{safe[:NAME_LIMIT]}..."


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake in an input, with its place. `row` is the file's own (a CSV's header is 1); None = the file."""

    file: str
    message: str
    row: int | None = None
    column: str | None = None

    def __str__(self) -> str:
        """`charges.csv: row 3, column BilledCost: ...`, parts that are None left out."""
        place = []
        if self.row is not None:
            place.append(f"row {self.row}")
        if self.column is not None:
            place.append(f"column {_name(self.column)}")
        where = f"{', '.join(place)}: " if place else ""
        return f"{_name(self.file)}: {where}{one_line(self.message)}"


class GputallyError(Exception):
    """Base of everything that a user can cause; `str()` is always one clear line."""

    def __str__(self) -> str:
        """The message, on one line whatever text it quotes."""
        return one_line(super().__str__())


class InputError(GputallyError):
    """A file was refused, and nothing of it was kept. `problems` holds every reason found."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        """Keep the problems in the given order; at least one is needed (ValueError)."""
        if not problems:
            raise ValueError("an InputError needs at least one problem")
        super().__init__(tuple(problems))

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Every problem found, in the order of the file."""
        found: tuple[Problem, ...] = self.args[0]
        return found

    def __str__(self) -> str:
        """The first problem and how many more there are."""
        return f"{self.problems[0]}{_and_more(len(self.problems) - 1, 'problem')}"


class ConfigError(GputallyError):
    """`gputally.toml` is missing, unreadable, or says something that has no meaning."""


class LakeError(GputallyError):
    """The lakehouse cannot be opened, read or written."""


class LakeBusyError(LakeError):
    """Another process holds the lakehouse; the same command may succeed later."""


class NotBuiltError(GputallyError):
    """The period asked for has not been built, or not yet closed."""


class SourceError(GputallyError):
    """A provider's service does not answer, refuses, or says what cannot be understood; nothing of it was kept."""


class MissingDependencyError(GputallyError):
    """An optional part of gputally is not installed; the message names the extra to install."""


class CheckFailure(NamedTuple):
    """One invariant that does not hold: its name, how many rows break it, the first of them."""

    check: str
    row_count: int
    first_rows: str


class CheckError(GputallyError):
    """An invariant of the ledger does not hold, so nothing was published."""

    def __init__(self, failures: Sequence[tuple[str, int, str]]) -> None:
        """Keep the failures in the given order; at least one is needed (ValueError)."""
        if not failures:
            raise ValueError("a CheckError needs at least one failure")
        super().__init__(tuple(CheckFailure(*failure) for failure in failures))

    @property
    def failures(self) -> tuple[CheckFailure, ...]:
        """Each failed check as (check name, row count, first rows as text)."""
        found: tuple[CheckFailure, ...] = self.args[0]
        return found

    def __str__(self) -> str:
        """The first failed check with its first rows, and how many more failed."""
        first = self.failures[0]
        rows = "1 row" if first.row_count == 1 else f"{first.row_count} rows"
        more = _and_more(len(self.failures) - 1, "failed check")
        return one_line(f"check {first.check} failed on {rows}: {first.first_rows}{more}")


def _and_more(count: int, noun: str) -> str:
    if count == 0:
        return ""
    return f" (and {count} more {noun}{'' if count == 1 else 's'})"
