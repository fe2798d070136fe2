"""What every token ledger is turned into: usages, with their tokens counted in one convention."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from chargeback.tokens.fields import FieldError, count_in, object_in

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime

Record = dict[str, object]
"""One line of a ledger: a JSON object, or a row of a table as text."""


class Tokens(NamedTuple):
    """Token counts of a request. None = not reported, which is not 0."""

    input: int | None = None
    """Prompt tokens, those found in a prefix cache included."""
    cached: int | None = None
    output: int | None = None
    """Generated tokens, reasoning included."""


NO_WORK = Tokens(0, 0, 0)


@dataclass(frozen=True, slots=True)
class Usage:
    """What one server did for one tenant with one model in one hour, as far as one record says."""

    server: str | None
    tenant: str | None
    model: str | None
    hour_start: datetime
    """UTC. The hour in which the request ended: that is when ledgers know what it used."""
    tokens: Tokens
    requests: int = 1
    failed_requests: int = 0
    cache_hit_requests: int = 0
    identity: str | None = field(default=None, compare=False)
    """What the ledger itself says is unique; None where it promises nothing."""


@dataclass(frozen=True, slots=True)
class LogOptions:
    """How a log is read, beyond what it says."""

    format: str
    """`litellm`, `envoy` or `sglang`."""
    zone: str | None = None
    """IANA zone of a server that writes local times."""
    tenant: str | None = None
    """The field that names the tenant; None = the format's usual one."""
    servers: tuple[tuple[str, str], ...] = ()
    """(what the log calls a server, its name in our tables); "" stands for every other one."""

    def as_identity(self) -> Mapping[str, str]:
        """What makes the same log mean something else, for the snapshot id."""
        named = "\n".join(f"{word}\t{name}" for word, name in sorted(dict(self.servers).items()))
        # Only SGLang writes local times; the others' mean the same in whatever zone they are loaded.
        zone = (self.zone or "") if self.format == "sglang" else "UTC"
        return {"format": self.format, "time_zone": zone, "tenant": self.tenant or "", "servers": named}

    def server(self, found: Sequence[str | None]) -> str | None:
        """The name of a server for which the log has the words `found`, the last of them its own name by default."""
        names = dict(self.servers)
        words = [word for word in found if word]
        named = next((names[word] for word in words if word in names), None)
        return named or names.get("") or (found[-1] if found else None)


class Source(NamedTuple):
    """One format of ledger, ready to read one file."""

    read: Callable[[Record], Sequence[Usage]]
    """The usages of one record; FieldError when it cannot be understood."""
    lacking: Callable[[], str | None] = lambda: None
    """Asked at the end of the file: what all its records lack, as a message; None when nothing does."""


def openai_tokens(usage: Mapping[str, object]) -> Tokens:
    """Tokens of a usage object, in either convention.

    OpenAI: `prompt_tokens` (Responses API: `input_tokens`) include the cached ones, named again in `..._details`.
    Anthropic: `input_tokens` are neither read from nor written to the cache; those two counts stand beside it.
    """
    if "prompt_tokens" in usage:
        return Tokens(count_in(usage, "prompt_tokens"), cached_tokens(usage), count_in(usage, "completion_tokens"))
    output = count_in(usage, "output_tokens")
    fresh = count_in(usage, "input_tokens")
    if is_anthropic(usage):
        read, written = (count_in(usage, f"cache_{how}_input_tokens") for how in ("read", "creation"))
        whole = None if fresh is None else fresh + (read or 0) + (written or 0)
        return Tokens(whole, read, output)
    return Tokens(fresh, cached_tokens(usage), output)


def is_anthropic(usage: Mapping[str, object]) -> bool:
    """Whether a usage object counts input tokens without the cached ones."""
    beside = {"cache_read_input_tokens", "cache_creation_input_tokens"} & usage.keys()
    return "prompt_tokens" not in usage and "input_tokens" in usage and bool(beside)


def cached_tokens(usage: Mapping[str, object]) -> int | None:
    """Input tokens that an OpenAI-style usage says were found in a cache; None when it does not say."""
    for details in ("prompt_tokens_details", "input_tokens_details"):
        counted = count_in(object_in(usage, details), "cached_tokens")
        if counted is not None:
            return counted
    return count_in(usage, "cache_read_input_tokens")


def checked(tokens: Tokens, column: str) -> Tokens:
    """The same tokens; FieldError when more were cached than there were."""
    if tokens.input is not None and tokens.cached is not None and tokens.cached > tokens.input:
        raise FieldError(column, f"{tokens.cached} cached input tokens are more than all {tokens.input}")
    return tokens
