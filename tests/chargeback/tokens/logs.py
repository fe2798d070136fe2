"""What the tests of token ledgers share: a log as lines, and the rows that it is read as."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chargeback.kinds import TOKENS
from chargeback.tokens.staging import stage_log
from chargeback.tokens.usage import LogOptions
from fleet.errors import InputError
from store.lake import memory

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from store.lake import Connection

Row = dict[str, Any]
FIXTURES = Path(__file__).parents[2] / "fixtures" / "tokens"
PAYLOAD = FIXTURES / "litellm-payload.jsonl.gz"
SPEND_LOGS = FIXTURES / "litellm-spendlogs.jsonl"
ACCESS_LOG = FIXTURES / "envoy-ai-gateway-access.jsonl"
REQUEST_LOG = FIXTURES / "sglang-request-metrics-20260801_10.log"

SPEND: Row = {
    "request_id": "r-1", "api_key": "a" * 64, "prompt_tokens": 100, "completion_tokens": 10,
    "startTime": "2026-08-01T08:59:50Z", "endTime": "2026-08-01T09:00:01Z", "model": "hosted_vllm/llama",
    "model_id": "d-1", "model_group": "llama", "api_base": "http://llm:8000/v1", "cache_hit": "False",
    "team_id": "t", "status": "success",
    "metadata": {"usage_object": {"prompt_tokens": 100, "prompt_tokens_details": {"cached_tokens": 40}}},
}  # fmt: skip
ACCESS: Row = {
    "start_time": "2026-08-01T09:59:59.000Z", "duration": 2000, "response_code": 200, "response_flags": "-",
    "x-tenant-id": "risk", "gen_ai.request.model": "llama", "gen_ai.provider.name": "ns/llm/route/r/rule/0/ref/0",
    "gen_ai.usage.input_tokens": 100, "gen_ai.usage.output_tokens": 10, "gen_ai.usage.cached_input_tokens": 40,
}  # fmt: skip


@cache
def connection() -> Connection:
    """A DuckDB in memory that all tests of a process use: making one takes longer than reading a log."""
    return memory()


def write_lines(path: Path, records: Iterable[Mapping[str, Any] | str]) -> Path:
    """A log of JSON lines; a text stands as it is."""
    lines = [record if isinstance(record, str) else json.dumps(record) for record in records]
    path.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    return path


def read(
    path: Path,
    log: str,
    *,
    zone: str | None = None,
    tenant: str | None = None,
    servers: Mapping[str, str] | None = None,
) -> list[Row]:
    """The staged rows of a log, as dictionaries; times as text."""
    con = connection()
    options = LogOptions(log, zone, tenant, tuple((servers or {}).items()))
    staged = stage_log(con, path, TOKENS, options)
    found = con.execute(
        f"SELECT * REPLACE (strftime(hour_start AT TIME ZONE 'UTC', '%Y-%m-%dT%H') AS hour_start) FROM {staged.table} "
        "ORDER BY source_row, hour_start"
    )
    names = [column[0] for column in found.description or []]
    return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


def refusal(path: Path, log: str, **options: Any) -> list[str]:
    """The problems for which a log is refused; AssertionError when it is taken."""
    try:
        read(path, log, **options)
    except InputError as error:
        return [str(problem) for problem in error.problems]
    raise AssertionError("nothing was refused")


def total(rows: Iterable[Row], *columns: str) -> list[int]:
    """Sums of columns; rows without a count add nothing."""
    rows = list(rows)
    return [sum(row[column] or 0 for row in rows) for column in columns]
