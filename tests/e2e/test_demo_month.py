"""The demo month against its exact answers: allocation computed independently from the trace, money by hand.

The references know the cluster alone. Where a test is about all its money the demo is built without its two model
servers, whose cost is then what their owners held; what the servers change is tested in `test_demo_servers`.
"""

from __future__ import annotations

import csv
import hashlib
import json
import shutil
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from chargeback.build import build_period
from chargeback.checking import check_period
from chargeback.finance_csv import csv_bytes
from chargeback.published import read, statement_rows
from fleet.config import PoolPolicy
from services.demo import PERIOD
from services.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fleet.config import Config
    from store.lake import Lake

EXPECTED = Path(__file__).parent / "expected"
INVOICE = Decimal("1948803.84")
MICROSECONDS_PER_MINUTE = 60_000_000


@pytest.fixture(scope="module")
def lake(demo_workspace: Path) -> Iterator[Lake]:
    with Workspace.at(demo_workspace).open_lake(read_only=True) as opened:
        yield opened


@contextmanager
def built(demo_workspace: Path, folder: Path, config: Config) -> Iterator[Lake]:
    """A copy of the demo's workspace, built with another configuration."""
    shutil.copytree(demo_workspace, folder)
    with Workspace(folder, config).open_lake() as opened:
        build_period(opened, config, PERIOD)
        yield opened


def without_servers(demo_workspace: Path) -> Config:
    config = Workspace.at(demo_workspace).config
    return replace(config, ledger=replace(config.ledger, servers=()))


