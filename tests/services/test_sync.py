"""`gputally sync`: every source by itself, twice as well as once, told line by line."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from click.testing import CliRunner
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from moto.server import ThreadedMotoServer

from fleet.config import CONFIG_FILE
from fleet.errors import ConfigError
from services.commands import gputally as program
from services.syncing import chosen, months_before
from services.workspace import Workspace
from store.snapshots import show_current
from tests.chargeback.sources.aws_account import bill, plan
from tests.chargeback.sources.aws_stub import SECRET, Refusal, Stub, aws_stub, credentials, serving, sign_in
from tests.chargeback.sources.bigquery_server import TABLE, Table, bigquery_server
from tests.chargeback.sources.cur import line
from tests.chargeback.sources.gcp_rows import row
from tests.program import environment, gputally, new_workspace, refusal

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

REPORT = "pre/gpu-cur"


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stub]:
    sign_in(monkeypatch)
    with aws_stub() as stub:
        stub.pages = {
            "DescribeSavingsPlans": [{"savingsPlans": [plan()]}],
            "ListInvoiceSummaries": [{"InvoiceSummaries": [bill("EUINEN-1", "1320.96")]}],
        }
        yield stub


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with a lake that holds nothing yet: to make one takes longer than most of what is done here."""
    folder = new_workspace(tmp_path_factory.mktemp("empty") / "ws")
    Workspace.at(folder).open_lake().close()
    return folder


@pytest.fixture
def ws(empty: Path, tmp_path: Path) -> Path:
    shutil.copytree(empty, tmp_path / "ws")
    return tmp_path / "ws"


def add_source(ws: Path, kind: str, name: str, **keys: str) -> None:
    """Write a source into the configuration; values are TOML."""
    text = "".join(f"{key} = {value}\n" for key, value in keys.items())
    with (ws / CONFIG_FILE).open("a", encoding="utf-8") as stream:
        stream.write(f'\n[[sources]]\nname = "{name}"\nkind = "{kind}"\n{text}')


def add_aws(ws: Path, name: str, address: str, services: str = '["commitments", "invoices"]') -> None:
    add_source(ws, "aws_api", name, regions='["us-east-2"]', services=services, endpoint_url=f'"{address}"')


def run(ws: Path, *arguments: str) -> tuple[int, list[str], list[str]]:
    """Exit code, lines of standard output, lines of standard error."""
    done = CliRunner().invoke(program, ["-C", str(ws), "sync", *arguments])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    assert SECRET not in done.output
    return done.exit_code, done.stdout.splitlines(), done.stderr.splitlines()


def rows(ws: Path, query: str) -> list[tuple[Any, ...]]:
    with Workspace.at(ws).open_lake(read_only=True) as lake:
        show_current(lake.connection)
        return lake.connection.execute(query).fetchall()


def test_what_was_fetched_is_loaded_kept_and_told_and_again_changes_nothing(aws: Stub, ws: Path) -> None:
    add_aws(ws, "main", aws.address)
    told = ["main: main-commitments.csv: 1 rows, loaded", "main: main-invoices-2026-10.csv: 1 rows, loaded"]
    assert run(ws, "--period", "2026-10") == (0, told, [])
    assert run(ws, "--period", "2026-10", "main") == (0, [line.replace("loaded", "unchanged") for line in told], [])
    assert rows(ws, "SELECT source_file, source_row FROM invoice") == [("main-invoices-2026-10.csv", 2)]
    kept = sorted(path.relative_to(ws).as_posix() for path in (ws / "cache").rglob("*") if path.is_file())
    assert kept == ["cache/main/main-commitments.csv", "cache/main/main-invoices-2026-10.csv"]
    # What lies in the cache is an ordinary input file.
    done = CliRunner().invoke(program, ["-C", str(ws), "load", "invoices", str(ws / kept[1])])
    assert "already loaded, nothing to do" in done.output
    asked = [
        asked["Filter"]["BillingPeriod"] for operation, _, asked in aws.asked if operation == "ListInvoiceSummaries"
    ]
    assert asked == [{"Year": 2026, "Month": 10}] * 2


