"""The page parser: what it takes, what it refuses and counts, and that no text makes it fail otherwise."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.exposition import LABEL_LENGTH_LIMIT, LABEL_LIMIT, LINE_LENGTH_LIMIT, PageError, Parser

GOOD = 'good{a="b"} 1'


def parsed(text: str) -> list[tuple[str, dict[str, str], float, int | None]]:
    page = Parser().parse(text)
    assert page.rejected == {}
    return [(s.series.name, dict(s.series.labels), s.value, s.timestamp_ms) for s in page.samples]


def refused(line: str) -> dict[str, int]:
    """What a page with one good line and this one counts; the good one is always kept."""
    page = Parser().parse(f"{GOOD}\n{line}\n")
    assert [sample.series.name for sample in page.samples] == ["good"]
    return dict(page.rejected)


TAKEN = [
    ("m 1", ("m", {}, 1.0, None)),
    ("m{} 2", ("m", {}, 2.0, None)),
    ("ns:m 1e3", ("ns:m", {}, 1000.0, None)),
    ('m{a="b"} -1.5', ("m", {"a": "b"}, -1.5, None)),
    ('m{a="b",} 1', ("m", {"a": "b"}, 1.0, None)),
    ('m { a = "b" , c = "d" } 1', ("m", {"a": "b", "c": "d"}, 1.0, None)),
    ('  m{a="b"}\t1', ("m", {"a": "b"}, 1.0, None)),
    ('m{a="b"}1', ("m", {"a": "b"}, 1.0, None)),
    ('m{a="b"} 1 1785542000123', ("m", {"a": "b"}, 1.0, 1785542000123)),
    ('m{a="b"} 1 1785542000.5', ("m", {"a": "b"}, 1.0, 1785542000500)),
    ('m{a="b"} 1\r', ("m", {"a": "b"}, 1.0, None)),
    ('m{a="} 2 # x"} 1', ("m", {"a": "} 2 # x"}, 1.0, None)),
    (r'm{a="\"\\\n"} 1', ("m", {"a": '"\\\n'}, 1.0, None)),
    (r'm{a="C:\Users"} 1', ("m", {"a": r"C:\Users"}, 1.0, None)),
    ('m_total{a="b"} 12.0 # {trace_id="ab"} 1.0 1.785542e+09', ("m_total", {"a": "b"}, 12.0, None)),
    ('m_total 12 # {t="a"} 1', ("m_total", {}, 12.0, None)),
    ("m 18446744073709551615", ("m", {}, 2.0**64, None)),
]


@pytest.mark.parametrize(("line", "expected"), TAKEN, ids=[line for line, _ in TAKEN])
def test_a_sample_is_taken(line: str, expected: tuple[str, dict[str, str], float, int | None]) -> None:
    assert parsed(line) == [expected]


REFUSED = [
    ('m{a="b"} ERROR - FAILED TO CONVERT', "bad_value"),
    ('m{a="b"} 1_0', "bad_value"),
    ('m{a="b"} \u0661', "bad_value"),
    ('m{a="b"}', "bad_value"),
    ('m{a="b"} 1 2 3', "bad_value"),
    ('m{a="b"} 1 soon', "bad_timestamp"),
    ('m{a="team "x" ops"} 1', "bad_labels"),
    ('m{a="b"', "bad_labels"),
    ('m{a="b",a="c"} 1', "bad_labels"),
    ("m{a=b} 1", "bad_labels"),
    ("9m 1", "bad_name"),
    ("m", "bad_name"),
    ("HTTP/1.1 307 Temporary Redirect", "bad_name"),
    (f'm{{a="{"x" * (LABEL_LENGTH_LIMIT + 1)}"}} 1', "label_too_long"),
    (f'm{{a="{"x" * LINE_LENGTH_LIMIT}"}} 1', "line_too_long"),
    ("m{" + ",".join(f'l{i}=""' for i in range(LABEL_LIMIT + 1)) + "} 1", "too_many_labels"),
    (GOOD, "duplicate_series"),
]


@pytest.mark.parametrize(("line", "reason"), REFUSED, ids=[line[:40] for line, _ in REFUSED])
def test_a_bad_line_costs_itself_and_is_counted(line: str, reason: str) -> None:
    assert refused(line) == {reason: 1}


@pytest.mark.parametrize("line", ["", "  ", "# HELP m x", "  # indented", "#", "# EOF", "\r"])
def test_comments_and_empty_lines_are_no_lines(line: str) -> None:
    assert refused(line) == {}


def test_of_a_series_twice_the_first_value_is_kept() -> None:
    """In any order of its labels: two answers for one question are no better than one."""
    page = Parser().parse('m{a="1",b="2"} 3\nm{b="2",a="1"} 5\n')
    assert [sample.value for sample in page.samples] == [3.0]
    assert page.rejected == {"duplicate_series": 1}


def test_nan_and_infinity_are_left_to_the_reader() -> None:
    values = [sample.value for sample in Parser().parse("a NaN\nb +Inf\nc -Inf\n").samples]
    assert math.isnan(values[0])
    assert values[1:] == [math.inf, -math.inf]


NO_PAGES = [
    ("", "is empty"),
    (" \n\n", "is empty"),
    ("<!doctype html><title>Sign in</title>", "is a web page (HTML)"),
    ("\ufeff <html>", "is a web page (HTML)"),
    ("[]", "is JSON"),
    ('{"error": "no"}', "is JSON"),
    ("# HELP m x\n# EOF\n", "holds no metric sample; is"),
    (
        "HTTP/1.1 307 Temporary Redirect\nlocation: http://proxy:4000/metrics/\n",
        "holds no metric sample (2 lines refused)",
    ),
    ("m x\n", "holds no metric sample (1 line refused)"),
]


@pytest.mark.parametrize(("text", "message"), NO_PAGES, ids=[repr(text[:20]) for text, _ in NO_PAGES])
def test_what_is_no_metrics_page_is_named(text: str, message: str) -> None:
    with pytest.raises(PageError) as error:
        Parser().parse(text, "there")
    assert str(error.value).startswith(f"there: {message}")


def test_a_page_cut_short_keeps_its_whole_lines() -> None:
    page = Parser().parse('m{a="b"} 3.0\n# TYPE n counter\nn{a="b",model_na')
    assert [sample.series.name for sample in page.samples] == ["m"]
    assert page.rejected == {"bad_labels": 1}


def test_lines_and_series_are_bounded() -> None:
    text = "".join(f"m{i} 1\n" for i in range(10))
    few_lines = Parser(line_limit=4).parse(text)
    assert (len(few_lines.samples), few_lines.rejected) == (4, {"too_many_lines": 7})
    few_series = Parser(series_limit=4).parse(text)
    assert (len(few_series.samples), few_series.rejected) == (4, {"too_many_series": 6})


def test_a_series_is_one_object_on_all_pages() -> None:
    parser = Parser()
    first, second = (parser.parse(f'm{{a="b"}} {value}').samples[0] for value in (1, 2))
    assert first.series is second.series
    assert (first.value, second.value) == (1.0, 2.0)


def test_a_series_in_another_spelling_is_the_same_object() -> None:
    parser = Parser()
    one = parser.parse('m{a="1",b="2"} 1').samples[0]
    other = parser.parse('m{b="2", a="1"} 1').samples[0]
    assert one.series is other.series


def test_the_memory_of_series_follows_the_page() -> None:
    """Pods come and go for months: what is gone must be forgotten."""
    parser = Parser()
    for generation in range(20):
        parser.parse("".join(f'm{{pod="{generation}-{i}"}} 1\n' for i in range(500)))
    assert len(parser._known) <= 2 * 500 + 1000
    assert len(parser._same) <= 2 * 500 + 1000


def escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


LABEL_NAMES = st.from_regex(r"[a-zA-Z_][a-zA-Z0-9_]{0,9}", fullmatch=True).filter(str.isascii)
LABEL_VALUES = st.text(st.characters(codec="utf-8", exclude_characters="\r"), max_size=40)


@given(
    labels=st.dictionaries(LABEL_NAMES, LABEL_VALUES, max_size=8),
    value=st.floats(allow_nan=False),
    timestamp=st.none() | st.integers(0, 2**43),
)
def test_what_is_written_is_read_back(labels: dict[str, str], value: float, timestamp: int | None) -> None:
    written = ",".join(f'{name}="{escaped(text)}"' for name, text in labels.items())
    line = f"m{{{written}}} {value!r}" + ("" if timestamp is None else f" {timestamp}")
    parser = Parser()
    for _ in range(2):  # from the text, and from memory
        page = parser.parse(line + "\n")
        assert page.rejected == {}
        assert [(s.series.name, s.series.labels, s.value, s.timestamp_ms) for s in page.samples] == [
            ("m", labels, value, timestamp)
        ]


@given(
    st.lists(st.text(max_size=60) | st.sampled_from([GOOD, 'm{a="b"} 1', 'm{a="', '"} 2', "# {", "\\"]), max_size=12)
)
def test_no_text_makes_it_fail(lines: list[str]) -> None:
    """Whatever follows a good line, the page is read and each line is a sample, counted or a comment."""
    page = Parser().parse("\n".join([GOOD, *lines]))
    assert page.samples[0].series.name == "good"
    assert len(page.samples) + sum(page.rejected.values()) <= 1 + sum(1 + line.count("\n") for line in lines)


@given(st.integers(0, 60))
def test_a_page_cut_anywhere_is_read_or_refused(length: int) -> None:
    text = 'm{a="b",c="d\\"e"} 12.5 1785542000123\nn{x="y"} NaN'
    try:
        page = Parser().parse(text[:length])
    except PageError:
        return
    assert len(page.samples) >= 1
