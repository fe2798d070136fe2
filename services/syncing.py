"""Fetch what the sources of `gputally.toml` offer and load it: each by itself, so that one that fails stops no other.

What is fetched lies in the workspace's `cache`, by source: a run that was stopped goes on from there. Loading is
idempotent, so a source may be synced again at any time.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from chargeback.load import load_exports
from chargeback.sheets import keep
from fleet.errors import ConfigError, GputallyError, MissingDependencyError, quoted
from fleet.sources_config import AwsApi, AwsExport, GcpBigQuery, GcpPrices

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from chargeback.sources.export import Export
    from chargeback.sources.intake import Verdict
    from chargeback.sources.sheet import Sheet
    from fleet.sources_config import Source
    from store.lake import Lake
    from store.snapshots import Loaded

    Progress = Callable[[str], None]
    Outcome = Loaded | Verdict | GputallyError

CACHE = "cache"
INVOICE_MONTHS = 3
"""Whose invoices are asked for: the present month and two before it, of which late ones may come."""
CHARGE_MONTHS = 3
"""Whose charges are asked for, where a provider does not say itself what has changed."""


def chosen(sources: Sequence[Source], names: Sequence[str]) -> list[Source]:
    """The sources of these names, in the order of the configuration; all of them without names.

    ConfigError for a name that is none, and when there are no sources at all.
    """
    if not sources:
        raise ConfigError("no source to sync: add [[sources]] to gputally.toml")
    known = [source.name for source in sources]
    for name in names:
        if name not in known:
            raise ConfigError(f"{quoted(name)} is no source; [[sources]] has {', '.join(known)}")
    return [source for source in sources if not names or source.name in names]


def months_before(now: datetime, count: int) -> list[str]:
    """The month of `now` and those before it, `count` in all, oldest first: by the calendar, whatever was billed."""
    month_number = now.year * 12 + now.month - 1
    return [f"{n // 12:04}-{n % 12 + 1:02}" for n in range(month_number - count + 1, month_number + 1)]


def sync_source(lake: Lake, source: Source, cache: Path, period: str | None, progress: Progress) -> Iterator[Outcome]:
    """Fetch and load one source; yield what each of its deliveries came to.

    A delivery that is refused is yielded as its error and the others are still loaded. GputallyError when the source
    itself fails: then nothing of what could not be fetched whole is kept.
    """
    match source:
        case AwsApi():
            yield from _keep(lake, _aws_sheets(source, period, progress), cache, progress)
        case AwsExport():
            yield from _load(lake, _aws_exports(source, cache, period, progress), progress)
        case GcpBigQuery():
            yield from _load(lake, _gcp_exports(source, cache, period, progress), progress)
        case GcpPrices():
            yield from _keep(lake, _gcp_sheets(source, progress), cache, progress)


def _keep(lake: Lake, sheets: Iterable[Sheet], cache: Path, progress: Progress) -> Iterator[Outcome]:
    for sheet in sheets:
        progress(f"load {sheet.name}")
        try:
            yield keep(lake, sheet, cache)
        except GputallyError as error:
            yield error


def _load(lake: Lake, exports: Iterable[Export], progress: Progress) -> Iterator[Outcome]:
    for export in exports:
        progress(f"load {export.source}")
        try:
            yield from load_exports(lake, [export])
        except GputallyError as error:
            yield error


def _aws_sheets(source: AwsApi, period: str | None, progress: Progress) -> tuple[Sheet, ...]:
    try:
        from chargeback.sources import aws_api
    except ModuleNotFoundError as error:
        raise _without("aws", error) from None
    now = datetime.now(UTC)
    return aws_api.fetch(source, [period] if period else months_before(now, INVOICE_MONTHS), now, progress)


def _aws_exports(source: AwsExport, cache: Path, period: str | None, progress: Progress) -> tuple[Export, ...]:
    try:
        from chargeback.sources import aws_s3
    except ModuleNotFoundError as error:
        raise _without("aws", error) from None
    return aws_s3.fetch(source, cache, progress, period=period)


def _gcp_exports(source: GcpBigQuery, cache: Path, period: str | None, progress: Progress) -> Iterator[Export]:
    try:
        from chargeback.sources import gcp_bigquery
    except ModuleNotFoundError as error:
        raise _without("gcp", error) from None
    table = f"{source.project}.{source.table}"
    for month in [period] if period else months_before(datetime.now(UTC), CHARGE_MONTHS):
        yield from gcp_bigquery.fetch(table, month, cache, progress, location=source.location)


def _gcp_sheets(source: GcpPrices, progress: Progress) -> tuple[Sheet, ...]:
    try:
        from chargeback.sources import gcp_prices
    except ModuleNotFoundError as error:
        raise _without("gcp", error) from None
    service = source.service or gcp_prices.COMPUTE_ENGINE
    name = f"{source.name}-prices.csv"
    return (gcp_prices.fetch(name, service=service, currency=source.currency, progress=progress),)


def _without(extra: str, error: ModuleNotFoundError) -> MissingDependencyError:
    """The extra to install for a module that is not there; a module of our own that is not there is a defect."""
    if (error.name or "").split(".")[0] in {"chargeback", "fleet", "store"}:
        raise error
    return MissingDependencyError(f"{error.name} is not installed: install gputally[{extra}]")
