"""The script that Streamlit runs for every visitor and every click: find the workspace, draw the page asked for."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import TYPE_CHECKING

import streamlit as st

from app.access import NotAllowedError, Scope, current_scope
from app.frame import empty_not_allowed, empty_nothing_loaded, empty_state, open_page
from app.queries import ReplacedBuildError, Reports
from app.text import plain
from app.views.fleet import fleet_page
from app.views.serving import serving_page
from app.views.spend import spend_page
from app.views.team import team_page
from fleet.errors import GputallyError, NotBuiltError

if TYPE_CHECKING:
    from collections.abc import Callable

    from app.frame import Page

STYLE = Path(__file__).with_name("portal.css")
ICON = Path(__file__).with_name("icon.svg")
"""A file of ours: a named icon would be fetched from the internet."""


def main() -> None:
    """Draw the portal."""
    st.set_page_config(page_title="gputally", page_icon=ICON, layout="wide")
    st.html(STYLE)
    scope = current_scope()
    pages = [
        st.Page(lambda: show("Spend", spend_page, scope), title="Spend", icon=":material/payments:", default=True),
        st.Page(lambda: show("Team", team_page, scope), title="Team", icon=":material/group:", url_path="team"),
        st.Page(
            lambda: show("Serving", serving_page, scope), title="Serving", icon=":material/forum:", url_path="serving"
        ),
        st.Page(lambda: show("Fleet", fleet_page, scope), title="Fleet", icon=":material/memory:", url_path="fleet"),
    ]
    st.navigation(pages, position="top").run()
    _settle()


@st.cache_resource(show_spinner=False)
def _settle() -> None:
    """After the first page, everything that pages import is in memory: never look at it again when collecting garbage.

    Streamlit collects after every run; without this, each click costs the time to walk through all modules.
    """
    gc.collect()
    gc.freeze()


def show(title: str, view: Callable[[Page], None], scope: Scope) -> None:
    """Draw one page, or say in words why it cannot be drawn."""
    try:
        page = open_page(title, open_reports(), scope)
        if page:
            view(page)
    except NotBuiltError:
        st.title(title, anchor=False)
        empty_nothing_loaded()
    except NotAllowedError:
        empty_not_allowed()
    except ReplacedBuildError:
        st.rerun()
    except GputallyError as error:
        empty_state("The month cannot be read just now", plain(str(error), 400), "gputally doctor")


def open_reports() -> Reports:
    """The reports of the workspace that the server serves."""
    workspace = Path(st.secrets["portal"]["workspace"])
    reports = _reports_of(workspace)
    if reports.is_gone():
        _reports_of.clear(workspace)
        reports = _reports_of(workspace)
    return reports


@st.cache_resource(max_entries=4, show_spinner=False)
def _reports_of(workspace: Path) -> Reports:
    """One `Reports` for all sessions of the process."""
    return Reports(workspace)


if __name__ == "__main__":
    main()
