"""What pages say about shared model servers: one line a server, and the words and units of their figures."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final

from app import text
from app.frame import Page, rows_of
from app.tables import Cell, Column, Link, show_table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    Row = dict[str, Any]

TOKENS: Final = ("uncached_input_tokens", "cached_input_tokens", "output_tokens")
PRICES: Final = ("input_price_per_million", "cached_input_price_per_million", "output_price_per_million")
HOW: Final = (
    "A price is the cost of that kind of token over its count. Idle hours and requests whose tokens nobody reported "
    "are in nobody's price."
)


def token_columns(currency: str, *, cached: bool) -> list[Column]:
    """Columns of tokens, requests and cost."""
    return [
        Column("Input", "million tokens", number=True),
        *([Column("Cached input", "million tokens", number=True)] if cached else []),
        Column("Output", "million tokens", number=True),
        Column("Requests", number=True),
        Column("Cost", f"{currency}, month", number=True),
    ]


def token_cells(row: Mapping[str, Any], currency: str, *, cached: bool) -> list[str]:
    """The cells of `token_columns`."""
    requests = row["requests"]
    return [
        text.millions(row["uncached_input_tokens"]),
        *([text.millions(row["cached_input_tokens"])] if cached else []),
        text.millions(row["output_tokens"]),
        text.NOT_KNOWN if requests is None else f"{requests:,}",
        text.amount(row["amount"], currency),
    ]


def price_columns(currency: str, *, cached: bool) -> list[Column]:
    """Columns of prices of a million tokens."""
    kinds = ["input", *(["cached input"] if cached else []), "output"]
    return [Column(f"Per million {kind}", currency, number=True) for kind in kinds]


def price_cells(row: Mapping[str, Any], currency: str, *, cached: bool) -> list[str]:
    """The cells of `price_columns`."""
    return [text.price(row[name], currency) for name in PRICES if cached or not name.startswith("cached")]


def has_cached(rows: Sequence[Mapping[str, Any]]) -> bool:
    """Whether any cached input was reported; a column of zeros would read as a measurement."""
    return any(row["cached_input_tokens"] for row in rows)


def show_servers(page: Page, rows: Sequence[Row], currency: str, *, caption: str) -> None:
    """Draw one line a server: rows of report `server_total` in one currency."""
    cached = has_cached(rows)
    owners = _owners(page)
    show_table(
        [
            Column("Model server"),
            *([Column("Owner")] if owners else []),
            Column("Tenants", number=True),
            *token_columns(currency, cached=cached),
            *price_columns(currency, cached=cached),
            Column("Per request", currency, number=True),
        ],
        [
            [
                Link(row["server"], "serving", {"period": page.build.period, "server": row["server"]}),
                *([owners.get(row["server"], "")] if owners else []),
                f"{row['tenant_count']:,}",
                *token_cells(row, currency, cached=cached),
                *price_cells(row, currency, cached=cached),
                text.price(row["price_per_request"], currency, digits=4),
            ]
            for row in rows
        ],
        caption=caption,
    )


def _owners(page: Page) -> dict[str, Cell]:
    """The team whose GPUs each server held, as far as the visitor may see it."""
    teams: dict[str, list[str]] = defaultdict(list)
    for row in rows_of(page.ask("server_owner")):
        teams[row["server"]].append(row["team"] or "no team")
    return {
        server: Link(names[0], "team", {"period": page.build.period, "team": names[0]})
        if len(names) == 1 and names[0] != "no team"
        else ", ".join(names)
        for server, names in teams.items()
    }
