"""The files that finance books: byte for byte, and safe to open in a spreadsheet."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import re
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from chargeback.build import build_period
from chargeback.finance_csv import COLUMNS, control, csv_bytes, export_period, gpu_hours, guarded
from fleet.config import parse_config
from fleet.errors import NotBuiltError
from tests.chargeback.ledger import PERIOD, empty_lake, load_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from store.lake import Connection, Lake

MONTH = {
    "inventory": """
        node,gpu_count,valid_from,valid_to,resource_id,pool
        a,8,2026-02-01T00:00:00Z,2026-02-01T02:00:00Z,i-1,p
        b,8,2026-02-01T00:00:00Z,2026-02-01T02:00:00Z,i-2,tokyo
        """,
    "holdings": """
        start,end,gpus,node,team
        2026-02-01T00:00:00Z,2026-02-01T01:20:00Z,4,a,research
        2026-02-01T00:00:00Z,2026-02-01T02:00:00Z,8,b,research
        2026-02-01T00:00:00Z,2026-02-01T02:00:00Z,1,a,"=cmd|' /C calc'!A0"
        """,
    "charges": """
        ChargePeriodStart,ChargePeriodEnd,ResourceId,BilledCost,ChargeCategory,InvoiceIssuerName,BillingCurrency
        2026-02-01T00:00:00Z,2026-02-01T02:00:00Z,i-1,32.105,Usage,Cloud,USD
        2026-02-01T00:00:00Z,2026-02-01T02:00:00Z,,-5.00,Credit,Cloud,USD
        2026-02-01T00:00:00Z,2026-02-01T02:00:00Z,i-2,1000.4,Usage,Kumo,JPY
        """,
    "invoices": """
        issuer,currency,total
        Cloud,USD,27.11
        Kumo,JPY,1000
        """,
    "teams": """
        team,cost_centre,gl_account
        research,00420,6100-01
        """,
}


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    folder = tmp_path_factory.mktemp("finance")
    lakes = empty_lake(folder)
    lake = next(lakes)()
    load_rows(lake, folder, **MONTH)
    build_period(lake, parse_config(""), PERIOD)
    yield lake
    lake.close()


@pytest.fixture
def con(lake: Lake) -> Connection:
    return lake.connection


def rows_of(content: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(content.decode(), newline=""), strict=True))


def test_the_csv_is_this_file(con: Connection, golden: Callable[[str, str | bytes], None]) -> None:
    golden("chargeback/chargeback-2026-02.csv", csv_bytes(con, PERIOD))


def test_the_control_file_is_this_one(con: Connection, golden: Callable[[str, str | bytes], None]) -> None:
    """But for hashes of what may change without an amount changing: program, model, inputs."""
    found: dict[str, Any] = control(con, PERIOD)
    assert re.fullmatch(r"[0-9a-f]{16}", found["build_id"])
    for key in ("config_sha256", "model_sha256", "csv_sha256"):
        assert re.fullmatch(r"[0-9a-f]{64}", found[key])
    assert all(len(source["file_sha256"]) == 64 for source in found["inputs"])
    shown = found | dict.fromkeys(("build_id", "program_version", "config_sha256", "model_sha256"), "...")
    shown["inputs"] = [[source["kind"], source["source"]] for source in found["inputs"]]
    golden("chargeback/control-2026-02.json", json.dumps(shown, indent=2) + "\n")


def test_the_form_is_rfc_4180(con: Connection) -> None:
    content = csv_bytes(con, PERIOD)
    lines = content.split(b"\r\n")
    assert lines[0].decode() == ",".join(COLUMNS)
    assert lines[-1] == b""
    assert b"\n" not in content.replace(b"\r\n", b"")
    assert not content.startswith(b"\xef\xbb\xbf")


def test_numbers_are_plain_with_the_decimals_of_their_currency(con: Connection) -> None:
    """A negative amount is a number: no apostrophe and no quotes (grafana#17363, woocommerce#25379)."""
    rows = rows_of(csv_bytes(con, PERIOD))
    decimals = {"USD": r"-?\d+\.\d{2}", "JPY": r"-?\d+"}
    for row in rows:
        assert re.fullmatch(decimals[row["currency"]], row["amount"])
        assert re.fullmatch(r"-?\d+\.\d{6}", row["gpu_hours"])
    credits = [row["amount"] for row in rows if row["category"] == "credit"]
    assert credits
    assert all(amount.startswith("-") for amount in credits)
    for amount in credits:
        assert f",{amount},USD,".encode() in csv_bytes(con, PERIOD)


def test_only_text_is_guarded_against_formulas(con: Connection) -> None:
    teams = {row["team"] for row in rows_of(csv_bytes(con, PERIOD))}
    assert teams == {"research", "'=cmd|' /C calc'!A0", "platform"}


@pytest.mark.parametrize(
    "text",
    ["=1", "+1", "-1", "@x", "\t=1", "\r", "\n=1", "\uff1d1", "\uff0b1", "\uff0d1", "\uff201", " =1", "'=1", '"=1'],
)
def test_text_that_a_spreadsheet_would_run_gets_an_apostrophe(text: str) -> None:
    assert guarded(text) == f"'{text}"


@pytest.mark.parametrize("text", ["", "research", "a=b", "1-2", "o'brien", "team@home", "00420"])
def test_other_text_is_left_alone(text: str) -> None:
    assert guarded(text) == text


def test_leading_zeros_of_a_cost_centre_stay(con: Connection) -> None:
    assert {row["cost_centre"] for row in rows_of(csv_bytes(con, PERIOD)) if row["team"] == "research"} == {"00420"}


def test_gpu_hours_have_six_decimals() -> None:
    assert gpu_hours(3_600_000_000) == "1.000000"
    assert gpu_hours(1_200_000_000) == "0.333333"
    assert gpu_hours(-1_800_000_000) == "-0.500000"
    assert gpu_hours(0) == "0.000000"


def test_the_order_is_fixed(con: Connection) -> None:
    rows = rows_of(csv_bytes(con, PERIOD))
    keys = [(row["currency"], row["team"].lstrip("'"), row["category"], row["pool"]) for row in rows]
    assert keys == sorted(keys)
    assert csv_bytes(con, PERIOD) == csv_bytes(con, PERIOD)


def test_a_team_gets_its_own_lines_and_no_other(con: Connection) -> None:
    whole = csv_bytes(con, PERIOD).splitlines(keepends=True)
    own = csv_bytes(con, PERIOD, "research").splitlines(keepends=True)
    assert own == [whole[0], *(line for line in whole[1:] if b",research," in line)]
    assert 1 < len(own) < len(whole)
    with pytest.raises(NotBuiltError, match="team 'nobody' has no line"):
        csv_bytes(con, PERIOD, "nobody")


def test_the_control_file_proves_the_csv(con: Connection, tmp_path: Path) -> None:
    data, proof = export_period(con, PERIOD, tmp_path / "out")
    assert [path.name for path in (data, proof)] == ["chargeback-2026-02.csv", "control-2026-02.json"]
    assert sorted(path.name for path in data.parent.iterdir()) == [data.name, proof.name]
    stated = json.loads(proof.read_text(encoding="utf-8"))
    rows = rows_of(data.read_bytes())
    assert stated["csv_sha256"] == hashlib.sha256(data.read_bytes()).hexdigest()
    assert stated["rows"] == len(rows)
    for currency, total in stated["sum_by_currency"].items():
        assert Decimal(total) == sum(Decimal(row["amount"]) for row in rows if row["currency"] == currency)
        bridge = [row for row in stated["bridge"] if row["currency"] == currency]
        assert Decimal(total) == sum(Decimal(row["statement_total"]) for row in bridge)
    for row in stated["bridge"]:
        terms = ("statement_total", "prepaid_change", "absent_from_export", "rounding")
        assert Decimal(row["invoice_total"]) == sum(Decimal(row[term]) for term in terms)
        assert Decimal(row["difference"]) == 0


def test_exporting_again_replaces_the_files(con: Connection, tmp_path: Path) -> None:
    data, proof = export_period(con, PERIOD, tmp_path)
    first = data.read_bytes(), proof.read_bytes()
    data.write_bytes(b"someone else's")
    assert export_period(con, PERIOD, tmp_path) == (data, proof)
    assert (data.read_bytes(), proof.read_bytes()) == first
