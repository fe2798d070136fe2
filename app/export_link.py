"""The address of a file that the portal's server hands out: signed, and good for a quarter of an hour."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import streamlit as st

from fleet.ticket import issue

if TYPE_CHECKING:
    from app.access import Scope
    from app.queries import Build

LINK_SECONDS = 15 * 60


def export_address(scope: Scope, build: Build) -> str | None:
    """Where this visitor may fetch the finance CSV of a build; None where files are not served."""
    key = st.secrets.get("portal", {}).get("export_key")
    if not key or not scope.sees_all:
        return None
    claims = {"role": scope.role, "period": build.period, "build": build.build_id}
    ticket = issue(bytes.fromhex(key), claims, expires_s=int(time.time()) + LINK_SECONDS)
    return f"/export/{build.period}.csv?ticket={ticket}"
