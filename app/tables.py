"""Small tables, notes and chips as HTML: exact text instead of a browser's doubles, a totals row, links, keyboard and
screen reader included. Every text is escaped here, whoever wrote it; Streamlit cleans the result once more.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, TypeAlias
from urllib.parse import urlencode

import streamlit as st

from app.text import bounded

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True, slots=True)
class Link:
    """A text that leads to a page of the portal."""

    text: str
    page: str
    params: Mapping[str, str]

    @property
    def address(self) -> str:
        """Where it leads; names are percent-encoded."""
        query = urlencode(self.params)
        return f"/{self.page}?{query}" if query else f"/{self.page}"


Cell: TypeAlias = str | Link


@dataclass(frozen=True, slots=True)
class Column:
    """A header, its unit or basis below it, and whether the cells are numbers."""

    title: str
    unit: str = ""
    number: bool = False


def show_table(
    columns: Sequence[Column], rows: Sequence[Sequence[Cell]], *, caption: str, footer: Sequence[str] = ()
) -> None:
    """Draw a table; `footer` is its totals row."""
    st.html(table_html(columns, rows, caption=caption, footer=footer))


def table_html(
    columns: Sequence[Column], rows: Sequence[Sequence[Cell]], *, caption: str, footer: Sequence[str] = ()
) -> str:
    """The markup of a table."""
    kinds = ["gt-number" if column.number else "gt-name" for column in columns]
    head = "".join(
        f'<th scope="col" class="{kind}">{_text(column.title)}<small>{_text(column.unit)}</small></th>'
        for column, kind in zip(columns, kinds, strict=True)
    )
    body = "".join(f"<tr>{_cells(row, kinds)}</tr>" for row in rows)
    foot = f"<tfoot><tr>{_cells(footer, kinds)}</tr></tfoot>" if footer else ""
    return (
        f'<div class="gt-scroll" tabindex="0"><table class="gt-table"><caption>{_text(caption)}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody>{foot}</table></div>"
    )


def show_note(parts: Sequence[Cell], *, warn: bool = False) -> None:
    """Draw a short remark; its parts are texts and links."""
    st.html(f'<div class="gt-note{" gt-warn" if warn else ""}">{" ".join(map(_cell, parts))}</div>')


def show_chips(chips: Sequence[tuple[str, bool]]) -> None:
    """Draw short facts side by side; True marks one that has been checked and holds."""
    spans = "".join(f'<span class="{"gt-good" if good else ""}">{_text(text)}</span>' for text, good in chips)
    st.html(f'<div class="gt-chips">{spans}</div>')


def show_crumbs(crumbs: Sequence[Cell]) -> None:
    """Draw where the reader is; each earlier step is a link."""
    st.html(f'<nav class="gt-crumbs" aria-label="Breadcrumb">{" &rsaquo; ".join(map(_cell, crumbs))}</nav>')


def _cells(cells: Sequence[Cell], kinds: Sequence[str]) -> str:
    return "".join(f'<td class="{kind}">{_cell(cell)}</td>' for cell, kind in zip(cells, kinds, strict=True))


def _cell(cell: Cell) -> str:
    if isinstance(cell, Link):
        return f'<a href="{escape(cell.address, quote=True)}">{_text(cell.text)}</a>'
    return _text(cell)


def _text(text: str) -> str:
    return escape(bounded(text, 400), quote=True)
