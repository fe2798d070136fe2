"""Logging as key=value lines on standard error, bounded and on one line each.

A log is read by people in a hurry and by machines that split at spaces. Values that need it
are quoted; control characters are escaped, so that text from a pod label cannot forge a line;
and each value is cut, so that a bad page cannot fill a disk.
"""

import logging
import re
import sys
import time
from typing import TextIO

from fleet.errors import one_line

VALUE_LIMIT = 500
TRACEBACK_LIMIT = 4000

_BARE = re.compile(r"[A-Za-z0-9_.:/@%+,\-]+", re.ASCII)
_KEY = re.compile(r"[a-z][a-z0-9_]*", re.ASCII)
# What a record carries of itself; all else came from the caller's `extra`.
_OWN_ATTRIBUTES = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
_HANDLER_NAME = "gputally"


class KeyValueFormatter(logging.Formatter):
    """`time=... level=... logger=... message="..." key=value ...`, time in UTC.

    The keys of `extra` follow in ascending order; an exception adds `error` and `traceback`.
    """

    def format(self, record: logging.LogRecord) -> str:
        """One record as one line, without the line end."""
        fields: dict[str, object] = {
            "time": self._time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        extra = vars(record).keys() - _OWN_ATTRIBUTES - fields.keys()
        fields |= {key: vars(record)[key] for key in sorted(extra) if _KEY.fullmatch(key)}
        line = " ".join(f"{key}={logged(value)}" for key, value in fields.items())
        if record.exc_info and record.exc_info[1] is not None:
            error = record.exc_info[1]
            traceback = self.formatException(record.exc_info)[-TRACEBACK_LIMIT:]
            line += f" error={logged(f'{type(error).__name__}: {error}')}"
            line += f" traceback={logged(traceback, limit=TRACEBACK_LIMIT)}"
        return line

    @staticmethod
    def _time(record: logging.LogRecord) -> str:
        return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(record.created))}.{int(record.msecs):03d}Z"


def logged(value: object, *, limit: int = VALUE_LIMIT) -> str:
    """A value as it stands after `key=`: bare if harmless, else in double quotes, cut to `limit`."""
    text = str(value)
    if len(text) > limit:
        text = f"{text[:limit]}..."
    if _BARE.fullmatch(text):
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{one_line(escaped)}"'


def setup(level: str = "info", *, stream: TextIO | None = None) -> None:
    """Send the log of the whole program to `stream` (standard error unless given).

    May be called again: the earlier set-up is replaced, never doubled. An unknown level is a
    ValueError. Meant for the entry points; a library that sets up logging surprises its host.
    """
    number = logging.getLevelNamesMapping().get(level.upper())
    if number is None:
        raise ValueError(f"{level!r} is not a log level (debug, info, warning, error)")
    root = logging.getLogger()
    for handler in [h for h in root.handlers if h.get_name() == _HANDLER_NAME]:
        root.removeHandler(handler)
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.set_name(_HANDLER_NAME)
    handler.setFormatter(KeyValueFormatter())
    root.addHandler(handler)
    root.setLevel(number)
