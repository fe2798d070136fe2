"""RunPod's answers about billing: whole buckets of what was used from the balance, to the last digit."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from chargeback.load import LoadOptions, load_charges
from chargeback.sources.intake import ChargeOptions, stage_export
from chargeback.sources.judging import broken_identities
from chargeback.sources.neocloud import exports
from fleet.errors import InputError
from store.snapshots import show_current
from tests.chargeback.sources.azure_rows import charges

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from store.lake import Connection, Lake

POD = {"podId": "7h9k2m4n6p", "totalAmount": 12.34, "gpuAmount": 11.1, "cpuAmount": 0, "diskAmount": 1.24}
ASKED = datetime(2026, 2, 3, 12, tzinfo=UTC)


def day(number: int, amounts: dict[str, Any]) -> dict[str, Any]:
    return {"startTime": f"2026-02-0{number}T00:00:00Z", "endTime": f"2026-02-0{number + 1}T00:00:00Z"} | amounts


def write(path: Path, *records: object, asked: datetime = ASKED, text: str | None = None) -> Path:
    answer = {"records": records, "metadata": {"recordCount": len(records)}}
    path.write_text(text or json.dumps(answer, indent=2), "utf-8")
    os.utime(path, (asked.timestamp(), asked.timestamp()))
    return path


def staged(con: Connection, path: Path) -> list[tuple[Any, ...]]:
    (export,) = exports(con, [path])
    stage_export(con, export, ChargeOptions())
    assert broken_identities(con) == ()
    return charges(con, "charge_period_start::DATE::VARCHAR, sku_id, resource_id, billed_cost, effective_cost")


def test_a_pod_s_day_is_used_from_the_balance_by_component(con: Connection, tmp_path: Path) -> None:
    assert staged(con, write(tmp_path / "pods.json", day(1, POD))) == [
        ("2026-02-01", "pod disk", "7h9k2m4n6p", 0, Decimal("1.24")),
        ("2026-02-01", "pod gpu", "7h9k2m4n6p", 0, Decimal("11.1")),
    ]
    account = "provider, billing_currency, commitment_discount_id, commitment_discount_type"
    assert set(charges(con, f"{account}, charge_period_end::DATE::VARCHAR")) == {
        ("RunPod", "USD", "balance:runpod", "Prepaid Balance", "2026-02-02")
    }


def test_the_bucket_in_progress_is_not_taken(con: Connection, tmp_path: Path) -> None:
    days = [day(number, POD) for number in (2, 3)]
    assert {row[0] for row in staged(con, write(tmp_path / "pods.json", *days))} == {"2026-02-02"}
    later = datetime(2026, 2, 4, tzinfo=UTC)
    assert len(staged(con, write(tmp_path / "pods.json", *days, asked=later))) == 4
    with pytest.raises(InputError, match=r"pods\.json: has no bucket with an amount that was over"):
        staged(con, write(tmp_path / "pods.json", days[1]))


@pytest.mark.parametrize(
    ("amounts", "expected"),
    [
        ({"serverlessId": "4m7", "totalAmount": 8.9, "gpuAmount": 7.5, "diskAmount": 0.4, "feeAmount": 1.0},
         [("serverless disk", "4m7", "0.4"), ("serverless fee", "4m7", "1"), ("serverless gpu", "4m7", "7.5")]),
        ({"networkVolumeId": "2q9", "totalAmount": 5.79, "standardAmount": 0, "highPerformanceAmount": 5.79},
         [("network volume highPerformance", "2q9", "5.79")]),
        ({"clusterId": "5c2", "totalAmount": 99.0, "gpuAmount": 95.0, "diskAmount": 3.0, "networkingAmount": 1.0},
         [("cluster disk", "5c2", "3"), ("cluster gpu", "5c2", "95"), ("cluster networking", "5c2", "1")]),
        ({"totalAmount": 3.21}, [("endpoint usage", None, "3.21")]),
        # A component that the answer does not name, and one that takes back.
        ({"podId": "p", "totalAmount": 1.5, "gpuAmount": 2.0, "cpuAmount": -0.75},
         [("pod cpu", "p", "-0.75"), ("pod gpu", "p", "2"), ("pod other", "p", "0.25")]),
    ],
)  # fmt: skip
def test_every_family_of_resources(
    con: Connection, tmp_path: Path, amounts: dict[str, Any], expected: list[tuple[str, str | None, str]]
) -> None:
    found = staged(con, write(tmp_path / "a.json", day(1, amounts)))
    assert [(sku, resource, effective) for _, sku, resource, _, effective in found] == [
        (sku, resource, Decimal(amount)) for sku, resource, amount in expected
    ]


def test_numbers_keep_all_their_digits(con: Connection, tmp_path: Path) -> None:
    text = '{"records": [{"startTime": "2026-02-01T00:00:00Z", "endTime": "2026-02-01T01:00:00Z", ' \
           '"podId": "p", "totalAmount": 12345678.123456789012, "gpuAmount": 12345678.123456789012}]}'  # fmt: skip
    assert [row[-1] for row in staged(con, write(tmp_path / "a.json", text=text))] == [Decimal("12345678.123456789012")]


@pytest.mark.parametrize(
    ("record", "said"),
    [
        (day(1, {"totalAmount": 42.34, "podGpuAmount": 18.2}), "record 1: adds up /v2/billing/pods"),
        (day(1, {"podId": "p"}), "record 1: has no 'totalAmount'"),
        (day(1, POD | {"totalAmount": "12.34"}), "record 1: 'totalAmount' is not a number"),
        (day(1, POD | {"podId": 7}), "record 1: its id is not a text"),
        (day(1, POD) | {"startTime": "2026-01-26T00:00:00Z"}, "record 1: is no bucket within a month"),
        (day(1, POD) | {"startTime": "yesterday"}, "record 1: 'yesterday' is not an RFC 3339 time"),
        (["a"], "record 1: is not an object"),
    ],
)
def test_an_answer_that_makes_no_sense_is_refused_by_its_record(
    con: Connection, tmp_path: Path, record: object, said: str
) -> None:
    with pytest.raises(InputError) as caught:
        staged(con, write(tmp_path / "a.json", record))
    assert f"a.json: {said}" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[{"podId": "p", "amount": 0.21, "time": "2026-02-01T00:00:00Z"}]', "is no answer of RunPod's billing API"),
        ('{"records": [', "is not JSON"),
        ('{"records": [{"totalAmount": NaN}]}', "is not JSON: 'NaN' is not a plain decimal"),
        ("[" * 100_000, "is nested too deeply"),
    ],
)
def test_what_is_no_answer_is_refused(con: Connection, tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(InputError) as caught:
        staged(con, write(tmp_path / "a.json", text=text))
    assert said in str(caught.value)


def test_an_answer_that_is_asked_again_replaces_the_earlier_one(fresh: Callable[[], Lake], tmp_path: Path) -> None:
    lake = fresh()
    runpod = LoadOptions("neocloud")
    path = write(tmp_path / "pods.json", day(1, POD))
    outcomes = [load_charges(lake, [path], runpod)[0].loaded.outcome for _ in range(2)]
    write(path, day(1, POD), day(2, POD))
    outcomes.append(load_charges(lake, [path], runpod)[0].loaded.outcome)
    assert outcomes == ["loaded", "unchanged", "replaced"]
    show_current(lake.connection)
    sums = "SELECT count(*), sum(effective_cost) FROM charge"
    assert lake.connection.execute(sums).fetchall() == [(4, Decimal("24.68"))]
