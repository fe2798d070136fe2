"""Read a metric page in the Prometheus text format, line by line.

Pages come from strangers, and exporters do not always escape what they print. So one bad line costs one sample,
which is counted with its reason, never the page; and lines, series and labels are bounded. What a page says about
types is not kept: it is wrong too often (docs/telemetry.md). NaN and infinity are values here; whoever knows the
metric judges them. A page that is no metric page at all is an error, so that a sign-in form is not an idle fleet.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from fleet.errors import GputallyError, quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

LINE_LIMIT = 500_000
SERIES_LIMIT = 200_000
LINE_LENGTH_LIMIT = 16_384
LABEL_LIMIT = 64
LABEL_LENGTH_LIMIT = 1_024
# Series texts kept for the next page although this one did not hold them.
SPARE_SERIES = 1_000

_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*", re.ASCII)
_LABEL = re.compile(
    r'\s*(?P<name>[a-zA-Z_][a-zA-Z0-9_]*)\s*=\s*"(?P<value>[^"\\]*(?:\\.[^"\\]*)*)"\s*(?P<end>[,}])', re.ASCII
)
_CLOSED = re.compile(r"\s*}")
_ESCAPE = re.compile(r'\\([\\"n])')
_WIDE_SPACE = re.compile(r"[ \t]+")
_TIMESTAMP = re.compile(r"-?[0-9]{1,19}(\.[0-9]+)?", re.ASCII)


class PageError(GputallyError):
    """A page cannot be had, or is not what it was taken for."""


@dataclass(frozen=True, slots=True, eq=False)
class Series:
    """The name and labels of one series. Equal series of a parser are one object: compare with `is`."""

    name: str
    labels: Mapping[str, str]


class Sample(NamedTuple):
    """One value on a page; `timestamp_ms` is None unless the page dates it."""

    series: Series
    value: float
    timestamp_ms: int | None = None


@dataclass(frozen=True, slots=True)
class Page:
    """What a page said: samples in its order, and how many lines were refused for which reason."""

    source: str
    samples: tuple[Sample, ...]
    rejected: Mapping[str, int]
    read_at_ns: int | None = None


# What Sample(...) does, without the detour by its Python constructor: there is one for each line.
_sample = tuple.__new__


class _BadLineError(Exception):
    """A line that is no sample; the text is the reason it is counted under."""


class _UnwantedError(Exception):
    """A line of a series that nobody asked for."""


@dataclass
class Parser:
    """Reads pages of one source. It remembers series texts, so the second page costs a fraction of the first.

    With `wants`, labelled series whose name it does not want are passed over, and a page that holds only such is empty.
    """

    line_limit: int = LINE_LIMIT
    series_limit: int = SERIES_LIMIT
    wants: Callable[[str], bool] | None = None
    _known: dict[str, Series] = field(default_factory=dict, repr=False)
    _same: dict[tuple[str, frozenset[tuple[str, str]]], Series] = field(default_factory=dict, repr=False)

    def parse(self, text: str, source: str = "page", read_at_ns: int | None = None) -> Page:
        """Return the samples of a page. PageError if it is empty, HTML, JSON, or holds no sample."""
        _refuse_other_formats(text, source)
        lines = text.split("\n")
        rejected: Counter[str] = Counter()
        if len(lines) > self.line_limit:
            rejected["too_many_lines"] = len(lines) - self.line_limit
            del lines[self.line_limit :]
        samples, present, is_wanted = self._samples(lines, rejected)
        if not samples and is_wanted:
            refused = rejected.total()
            more = f" ({refused} line{'' if refused == 1 else 's'} refused)" if refused else ""
            raise PageError(f"{source}: holds no metric sample{more}; is this the address of a metrics page?")
        self._forget(present)
        return Page(source, tuple(samples), dict(rejected), read_at_ns)

    def _samples(self, lines: list[str], rejected: Counter[str]) -> tuple[list[Sample], set[Series], bool]:
        """Return the samples, their series, and whether no line was passed over.

        This runs once for each line of each scrape.
        """
        samples: list[Sample] = []
        is_wanted = True
        seen: set[Series] = set()
        known = self._known.get
        for line in lines:
            start = line[:1]
            if start <= " ":
                line = line.lstrip()
                start = line[:1]
            if start in {"", "#"}:
                continue
            cut = line.rfind("}") + 1
            series = known(line[:cut]) if cut else None
            try:
                series, rest = (
                    (series, line[cut:]) if series else self._series(line, is_full=len(samples) == self.series_limit)
                )
                value, timestamp = _value(rest)
            except _BadLineError as error:
                rejected[str(error)] += 1
                continue
            except _UnwantedError:
                is_wanted = False
                continue
            if series in seen:
                rejected["duplicate_series"] += 1
            elif len(samples) == self.series_limit:
                rejected["too_many_series"] += 1
            else:
                seen.add(series)
                samples.append(_sample(Sample, (series, value, timestamp)))
        return samples, seen, is_wanted

    def _series(self, line: str, *, is_full: bool) -> tuple[Series, str]:
        """Return the series of a line not met before, and what follows it; none beyond what a page may hold."""
        if len(line) > LINE_LENGTH_LIMIT:
            raise _BadLineError("line_too_long")
        name = _NAME.match(line)
        if not name:
            raise _BadLineError("bad_name")
        at = name.end()
        opening = len(line) - len(line[at:].lstrip(" \t"))
        labels: dict[str, str] = {}
        if line.startswith("{", opening):
            if self.wants and not self.wants(name[0]):
                raise _UnwantedError
            if is_full:
                raise _BadLineError("too_many_series")
            labels, at = _labels(line, opening + 1)
        elif opening == at:
            raise _BadLineError("bad_name")
        key = (name[0], frozenset(labels.items()))
        series = self._same.get(key)
        if series is None:
            series = self._same[key] = Series(name[0], labels)
        if labels:
            self._known[line[:at]] = series
        return series, line[at:]

    def _forget(self, present: set[Series]) -> None:
        """Keep the memory as large as a page: pods come and go, and each makes new series."""
        if len(self._same) > 2 * len(present) + SPARE_SERIES or len(self._known) > 2 * len(present) + SPARE_SERIES:
            self._known = {text: series for text, series in self._known.items() if series in present}
            self._same = {key: series for key, series in self._same.items() if series in present}


def _refuse_other_formats(text: str, source: str) -> None:
    start = text.lstrip("\ufeff \t\r\n")[:1]
    if not start:
        raise PageError(f"{source}: is empty")
    if start == "<":
        raise PageError(f"{source}: is a web page (HTML), not metrics; a sign-in form or a wrong path?")
    if start in "{[":
        raise PageError(f"{source}: is JSON, not metrics in the Prometheus text format")


def _labels(line: str, at: int) -> tuple[dict[str, str], int]:
    """Return the labels that open at `at`, and where the text after the closing brace starts."""
    labels: dict[str, str] = {}
    while not (closed := _CLOSED.match(line, at)):
        label = _LABEL.match(line, at)
        if not label or label["name"] in labels:
            raise _BadLineError("bad_labels")
        value = label["value"]
        if len(value) > LABEL_LENGTH_LIMIT:
            raise _BadLineError("label_too_long")
        if len(labels) == LABEL_LIMIT:
            raise _BadLineError("too_many_labels")
        labels[label["name"]] = _ESCAPE.sub(_unescaped, value) if "\\" in value else value
        at = label.end()
        if label["end"] == "}":
            return labels, at
    return labels, closed.end()


def _unescaped(escape: re.Match[str]) -> str:
    return "\n" if escape[1] == "n" else escape[1]


def _value(rest: str) -> tuple[float, int | None]:
    """Return the value and the timestamp of what follows a series; an OpenMetrics exemplar is left out."""
    try:
        value = float(rest)
    except ValueError:
        return _value_and_timestamp(rest)
    if "_" in rest or not rest.isascii():
        # Python reads 1_0 and other digits than ours; the format does not know them.
        raise _BadLineError("bad_value")
    return value, None


def _value_and_timestamp(rest: str) -> tuple[float, int | None]:
    words = _WIDE_SPACE.split(rest.partition(" # ")[0].strip(" \t\r"))
    if "_" in words[0] or not rest.isascii() or len(words) > 2:
        raise _BadLineError("bad_value")
    try:
        value = float(words[0])
    except ValueError:
        raise _BadLineError("bad_value") from None
    if len(words) == 1:
        return value, None
    if not _TIMESTAMP.fullmatch(words[1]):
        raise _BadLineError("bad_timestamp")
    # Prometheus counts milliseconds, OpenMetrics seconds with a fraction.
    return value, round(float(words[1]) * 1000) if "." in words[1] else int(words[1])


def shown(text: str) -> str:
    """A source as an error names it: bare, on one line, not longer than a line."""
    return text if len(text) <= 200 and text.isprintable() else quoted(text, 200)
