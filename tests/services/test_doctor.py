"""The doctor names what is well, what is worth a look and what must be mended, and touches nothing."""

from __future__ import annotations

from collections import namedtuple
from typing import TYPE_CHECKING

import pytest

from chargeback.load import load_files
from services import doctor
from services.doctor import Finding, examine
from services.workspace import Workspace
from tests.program import environment, gputally, new_workspace

if TYPE_CHECKING:
    from pathlib import Path

CHARGE_HEADER = (
    "InvoiceIssuerName,BillingAccountId,BillingPeriodStart,BillingPeriodEnd,ChargePeriodStart,ChargePeriodEnd,"
    "ChargeCategory,BilledCost,EffectiveCost,BillingCurrency"
)
CHARGE = "Cloud,1,2026-05-01T00:00:00Z,2026-06-01T00:00:00Z,2026-05-01T00:00:00Z,2026-05-02T00:00:00Z,Usage,{0},{0},USD"


@pytest.fixture
def ws(tmp_path: Path) -> Path:
    return new_workspace(tmp_path / "ws")


def load(ws: Path, kind: str, *lines: str) -> None:
    path = ws / f"{kind}.csv"
    path.write_text("\n".join(lines) + "\n")
    with Workspace.at(ws).open_lake() as lake:
        load_files(lake, kind, [path])


def found(findings: list[Finding], subject: str) -> Finding:
    (finding,) = [finding for finding in findings if finding.subject == subject]
    return finding


def test_an_empty_workspace_is_fine_and_stays_empty(ws: Path) -> None:
    findings = examine(ws)
    assert {f.subject for f in findings if f.level == "ok"} >= {
        "python", "duckdb", "extension ducklake", "extension sqlite_scanner", "workspace",
    }  # fmt: skip
    assert found(findings, "lake") == Finding("warn", "lake", "empty: nothing has been loaded yet")
    assert sorted(path.name for path in ws.iterdir()) == [".gitignore", "gputally.toml"]


def test_loaded_files_are_counted_and_what_is_needed_is_missed(ws: Path) -> None:
    load(ws, "inventory", "cluster,node,gpu_count,valid_from,valid_to", "c,n1,8,2026-05-01T00:00:00Z,")
    findings = examine(ws)
    assert found(findings, "loaded inventory") == Finding("ok", "loaded inventory", "1 rows in 1 file(s)")
    assert found(findings, "loaded charges").level == "warn"
    assert not [f for f in findings if f.subject == "loaded holdings"], "what a build can do without is not missed"

    load(ws, "charges", CHARGE_HEADER, CHARGE.format("0.1234567890123"), CHARGE.format("2"))
    message = found(examine(ws), "loaded charges").message
    assert message == "2 rows in 1 file(s), 1 rows with money finer than 12 decimals, rounded there"


def test_what_agents_sent_is_shown(ws: Path) -> None:
    with Workspace.at(ws).open_lake() as lake:
        lake.write(lambda con: con.execute("INSERT INTO lake.device_number VALUES (1, 'c', 'n1', 'GPU-1')"))
        lake.write(
            lambda con: con.execute(
                "INSERT INTO lake.device_window (day, dh, second) VALUES (20484, 24, 0), (20485, 25, 3660)"
            )
        )
    found = [finding.message for finding in examine(ws) if finding.subject == "agents"]
    assert found == ["1 devices on 1 nodes, newest window 2026-02-01 01:01 UTC"]


def test_a_published_period_is_shown_with_its_gaps(ws: Path) -> None:
    load(ws, "inventory", "cluster,node,gpu_count,valid_from,valid_to", "c,n1,8,2026-05-01T00:00:00Z,")

    def publish(period: str, gaps: int) -> None:
        with Workspace.at(ws).open_lake() as lake:
            lake.write(
                lambda con: con.execute(
                    "INSERT INTO lake.build BY NAME SELECT $period AS period, 'x' AS build_id, 3 AS version",
                    {"period": period},
                )
            )
            lake.write(
                lambda con: con.execute(
                    "INSERT INTO lake.gap BY NAME SELECT $period AS period, 'unpriced' AS kind FROM range($gaps)",
                    {"period": period, "gaps": gaps},
                )
            )

    publish("2026-05", 0)
    publish("2026-06", 2)
    findings = examine(ws)
    assert found(findings, "period 2026-05") == Finding("ok", "period 2026-05", "published, v3, no gaps")
    assert found(findings, "period 2026-06").level == "warn"
    assert "2 gap(s): see `gputally check 2026-06 --strict`" in found(findings, "period 2026-06").message


def test_a_full_disk_is_a_warning(ws: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = namedtuple("usage", "total used free")
    # A disk cannot be filled in a test.
    monkeypatch.setattr(doctor.shutil, "disk_usage", lambda _: usage(2**40, 2**40 - 2**30, 2**30))
    assert found(examine(ws), "disk") == Finding("warn", "disk", "1.0 GiB free for the lake")


def test_a_missing_extension_must_be_mended(ws: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "EMBEDDED", ("sqlite_scanner", "no_such"))
    finding = found(examine(ws), "extension no_such")
    assert finding == Finding("fail", "extension no_such", "Python package duckdb-extension-no-such is not installed")


def test_exit_codes_and_marks(ws: Path, tmp_path: Path) -> None:
    well = gputally("-C", ws, "doctor")
    assert (well.returncode, well.stderr) == (0, "")
    assert {line[:6] for line in well.stdout.splitlines()} == {"ok    ", "warn  "}

    nowhere = gputally("-C", tmp_path / "nowhere", "doctor")
    assert (nowhere.returncode, nowhere.stderr) == (1, "")
    assert nowhere.stdout.splitlines()[-1].startswith("FAIL  workspace: no gputally.toml in ")

    (ws / "lake").mkdir()
    (ws / "lake" / "catalog.sqlite").write_text("this is not a database, only a text of some length\n" * 40)
    broken = gputally("-C", ws, "doctor")
    assert (broken.returncode, broken.stderr) == (1, "")
    assert broken.stdout.splitlines()[-1].startswith("FAIL  lake: the lake refused: ")


def test_no_secret_is_shown(ws: Path) -> None:
    secret = "hunter2-of-the-cluster"
    env = environment(AWS_SECRET_ACCESS_KEY=secret, PGPASSWORD=secret, GPUTALLY_TOKEN=secret)
    (ws / "gputally.toml").write_text(f'[portal]\npassword = "{secret}"\n')
    done = gputally("-C", ws, "doctor", env=env)
    assert done.returncode == 1
    assert "FAIL  workspace: gputally.toml: unknown key portal.password" in done.stdout
    assert secret not in done.stdout + done.stderr
