"""LiteLLM's daily tables (`LiteLLM_DailyTeamSpend`, `...UserSpend`, ...): tokens of a UTC day by tenant, key and model.

They know neither the hour nor the server. A day is spread evenly over its hours, to the token; the server is the
provider's name, or what the options call it. Where single requests are kept, the spend logs say more.
"""

from __future__ import annotations

from datetime import timedelta
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from chargeback.tokens.fields import FieldError, count_in, key_hash_in, name_in, time_in
from chargeback.tokens.usage import Tokens, Usage, checked

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from chargeback.tokens.usage import LogOptions, Record

TENANTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "team": "team_id",
        "organization": "organization_id",
        "user": "user_id",
        "end_user": "end_user_id",
        "key": "api_key",
    }
)
COLUMNS = (
    "date", "tag", "model_group", "model", "custom_llm_provider", "prompt_tokens", "completion_tokens",
    "cache_read_input_tokens", "api_requests", "failed_requests", *TENANTS.values(),
)  # fmt: skip
HOURS = 24


def is_daily(record: Record) -> bool:
    """Whether a record is a row of a daily table."""
    return "date" in record and "endTime" not in record


def read_day(record: Record, options: LogOptions) -> Sequence[Usage]:
    """The usages of one row of a daily table, one for each hour that got any of its requests or tokens."""
    if "tag" in record:
        raise FieldError("tag", "a request with two tags is in two rows; load the table by team or by user instead")
    day = time_in({"date": f"{record.get('date')}T00:00:00Z"}, "date")
    tokens = checked(
        Tokens(
            count_in(record, "prompt_tokens"),
            count_in(record, "cache_read_input_tokens"),
            count_in(record, "completion_tokens"),
        ),
        "cache_read_input_tokens",
    )
    requests, failed = count_in(record, "api_requests") or 0, count_in(record, "failed_requests") or 0
    provider, model = name_in(record, "custom_llm_provider"), name_in(record, "model_group") or name_in(record, "model")
    server = options.server([f"{provider}/{model}", provider])
    tenant = _tenant(record, options.tenant)
    return [
        Usage(
            server,
            tenant,
            model,
            day + timedelta(hours=hour),
            Tokens(*(None if count is None else _share(count, hour) for count in tokens)),
            _share(requests, hour),
            _share(failed, hour),
        )
        for hour in range(HOURS)
        if any(_share(count or 0, hour) for count in (*tokens, requests, failed))
    ]


def _share(count: int, hour: int) -> int:
    """The part of a day's count that falls on one hour: differences of a rising function, so their sum is exact."""
    return count * (hour + 1) // HOURS - count * hour // HOURS


def _tenant(record: Record, kind: str | None) -> str | None:
    """The tenant that was asked for, or whoever the table is by."""
    if kind is None:
        kind = next((kind for kind, column in TENANTS.items() if column in record), "key")
    column = TENANTS.get(kind)
    if column is None or column not in record:
        raise FieldError(column, f"the table does not tell the {kind}")
    return key_hash_in(record, column) if kind == "key" else name_in(record, column)
