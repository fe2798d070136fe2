"""What gateways in front of model servers count: tokens and requests by tenant and model.

An engine does not know who asks; a gateway does. Its counters are read like an engine's (`page`, `deltas`), and its
rows are by tenant and by the model that the client asked for. Only those two names and the name of the model behind
leave: keys (also hashed ones: a wrong key was once printed in clear text as its hash), addresses and programs of
clients never do, not even as a tenant. What names no tenant, or one that cannot be shown, stays in the row without a
tenant, so nothing that was counted is lost.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from collectors.exposition import Parser
from collectors.pages import BYTE_LIMIT, fetch
from collectors.samples import Rejected
from collectors.serving.collector import server_name
from collectors.serving.deltas import Steps
from collectors.serving.labels import text
from collectors.serving.mapping import EngineMapping, plain_name
from collectors.serving.page import SERIES_LIMIT, PageReader
from fleet.errors import GputallyError, quoted
from fleet.serving_kinds import NEVER_TENANTS
from fleet.telemetry import TEXT_LIMIT

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from collectors.http_get import Tls
    from collectors.samples import Flag
    from collectors.serving.deltas import Deltas
    from collectors.serving.labels import Point
    from collectors.serving.mapping import Source
    from collectors.serving.page import Observed

ROW_LIMIT: Final = 1_000
"""Rows of a page; clients can make up tenants and models, so what is more is added to the row without either."""

GATEWAY_COUNTERS: Final = (
    "prompt_tokens", "prompt_tokens_cached", "generation_tokens", "requests_received", "requests_finished",
    "requests_failed",
)  # fmt: skip
GATEWAY_GAUGES: Final = ("requests_running", "requests_waiting")

_Key = tuple[str | None, str | None]
_NOBODY: Final[_Key] = (None, None)


@dataclass(frozen=True, slots=True)
class GatewayMapping:
    """A gateway: its signals, and the labels that name the tenant, the model asked for and the model that served."""

    engine: EngineMapping
    tenant_labels: tuple[str, ...]
    served_labels: tuple[str, ...] = ()

    @property
    def kind(self) -> str:
        """The name of the gateway's kind."""
        return self.engine.kind


@dataclass(slots=True, kw_only=True)
class GatewaySample:
    """One tenant and model at a gateway, at one moment or over one step. Nobody changes one: `replace` makes another.

    `model` is what the client asked for, `served_model` what the gateway called for it (None if it is not said, or
    several were). Counters and `interval_seconds` are as in `EngineSample`. A field is None when it is not told.
    """

    gateway: str
    server: str
    tenant: str | None
    model: str | None
    served_model: str | None = None
    counters: Literal["total", "delta"] = "total"
    ts_nanoseconds: int | None = None
    interval_seconds: float | None = None
    prompt_tokens: int | None = None
    """Cached ones included."""
    prompt_tokens_cached: int | None = None
    generation_tokens: int | None = None
    requests_received: int | None = None
    requests_finished: int | None = None
    requests_failed: int | None = None
    requests_running: int | None = None
    requests_waiting: int | None = None
    quality: tuple[Flag, ...] = ()


@dataclass(frozen=True, slots=True)
class GatewayReading:
    """What one visit to a gateway yielded, or the step between two; see `ServingReading` for the counts."""

    samples: tuple[GatewaySample, ...] = ()
    rejected: tuple[Rejected, ...] = ()
    required_missing: tuple[str, ...] = ()
    counter_resets: int = 0
    new_series: int = 0


class GatewayVisit(NamedTuple):
    """What a visit yields: counters as they stand, and the step since the visit before (None for the first)."""

    totals: GatewayReading
    step: GatewayReading | None


class GatewayServer:
    """The metrics of one gateway, by the path or http(s) address of its page.

    `tenant_label` names the label of the tenant where the operator chose it. GputallyError for one of NEVER_TENANTS.
    """

    def __init__(
        self,
        mapping: GatewayMapping,
        source: str = "page",
        *,
        token: str | None = None,
        tls: Tls | None = None,
        server: str | None = None,
        tenant_label: str | None = None,
        byte_limit: int = BYTE_LIMIT,
        row_limit: int = ROW_LIMIT,
    ) -> None:
        if tenant_label in NEVER_TENANTS:
            raise GputallyError(f"{quoted(tenant_label or '', 40)} cannot be the label of a tenant")
        self._mapping = mapping
        self._tenant_labels = (tenant_label,) if tenant_label else mapping.tenant_labels
        self._source = source
        self._token, self._tls = token, tls
        self._server = server or server_name(source)
        self._byte_limit, self._row_limit = byte_limit, row_limit
        self._reader = PageReader(mapping.engine)
        self._parser = Parser(series_limit=SERIES_LIMIT, wants=self._reader.knows)
        self._steps = Steps(mapping.engine)

    def collect(self, source: str | None = None) -> GatewayVisit:
        """Fetch the page (or another one of the same gateway). PageError when there is none, or none of the kind."""
        place = source or self._source
        fetched = fetch(place, token=self._token, tls=self._tls, byte_limit=self._byte_limit)
        return self.read(fetched.text, fetched.source, fetched.read_at_ns)

    def read(self, body: str, source: str = "page", read_at_ns: int | None = None) -> GatewayVisit:
        """Return what a page that is at hand says."""
        seen = self._reader.observe(self._parser.parse(body, source, read_at_ns), body)
        deltas = self._steps.advance(seen)
        return GatewayVisit(self._rows(seen, None), None if deltas is None else self._rows(seen, deltas))

    def close(self) -> None:
        """Nothing is held between visits."""

    def _rows(self, seen: Observed, deltas: Deltas | None) -> GatewayReading:
        return _Table(self._mapping, self._tenant_labels, self._row_limit, seen, deltas).reading(self._server)


