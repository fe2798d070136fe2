"""Read a gateway's or an engine's own log and stage its sums as rows of a tokens file: all of it, or nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chargeback.tokens import litellm, litellm_daily
from chargeback.tokens.envoy import envoy_source
from chargeback.tokens.fields import FieldError
from chargeback.tokens.records import holds_json, json_lines
from chargeback.tokens.sglang import sglang_source
from chargeback.tokens.tally import Tally
from chargeback.tokens.usage import Source
from fleet.errors import ConfigError, InputError, Problem, quoted
from store.staging import stage_rows, table_records

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from chargeback.tokens.usage import LogOptions, Record, Usage
    from store.columns import FileSpec
    from store.intake import Staged
    from store.lake import Connection

FORMATS = ("litellm", "envoy", "sglang")
MAX_PROBLEMS = 20
COLUMNS = tuple(dict.fromkeys((*litellm.COLUMNS, *litellm_daily.COLUMNS)))


def stage_log(con: Connection, path: Path, spec: FileSpec, options: LogOptions) -> Staged:
    """Stage the usages of a log, summed. InputError with the problems found, the first 20 at most."""
    source = _source(path.name, options)
    tally, problems, count = Tally(), [], 0
    for row, record in _records(con, path, spec, options):
        count += 1
        try:
            if isinstance(record, FieldError):
                raise record
            for usage in source.read(record):
                tally.add(row, usage)
        except FieldError as error:
            problems.append(Problem(path.name, str(error), row, error.column))
            if len(problems) >= MAX_PROBLEMS:
                break
    lacking = source.lacking() if count else "is empty"
    if problems or lacking:
        raise InputError(problems or [Problem(path.name, str(lacking))])
    return stage_rows(con, path, spec, tally.rows())


def _records(
    con: Connection, path: Path, spec: FileSpec, options: LogOptions
) -> Iterator[tuple[int, Record | FieldError]]:
    if options.format != "litellm" or holds_json(path):
        yield from json_lines(path)
        return
    for row, cells in table_records(con, path, spec, COLUMNS):
        yield row, dict(cells)


def _source(file: str, options: LogOptions) -> Source:
    if options.format == "envoy":
        return envoy_source(options)
    if options.format == "sglang":
        return sglang_source(file, options)
    if options.tenant is not None and options.tenant not in litellm.TENANTS:
        raise ConfigError(f"a tenant of LiteLLM is one of {', '.join(litellm.TENANTS)}, not {quoted(options.tenant)}")

    def read(record: Record) -> Sequence[Usage]:
        if litellm_daily.is_daily(record):
            return litellm_daily.read_day(record, options)
        return [litellm.read_request(record, options)]

    return Source(read)