@pytest.fixture(scope="module")
def helios_lake(demo_workspace: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    with built(demo_workspace, tmp_path_factory.mktemp("helios") / "ws", without_servers(demo_workspace)) as opened:
        yield opened


@pytest.fixture(scope="module")
def quota_config(demo_workspace: Path) -> Config:
    config = without_servers(demo_workspace)
    return replace(config, pools={**config.pools, "idle": PoolPolicy("quota")})


@pytest.fixture(scope="module")
def quota_lake(demo_workspace: Path, quota_config: Config, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    with built(demo_workspace, tmp_path_factory.mktemp("quota") / "ws", quota_config) as opened:
        yield opened


def expected(name: str) -> dict[str, dict[str, str]]:
    with (EXPECTED / name).open(newline="") as stream:
        return {row["vc"]: row for row in csv.DictReader(stream) if row["vc"] != "TOTAL"}


def totals_by_team(lake: Lake) -> dict[str, Decimal]:
    return {row["team"]: row["total_amount"] for row in read(lake.connection, "summary_team", PERIOD)}


def test_gpu_minutes_of_the_fleet(lake: Lake) -> None:
    fleet = read(lake.connection, "summary_fleet", PERIOD)[0]
    minutes = {
        name: fleet[f"{name}_gpu_microseconds"] // MICROSECONDS_PER_MINUTE for name in ("capacity", "held", "pending")
    }
    assert minutes == {"capacity": 38_211_840, "held": 25_486_357, "pending": 2_740_297}
    assert fleet["nodes"] == 107
    idle = sum(r["gpu_microseconds"] for r in statement_rows(lake.connection, PERIOD) if r["category"] == "idle")
    assert idle == 12_725_483 * MICROSECONDS_PER_MINUTE


@pytest.mark.parametrize(
    ("table", "column", "expected_column"),
    [
        ("held_hour", "held_gpu_microseconds", "running_gpu_min"),
        ("quota_hour", "quota_gpu_microseconds", "capacity_gpu_min"),
        ("pending_hour", "pending_gpu_microseconds", "pending_gpu_min"),
    ],
)
def test_gpu_minutes_of_each_team(lake: Lake, table: str, column: str, expected_column: str) -> None:
    rows = lake.connection.execute(
        f"SELECT team, sum({column}) FROM lake.{table} WHERE period = ? GROUP BY team", [PERIOD]
    ).fetchall()
    wanted = {team: int(row[expected_column]) for team, row in expected("gpu_minutes_by_team.csv").items()}
    assert {team: int(value) // MICROSECONDS_PER_MINUTE for team, value in rows} == {
        team: minutes for team, minutes in wanted.items() if minutes
    }


def test_statements_sum_to_the_invoice(lake: Lake, helios_lake: Lake, quota_lake: Lake) -> None:
    for opened in (lake, helios_lake, quota_lake):
        assert sum(row["amount"] for row in statement_rows(opened.connection, PERIOD)) == INVOICE
        (bridge,) = read(opened.connection, "bridge", PERIOD)
        assert (bridge["invoice_total"], bridge["difference"], bridge["rounding"]) == (INVOICE, 0, 0)


def test_proportional_policy_pays_as_the_reference(helios_lake: Lake) -> None:
    wanted = {team: Decimal(row["prorata_cost_usd"]) for team, row in expected("proportional_policy.csv").items()}
    assert totals_by_team(helios_lake) == wanted
    assert (wanted["vc6YE"], wanted["vcJkd"]) == (Decimal("640851.49"), Decimal("463.99"))


def test_quota_policy_makes_each_team_pay_for_its_quota(quota_lake: Lake) -> None:
    wanted = {team: Decimal(row["capacity_cost_usd"]) for team, row in expected("quota_policy.csv").items()}
    assert totals_by_team(quota_lake) == wanted
    assert wanted["vc6YE"] == Decimal("473541.12")


def test_held_of_the_fleet_is_not_one_cent_short(helios_lake: Lake, quota_lake: Lake) -> None:
    """Each team's held cost rounded by itself sums to 1,299,804.20: a cent less than the fleet's."""
    naive = sum(Decimal(row["used_cost_usd"]) for row in expected("quota_policy.csv").values())
    assert naive == Decimal("1299804.20")
    for opened in (helios_lake, quota_lake):
        held = [row for row in statement_rows(opened.connection, PERIOD) if row["category"] == "held"]
        assert sum(row["amount"] for row in held) == Decimal("1299804.21")
        assert sum(row["exact_amount"] for row in held) == Decimal("1299804.207")


def test_most_of_the_queue_would_have_fitted_into_idle_quotas(lake: Lake) -> None:
    fleet = read(lake.connection, "summary_fleet", PERIOD)[0]
    hours = [round(fleet[f"{name}_gpu_microseconds"] / 3.6e9, 1) for name in ("pending_while_idle", "pending")]
    assert hours == [45_472.7, 45_671.6]


def test_two_fleet_wide_stops_are_seen_and_change_nobodys_bill(lake: Lake) -> None:
    stops = lake.connection.execute(
        "SELECT stopped_from, stopped_to, gpus_held_before FROM lake.pool_stop ORDER BY stopped_from"
    ).fetchall()
    assert [(f"{a:%d %H:%M}", f"{b:%d %H:%M}", int(held)) for a, b, held in stops] == [
        ("09 23:56", "11 00:01", 541),
        ("12 14:01", "12 16:02", 626),
    ]
    # Idle hours of the stop cost what any idle hour costs: 10 May, nobody held anything, 107 nodes at 24.48.
    (idle,) = lake.connection.execute(
        """SELECT sum(amount) FROM lake.posting WHERE category = 'idle' AND starts_with(to_account, 'team:')
        AND hour_start >= '2020-05-10 00:00:00+00' AND hour_start < '2020-05-11 00:00:00+00'"""
    ).fetchone() or (None,)
    assert idle == Decimal("24.48") * 107 * 24


def test_odd_quota_day_is_a_named_conflict_and_changes_nobodys_bill(quota_lake: Lake) -> None:
    rows = quota_lake.connection.execute(
        """SELECT team, conflict_from, conflict_to, gpus, other_gpus, source, other_source
        FROM lake.quota_conflict ORDER BY team"""
    ).fetchall()
    assert len(rows) == 17
    assert {(f"{row[1]:%Y-%m-%d %H:%M}", f"{row[2]:%Y-%m-%d %H:%M}", row[5], row[6]) for row in rows} == {
        ("2020-05-09 00:00", "2020-05-10 00:00", "quotas.csv", "quotas-daily.csv")
    }
    assert {(row[0], int(row[3]), int(row[4])) for row in rows if row[0] == "vcIya"} == {("vcIya", 0, 840)}
    assert (sum(row[3] for row in rows), sum(row[4] for row in rows)) == (856, 840)
    assert "vcIya" not in totals_by_team(quota_lake)


def test_utilisation_was_not_measured_so_nothing_is_called_used(lake: Lake) -> None:
    found = {row["category"] for row in statement_rows(lake.connection, PERIOD)}
    assert found == {"held", "idle", "serving", "held_idle", "unattributed"}


def test_published_month_passes_its_checks(lake: Lake, demo_workspace: Path) -> None:
    config = Workspace.at(demo_workspace).config
    assert check_period(lake.connection, config, PERIOD, strict=False) == []
    assert [name for name, _, _ in check_period(lake.connection, config, PERIOD, strict=True)] == ["no_gap"]


def test_building_again_publishes_nothing(quota_lake: Lake, quota_config: Config) -> None:
    before = quota_lake.snapshot()
    assert not build_period(quota_lake, quota_config, PERIOD).is_new
    assert quota_lake.snapshot() == before


def test_demo_command_from_nothing(tmp_path: Path, demo_workspace: Path) -> None:
    """The command that `make demo SERVE=0` runs, in a process of its own, twice."""
    command = [Path(sys.executable).with_name("gputally"), "demo", "--dir", "demo", "--no-serve"]
    first = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert first.stderr == ""
    for figure in ("1,948,803.84 USD", "45,472.7", "548,127.32", "41,353.91", "469.06", "98,703.36", "0.1936"):
        assert figure in first.stdout
    assert first.stdout.startswith("Two real traces, composed: ")
    files = {path.name: path.read_bytes() for path in (tmp_path / "demo" / "finance").iterdir()}
    with Workspace.at(demo_workspace).open_lake(read_only=True) as lake:
        assert files["chargeback-2020-05.csv"] == csv_bytes(lake.connection, PERIOD)
    control: dict[str, Any] = json.loads(files["control-2020-05.json"])
    assert control["csv_sha256"] == hashlib.sha256(files["chargeback-2020-05.csv"]).hexdigest()
    assert control["sum_by_currency"] == {"USD": "1948803.84"}
    second = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert second.stdout == first.stdout
    assert {path.name: path.read_bytes() for path in (tmp_path / "demo" / "finance").iterdir()} == files
