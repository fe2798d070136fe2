"""Deliveries of AWS exports on disk: exactly a manifest's files, whole or not at all, each replacing the last."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chargeback.load import LoadOptions, load_charges, load_exports
from chargeback.sources import aws
from chargeback.sources.aws_manifest import parse_manifest, parts_on_disk, read_manifest
from fleet.errors import InputError
from store.snapshots import show_current
from tests.chargeback.ledger import empty_lake
from tests.chargeback.sources.cur import line, write_csv

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from store.lake import Lake

AWS = LoadOptions(provider="aws")
ARN = "arn:aws:bcm-data-exports:us-east-1:000012345678:export/gpu-cur-0f1e2d3c-4b5a-6978-8796-a5b4c3d2e1f0"


@pytest.fixture(scope="module")
def new_lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[], Lake]]:
    yield from empty_lake(tmp_path_factory.mktemp("lakes"))


@pytest.fixture
def lake(new_lake: Callable[[], Lake]) -> Lake:
    return new_lake()


def costs(lake: Lake) -> list[str]:
    """What current charges bill, in the order of their lines."""
    show_current(lake.connection)
    found = lake.connection.execute(
        "SELECT part, billed_cost::DECIMAL(9, 2) FROM charge ORDER BY source_file, source_row"
    )
    return [f"{(part or '').rpartition('/')[2]}:{cost}" for part, cost in found.fetchall()]


def named(manifest: Path) -> list[Path]:
    """The files that a manifest's delivery is read from."""
    return [part.path for part in parts_on_disk(read_manifest(manifest), manifest)]


def deliver(
    root: Path, parts: dict[str, Sequence[str]], *, execution: str = "e1", folder: str = "", period: str = "2026-02"
) -> Path:
    """Lay out a CUR 2.0 delivery as the bucket has it: files of lines with these costs, then the manifest."""
    partition = f"BILLING_PERIOD={period}/{folder}"
    month = {
        "bill_billing_period_start_date": f"{period}-01T00:00:00Z",
        "bill_billing_period_end_date": f"{period}-28T00:00:00Z",
    }
    for name, part in parts.items():
        write_csv(root / "pre/gpu-cur/data" / partition / name, [line("Usage", cost, **month) for cost in part])
    manifest = root / "pre/gpu-cur/metadata" / partition / "gpu-cur-Manifest.json"
    manifest.parent.mkdir(parents=True, exist_ok=True)
    content = {
        "executionId": execution,
        "exportArn": ARN,
        "dataFiles": [f"s3://bucket/pre/gpu-cur/data/{partition}{name}" for name in parts],
    }
    manifest.write_text(json.dumps(content))
    return manifest


def test_e15_a_manifest_loads_all_of_its_files_and_no_other(lake: Lake, tmp_path: Path) -> None:
    manifest = deliver(tmp_path, {"gpu-cur-00001.csv": ["1", "2"], "gpu-cur-00002.csv": ["4"]})
    write_csv(manifest.parents[2] / "data/BILLING_PERIOD=2026-02/gpu-cur-00003.csv", [line("Usage", "8")])
    (verdict,) = load_charges(lake, [manifest], AWS)
    assert (verdict.loaded.source, verdict.loaded.row_count) == ("aws/gpu-cur/2026-02", 3)
    assert costs(lake) == ["gpu-cur-00001.csv:1.00", "gpu-cur-00001.csv:2.00", "gpu-cur-00002.csv:4.00"]
    kept = lake.connection.execute("SELECT provider, export_name, period, execution_id FROM lake.snapshot").fetchall()
    assert kept == [("aws", "gpu-cur", "2026-02", "e1")]


def test_e14_e16_a_restatement_replaces_with_fewer_files_and_never_adds(lake: Lake, tmp_path: Path) -> None:
    load_charges(lake, [deliver(tmp_path, {"a-1.csv": ["1", "2"], "a-2.csv": ["4"]})], AWS)
    later = deliver(tmp_path, {"a-1.csv": ["16"]}, execution="e2")  # a-2.csv still lies there
    (verdict,) = load_charges(lake, [later], AWS)
    assert (verdict.loaded.outcome, costs(lake)) == ("replaced", [":16.00"])
    (again,) = load_charges(lake, [later], AWS)
    assert (again.loaded.outcome, costs(lake)) == ("unchanged", [":16.00"])


