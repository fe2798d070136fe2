"""LiteLLM's ledgers of single requests: `LiteLLM_SpendLogs` (JSON lines or a table export) and its log payload.

The payload is the `StandardLoggingPayload` that LiteLLM hands to loggers. Field names were read from LiteLLM 1.106 and
1.110; times are UTC. Money in these files is a list price in binary floats, and 0 for most self-hosted models: it is
not read. Neither are prompts, answers, addresses of clients and keys.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit

from chargeback.tokens.fields import (
    SECRET,
    FieldError,
    count_in,
    flag_in,
    hour_of,
    key_hash_in,
    name_in,
    object_in,
    time_in,
)
from chargeback.tokens.usage import NO_WORK, Tokens, Usage, cached_tokens, checked, is_anthropic, openai_tokens

if TYPE_CHECKING:
    from collections.abc import Mapping

    from chargeback.tokens.usage import LogOptions, Record

TENANTS: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(
    {
        "team": ("team_id", "user_api_key_team_id"),
        "team_alias": ("team_alias", "user_api_key_team_alias"),
        "organization": ("organization_id", "user_api_key_org_id"),
        "user": ("user", "user_api_key_user_id"),
        "end_user": ("end_user", "user_api_key_end_user_id"),
        "key": ("api_key", "user_api_key_hash"),
        "key_alias": ("api_key_alias", "user_api_key_alias"),
    }
)
"""Who a tenant can be -> the field of a spend log, and the one inside `metadata` of either."""
COLUMNS = (
    "request_id", "endTime", "status", "cache_hit", "metadata", "prompt_tokens", "completion_tokens", "api_base",
    "model_id", "model_group", "model", *(column for column, _ in TENANTS.values()),
)  # fmt: skip
"""What is read of a table export; it may have many more columns, with prompts in them."""


def read_request(record: Record, options: LogOptions) -> Usage:
    """The usage of one spend log or log payload.

    One record is one call to a server: a retry is a record of its own. A call answered by LiteLLM's own cache made no
    server work, so its tokens are 0 here. Where a success has no tokens at all, the server reported none.
    """
    metadata = object_in(record, "metadata")
    has_failed = _has_failed(record)
    is_cache_hit = flag_in(record, "cache_hit")
    tokens = NO_WORK if is_cache_hit else _tokens(record, metadata, has_failed=has_failed)
    return Usage(
        server=options.server([name_in(record, "model_id"), server_address(record.get("api_base"))]),
        tenant=_tenant(record, metadata, options.tenant or "team"),
        model=name_in(record, "model_group") or name_in(record, "model"),
        hour_start=hour_of(time_in(record, "endTime")),
        tokens=tokens,
        failed_requests=int(has_failed),
        cache_hit_requests=int(is_cache_hit),
        identity=name_in(record, "request_id"),
    )


def _has_failed(record: Record) -> bool:
    status = record.get("status")
    if status not in ("success", "failure", None, ""):
        raise FieldError("status", "is neither success nor failure")
    return status == "failure"


def _tokens(record: Record, metadata: Mapping[str, object], *, has_failed: bool) -> Tokens:
    """The record's own counts; its usage object tells the cached ones, and whether they are still to be added."""
    if not {"prompt_tokens", "completion_tokens"} & record.keys():
        raise FieldError("prompt_tokens", "is missing")
    usage = object_in(metadata, "usage_object")
    prompt, output = count_in(record, "prompt_tokens"), count_in(record, "completion_tokens")
    if not prompt and not output and not has_failed:
        return Tokens()
    cached = cached_tokens(usage)
    if is_anthropic(usage) and prompt == count_in(usage, "input_tokens"):
        prompt, cached, _ = openai_tokens(usage)
    return checked(Tokens(prompt, cached, output), "metadata")


def _tenant(record: Record, metadata: Mapping[str, object], kind: str) -> str | None:
    outside, inside = TENANTS[kind]
    found = key_hash_in if kind == "key" else name_in
    return found(record, outside) or found(metadata, inside)


def server_address(api_base: object) -> str | None:
    """The server in a base URL: host, port and the path before `/v1`, never user, password or query.

    LiteLLM writes `http://llm:8000/v1` and `http://llm:8000/v1/chat/completions` for the same server.
    """
    if not isinstance(api_base, str):
        return None
    try:
        parts = urlsplit(api_base)
        host, port = parts.hostname, parts.port
    except ValueError:
        return None
    if not host:
        return None
    place = f"[{host}]" if ":" in host else host
    folders = f"{parts.path}/".split("/v1/")[0].strip("/").split("/")
    path = "" if any(SECRET.match(unquote(folder)) for folder in folders) else "/".join(folders)
    return name_in({"at": f"{place}{f':{port}' if port else ''}{f'/{path}' if path else ''}"}, "at")
