"""Exports fetched from S3: real boto3 against a local S3 server, with deliveries that change while they are read."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from chargeback.load import load_exports
from chargeback.sources.aws_s3 import fetch
from fleet.errors import InputError, SourceError
from store.lake import Lake
from store.snapshots import show_current
from tests.chargeback.sources.aws_buckets import DATA, META, Store, costs, never, refused, report

if TYPE_CHECKING:
    from pathlib import Path


def test_a_delivery_is_fetched_by_its_manifest(store: Store, tmp_path: Path) -> None:
    store.deliver({"a-1.csv": "1", "a-2.csv": "2"})
    store.put(f"{DATA}a-3.csv", report("4"))  # left over: the manifest does not name it
    steps: list[str] = []
    exports = fetch(store.settings, tmp_path / "cache", steps.append, wait=never)
    assert [(one.source, one.execution_id, one.period) for one in exports] == [("aws/gpu-cur/2026-02", "e1", "2026-02")]
    assert [part.name for part in exports[0].parts] == [f"{DATA}a-1.csv", f"{DATA}a-2.csv"]
    assert steps == ["gpu-cur 2026-02 a-1.csv", "gpu-cur 2026-02 a-2.csv"]


def test_e16_an_overwriting_export_with_fewer_parts(store: Store, tmp_path: Path) -> None:
    store.deliver({"a-1.csv": "1", "a-2.csv": "2"})
    assert store.costs(tmp_path, wait=never) == ["1", "2"]
    store.deliver({"a-1.csv": "7"}, "e2")
    assert store.costs(tmp_path, wait=never) == ["7"]
    assert len(list(tmp_path.rglob("*.csv"))) == 1  # what no manifest names is not kept


def test_deliveries_side_by_side_the_newest_counts(store: Store, tmp_path: Path) -> None:
    store.deliver({"a-1.csv": "9"}, "e9", "20260209-e9/")
    store.deliver({"a-1.csv": "2"}, "e2", "20260202-e2/")  # written later, though its name is smaller
    assert store.costs(tmp_path, wait=never) == ["2"]


def test_one_period_of_several(plain: Store, tmp_path: Path) -> None:
    plain.deliver({"a-1.csv": "1"})
    january = {"executionId": "e0", "dataFiles": [f"s3://b/{DATA.replace('2026-02', '2026-01')}a-1.csv"]}
    plain.put(f"{DATA.replace('2026-02', '2026-01')}a-1.csv", report("5"))
    plain.put(f"{META.replace('2026-02', '2026-01')}gpu-cur-Manifest.json", json.dumps(january).encode())
    exports = fetch(plain.settings, tmp_path, lambda _: None, wait=never)
    assert [(one.period, costs(one)) for one in exports] == [("2026-01", ["5"]), ("2026-02", ["1"])]
    assert plain.costs(tmp_path, wait=never, period="2026-01") == ["5"]
    with pytest.raises(SourceError, match=r"pre/gpu-cur/: no manifest of a delivery of 2025-12"):
        plain.costs(tmp_path, period="2025-12")


def test_a_legacy_report(plain: Store, tmp_path: Path) -> None:
    folder = "pre/gpu-cur/20260201-20260301/"
    plain.put(f"{folder}8f14/gpu-cur-1.csv.gz", gzip.compress(report("3")))
    content = {
        "assemblyId": "8f14", "reportName": "gpu-cur", "reportKeys": [f"{folder}8f14/gpu-cur-1.csv.gz"],
        "billingPeriod": {"start": "20260201T000000.000Z"},
    }  # fmt: skip
    plain.put(f"{folder}gpu-cur-Manifest.json", json.dumps(content).encode())
    (export,) = fetch(replace(plain.settings, prefix="/pre/"), tmp_path, lambda _: None, wait=never)
    assert (export.source, export.execution_id) == ("aws/gpu-cur/2026-02", "8f14")
    assert gzip.decompress(export.parts[0].path.read_bytes()) == report("3")


def test_a_half_replaced_delivery_of_a_bucket_with_versions_is_read_as_it_was(versioned: Store, tmp_path: Path) -> None:
    versioned.deliver({"a-1.csv": "1", "a-2.csv": "2"})
    versioned.put(f"{DATA}a-1.csv", report("100"))  # of the next delivery, whose manifest is not there yet
    versioned.s3.delete_object(Bucket=versioned.name, Key=f"{DATA}a-2.csv")
    assert versioned.costs(tmp_path, wait=never) == ["1", "2"]


def test_a_half_replaced_delivery_of_a_plain_bucket_is_waited_for(plain: Store, tmp_path: Path) -> None:
    plain.deliver({"a-1.csv": "1", "a-2.csv": "2"})
    plain.put(f"{DATA}a-1.csv", report("100"))
    waited: list[float] = []

    def finish(seconds: float) -> None:
        waited.append(seconds)
        plain.put(f"{DATA}a-2.csv", report("200"))
        plain.manifest(["a-1.csv", "a-2.csv"], "e2")

    assert plain.costs(tmp_path, wait=finish) == ["100", "200"]
    assert waited == [20.0]


def test_a_delivery_that_stays_half_replaced_is_refused_by_name(plain: Store, tmp_path: Path) -> None:
    plain.deliver({"a-1.csv": "1", "a-2.csv": "2"})
    plain.put(f"{DATA}a-2.csv", report("200"))
    waited: list[float] = []
    with pytest.raises(SourceError, match=r"BILLING_PERIOD=2026-02/a-2\.csv: is being replaced or was deleted"):
        plain.costs(tmp_path, wait=waited.append)
    assert waited == [20.0, 20.0]


@pytest.mark.parametrize("in_parts", [True, False])
def test_a_file_replaced_after_it_was_pinned_is_never_mixed_in(plain: Store, tmp_path: Path, in_parts: bool) -> None:
    plain.deliver({"a-1.csv": "1", "a-2.csv": "2"}, in_parts=in_parts)

    def replace_while_reading(step: str) -> None:
        if step.endswith("a-2.csv") and plain.minutes == 3:
            plain.deliver({"a-1.csv": "3", "a-2.csv": "4"}, "e2", in_parts=in_parts)  # as many bytes as before

    (export,) = fetch(plain.settings, tmp_path, replace_while_reading, wait=lambda _: None)
    assert (costs(export), export.execution_id) == (["3", "4"], "e2")


def test_a_file_that_is_gone_is_refused_by_name(plain: Store, tmp_path: Path) -> None:
    plain.deliver({"a-1.csv": "1", "a-2.csv": "2"})
    plain.s3.delete_object(Bucket=plain.name, Key=f"{DATA}a-1.csv")
    with pytest.raises(SourceError, match=r"a-1\.csv: is being replaced or was deleted; try again later"):
        plain.costs(tmp_path, wait=lambda _: None)


def test_an_export_that_is_not_there_says_where_it_was_looked_for(plain: Store, tmp_path: Path) -> None:
    assert refused(plain, tmp_path) == (
        f"s3://{plain.name}/pre/gpu-cur/: no manifest of a delivery (bucket, prefix and export of the source)"
    )


def test_a_manifest_in_the_wrong_folder_or_of_nonsense_is_refused(plain: Store, tmp_path: Path) -> None:
    plain.put(f"{META}gpu-cur-Manifest.json", b'{"dataFiles": ["s3://b/BILLING_PERIOD=2026-03/a.csv"]}')
    assert refused(plain, tmp_path).endswith("is of 2026-03, in the folder of 2026-02")
    plain.put(f"{META}gpu-cur-Manifest.json", b"{}")
    with pytest.raises(InputError, match="is no manifest of an AWS export"):
        plain.costs(tmp_path)
    plain.put(f"{META}gpu-cur-Manifest.json", b'{"dataFiles": ["s3://b/BILLING_PERIOD=2026-02/a.csv"]}')
    plain.put("BILLING_PERIOD=2026-02/a.csv", b"a,b\n1,2\n")
    plain.manifest(["a-1.csv"])
    plain.put(f"{DATA}a-1.csv", b"a,b\n1,2\n")
    plain.manifest(["a-1.csv"])
    with pytest.raises(InputError, match="is no AWS Cost and Usage Report"):
        plain.costs(tmp_path)


def test_a_fetched_delivery_loads(plain: Store, tmp_path: Path) -> None:
    plain.deliver({"a-1.csv": "1", "a-2.csv": "2"})
    exports = fetch(plain.settings, tmp_path / "cache", lambda _: None, wait=never)
    with Lake.open(tmp_path / "catalog.sqlite", tmp_path / "data") as lake:
        load_exports(lake, exports)
        show_current(lake.connection)
        assert lake.connection.execute("SELECT part, billed_cost::INT FROM charge ORDER BY 1").fetchall() == [
            (f"{DATA}a-1.csv", 1), (f"{DATA}a-2.csv", 2),
        ]  # fmt: skip
