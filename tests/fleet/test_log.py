"""A log record is one bounded line that no value can forge."""

import io
import logging
import re

import pytest

from fleet.log import logged, setup


@pytest.fixture
def stream():
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    out = io.StringIO()
    setup("debug", stream=out)
    yield out
    root.handlers[:] = handlers
    root.setLevel(level)


def test_a_record_is_one_line_of_pairs(stream):
    logging.getLogger("hub").warning("got %d rows", 3, extra={"node": "gpu-1", "path": "a b", "batch": None})
    line = stream.getvalue()
    assert re.fullmatch(
        r"time=\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z level=warning logger=hub "
        r'message="got 3 rows" batch=None node=gpu-1 path="a b"\n',
        line,
    )


def test_text_cannot_forge_a_line(stream):
    logging.getLogger("hub").info("a\nlevel=error", extra={"pod": 'x" level="error\x1b[2J\u2028'})
    line = stream.getvalue()
    assert line.count("\n") == 1
    assert line.isascii()
    assert r'pod="x\" level=\"error\x1b[2J\u2028"' in line


def test_an_exception_stays_on_its_line(stream):
    try:
        int("bad\nvalue")
    except ValueError:
        logging.getLogger("hub").exception("failed")
    line = stream.getvalue()
    assert line.count("\n") == 1
    assert r"""error="ValueError: invalid literal for int() with base 10: 'bad\\nvalue'" traceback="Traceback""" in line


def test_values_are_bounded():
    assert logged("x" * 500) == "x" * 500
    assert logged("x" * 501) == "x" * 500 + "..."
    assert logged("") == '""'
    assert logged(1.5) == "1.5"


def test_setup_twice_does_not_double_lines(stream):
    second = io.StringIO()
    setup("warning", stream=second)
    logging.getLogger("hub").info("hidden")
    logging.getLogger("hub").warning("shown")
    assert stream.getvalue() == ""
    assert second.getvalue().count("\n") == 1


def test_an_unknown_level_is_refused():
    with pytest.raises(ValueError, match="'loud' is not a log level"):
        setup("loud")
