"""The JSON page `/metrics` of TensorRT-LLM's `trtllm-serve`: one object per iteration of the engine.

Reading it takes the rows away, so only one reader may: what another took is missing here, without a sign but a gap in
the numbers of the iterations. It is read where there is no Prometheus page (`/prometheus/metrics`), and never beside
another reader; reading it often slowed a server down by an order of magnitude. Names are those of the page itself.
It tells nothing of tokens. An empty list is what an idle server, a server without `enable_iter_perf_stats` and a page
read by somebody else have in common: no reading, and no proof of an idle engine.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from collectors.exposition import PageError
from collectors.pages import BYTE_LIMIT, fetch
from collectors.samples import Flag, Rejected
from collectors.serving.collector import Visit, server_name
from collectors.serving.samples import EngineSample, ServingReading

if TYPE_CHECKING:
    from collectors.http_get import Tls

ROW_LIMIT: Final = 100_000
_LARGEST: Final = 2**63
_BATCH: Final = "inflightBatchingStats"
_CACHE: Final = "kvCacheStats"


class TrtllmJsonServer:
    """The JSON page of one server; each visit yields what was added since the one before, the first one too."""

    def __init__(
        self,
        source: str = "page",
        *,
        token: str | None = None,
        tls: Tls | None = None,
        server: str | None = None,
        model: str | None = None,
        byte_limit: int = BYTE_LIMIT,
    ) -> None:
        self._source = source
        self._token, self._tls = token, tls
        self._server = server or server_name(source)
        self._model = model
        self._byte_limit = byte_limit
        self._last: int | None = None

    def collect(self, source: str | None = None) -> Visit:
        """Fetch the page, which takes its rows away. PageError when there is none."""
        place = source or self._source
        fetched = fetch(place, token=self._token, tls=self._tls, byte_limit=self._byte_limit)
        return self.read(fetched.text, fetched.source, fetched.read_at_ns)

    def close(self) -> None:
        """Nothing is held between visits."""

    def read(self, body: str, source: str = "page", read_at_ns: int | None = None) -> Visit:
        """Return the engine of a page: its newest iteration, and what all of them finished. PageError if none."""
        rows, refused = _rows_of(body, source)
        sample = EngineSample(
            engine="trtllm", server=self._server, model=self._model, counters="delta", ts_nanoseconds=read_at_ns
        )
        newest = rows[-1]
        scheduled = _whole(newest, _BATCH, "numScheduledRequests")
        sample.requests_running = _whole(newest, "numActiveRequests") if scheduled is None else scheduled
        sample.requests_waiting = _whole(newest, "numQueuedRequests")
        sample.requests_swapped_or_paused = _whole(newest, _BATCH, "numPausedRequests")
        sample.batch_size = scheduled
        context, generation = _whole(newest, _BATCH, "numCtxTokens"), _whole(newest, _BATCH, "numGenRequests")
        sample.batch_tokens = None if context is None or generation is None else context + generation
        most, used = _whole(newest, _CACHE, "maxNumBlocks"), _whole(newest, _CACHE, "usedNumBlocks")
        size = _whole(newest, _CACHE, "tokensPerBlock")
        sample.kv_capacity_tokens = None if most is None or size is None else most * size
        sample.kv_used_ratio = used / most if most and used is not None and used <= most else None
        finished = [_whole(row, "numCompletedRequests") for row in rows]
        known = [count for count in finished if count is not None]
        sample.requests_finished = sum(known) if known else None
        sample.quality = tuple(sorted(self._doubts(rows, has_all=len(known) == len(rows))))
        reading = ServingReading((sample,), rejected=(Rejected("bad_row", refused),) if refused else ())
        return Visit(reading, reading)

    def _doubts(self, rows: list[dict[str, Any]], *, has_all: bool) -> set[Flag]:
        """Whether iterations are missing: another reader had them, or the engine dropped them."""
        flags: set[Flag] = set() if has_all else {"partial"}
        for row in rows:
            number = _whole(row, "iter")
            if number is None:
                continue
            if self._last is not None and number <= self._last:
                flags.add("reset")
            elif self._last is not None and number != self._last + 1:
                flags.add("partial")
            self._last = number
        return flags


def _rows_of(body: str, source: str) -> tuple[list[dict[str, Any]], int]:
    try:
        whole = json.loads(body)
    except (ValueError, RecursionError):
        raise PageError(f"{source}: is not JSON") from None
    if not isinstance(whole, list):
        raise PageError(f"{source}: is JSON, but no list of iterations")
    rows = [row for row in whole[-ROW_LIMIT:] if isinstance(row, dict) and _whole(row, "iter") is not None]
    if not rows:
        raise PageError(
            f"{source}: holds no iteration; another reader may have taken them, or the server runs without "
            "enable_iter_perf_stats; this says nothing about load"
        )
    return rows, len(whole) - len(rows)


def _whole(row: dict[str, Any], *path: str) -> int | None:
    """A whole number that is not negative; None if there is none."""
    found: Any = row
    for name in path:
        found = found.get(name) if isinstance(found, dict) else None
    return found if isinstance(found, int) and not isinstance(found, bool) and 0 <= found < _LARGEST else None
