"""Read a log of JSON lines, plain or gzipped, line by line: bounded, and a bad line is named by its number."""

from __future__ import annotations

from contextlib import contextmanager
from typing import IO, TYPE_CHECKING

from chargeback.tokens.fields import FieldError, parsed
from fleet.errors import InputError, Problem
from store.gzipped import CUT_OFF, GZIP_ERRORS, opened

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from chargeback.tokens.usage import Record

MAX_LINE_BYTES = 16 * 1024 * 1024
"""Gateways may log whole prompts beside the counts."""
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def holds_json(path: Path) -> bool:
    """Whether a file begins like JSON, perhaps gzipped, and not like a table."""
    with _opened(path) as stream:
        return stream.read(256).removeprefix(BYTE_ORDER_MARK).lstrip()[:1] in (b"{", b"[")


def json_lines(path: Path) -> Iterator[tuple[int, Record | FieldError]]:
    """Yield (line number, object) of each line; a FieldError in its place when a line is not a JSON object.

    Empty lines are left out. Raises InputError when the file itself cannot be read.
    """
    with _opened(path) as stream:
        row = 0
        while line := stream.readline(MAX_LINE_BYTES + 1):
            row += 1
            if len(line) > MAX_LINE_BYTES:
                raise InputError([Problem(path.name, f"is longer than {MAX_LINE_BYTES:,} bytes", row)])
            line = (line.removeprefix(BYTE_ORDER_MARK) if row == 1 else line).strip()
            if line:
                yield row, _record(line)


def _record(line: bytes) -> Record | FieldError:
    try:
        value = parsed(line, None)
    except FieldError as error:
        return error
    return value if isinstance(value, dict) else FieldError(None, "is not a JSON object: one a line is expected")


@contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    try:
        with opened(path) as stream:
            yield stream
    except GZIP_ERRORS as error:
        raise InputError([Problem(path.name, CUT_OFF)]) from error
    except OSError as error:
        raise InputError([Problem(path.name, f"cannot be read: {error.strerror}")]) from error
