"""Files that may be compressed with gzip, as clouds deliver CSV."""

from __future__ import annotations

import gzip
import zlib
from typing import IO, TYPE_CHECKING, Final, cast

if TYPE_CHECKING:
    from pathlib import Path

GZIP_MAGIC: Final = b"\x1f\x8b"
CUT_OFF: Final = "is not a complete gzip file (cut off or damaged)"
GZIP_ERRORS: Final = (EOFError, gzip.BadGzipFile, zlib.error)
"""What reading a file from `opened` raises when its end is missing or its content damaged."""


def is_gzip(path: Path) -> bool:
    """Whether a file begins as gzip does."""
    with path.open("rb") as stream:
        return stream.read(2) == GZIP_MAGIC


def opened(path: Path) -> IO[bytes]:
    """The content of a file, unpacked if it is gzip. It is read to the end to know that it is whole."""
    return cast("IO[bytes]", gzip.open(path)) if is_gzip(path) else path.open("rb")
