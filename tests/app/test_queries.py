"""The door to the lake: every question, asked as each scope, and the sums that must agree."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from app.access import LOCAL, NotAllowedError, Scope
from app.queries import Build, ReplacedBuildError, Reports
from chargeback.build import build_period
from chargeback.load import load_files
from chargeback.reports import report, report_scope, reports
from fleet.errors import GputallyError, NotBuiltError
from store.lake import Lake
from tests.app.tiny_lakes import PERIOD, tiny_workspace

if TYPE_CHECKING:
    from pathlib import Path

TEAM = "vcpDC"
ONE = Scope("team", (TEAM,))
VALUES: dict[str, object] = {
    "currency": "USD", "minor_unit_pico": 10**10, "day": date(2020, 5, 9), "category": "idle", "all_teams": False,
    "teams": [TEAM],
}  # fmt: skip

NOT_IN_THE_DEMO = {"server_waste", "reporting_line", "asset_cost", "prepaid", "unmatched"}
"""What the demo has nothing of: agents at its model servers, another currency, owned hardware, commitments, resources
that only one side knows. These reports are tested with the cost model."""


@pytest.fixture(scope="session")
def month(demo_workspace: Path) -> Reports:
    return Reports(demo_workspace)


def asked(month: Reports, scope: Scope, name: str, **more: object) -> pa.Table:
    (build,) = month.builds()
    needed = report(name).parameters - {"period", "zone", "all_teams", "teams"}
    return month.ask(scope, build, name, **{key: (VALUES | more)[key] for key in needed})


def named(kind: str) -> list[str]:
    return sorted(name for name, file in reports().items() if report_scope(file) == kind)


@pytest.mark.parametrize("name", named("team"))
def test_a_team_gets_its_own_rows_only(month: Reports, name: str) -> None:
    assert "list_contains($teams, " in report(name).text
    rows = asked(month, ONE, name)
    if "team" in rows.schema.names:
        assert set(rows["team"].to_pylist()) == ({TEAM} if name not in NOT_IN_THE_DEMO else set())
    whole = asked(month, LOCAL, name)
    if "team" in rows.schema.names:
        assert rows.to_pylist() == [row for row in whole.to_pylist() if row["team"] == TEAM]


@pytest.mark.parametrize("name", named("team"))
def test_nobody_gets_nothing(month: Reports, name: str) -> None:
    assert asked(month, Scope("team", ()), name).num_rows == 0


@pytest.mark.parametrize("name", named("finance"))
def test_finance_questions_are_refused_to_a_team(month: Reports, name: str) -> None:
    assert (asked(month, LOCAL, name).num_rows > 0) == (name not in NOT_IN_THE_DEMO)
    with pytest.raises(NotAllowedError):
        asked(month, ONE, name)


@pytest.mark.parametrize("name", named("fleet"))
def test_fleet_questions_name_no_team(month: Reports, name: str) -> None:
    assert "team" not in asked(month, ONE, name).schema.names


@pytest.mark.parametrize("name", sorted(reports()))
def test_money_is_never_a_float(month: Reports, name: str) -> None:
    floats = [field.name for field in asked(month, LOCAL, name).schema if pa.types.is_floating(field.type)]
    assert floats == []


def test_every_view_of_the_money_has_the_same_sum(month: Reports) -> None:
    statement = asked(month, LOCAL, "statement")
    by_line = {(row["team"], row["category"]): row["amount"] for row in statement.to_pylist()}
    by_category = {
        (row["team"], row["category"]): row["amount"] for row in asked(month, LOCAL, "team_category").to_pylist()
    }
    hours = asked(month, LOCAL, "team_hour")
    by_hour = {
        (row["team"], row["category"]): row["amount_sum"]
        for row in hours.group_by(["team", "category"]).aggregate([("amount", "sum")]).to_pylist()
    }
    assert by_line == by_category == by_hour
    by_day = hours.group_by("day").aggregate([("amount", "sum")])
    assert pc.sum(by_day["amount_sum"]).as_py() == pc.sum(statement["amount"]).as_py() == Decimal("1948803.84")


def test_hours_are_whole_cents_close_to_what_they_cost(month: Reports) -> None:
    for row in asked(month, LOCAL, "team_hour").to_pylist():
        assert row["amount"] == row["amount"].quantize(Decimal("0.01"))
        assert abs(row["amount"] - row["exact_amount"]) < Decimal("0.03")


def test_the_sources_of_a_day_are_the_hours_of_that_day(month: Reports) -> None:
    for category in ("held", "idle"):
        sources = asked(month, ONE, "team_source", category=category)
        hours = [
            row for row in asked(month, ONE, "team_hour").to_pylist()
            if row["day"] == date(2020, 5, 9) and row["category"] == category
        ]  # fmt: skip
        assert pc.sum(sources["amount"]).as_py() == sum(row["exact_amount"] for row in hours)
        for row in sources.to_pylist():
            assert abs(_recomputed(row) - row["amount"]) < Decimal("0.0000001")


def _recomputed(row: dict[str, Any]) -> Decimal:
    if row["step"] == "pool":
        return row["account_amount"] * row["weight"] / row["total_weight"]
    return row["account_amount"] * row["gpu_microseconds"] / row["account_gpu_microseconds"]


def test_stops_and_the_odd_quota_file_change_nobodys_share(demo_workspace: Path, month: Reports) -> None:
    weights = {
        row["team"]: row["weight"] for row in asked(month, LOCAL, "team_source", day=date(2020, 5, 10)).to_pylist()
    }
    before = {
        row["team"]: row["weight"] for row in asked(month, LOCAL, "team_source", day=date(2020, 5, 8)).to_pylist()
    }
    assert weights == before
    assert len(weights) == 19


def test_answers_are_kept_and_shared(month: Reports) -> None:
    assert asked(month, LOCAL, "team_category") is asked(month, LOCAL, "team_category")
    assert asked(month, LOCAL, "team_category") is not asked(month, Scope("platform", None), "team_category")


def test_a_hidden_team_has_no_hours(month: Reports) -> None:
    (build,) = month.builds()
    assert month.team_hours(ONE, build, "USD", "vc6YE").num_rows == 0
    assert month.team_hours(ONE, build, "USD", TEAM).num_rows > 0


def test_a_replaced_build_is_noticed(tmp_path: Path) -> None:
    workspace = tiny_workspace(tmp_path, [{"team": "red"}])
    portal = Reports(workspace)
    (old,) = portal.builds()
    assert portal.ask(LOCAL, old, "team_category").num_rows == 2
    invoice = workspace / "teams.csv"
    invoice.write_text("team,cost_centre,gl_account\nred,CC-1,6400\n", encoding="utf-8")
    with Lake.open(workspace / "lake" / "catalog.sqlite", workspace / "lake" / "data") as lake:
        load_files(lake, "teams", [invoice])
        build_period(lake, portal.config, PERIOD)
    with pytest.raises(ReplacedBuildError, match=PERIOD):
        portal.ask(LOCAL, old, "statement")
    (new,) = portal.builds()
    assert (new.version, new.build_id == old.build_id) == (2, False)
    assert portal.ask(LOCAL, new, "statement")["cost_centre"].to_pylist() == ["CC-1", "CC-1"]


def test_a_build_that_was_never_published_is_refused(month: Reports) -> None:
    (build,) = month.builds()
    forged = Build(build.period, "0" * 16, 9, build.built_at, build.program_version)
    with pytest.raises(ReplacedBuildError):
        month.ask(LOCAL, forged, "bridge")


def test_a_workspace_without_lake_says_so(tmp_path: Path) -> None:
    (tmp_path / "gputally.toml").write_text("", encoding="utf-8")
    with pytest.raises(NotBuiltError):
        Reports(tmp_path)


def test_an_unknown_question_is_refused(month: Reports) -> None:
    with pytest.raises(GputallyError, match="no report"):
        asked(month, LOCAL, "team_category; DROP TABLE lake.posting")


def test_the_reports_read_what_their_heads_say(demo_workspace: Path) -> None:
    from store.sqlfile import tables_read

    with Lake.open(
        demo_workspace / "lake" / "catalog.sqlite", demo_workspace / "lake" / "data", read_only=True
    ) as lake:
        for name, file in reports().items():
            assert tables_read(lake.connection, file.text) == set(file.reads), name


def test_the_grain_of_each_report_identifies_its_rows(month: Reports) -> None:
    for name, file in reports().items():
        if file.grain:
            rows = asked(month, LOCAL, name)
            keys = [tuple(row[part] for part in file.grain) for row in rows.to_pylist()]
            assert len(keys) == len(set(keys)), name


def test_a_team_scope_must_name_teams() -> None:
    with pytest.raises(ValueError, match="team role"):
        Scope("team", None)