def test_deliveries_side_by_side_are_told_apart_by_their_folders(lake: Lake, tmp_path: Path) -> None:
    first = deliver(tmp_path, {"a-1.csv": ["1"], "a-2.csv": ["2"]}, folder="20260201-e1/")
    second = deliver(tmp_path, {"a-1.csv": ["5"]}, execution="e2", folder="20260202-e2/")
    other = deliver(tmp_path, {"a-1.csv": ["9"]}, execution="e3", period="2026-01")
    load_charges(lake, [first], AWS)
    load_charges(lake, [second], AWS)
    load_charges(lake, [other], AWS)
    assert costs(lake) == [":9.00", ":5.00"]
    show_current(lake.connection)
    found = lake.connection.execute("SELECT source, period FROM lake.snapshot ORDER BY loaded_at").fetchall()
    assert found[1:] == [("aws/gpu-cur/2026-02", "2026-02"), ("aws/gpu-cur/2026-01", "2026-01")]


def test_two_deliveries_of_one_period_are_not_loaded_at_once(lake: Lake, tmp_path: Path) -> None:
    manifests = [deliver(tmp_path, {"a-1.csv": [cost]}, folder=f"{cost}/") for cost in ("1", "2")]
    with pytest.raises(InputError, match="aws/gpu-cur/2026-02: is given twice"):
        load_charges(lake, manifests, AWS)
    assert costs(lake) == []


def test_a_delivery_that_lacks_files_names_each_and_is_not_there_at_all(lake: Lake, tmp_path: Path) -> None:
    manifest = deliver(tmp_path, {"a-1.csv": ["1"], "a-2.csv": ["2"], "a-3.csv": ["4"]})
    data = manifest.parents[2] / "data/BILLING_PERIOD=2026-02"
    (data / "a-2.csv").unlink()
    (data / "a-3.csv").unlink()
    # A file of the same name in another period's folder, or above it, is not the one that is missing.
    write_csv(manifest.parents[2] / "data/BILLING_PERIOD=2026-01/a-2.csv", [line("Usage", "9")])
    write_csv(manifest.parents[2] / "a-3.csv", [line("Usage", "9")])
    with pytest.raises(InputError) as caught:
        load_charges(lake, [manifest], AWS)
    assert [problem.message for problem in caught.value.problems] == [
        f"names 'pre/gpu-cur/data/BILLING_PERIOD=2026-02/a-{number}.csv', which is not there" for number in (2, 3)
    ]
    assert costs(lake) == []


@pytest.mark.parametrize("kept", ["pre/gpu-cur/metadata", "gpu-cur/metadata", "metadata"])
def test_a_folder_may_mirror_any_part_of_the_bucket(tmp_path: Path, kept: str) -> None:
    deliver(tmp_path / "whole", {"a-1.csv": ["1"]})
    above = len(Path("pre/gpu-cur/metadata").parts) - len(Path(kept).parts)
    (tmp_path / "whole" / "/".join(["pre", "gpu-cur"][:above])).rename(tmp_path / "part")
    (manifest,) = (tmp_path / "part").rglob("*-Manifest.json")
    assert named(manifest) == list((tmp_path / "part").rglob("a-1.csv"))


def test_files_may_lie_beside_their_manifest(tmp_path: Path) -> None:
    manifest = deliver(tmp_path / "bucket", {"a-1.csv": ["1"]})
    (data,) = (tmp_path / "bucket").rglob("a-1.csv")
    flat = tmp_path / "flat"
    flat.mkdir()
    data.rename(flat / "a-1.csv")
    assert named(manifest.rename(flat / "Manifest.json")) == [flat / "a-1.csv"]


@pytest.mark.parametrize("folder", ["", "8f14-assembly/"])
def test_a_legacy_manifest_names_its_report_period_and_assembly(tmp_path: Path, folder: str) -> None:
    root = tmp_path / "pre/gpu-report/20260201-20260301"
    keys = [f"pre/gpu-report/20260201-20260301/8f14-assembly/gpu-report-{number}.csv" for number in (1, 2)]
    for cost, key in zip(("1", "2"), keys, strict=True):
        write_csv(tmp_path / key, [line("Usage", cost)])
    content = {
        "assemblyId": "8f14-assembly", "reportName": "gpu-report", "bucket": "bucket", "reportKeys": keys,
        "billingPeriod": {"start": "20260201T000000.000Z", "end": "20260301T000000.000Z"},
    }  # fmt: skip
    manifest = root / folder / "gpu-report-Manifest.json"
    manifest.write_text(json.dumps(content))
    found = read_manifest(manifest)
    assert (found.export_name, found.period, found.execution_id) == ("gpu-report", "2026-02", "8f14-assembly")
    assert parts_on_disk(found, manifest) == tuple((key, tmp_path / key) for key in keys)


