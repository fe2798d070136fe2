"""Draw one page of the portal without a browser, and read from it what a person would."""

from __future__ import annotations

import re
from html import unescape
from typing import TYPE_CHECKING

from streamlit.testing.v1 import AppTest

from app.access import LOCAL, Scope

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

KEY = "11" * 32
SCRIPT = """
from app.access import Scope
from app.main import show
from app.views.{view} import {view}_page
show("{title}", {view}_page, {scope!r})
"""


def draw(workspace: Path, view: str, params: Mapping[str, str] | None = None, scope: Scope = LOCAL) -> AppTest:
    """Run a view as one visitor and hold it to what every page must be: no exception, no error box."""
    at = AppTest.from_string(SCRIPT.format(view=view, title=view.capitalize(), scope=scope), default_timeout=60)
    at.secrets["portal"] = {"workspace": str(workspace), "export_key": KEY}
    for name, value in (params or {}).items():
        at.query_params[name] = value
    at.run()
    return well(at)


def well(at: AppTest) -> AppTest:
    """Fail if the page shows an exception or an error."""
    assert [error.value for error in at.exception] == []
    assert [error.value for error in at.error] == []
    return at


def metrics(at: AppTest) -> dict[str, tuple[str, str]]:
    """Each tile's label with its value and basis."""
    return {metric.label: (metric.value, metric.delta) for metric in at.metric}


def markup(at: AppTest) -> str:
    """All tables, notes and chips, as HTML."""
    return "\n".join(element.proto.body for element in at.get("html"))


def table_rows(at: AppTest, caption: str) -> list[list[str]]:
    """The cells of the table whose caption starts so; header and footer are rows too."""
    tables = [table for table in markup(at).split("<table")[1:] if f"<caption>{caption}" in table]
    assert len(tables) == 1, f"{len(tables)} tables with caption {caption}"
    rows = re.findall(r"<tr>(.*?)</tr>", tables[0].split("</table>")[0], re.DOTALL)
    return [[_words(cell) for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.DOTALL)] for row in rows]


def words(at: AppTest) -> str:
    """Everything that a reader can read, charts aside."""
    texts = [
        element.value
        for kind in ("title", "subheader", "markdown", "caption", "warning", "code")
        for element in at.get(kind)
    ]
    return "\n".join([*texts, _words(markup(at))])


def charts(at: AppTest) -> list[str]:
    """The specifications of the charts, as JSON text."""
    return [element.proto.spec for element in at.get("vega_lite_chart")]


def _words(html: str) -> str:
    return unescape(re.sub(r"<[^>]+>", " ", html)).strip()
