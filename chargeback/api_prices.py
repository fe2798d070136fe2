"""Self-host or buy: what the same tokens would cost at an API's price list, beside what they cost here.

A price list is a question, not a part of the books: it is read for one answer and changes no ledger.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal, localcontext
from typing import TYPE_CHECKING, Final

from fleet.errors import InputError, Problem, quoted
from fleet.money import round_minor
from store.columns import Column, FileSpec, Kind
from store.intake import stage

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from chargeback.published import Row
    from store.lake import Connection

API_PRICES: Final = FileSpec(
    kind="api_prices",
    table="api_price",
    columns=(
        Column("model", "model", Kind.NAME, required=True, filled=True),
        Column("input_per_million", "input_per_million", Kind.MONEY, required=True, filled=True, minimum=0),
        Column("cached_per_million", "cached_per_million", Kind.MONEY, required=True, minimum=0),
        Column("output_per_million", "output_per_million", Kind.MONEY, required=True, filled=True, minimum=0),
        Column("currency", "currency", Kind.CURRENCY, required=True, filled=True),
    ),
)
MILLION: Final = Decimal(1_000_000)
AMOUNT_DIGITS: Final = 12


@dataclass(frozen=True, slots=True)
class ApiPrice:
    """What a million tokens of each kind cost; `cached` None: the seller gives nothing off for cached input."""

    input: Decimal
    cached: Decimal | None
    output: Decimal


PriceList = dict[tuple[str, str], ApiPrice]
"""By model and currency."""


def read_api_prices(con: Connection, path: Path) -> PriceList:
    """Read a price list (CSV or Parquet). InputError names the bad cells, or a model with two prices in a currency."""
    staged = stage(con, path, API_PRICES)
    prices: PriceList = {}
    for row, model, currency, *amounts in con.execute(
        "SELECT source_row, model, currency, input_per_million, cached_per_million, output_per_million "
        "FROM staged ORDER BY source_row"
    ).fetchall():
        if (model, currency) in prices:
            raise InputError([Problem(staged.file, f"{quoted(model)} has two prices in {currency}", row, "model")])
        prices[model, currency] = ApiPrice(*amounts)
    return prices


def with_api_amounts(rows: list[Row], prices: Mapping[tuple[str, str], ApiPrice]) -> list[Row]:
    """The rows of report `token_price`, each with `api_amount`: its tokens at the list's prices, to 12 decimals.

    None where the list does not have the model in the row's currency, or the row has no known tokens.
    """
    return [row | {"api_amount": _api_amount(row, prices.get((row["model"], row["currency"])))} for row in rows]


def _api_amount(row: Row, price: ApiPrice | None) -> Decimal | None:
    counts = [row[name] for name in ("uncached_input_tokens", "cached_input_tokens", "output_tokens")]
    if price is None or row["kind"] != "tenant" or None in counts:
        return None
    with localcontext() as context:
        context.prec = 60
        cached = price.input if price.cached is None else price.cached
        total = sum(
            (count * each for count, each in zip(counts, (price.input, cached, price.output), strict=True)), Decimal(0)
        )
        return round_minor(total / MILLION, AMOUNT_DIGITS)