def test_a_source_that_fails_is_told_in_one_line_and_the_others_are_synced(aws: Stub, ws: Path) -> None:
    aws.pages["DescribeReservedInstances"] = [Refusal("UnauthorizedOperation", 403)]
    add_aws(ws, "first", aws.address)
    add_aws(ws, "second", aws.address, services='["invoices"]')
    code, out, err = run(ws, "--period", "2026-10")
    assert (code, out) == (1, ["second: second-invoices-2026-10.csv: 1 rows, loaded"])
    assert err == [
        "gputally: first: ec2:DescribeReservedInstances in us-east-2: UnauthorizedOperation: "
        "the permission ec2:DescribeReservedInstances is missing"
    ]
    assert rows(ws, "SELECT count(*) FROM commitment") == [(0,)]
    assert not (ws / "cache" / "first").exists()


def test_a_sheet_that_is_refused_stops_no_other_sheet(aws: Stub, ws: Path) -> None:
    aws.pages["DescribeSavingsPlans"] = [{"savingsPlans": [plan(currency="$")]}]
    add_aws(ws, "main", aws.address)
    code, out, err = run(ws, "--period", "2026-10")
    assert (code, out) == (1, ["main: main-invoices-2026-10.csv: 1 rows, loaded"])
    assert err == ["gputally: main: main-commitments.csv: row 2, column currency: '$' is not an ISO 4217 currency code"]


def test_a_cache_that_cannot_be_written_is_told(aws: Stub, ws: Path) -> None:
    (ws / "cache").write_text("in the way")
    add_aws(ws, "main", aws.address)
    code, out, (err,) = run(ws)
    assert (code, out) == (1, [])
    assert err.startswith("gputally: main: ")
    assert err.endswith(("File exists", "Not a directory"))


def test_without_a_period_invoices_of_three_calendar_months_are_asked_for(aws: Stub, ws: Path) -> None:
    aws.pages["ListInvoiceSummaries"] = [{"InvoiceSummaries": []}]
    add_aws(ws, "main", aws.address, services='["invoices"]')
    assert run(ws)[0] == 0
    found = [
        asked["Filter"]["BillingPeriod"] for operation, _, asked in aws.asked if operation == "ListInvoiceSummaries"
    ]
    names = [f"{month['Year']}-{month['Month']:02}" for month in found]
    assert names == months_before(datetime.now(UTC), 3)


@pytest.mark.parametrize(
    ("day", "months"),
    [
        (datetime(2026, 1, 1, tzinfo=UTC), ["2025-11", "2025-12", "2026-01"]),
        (datetime(2026, 3, 31, 23, 59, tzinfo=UTC), ["2026-01", "2026-02", "2026-03"]),
    ],
)
def test_months_follow_the_calendar(day: datetime, months: list[str]) -> None:
    assert months_before(day, 3) == months


def test_sources_are_chosen_by_name(ws: Path) -> None:
    for name in ("a", "b", "c"):
        add_aws(ws, name, "http://127.0.0.1:9")
    sources = Workspace.at(ws).config.sources
    assert [source.name for source in chosen(sources, ["c", "a", "c"])] == ["a", "c"]
    assert [source.name for source in chosen(sources, [])] == ["a", "b", "c"]
    with pytest.raises(ConfigError, match=r"^'x' is no source; \[\[sources\]\] has a, b, c$"):
        chosen(sources, ["a", "x"])


def test_a_workspace_without_sources_is_told_what_to_do(tmp_path: Path) -> None:
    ws = new_workspace(tmp_path / "ws")
    assert refusal(gputally("-C", ws, "sync")) == "no source to sync: add [[sources]] to gputally.toml"
    assert not (ws / "lake").exists()


BLOCKED = (
    "import sys; sys.modules.update(dict.fromkeys(sys.argv.pop(1).split(','))); from services.cli import main; main()"
)


def test_a_part_that_is_not_installed_is_named_and_the_other_sources_run(aws: Stub, ws: Path) -> None:
    add_source(ws, "gcp_prices", "prices")
    add_source(ws, "gcp_bigquery", "gcp", project='"p"', table='"d.t"')
    add_source(ws, "aws_export", "bill", bucket='"our-bills"', prefix='"p"', export='"cur"')
    add_aws(ws, "aws", aws.address)
    command = [sys.executable, "-c", BLOCKED, "boto3,google.cloud", "-C", str(ws), "sync"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment(**credentials()), check=False)
    assert (done.returncode, done.stdout) == (1, "")
    missing = [
        ("prices", "google.cloud", "gcp"),
        ("gcp", "google.cloud", "gcp"),
        ("bill", "boto3", "aws"),
        ("aws", "boto3", "aws"),
    ]
    for said, (name, module, extra) in zip(done.stderr.splitlines(), missing, strict=True):
        assert said.startswith(f"gputally: {name}: ")
        assert module in said
        assert f"gputally[{extra}]" in said


