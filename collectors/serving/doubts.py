"""What follows from other values of a row, and what they contradict."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from collectors.samples import Flag
    from collectors.serving.samples import EngineSample

_TOKENS: Final = ("generation_tokens", "prompt_tokens", "prompt_tokens_computed")
_MOMENTARY: Final = (
    "requests_running", "requests_waiting", "requests_swapped_or_paused", "kv_used_ratio", "batch_size",
    "batch_tokens",
)  # fmt: skip


def complete(sample: EngineSample) -> None:
    """Fill in which part of the prompts was cached or computed, where the other part is known."""
    prompt, cached, computed = sample.prompt_tokens, sample.prompt_tokens_cached, sample.prompt_tokens_computed
    known = computed if cached is None else cached
    if prompt is None or known is None or (cached is not None and computed is not None):
        return
    rest = prompt - known
    if rest < 0:
        # The two are counted at different moments of a request: nothing follows from them.
        _mark(sample, "partial")
    elif cached is None:
        sample.prompt_tokens_cached = rest
    else:
        sample.prompt_tokens_computed = rest


def doubt_gauges(samples: Iterable[EngineSample]) -> None:
    """Take out gauges at 0 while tokens were made: seen on busy engines, and never a proof of an idle one.

    Tokens that an engine counts for all its indices make the gauges of none of them doubtful, unless all are at 0.
    """
    rows = list(samples)
    for row in rows:
        if _has_worked(row):
            peers = [row] if row.requests_running is not None or row.kv_used_ratio is not None else _peers(row, rows)
            if not any(peer.requests_running for peer in peers):
                for peer in peers:
                    _take_out(peer, _MOMENTARY)
            else:
                for peer in peers:
                    if peer.requests_running:
                        _take_out(peer, ("kv_used_ratio",))


def _has_worked(row: EngineSample) -> bool:
    return any((getattr(row, name) or 0) > 0 for name in _TOKENS)


def _peers(row: EngineSample, rows: list[EngineSample]) -> list[EngineSample]:
    return [other for other in rows if other.model == row.model and other.engine_index is not None]


def _take_out(row: EngineSample, names: Iterable[str]) -> None:
    for name in names:
        if getattr(row, name) == 0:
            setattr(row, name, None)
            _mark(row, "partial")
    waiting = row.requests_waiting_by_reason
    if row.requests_waiting is None and waiting is not None and not any(waiting.values()):
        row.requests_waiting_by_reason = None


def _mark(row: EngineSample, flag: Flag) -> None:
    row.quality = tuple(sorted({*row.quality, flag}))
