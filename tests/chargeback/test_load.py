"""What counts after loading, through the commands a user types: copies, corrections, odd names, refunds."""

from __future__ import annotations

import csv
import io
import json
import shutil
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest

from tests.month import CHARGES, HELD, HOLDINGS, INVOICES, charge, load_month, write_lines
from tests.program import gputally, newest_snapshot, refused, said

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return load_month(tmp_path_factory.mktemp("loaded") / "ws")


@pytest.fixture
def ws(loaded: Path, tmp_path: Path) -> Path:
    """A copy of it to change; what is refused changes nothing and needs none."""
    return shutil.copytree(loaded, tmp_path / "ws")


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    return lambda name, *lines: write_lines(tmp_path / name, *lines)


def test_a_time_without_zone_is_refused_unless_its_zone_is_given(ws: Path, write: Callable[..., Path]) -> None:
    path = write("local.csv", HOLDINGS, "2026-05-20T02:00:00,2026-05-20T04:00:00,8,n1,ann")
    line = refused(ws, "holdings", path)
    assert line.startswith("local.csv: row 2, column end: '2026-05-20T04:00:00' has no time zone")
    assert "(and 1 more problem)" in line
    assert "'Mars/Base' is not a time zone" in refused(ws, "holdings", path, "--time-zone", "Mars/Base")

    said(gputally("-C", ws, "load", "holdings", path, "--time-zone", "Europe/Berlin"))

    said(gputally("-C", ws, "build", "2026-05"))
    hours = {row["category"]: row["gpu_hours"] for row in statement(ws)}
    assert Decimal(hours["held"]) == 8 * (15 * 24 + 2)


@pytest.mark.parametrize("kind", ["inventory", "holdings", "charges", "invoices"])
def test_a_file_loaded_again_under_any_name_counts_once(loaded: Path, tmp_path: Path, kind: str) -> None:
    before = newest_snapshot(loaded)
    same = said(gputally("-C", loaded, "load", kind, loaded / f"{kind}.csv"))
    assert same == f"{kind}.csv: 1 rows, already loaded, nothing to do\n"
    copy = shutil.copy(loaded / f"{kind}.csv", tmp_path / "copy.csv")
    other = said(gputally("-C", loaded, "load", kind, copy))
    assert other == f"copy.csv: 1 rows, already loaded as {kind}.csv, nothing to do\n"
    assert newest_snapshot(loaded) == before


def test_a_zone_that_the_format_does_not_need_makes_no_second_content(loaded: Path, tmp_path: Path) -> None:
    before = newest_snapshot(loaded)
    copy = shutil.copy(loaded / "charges.csv", tmp_path / "copy.csv")
    said(gputally("-C", loaded, "load", "charges", copy, "--time-zone", "UTC"))
    assert newest_snapshot(loaded) == before


def test_a_corrected_file_replaces_what_its_name_said(ws: Path, write: Callable[..., Path]) -> None:
    said(gputally("-C", ws, "build", "2026-05"))
    write("charges.csv", CHARGES, charge("744"))
    write("invoices.csv", INVOICES, "Cloud,inv-1,2026-05,USD,744")
    for kind in ("charges", "invoices"):
        assert said(gputally("-C", ws, "load", kind, ws.parent / f"{kind}.csv")) == f"{kind}.csv: 1 rows, replaced\n"
    said(gputally("-C", ws, "build", "2026-05"))
    assert total(ws) == Decimal("744.00")


def test_a_team_that_looks_like_a_formula_is_kept_and_guarded_for_spreadsheets(
    ws: Path, write: Callable[..., Path]
) -> None:
    teams = {"=HYPERLINK(1)", "+1", "-1", "@cmd"}
    held = [HELD.replace(",8,", ",2,").replace("ann", team) for team in sorted(teams)]
    said(gputally("-C", ws, "load", "holdings", write("holdings.csv", HOLDINGS, *held)))
    said(gputally("-C", ws, "build", "2026-05"))
    assert {row["team"] for row in statement(ws)} == teams
    table = list(csv.DictReader(io.StringIO(said(gputally("-C", ws, "statement", "2026-05", "--format", "csv")))))
    assert {row["team"] for row in table} == {f"'{team}" for team in teams}
    assert all(not row["amount"].startswith("'") for row in table)


def test_a_negative_charge_lowers_what_its_node_costs(ws: Path, write: Callable[..., Path]) -> None:
    refund = charge("-744", span="2026-05-11T00:00:00Z,2026-05-21T00:00:00Z")
    credit = charge("-10.01", category="Credit", resource="")
    said(gputally("-C", ws, "load", "charges", write("charges.csv", CHARGES, charge(), refund, credit)))
    said(gputally("-C", ws, "load", "invoices", write("invoices.csv", INVOICES, "Cloud,inv-1,2026-05,USD,6685.99")))
    said(gputally("-C", ws, "build", "2026-05"))
    assert gputally("-C", ws, "check", "2026-05").stderr == ""
    amounts: dict[str, Decimal] = {}
    for row in statement(ws):
        amounts[row["category"]] = amounts.get(row["category"], Decimal(0)) + Decimal(row["amount"])
    # 15 of 31 days are held at 10 a node-hour; half of the ten refunded days (11 to 15 May) are held.
    assert amounts["held"] == Decimal(3600) - Decimal(372)
    assert amounts["idle"] == Decimal(3840) - Decimal(372)
    assert amounts["credit"] == Decimal("-10.01")
    assert total(ws) == Decimal("6685.99")


def statement(ws: Path) -> list[dict[str, str]]:
    rows: list[dict[str, str]] = json.loads(said(gputally("-C", ws, "statement", "2026-05", "--format", "json")))
    return rows


def total(ws: Path) -> Decimal:
    return sum((Decimal(row["amount"]) for row in statement(ws)), Decimal(0))
