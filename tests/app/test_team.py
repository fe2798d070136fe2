"""The team page: its parts add up, each step of the drill-down leads to the clicked number, no address is trusted."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

import pytest

from app.access import Scope
from tests.app.drawing import charts, draw, metrics, table_rows, well, words
from tests.app.tiny_lakes import empty_workspace, tiny_workspace

if TYPE_CHECKING:
    from pathlib import Path


def test_the_largest_team_of_the_real_month(demo_workspace: Path) -> None:
    at = draw(demo_workspace, "team", {"team": "vc6YE"})
    assert metrics(at)["Total"] == ("548,127.32 USD", "statement 2020-05/v1")
    assert metrics(at)["Held"] == ("361,629.93 USD", "118,179.7 GPU-hours")
    assert metrics(at)["Share of what nobody held"] == ("186,497.39 USD", "34.0 % of the total")
    rows = table_rows(at, "May 2020: what vc6YE pays")
    held = ["Held (activity not measured)", "earth-v100", "V100", "gpu_bound", "118,179.7", "361,629.93"]
    assert rows[1] == held
    assert rows[-1][-1] == "548,127.32"
    assert "The days add up to the statement: 548,127.32 USD." in words(at)


def test_the_quota_day_is_shown_as_what_it_is(demo_workspace: Path) -> None:
    said = words(draw(demo_workspace, "team", {"team": "vc6YE"}))
    assert "two quota files disagree about this team: quotas.csv, which decides, says 208 GPUs" in said
    assert "quotas-daily.csv says 0" in said
    assert "changes nothing in what the team pays" in said


@pytest.mark.parametrize("category", ["held", "idle"])
def test_a_day_opens_into_hours_that_add_up(demo_workspace: Path, category: str) -> None:
    at = draw(demo_workspace, "team", {"team": "vc6YE", "day": "2020-05-09", "category": category})
    rows = table_rows(at, "Each hour")
    booked = next(line for line in words(at).splitlines() if line.startswith("Booked for this day: "))
    total = Decimal(booked.split(": ")[1].split(" ")[0].replace(",", ""))
    exact = [Decimal(row[-1].replace(",", "")) for row in rows[1:]]
    assert len(exact) == 25
    assert abs(sum(exact[:-1]) - exact[-1]) < Decimal("0.0001")
    assert abs(exact[-1] - total) < Decimal("0.02")


def test_the_share_of_idle_shows_its_weights(demo_workspace: Path) -> None:
    at = draw(demo_workspace, "team", {"team": "vc6YE", "day": "2020-05-09", "category": "idle"})
    hour = table_rows(at, "Each hour")[1]
    assert hour[1] == "pool:earth-v100/idle"
    assert hour[3:6] == ["361,629.93", "1,258,450.30", "28.7361"]
    assert Decimal(hour[2]) * Decimal("361629.933") / Decimal("1258450.298219") == pytest.approx(
        Decimal(hour[6]), abs=Decimal("0.00001")
    )


def test_a_day_with_a_stop_has_only_idle(demo_workspace: Path) -> None:
    at = draw(demo_workspace, "team", {"team": "vc6YE", "day": "2020-05-10"})
    assert at.selectbox(key="pick_category").options == ["Share of idle"]


def test_choosing_another_team_changes_the_address_and_forgets_the_day(demo_workspace: Path) -> None:
    at = draw(demo_workspace, "team", {"team": "vc6YE", "day": "2020-05-09", "category": "idle"})
    well(at.selectbox(key="pick_team").set_value("vcJkd").run())
    assert metrics(at)["Total"][0] == "469.06 USD"
    assert at.query_params["team"] == "vcJkd"
    assert "day" not in at.query_params


def test_choosing_a_day_opens_it(demo_workspace: Path) -> None:
    at = draw(demo_workspace, "team", {"team": "vc6YE"})
    well(at.selectbox(key="pick_day").set_value("2020-05-20").run())
    assert at.query_params["day"] == "2020-05-20"
    assert at.selectbox(key="pick_day").value == "2020-05-20"


@pytest.mark.parametrize("team", ["vc6YE", "no such team", "'; DROP TABLE lake.posting; --", "x" * 300, "\u202eevil"])
def test_a_team_that_may_not_be_seen_is_not_shown(demo_workspace: Path, team: str) -> None:
    at = draw(demo_workspace, "team", {"team": team}, Scope("team", ("vcJkd",)))
    assert metrics(at)["Total"][0] == "469.06 USD"
    assert len(at.warning) == 1
    assert "548,127.32" not in words(at) + "".join(charts(at))


@pytest.mark.parametrize(
    "params",
    [{"day": "yesterday"}, {"day": "2020-13-01"}, {"day": "1999-01-01"}, {"category": "gold"}, {"period": "May"},
     {"currency": "usd"}, {"currency": "EUR"}],
)  # fmt: skip
def test_junk_in_the_address_leads_to_the_default_and_a_remark(demo_workspace: Path, params: dict[str, str]) -> None:
    at = draw(demo_workspace, "team", {"team": "vc6YE"} | params)
    assert metrics(at)["Total"][0] == "548,127.32 USD"
    assert len(at.warning) == 1


def test_days_follow_the_reporting_zone(tmp_path: Path) -> None:
    zone = {'time_zone = "UTC"': 'time_zone = "Asia/Kolkata"'}
    at = draw(tiny_workspace(tmp_path, [{"team": "red"}], settings=zone), "team", {"team": "red"})
    # 3 February UTC is 05:30 to 05:30 in Kolkata; an hour belongs to the day on which it starts.
    assert at.selectbox(key="pick_day").options == ["Tuesday, 3 February 2026", "Wednesday, 4 February 2026"]
    assert "days and hours in Asia/Kolkata" in words(at)
    assert "The days add up to the statement: 192.00 USD." in words(at)


def test_an_empty_lake(tmp_path: Path) -> None:
    assert "Nothing has been loaded yet" in words(draw(empty_workspace(tmp_path), "team"))


def test_a_team_without_a_line(demo_workspace: Path) -> None:
    said = words(draw(demo_workspace, "team", scope=Scope("team", ())))
    assert "Nothing was charged to your teams in May 2020" in said


def test_the_central_team_holds_nothing(tmp_path: Path) -> None:
    at = draw(tiny_workspace(tmp_path, [{"team": "", "namespace": "lost"}]), "team", {"team": "platform"})
    assert "This team held no GPU and waited for none" in words(at)
