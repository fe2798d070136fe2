"""Calling AWS through real boto3 against a small local AWS: every page or nothing, and refusals in one line."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from chargeback.sheets import keep
from chargeback.sources.aws_api import fetch
from fleet.errors import InputError, SourceError
from fleet.sources_config import AwsApi
from tests.chargeback.sources.aws_account import (
    MONTHS,
    NOW,
    REGION,
    asking,
    bill,
    block,
    instance,
    instances,
    plan,
    product,
    reserved,
    synced,
)
from tests.chargeback.sources.aws_stub import SECRET, Raw, Refusal, Stub, sign_in

if TYPE_CHECKING:
    from collections.abc import Callable

    from store.lake import Lake


def test_every_page_of_every_list_is_read(aws: Stub, fresh: Callable[[], Lake], tmp_path: Path) -> None:
    three = range(3)
    aws.pages = {
        "DescribeSavingsPlans": [{"savingsPlans": [plan(savingsPlanId=f"sp-{n}")]} for n in three],
        "DescribeCapacityReservations": [
            {"capacityReservationSet": [block(capacityReservationId=f"cr-{n}")]} for n in three
        ],
        "DescribeCapacityBlocks": [
            {"capacityBlockSet": [{"capacityReservationIdSet": [f"cr-{n}"], "state": f"s{n}"}]} for n in three
        ],
        "DescribeInstances": [instances(instance(f"i-{n}", f"cr-{n}")) for n in three],
        "ListInvoiceSummaries": [{"InvoiceSummaries": [bill(f"inv-{n}", "1.00")]} for n in three],
        "GetProducts": [{"PriceList": [product(f"p{n}.48xlarge", "1.5")]} for n in three],
    }
    settings = asking(
        aws, "commitments", "reservations", "invoices", "prices", instance_types=("p5.48xlarge",)
    )  # fmt: skip
    sheets = fetch(settings, ["2026-10"], NOW, lambda _: None)
    assert [(sheet.kind, len(sheet.rows)) for sheet in sheets] == [
        ("commitments", 6), ("reservations", 3), ("invoices", 3), ("prices", 3),
    ]  # fmt: skip
    assert {row["status"] for row in sheets[0].rows if row["kind"] == "capacity_block"} == {"s0", "s1", "s2"}
    # The list of reservations serves both who asks what was bought and who asks what was used.
    assert aws.operations().count("DescribeCapacityReservations") == 3
    lake = fresh()
    assert [keep(lake, sheet, tmp_path).row_count for sheet in sheets] == [6, 3, 3, 3]


DENIED = Refusal("UnauthorizedOperation", 403)
LATE_REFUSALS = [
    ("DescribeInstances", [instances(instance("i-1", "cr-o")), DENIED], "ec2:DescribeInstances in us-east-2: "
     "UnauthorizedOperation: the permission ec2:DescribeInstances is missing"),
    ("DescribeSavingsPlans", [{"savingsPlans": [plan()]}, Refusal("ThrottlingException", 429)],
     "savingsplans:DescribeSavingsPlans in us-east-1: ThrottlingException"),
    ("ListInvoiceSummaries", [{"InvoiceSummaries": [bill("a", "1")]}, Refusal("AccessDeniedException")],
     "invoicing:ListInvoiceSummaries in us-east-1: AccessDeniedException: the permission "
     "invoicing:ListInvoiceSummaries is missing"),
    ("DescribeCapacityReservations", [{"capacityReservationSet": [block()]}, Raw("<html>busy</html>", 500)],
     "ec2:DescribeCapacityReservations in us-east-2: status 500"),
    ("GetCallerIdentity", [Refusal("ExpiredToken", 403)], "sts:GetCallerIdentity in us-east-1: ExpiredToken"),
    ("ListInvoiceSummaries", [Raw("not json")],
     "invoicing:ListInvoiceSummaries in us-east-1: the answer has no InvoiceSummaries"),
    ("DescribeInstances", [Raw("<html>")], "ec2:DescribeInstances in us-east-2: ResponseParserError"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("operation", "pages", "told"), LATE_REFUSALS, ids=[f"{o} {n}" for n, (o, _, _) in enumerate(LATE_REFUSALS)]
)
def test_a_page_that_fails_leaves_nothing_of_the_source(
    aws: Stub, fresh: Callable[[], Lake], tmp_path: Path, operation: str, pages: list[Any], told: str
) -> None:
    settings = asking(aws, "commitments", "reservations", "invoices")
    lake = fresh()
    before = lake.snapshot()
    aws.pages = {operation: pages}
    with pytest.raises(SourceError) as caught:
        synced(lake, tmp_path / "cache", settings)
    assert str(caught.value).startswith(told)
    assert SECRET not in f"{caught.value} {caught.value.__cause__}"
    assert (lake.snapshot(), (tmp_path / "cache").exists()) == (before, False)


def test_a_throttled_call_is_made_again(aws: Stub, monkeypatch: pytest.MonkeyPatch) -> None:
    sign_in(monkeypatch, tries=2)
    monkeypatch.setattr("time.sleep", lambda _: None)
    aws.pages = {
        "GetProducts": [Refusal("ThrottlingException", times=1), {"PriceList": [product("p5.48xlarge", "55.04")]}]
    }
    (sheet,) = fetch(asking(aws, "prices", instance_types=("p5.48xlarge",)), MONTHS, NOW, lambda _: None)
    assert len(sheet.rows) == 1
    assert aws.operations() == ["GetProducts"] * 2


def test_nobody_to_sign_as_is_told(aws: Stub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.setattr("boto3.DEFAULT_SESSION", None)
    with pytest.raises(
        SourceError, match=r"in us-east-1: no AWS credentials \(environment, profile or instance role\)"
    ):
        fetch(asking(aws, "invoices"), MONTHS, NOW, lambda _: None)
    assert aws.asked == []


def test_an_address_where_nobody_answers_is_told(aws: Stub) -> None:
    settings = AwsApi("aws", (REGION,), ("invoices",), endpoint_url="http://127.0.0.1:9")
    with pytest.raises(SourceError, match=r"^sts:GetCallerIdentity in us-east-1: EndpointConnectionError$"):
        fetch(settings, MONTHS, NOW, lambda _: None)


def test_pages_without_end_are_not_followed(aws: Stub, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = iter(("first", "second"))
    monkeypatch.setattr(Stub, "answer", lambda *_: {next(asked): "", "PriceList": [], "NextToken": "again"})
    with pytest.raises(SourceError, match="its pages have no end"):
        fetch(asking(aws, "prices", instance_types=("p5.48xlarge",)), MONTHS, NOW, lambda _: None)


@pytest.mark.parametrize(
    ("pages", "told"),
    [
        ({"GetProducts": [{"PriceList": ["{}"]}]}, "list price 1 of the answer has no product"),
        ({"GetProducts": [{"PriceList": ["{"]}]}, "list price 1 of the answer cannot be understood"),
        ({"GetProducts": [{"PriceList": [product("p5", "1,5")]}]}, "list price 1 of the answer cannot be understood"),
        (
            {"DescribeSavingsPlans": [{"savingsPlans": [plan(), {"savingsPlanId": "x"}]}]},
            "Savings Plan 2 of the answer has no start",
        ),
        (
            {
                "DescribeReservedInstances": [
                    {"reservedInstancesSet": [reserved(recurringCharges=[{"frequency": "Daily", "amount": "1"}])]}
                ]
            },
            "ri-1: recurs 'Daily', not hourly",
        ),
    ],
)
def test_an_answer_without_what_it_promises_is_refused(aws: Stub, pages: dict[str, list[Any]], told: str) -> None:
    aws.pages = pages
    with pytest.raises(SourceError) as caught:
        fetch(asking(aws, "commitments", "prices", instance_types=("p5.48xlarge",)), MONTHS, NOW, lambda _: None)
    assert str(caught.value) == told


def test_a_hostile_name_is_judged_like_one_in_a_file(aws: Stub, fresh: Callable[[], Lake], tmp_path: Path) -> None:
    aws.pages = {"ListInvoiceSummaries": [{"InvoiceSummaries": [bill("a\nb" + "x" * 300, "1")]}]}
    with pytest.raises(InputError, match=r"aws-invoices-2026-10\.csv: row 2, column invoice_id"):
        synced(fresh(), tmp_path, asking(aws, "invoices"))


def test_each_region_is_asked_by_its_own_name(aws: Stub) -> None:
    aws.pages = {
        f"DescribeReservedInstances {region}": [{"reservedInstancesSet": [reserved(reservedInstancesId=region)]}]
        for region in ("us-east-2", "eu-west-1")
    }
    (sheet,) = fetch(
        AwsApi("aws", ("us-east-2", "eu-west-1"), ("commitments",), endpoint_url=aws.address),
        MONTHS,
        NOW,
        lambda _: None,
    )
    assert [(row["commitment_id"], row["region"]) for row in sheet.rows] == [
        ("us-east-2", "us-east-2"),
        ("eu-west-1", "eu-west-1"),
    ]


@pytest.mark.parametrize("service", ["commitments", "reservations", "invoices", "prices"])
def test_the_page_on_sync_names_the_permissions_that_are_needed(aws: Stub, service: str) -> None:
    settings = asking(aws, service, **({"instance_types": ("p5.48xlarge",)} if service == "prices" else {}))
    fetch(settings, MONTHS, NOW, lambda _: None)
    page = (Path(__file__).parents[3] / "docs" / "sync.md").read_text("utf-8")
    (row,) = re.findall(rf"^\| `{service}` \| (`[^|]*`) \|$", page, re.MULTILINE)
    # Everybody may ask who they are.
    assert set(re.findall(r":(\w+)`", row)) == set(aws.operations()) - {"GetCallerIdentity"}