GOOD: dict[str, Any] = {"exportArn": ARN, "executionId": "e1", "dataFiles": ["s3://b/x/BILLING_PERIOD=2026-02/a.csv"]}
OLD: dict[str, Any] = {"assemblyId": "a", "reportName": "r", "reportKeys": ["p/a.csv"]}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"\xff", "is no JSON"),
        (b"[" * 100_000, "is no JSON"),
        (b'"text"', "it has neither dataFiles nor reportKeys"),
        (GOOD | {"dataFiles": "a.csv"}, "dataFiles is not a list of texts"),
        (GOOD | {"dataFiles": []}, "dataFiles is empty: nothing was delivered"),
        (GOOD | {"dataFiles": GOOD["dataFiles"] * 2}, "dataFiles names a file twice"),
        (GOOD | {"dataFiles": ["/etc/BILLING_PERIOD=2026-02/passwd"]}, "is not the address of an S3 object"),
        (GOOD | {"dataFiles": ["s3://b/BILLING_PERIOD=2026-02/../../etc/passwd"]}, "is not a key that a file can have"),
        (GOOD | {"dataFiles": ["s3://b/BILLING_PERIOD=2026-02/a\nb.csv"]}, "is not a key that a file can have"),
        (GOOD | {"dataFiles": ["s3://b/x/a.csv"]}, "names files of no billing period or of several"),
        (
            GOOD | {"dataFiles": [f"s3://b/BILLING_PERIOD=2026-0{month}/a.csv" for month in (1, 2)]},
            "names files of no billing period or of several",
        ),
        ({"dataFiles": GOOD["dataFiles"]}, "does not say which export it is of"),
        (GOOD | {"exportArn": ARN.replace("gpu-cur", "a/../b")}, "is not the name of an export"),
        (GOOD | {"executionId": "e 1"}, "is not the id of an execution"),
        (OLD, "billingPeriod.start 'None' is not the first day of a month"),
        (OLD | {"billingPeriod": {"start": "20261301T0"}}, "is not the first day of a month"),
        (OLD | {"billingPeriod": {"start": "20260201T0"}, "reportKeys": ["/p/a.csv"]}, "is not a key that a file can"),
    ],
)
def test_a_manifest_that_says_nonsense_is_refused(content: bytes | dict[str, Any], said: str) -> None:
    text = content if isinstance(content, bytes) else json.dumps(content).encode()
    with pytest.raises(InputError) as caught:
        parse_manifest(text, "Manifest.json")
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


PARTS = {"a-1.csv": ["1", "2"], "a-2.csv": ["4", "8"], "a-3.csv": ["16"]}


class CutOffError(Exception):
    """Where a load is killed."""


@settings(max_examples=4)
@given(
    st.lists(
        st.tuples(st.sampled_from([0, 1, 2]), st.permutations(list(PARTS)), st.booleans(), st.booleans()),
        min_size=1,
        max_size=3,
    )
)
def test_loading_in_any_order_twice_or_killed_between_changes_nothing(
    new_lake: Callable[[], Lake],
    tmp_path_factory: pytest.TempPathFactory,
    loads: list[tuple[int, list[str], bool, bool]],
) -> None:
    """Three executions of two periods: whatever was tried before, each period says what its last whole load said."""
    folder = tmp_path_factory.mktemp("deliveries")
    manifests = [
        deliver(folder / "0", PARTS, execution="e1"),
        deliver(folder / "1", {"a-1.csv": ["1", "2"], "a-2.csv": ["5"]}, execution="e2"),
        deliver(folder / "2", {"a-1.csv": ["64"]}, execution="e3", period="2026-03"),
    ]
    sums = {0: ("2026-02", 31), 1: ("2026-02", 8), 2: ("2026-03", 64)}
    lake = new_lake()
    wanted: dict[str, int] = {}
    for number, order, is_twice, is_killed in loads:
        manifest = json.loads(manifests[number].read_text())
        manifest["dataFiles"].sort(key=lambda uri: order.index(uri.rpartition("/")[2]))
        manifests[number].write_text(json.dumps(manifest))
        exports = aws.exports(lake.connection, [manifests[number]] * (2 if is_twice else 1))
        if is_killed:
            with pytest.raises(CutOffError):
                load_exports(lake, [exports[0], replace(exports[0], source="next")], AWS, progress=cut_after(1))
            continue
        for export in exports:
            load_exports(lake, [export], AWS)
        wanted[sums[number][0]] = sums[number][1]
    show_current(lake.connection)
    found = lake.connection.execute(
        "SELECT strftime(billing_period_start, '%Y-%m'), sum(billed_cost)::INT FROM charge GROUP BY ALL"
    )
    assert dict(found.fetchall()) == wanted


def cut_after(steps: int) -> Callable[[str], None]:
    """Break off at the step after this many."""
    done: list[str] = []

    def step(text: str) -> None:
        if len(done) == steps:
            raise CutOffError
        done.append(text)

    return step
