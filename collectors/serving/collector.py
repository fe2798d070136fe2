"""Visit a model server: its page, its version, and what it did since the visit before."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urlsplit

from collectors.exposition import PageError, Parser
from collectors.pages import BYTE_LIMIT, Fetched, fetch
from collectors.serving.counters import Counted, place_of
from collectors.serving.deltas import Steps
from collectors.serving.page import SERIES_LIMIT, PageReader
from collectors.serving.rows import Target, rows_of

if TYPE_CHECKING:
    from collectors.http_get import Tls
    from collectors.serving.mapping import EngineMapping, VersionEndpoint
    from collectors.serving.samples import Role, ServingReading

_VERSION_BYTES: Final = 1024 * 1024
_VERSION_SECONDS: Final = 2.0
_VERSION_LENGTH: Final = 64
_VISITS_BETWEEN_QUESTIONS: Final = 100


class Visit(NamedTuple):
    """What a visit yields: counters as they stand, and the step since the visit before (None for the first).

    `counted` is what a later process goes on from, for a server whose counters can be compared.
    """

    totals: ServingReading
    step: ServingReading | None
    counted: Counted | None = None


class EngineServer:
    """One model server of a kind, by the path or http(s) address of its metric page.

    `server` is its name in rows, else the host and port of the address, or the file's name. A page of the same
    server that follows from elsewhere (`read`) makes a step with the one before. With `saved`, what an earlier process
    counted of this kind at this address, the first page makes a step too.
    """

    def __init__(
        self,
        mapping: EngineMapping,
        source: str = "page",
        *,
        token: str | None = None,
        tls: Tls | None = None,
        server: str | None = None,
        model: str | None = None,
        role: Role | None = None,
        version: str | None = None,
        byte_limit: int = BYTE_LIMIT,
        saved: Counted | None = None,
    ) -> None:
        self._mapping = mapping
        self._source = source
        self._token, self._tls = token, tls
        self._byte_limit = byte_limit
        self._reader = PageReader(mapping)
        self._parser = Parser(series_limit=SERIES_LIMIT, wants=self._reader.knows)
        self._of = place_of(mapping.kind, source)
        self._steps = Steps(mapping, saved if saved and saved.of == self._of else None)
        self._server = server or server_name(source)
        self._model = model
        self._role = role
        self._told_version = version
        self._version = version
        self._visits_until_question = 0

    def collect(self, source: str | None = None) -> Visit:
        """Fetch the page (or another one of the same server). PageError when there is none, or none of the kind."""
        place = source or self._source
        fetched = self._fetched(place)
        if self._version is None and "://" in place:
            self._ask_version(place)
        visit = self.read(fetched.text, fetched.source, fetched.read_at_ns)
        if self._told_version is None and visit.step and visit.step.counter_resets:
            # It was started again, perhaps as another version.
            self._version = None
            self._visits_until_question = 0
        return visit

    def _fetched(self, place: str) -> Fetched:
        try:
            return fetch(place, token=self._token, tls=self._tls, byte_limit=self._byte_limit)
        except PageError as error:
            if self._mapping.bad_request and ": HTTP 400" in str(error):
                raise PageError(f"{error}: {self._mapping.bad_request}") from None
            raise

    def close(self) -> None:
        """Nothing is held between visits."""

    def read(self, body: str, source: str = "page", read_at_ns: int | None = None) -> Visit:
        """Return what a page that is at hand says."""
        seen = self._reader.observe(self._parser.parse(body, source, read_at_ns), body)
        deltas = self._steps.advance(seen)
        target = Target(server=self._server, model=self._model, role=self._role, version=self._version)
        step = rows_of(self._mapping, seen, target, deltas) if deltas else None
        return Visit(rows_of(self._mapping, seen, target), step, self.counted)

    @property
    def counted(self) -> Counted | None:
        """What another one of the same server goes on from; None before the first page."""
        return self._steps.counted(self._of)

    def _ask_version(self, address: str) -> None:
        """Ask the engine for its version, now and then until it answers; a page is as good without."""
        self._visits_until_question -= 1
        if self._visits_until_question > 0:
            return
        self._visits_until_question = _VISITS_BETWEEN_QUESTIONS
        for endpoint in self._mapping.version_endpoints:
            if version := _version(address, endpoint, self._token, self._tls):
                self._version = version
                return


def server_name(source: str) -> str:
    """How a server is named that nobody named: by host and port, or by the file its page lies in."""
    if "://" not in source:
        return source.rpartition("/")[2]
    try:
        return urlsplit(source).netloc.rpartition("@")[2]
    except ValueError:
        return "page"


def _version(address: str, endpoint: VersionEndpoint, token: str | None, tls: Tls | None) -> str | None:
    """What an endpoint on the same host and port says; of its answer only the version is looked at."""
    parts = urlsplit(address)
    place = f"{parts.scheme}://{parts.netloc}{endpoint.path}"
    try:
        told = fetch(place, token=token, tls=tls, timeout_seconds=_VERSION_SECONDS, byte_limit=_VERSION_BYTES)
        answer = json.loads(told.text)
    except (PageError, ValueError, RecursionError):
        return None
    version = answer.get(endpoint.key) if isinstance(answer, dict) else None
    return version if isinstance(version, str) and version.isprintable() and len(version) <= _VERSION_LENGTH else None
