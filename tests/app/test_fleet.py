"""The fleet page: GPU time that adds up, the stops and the odd quota day as what they are, and the queue."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from app.access import Scope
from tests.app.drawing import charts, draw, metrics, table_rows, words
from tests.app.tiny_lakes import empty_workspace, tiny_workspace

if TYPE_CHECKING:
    from pathlib import Path


def test_the_real_month(demo_workspace: Path) -> None:
    assert metrics(draw(demo_workspace, "fleet")) == {
        "Capacity, GPU-hours": ("636,864.0", "what could be held"),
        "Held, GPU-hours": ("424,772.6", "66.7 % of capacity"),
        "Idle, GPU-hours": ("212,091.4", "33.3 % of capacity"),
        "Queued, GPU-hours": ("45,671.6", "GPUs waited for, times hours"),
        "Queued while idle, GPU-hours": ("45,472.7", "99.6 % of queued"),
    }


def test_the_stops_and_the_quota_day_are_listed_in_words(demo_workspace: Path) -> None:
    rows = table_rows(draw(demo_workspace, "fleet"), "Shown as what they are")
    assert [row[1:6] for row in rows[1:]] == [
        ["Quota files disagree", "earth-v100", "9 May 2020 00:00", "10 May 2020 00:00", "24 h"],
        ["Stop: no GPU of the pool was held", "earth-v100", "9 May 2020 23:56", "11 May 2020 00:01", "24 h 5 min"],
        ["Stop: no GPU of the pool was held", "earth-v100", "12 May 2020 14:01", "12 May 2020 16:02", "2 h 1 min"],
    ]
    assert "quotas.csv says 856 GPUs in all and decides" in rows[1][-1]
    assert "quotas-daily.csv says 840 GPUs, for 1 team only. 17 teams differ." in rows[1][-1]
    assert "From 541 held GPUs to none" in rows[2][-1]
    assert "what each team pays" in rows[1][-1]


def test_the_odd_file_is_listed_team_by_team(demo_workspace: Path) -> None:
    rows = table_rows(draw(demo_workspace, "fleet"), "0: the file does not name")
    assert len(rows) == 18
    assert next(row for row in rows if row[0] == "vcIya")[3:] == ["quotas.csv", "0", "quotas-daily.csv", "840"]


def test_the_curve_marks_the_events(demo_workspace: Path) -> None:
    (spec,) = (json.loads(chart) for chart in charts(draw(demo_workspace, "fleet")))
    bands = next(layer for layer in spec["layer"] if layer["mark"]["type"] == "rect")["data"]["values"]
    assert [band["mark"] for band in bands] == ["1", "2", "3"]
    assert bands[1]["from"] == 1589068560000  # 9 May 2020 23:56 as wall clock
    assert "3 stretches are marked" in spec["description"]


def test_the_queue_adds_up_to_the_fleet(demo_workspace: Path) -> None:
    at = draw(demo_workspace, "fleet")
    rows = table_rows(at, "May 2020, longest queue first")
    assert rows[1][:3] == ["vc6YE", "14,803.2", "14,787.4"]
    assert rows[-1][:6] == ["16 teams", "45,671.6", "45,472.7", "424,772.6", "636,864.0", "212,091.4"]
    assert "vc6YE waited longest while GPUs were idle: 14,787.4 GPU-hours." in words(at)


def test_a_team_sees_the_fleet_and_only_its_own_queue(demo_workspace: Path) -> None:
    at = draw(demo_workspace, "fleet", scope=Scope("team", ("vcJkd",)))
    assert metrics(at)["Capacity, GPU-hours"][0] == "636,864.0"
    assert [row[0] for row in table_rows(at, "May 2020, longest queue first")[1:]] == ["vcJkd", "1 team"]
    assert "vc6YE" not in words(at)


def test_without_demand_and_quotas_nothing_is_guessed(tmp_path: Path) -> None:
    at = draw(tiny_workspace(tmp_path, [{"team": "red", "gpus": "3"}]), "fleet")
    assert metrics(at)["Queued, GPU-hours"] == ("n/a", "no demand is loaded")
    row = table_rows(at, "February 2026, longest queue first")[1]
    assert row == ["red", "n/a", "n/a", "72.0", "n/a", "n/a", "n/a"]
    assert "No stop of a pool in use" in words(at)


def test_nobody_held_anything(tmp_path: Path) -> None:
    at = draw(tiny_workspace(tmp_path, []), "fleet")
    assert metrics(at)["Idle, GPU-hours"] == ("96.0", "100.0 % of capacity")
    assert "No team held, reserved or waited for a GPU" in words(at)


def test_an_empty_lake(tmp_path: Path) -> None:
    assert "Nothing has been loaded yet" in words(draw(empty_workspace(tmp_path), "fleet"))
