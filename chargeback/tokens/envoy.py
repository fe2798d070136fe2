"""Envoy AI Gateway: its access log as JSON lines, with the fields of its documentation and a tenant header.

Input tokens include the cached ones. A client that goes away before the end leaves no counts: the request is counted,
its tokens are unknown. One line is one request of a client; retries of the gateway itself are not told apart.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from chargeback.tokens.fields import FieldError, count_in, hour_of, name_in, time_in
from chargeback.tokens.usage import Source, Tokens, Usage, checked

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from chargeback.tokens.usage import LogOptions, Record

INPUT, OUTPUT = "gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens"
CACHED = ("gen_ai.usage.cached_input_tokens", "gen_ai.usage.cache_read.input_tokens")
"""The name in the gateway's examples, and the one of OpenTelemetry's conventions."""
TENANT_HEADER = "x-tenant-id"
FIRST_ERROR_CODE = 400
DISCONNECTED = "DC"
"""Envoy's response flag for a client that closed the connection; no fault of the server."""
LACKING = f"no line has {INPUT}: let the gateway's access log format write it (llmRequestCosts)"


def envoy_source(options: LogOptions) -> Source:
    """A reader of access log lines."""
    seen: set[str] = set()

    def read(record: Record) -> Sequence[Usage]:
        seen.update({INPUT, OUTPUT} & record.keys())
        return [_usage(record, options)]

    return Source(read, lambda: None if seen else LACKING)


def _usage(record: Record, options: LogOptions) -> Usage:
    provider = name_in(record, "gen_ai.provider.name")
    backend = "/".join(provider.split("/")[:2]) if provider else None
    cached = next((count for name in CACHED if (count := count_in(record, name)) is not None), None)
    return Usage(
        server=options.server([provider, backend]),
        tenant=name_in(record, options.tenant or TENANT_HEADER),
        model=name_in(record, "gen_ai.response.model") or name_in(record, "gen_ai.request.model"),
        hour_start=hour_of(_end(record)),
        tokens=checked(Tokens(count_in(record, INPUT), cached, count_in(record, OUTPUT)), CACHED[0]),
        failed_requests=int(_has_failed(record)),
    )


def _end(record: Record) -> datetime:
    """When the request ended: its start, and how long it took in milliseconds."""
    try:
        return time_in(record, "start_time") + timedelta(milliseconds=count_in(record, "duration") or 0)
    except OverflowError as error:
        raise FieldError("duration", "ends after the last time there is") from error


def _has_failed(record: Record) -> bool:
    """Whether the gateway answered with an error, or not at all for another reason than a client that left."""
    code = count_in(record, "response_code")
    if code is None:
        raise FieldError("response_code", "is missing")
    flags = record.get("response_flags")
    has_left = isinstance(flags, str) and DISCONNECTED in flags.split(",")
    return code >= FIRST_ERROR_CODE or (code == 0 and not has_left)
