"""SGLang's request log (`--export-metrics-to-file`): JSON lines in one file an hour, named by the server's local time.

A line has no time of its own, so the hour is the file's. `request_parameters` may hold prompts: the tenant label is
taken out of it and nothing else. Prompt tokens include the cached ones.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from chargeback.tokens.fields import count_in, hour_of, name_in, object_in
from chargeback.tokens.usage import Source, Tokens, Usage, checked
from fleet.errors import InputError, Problem
from fleet.period import parse_time

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from chargeback.tokens.usage import LogOptions, Record

FILE_NAME = re.compile(r"(\d{4})(\d\d)(\d\d)_(\d\d)\.(?:log|jsonl)(?:\.gz)?", re.ASCII)
TENANT_LABEL = "team"


def sglang_source(file: str, options: LogOptions) -> Source:
    """A reader of one hourly file. InputError when its hour or its server cannot be known."""
    hour = _hour(file, options.zone)
    server = options.server([])
    if server is None:
        raise InputError([Problem(file, "does not tell which server wrote it: name it with --server")])

    def read(record: Record) -> Sequence[Usage]:
        parameters = object_in(record, "request_parameters")
        reason = object_in(record, "finish_reason")
        tokens = Tokens(*(count_in(record, name) for name in ("prompt_tokens", "cached_tokens", "completion_tokens")))
        return [
            Usage(
                server=server,
                tenant=name_in(object_in(parameters, "custom_labels"), options.tenant or TENANT_LABEL),
                model=name_in(parameters, "lora_path"),
                hour_start=hour,
                tokens=checked(tokens, "cached_tokens"),
                # An abort without a status code is a client that left.
                failed_requests=int(reason.get("type") == "abort" and reason.get("status_code") is not None),
            )
        ]

    return Source(read)


def _hour(file: str, zone: str | None) -> datetime:
    """The UTC hour of a file. Where a local hour lies across two UTC hours, the one it starts in has it whole."""
    match = FILE_NAME.search(file)
    if match is None:
        raise InputError([Problem(file, "does not end in the hour that SGLang puts there, such as 20261001_09.log")])
    if zone is None:
        message = "is named by the local time of the server that wrote it: give its zone with --time-zone"
        raise InputError([Problem(file, message)])
    year, month, day, hour = match.groups()
    try:
        return hour_of(parse_time(f"{year}-{month}-{day}T{hour}:00:00", zone=zone))
    except ValueError as error:
        raise InputError([Problem(file, f"{error}; name a zone of fixed offset, such as Etc/GMT-1")]) from error