@dataclass(slots=True)
class _Row:
    values: dict[str, float] = field(default_factory=dict)
    unknown: set[str] = field(default_factory=set)
    served: set[str] = field(default_factory=set)
    flags: set[Flag] = field(default_factory=set)


class _Table:
    """The rows of one page while they are filled."""

    def __init__(
        self,
        mapping: GatewayMapping,
        tenant_labels: tuple[str, ...],
        row_limit: int,
        seen: Observed,
        deltas: Deltas | None,
    ) -> None:
        self._mapping = mapping
        self._tenant_labels = tenant_labels
        self._row_limit = row_limit
        self._seen = seen
        self._deltas = deltas
        self._refused = Counter(seen.refused)
        self._rows: dict[_Key, _Row] = {}
        self._by_name: dict[str, list[Point]] = {}
        for point in seen.points.values():
            self._by_name.setdefault(point.key[0], []).append(point)

    def reading(self, server: str) -> GatewayReading:
        for signal in self._mapping.engine.signals:
            source = next((source for source in signal.sources if any(self._points(source))), None)
            for point in self._points(source) if source else ():
                self._add(signal.name, point)
        for point in self._seen.refused_points:
            self._row(point).flags.add("rejected")
        deltas = self._deltas
        return GatewayReading(
            samples=tuple(self._sample(server, *key, row) for key, row in self._rows.items()),
            rejected=tuple(Rejected(reason, count) for reason, count in sorted(self._refused.items())),
            required_missing=self._seen.required_missing,
            counter_resets=len(deltas.resets) if deltas else 0,
            new_series=len(deltas.unknown) if deltas else 0,
        )

    def _points(self, source: Source) -> Iterator[Point]:
        for point in self._by_name.get(plain_name(source.name), ()):
            if all(re.fullmatch(want, point.labels.get(label, "")) for label, want in source.where.items()):
                yield point

    def _add(self, name: str, point: Point) -> None:
        row = self._row(point)
        value: float | None = point.value
        if self._deltas is not None and name in GATEWAY_COUNTERS:
            value = self._deltas.values.get(point.key)
            row.flags |= self._doubts(self._deltas, point)
        if value is None:
            row.unknown.add(name)
        else:
            row.values[name] = row.values.get(name, 0) + value

    def _doubts(self, deltas: Deltas, point: Point) -> set[Flag]:
        flags: set[Flag] = {"reset"} if point.key in deltas.resets else set()
        return flags | {"partial"} if point.key in deltas.unknown else flags

    def _row(self, point: Point) -> _Row:
        key = self._key(point.labels)
        if key not in self._rows and key != _NOBODY and len(self._rows) >= self._row_limit - 1:
            self._refused["too_many_rows"] += 1
            key = _NOBODY
            self._rows.setdefault(key, _Row()).flags.add("partial")
        row = self._rows.setdefault(key, _Row())
        if served := _shown(point.labels, self._mapping.served_labels):
            row.served.add(served)
        return row

    def _key(self, labels: Mapping[str, str]) -> _Key:
        tenant = _shown(labels, self._tenant_labels)
        if tenant is None and text(labels, self._tenant_labels) is not None:
            self._refused["bad_tenant"] += 1
        return tenant, _shown(labels, self._mapping.engine.model_labels)

    def _sample(self, server: str, tenant: str | None, model: str | None, row: _Row) -> GatewaySample:
        deltas = self._deltas
        known = {name: round(value) for name, value in row.values.items() if name not in row.unknown}
        return GatewaySample(
            gateway=self._mapping.kind,
            server=server,
            tenant=tenant,
            model=model,
            served_model=next(iter(row.served)) if len(row.served) == 1 else None,
            counters="total" if deltas is None else "delta",
            ts_nanoseconds=self._seen.ts_nanoseconds,
            interval_seconds=deltas.seconds if deltas else None,
            quality=tuple(sorted(row.flags | {"partial"} if self._seen.is_cut else row.flags)),
            **known,
        )


def _shown(labels: Mapping[str, str], names: Iterable[str]) -> str | None:
    """What a label says, if it can be shown whole: two tenants whose names are cut could become one."""
    for name in names:
        if (value := text(labels, (name,))) is not None:
            return value if len(labels[name]) <= TEXT_LIMIT and value.isprintable() else None
    return None