def test_an_export_in_s3(ws: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sign_in(monkeypatch)
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    try:
        s3 = boto3.client("s3", endpoint_url=f"http://{host}:{port}", region_name="us-east-1")
        s3.create_bucket(Bucket="our-bills")
        add_source(
            ws, "aws_export", "bill", bucket='"our-bills"', prefix='"pre"', export='"gpu-cur"',
            endpoint_url=f'"http://{host}:{port}"', region='"us-east-1"',
        )  # fmt: skip
        for month, kind in (("2026-02", "Usage"), ("2026-01", "NobodyKnows")):
            deliver(s3, month, kind)
        code, out, (err,) = run(ws)
        # A month that is quarantined holds up no other.
        assert (code, out) == (1, ["bill: aws/gpu-cur/2026-02: 1 rows, loaded"])
        assert err.startswith("gputally: bill: aws/gpu-cur/2026-01: quarantined")
        assert run(ws, "--period", "2026-02") == (0, ["bill: aws/gpu-cur/2026-02: 1 rows, unchanged"], [])
        assert rows(ws, "SELECT billed_cost::VARCHAR FROM charge") == [("3.500000000000",)]
        assert (ws / "cache" / "bill" / "2026-02").is_dir()
    finally:
        server.stop()


def deliver(s3: Any, month: str, kind: str) -> None:
    """One delivery of a report to the bucket: a file of one line, and its manifest."""
    item = {
        name: cell.replace("2026-02", month).replace("2026-03-01", f"{month}-28")
        for name, cell in line(kind, "3.5").items()
    }
    item["bill_invoicing_entity"] = "AWS"
    data = f"{REPORT}/data/BILLING_PERIOD={month}/part-1.csv"
    s3.put_object(Bucket="our-bills", Key=data, Body="\n".join([",".join(item), ",".join(item.values()), ""]).encode())
    manifest = {"executionId": "e1", "dataFiles": [f"s3://our-bills/{data}"]}
    key = f"{REPORT}/metadata/BILLING_PERIOD={month}/gpu-cur-Manifest.json"
    s3.put_object(Bucket="our-bills", Key=key, Body=json.dumps(manifest).encode())


class Tokens(BaseHTTPRequestHandler):
    """Where a service account's key is changed for a token."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        body = json.dumps({"access_token": "a-token", "expires_in": 3600, "token_type": "Bearer"}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


def test_an_export_in_bigquery_with_googles_own_chain_of_credentials(
    ws: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = [row(cost=0.1, invoice={"month": "202608"}) | {"export_microseconds": at} for at in (1, 2)]
    project, dataset, name = TABLE.split(".")
    add_source(ws, "gcp_bigquery", "gcp", project=f'"{project}"', table=f'"{dataset}.{name}"')
    with serving(Tokens) as tokens, bigquery_server(Table(found, columns=(*row(), "export_time"))) as address:
        key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        pem = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        account = {
            "type": "service_account",
            "client_email": "a@b.example",
            "token_uri": tokens,
            "private_key": pem.decode(),
        }
        (tmp_path / "account.json").write_text(json.dumps(account))
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "account.json"))
        monkeypatch.setenv("BIGQUERY_EMULATOR_HOST", address)
        source = f"gcp: gcp/{TABLE}/2026-08"
        assert run(ws, "--period", "2026-08") == (0, [f"{source}: 2 rows, loaded"], [])
        assert run(ws, "gcp", "--period", "2026-08") == (0, [f"{source}: 2 rows, unchanged"], [])
        assert run(ws, "--period", "2026-07") == (0, [], [])
    assert rows(ws, "SELECT sum(billed_cost) FROM charge")[0][0] > 0


def test_nobody_to_sign_as_at_google_is_told(ws: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "absent.json"))
    add_source(ws, "gcp_prices", "prices")
    code, out, (err,) = run(ws)
    assert (code, out) == (1, [])
    assert err.startswith("gputally: prices: list prices of service ")
