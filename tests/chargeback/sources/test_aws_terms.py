"""What AWS says beside the bill, as rows that count: commitments, use of reservations, invoices, list prices."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chargeback.sheets import keep
from chargeback.sources import aws_terms
from chargeback.sources.aws_api import fetch
from tests.chargeback.sources.aws_account import (
    MONTHS,
    NOW,
    REGION,
    asking,
    bill,
    block,
    instance,
    instances,
    on_demand,
    plan,
    product,
    reserved,
    rows,
    synced,
)
from tests.chargeback.sources.aws_stub import Stub

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from store.lake import Lake


COMMITMENT = """
    SELECT commitment_id, kind, strftime(term_start, '%Y-%m-%d %H:%M'), strftime(term_end, '%Y-%m-%d %H:%M'),
           upfront_amount::VARCHAR, recurring_hourly_amount::VARCHAR, quantity::VARCHAR, unit, instance_type, status
    FROM commitment ORDER BY commitment_id
"""


def test_commitments_of_every_kind_in_one_table(aws: Stub, fresh: Callable[[], Lake], tmp_path: Path) -> None:
    aws.pages = {
        "DescribeSavingsPlans": [{"savingsPlans": [plan()]}],
        "DescribeReservedInstances": [{"reservedInstancesSet": [reserved()]}],
        "DescribeCapacityReservations": [{"capacityReservationSet": [block(), on_demand()]}],
        "DescribeCapacityBlocks": [
            {
                "capacityBlockSet": [
                    {"capacityBlockId": "cb-1", "capacityReservationIdSet": ["cr-b"], "state": "cancelled"}
                ]
            }
        ],
    }
    assert synced(lake := fresh(), tmp_path, asking(aws, "commitments")) == ["loaded"]
    year = ("2026-02-01 00:00", "2027-02-01 00:00")
    assert rows(lake, COMMITMENT) == [
        # Its plan's last second is the term's last, so it is over at midnight: 8,760 hours, O3.
        ("7f1c", "savings_plan", *year, "459024.000000000000", "0.000000000000", "52.400000", "USD per hour", None,
         "active"),
        # A block's fee stands on the bill only: unknown here, not 0. Its own state decides.
        (
            "cr-b", "capacity_block", "2026-10-25 11:30", "2026-11-08 11:30", None, None, "4.000000", "instances",
            "p5.48xlarge", "cancelled",
        ),
        # EC2 prices one instance; two were bought: O6's 220,000.00 upfront.
        (
            "ri-1", "reserved_instance", *year, "220000.000000000000", "25.114154000000", "2.000000", "instances",
            "p4d.24xlarge", "active",
        ),
    ]  # fmt: skip
    assert rows(lake, "SELECT DISTINCT region FROM commitment ORDER BY 1") == [(REGION,), (None,)]


@pytest.mark.parametrize(
    ("upfront", "recurring"),
    [("8760.00", "0.0"), ("0.0", "1.00"), ("4380.00", "0.50000000")],
    ids=["all upfront", "no upfront", "partial upfront"],
)
def test_o1_a_savings_plan_costs_its_commitment_however_it_is_paid(upfront: str, recurring: str) -> None:
    row: dict[str, Any]
    (row,) = aws_terms.savings_plan(
        plan(commitment="1.00", upfrontPaymentAmount=upfront, recurringPaymentAmount=recurring)
    )
    start, end = row["term_start"], row["term_end"]
    hours = (end - start) // timedelta(hours=1)
    assert row["upfront"] + row["recurring_hourly"] * hours == row["quantity"] * hours == 8760


def test_what_never_came_into_force_is_no_commitment(aws: Stub, fresh: Callable[[], Lake], tmp_path: Path) -> None:
    start = "2026-02-01T00:00:00.000Z"
    aws.pages = {
        "DescribeSavingsPlans": [{"savingsPlans": [plan(end=start, state="queued-deleted", termDurationInSeconds=0)]}],
        "DescribeReservedInstances": [
            {"reservedInstancesSet": [reserved(end=start, duration=0, state="queued-deleted")]}
        ],
        "DescribeCapacityReservations": [
            {"capacityReservationSet": [on_demand(endDate="2026-10-10T06:00:00.000Z", state="cancelled")]}
        ],
    }
    assert synced(lake := fresh(), tmp_path, asking(aws, "commitments")) == ["loaded"]
    assert rows(lake, "SELECT count(*) FROM commitment") == [(0,)]


def test_an_early_end_is_kept_as_it_is_told() -> None:
    cut = datetime(2026, 6, 1, 8, 30, tzinfo=UTC)
    told = {"Start": datetime(2026, 2, 1, tzinfo=UTC), "End": cut, "Duration": 31536000, "InstanceCount": 1}
    (row,) = aws_terms.reserved_instances(told | {"ReservedInstancesId": "ri"}, REGION)
    assert row["term_end"] == cut


def test_what_aws_no_longer_lists_stays_known_and_what_it_lists_is_as_it_says_now(
    aws: Stub, fresh: Callable[[], Lake], tmp_path: Path
) -> None:
    lake, settings = fresh(), asking(aws, "commitments")
    aws.pages = {"DescribeCapacityReservations": [{"capacityReservationSet": [block()]}]}
    assert synced(lake, tmp_path / "a", settings) == ["loaded"]
    assert synced(lake, tmp_path / "a", settings) == ["unchanged"]
    # The block is over and forgotten; the cache is gone too.
    aws.pages = {"DescribeSavingsPlans": [{"savingsPlans": [plan()]}]}
    assert synced(lake, tmp_path / "b", settings) == ["replaced"]
    assert synced(lake, tmp_path / "c", settings) == ["unchanged"]
    aws.pages["DescribeSavingsPlans"] = [{"savingsPlans": [plan(state="retired")]}]
    assert synced(lake, tmp_path / "c", settings) == ["replaced"]
    assert rows(lake, "SELECT commitment_id, status FROM commitment ORDER BY 1") == [
        ("7f1c", "retired"),
        ("cr-b", "active"),
    ]
    assert rows(lake, "SELECT count(*), count(upfront_amount) FROM commitment") == [(2, 1)]
    # The order in which AWS lists them is nobody's.
    both = [plan(state="retired"), plan(savingsPlanId="aaaa")]
    for listed, outcome in ((both, "replaced"), (both[::-1], "unchanged")):
        aws.pages["DescribeSavingsPlans"] = [{"savingsPlans": listed}]
        assert synced(lake, tmp_path / "c", settings) == [outcome]
    # What is kept is written as AWS wrote it: forgotten altogether, it is the same sheet.
    aws.pages = {}
    assert synced(lake, tmp_path / "c", settings) == ["unchanged"]


def test_e31_who_uses_a_reservation_comes_from_ec2_and_is_unknown_where_it_was_not_seen(
    aws: Stub, fresh: Callable[[], Lake], tmp_path: Path
) -> None:
    lake, settings = fresh(), asking(aws, "reservations")
    aws.pages = {
        "DescribeCapacityReservations": [{"capacityReservationSet": [on_demand(startDate="2026-10-10T09:00:00.000Z")]}],
        "DescribeInstances": [
            # Launched before the reservation that took it in; after it; in none.
            instances(
                instance("i-a", "cr-o"), instance("i-b", "cr-o", "2026-10-20T00:00:00.000Z"), instance("i-c", None)
            )
        ],
    }
    synced(lake, tmp_path, settings, datetime(2026, 10, 21, 12, 0, 0, 5, tzinfo=UTC))
    # Two weeks later i-a has gone and i-b was started anew.
    aws.pages["DescribeInstances"] = [instances(instance("i-b", "cr-o", "2026-11-01T00:00:00.000Z"))]
    synced(lake, tmp_path, settings)
    found = rows(
        lake,
        "SELECT resource_id, strftime(used_from, '%d %b %H:%M'), strftime(seen_at, '%d %b %H:%M') "
        "FROM reservation_use ORDER BY 1, 2",
    )
    assert found == [
        ("i-a", "10 Oct 09:00", "21 Oct 12:00"),
        ("i-b", "01 Nov 00:00", "05 Nov 12:00"),
        ("i-b", "20 Oct 00:00", "21 Oct 12:00"),
    ]
    ((_, _, asked),) = [call for call in aws.asked if call[0] == "DescribeInstances"][-1:]
    assert asked["Filter.1.Value.1"] == "running"


INVOICE = """
    SELECT invoice_id, issuer, period, currency, total_amount::VARCHAR, tax_amount::VARCHAR, status
    FROM invoice ORDER BY 1
"""
AWS_INC = "Amazon Web Services, Inc."


def by_month(aws: Stub, monkeypatch: pytest.MonkeyPatch, bills: list[dict[str, Any]]) -> None:
    """Let the stub answer a month with that month's invoices, as AWS does."""
    plain = Stub.answer

    def answer(self: Stub, operation: str, region: str, asked: dict[str, Any]) -> Any:
        if operation != "ListInvoiceSummaries":
            return plain(self, operation, region, asked)
        self.asked.append((operation, region, asked))
        month = asked["Filter"]["BillingPeriod"]
        return {"InvoiceSummaries": [one for one in bills if one["BillingPeriod"] == month]}

    monkeypatch.setattr(Stub, "answer", answer)


def test_invoices_are_in_the_currency_of_the_charges(
    aws: Stub, fresh: Callable[[], Lake], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bills = [
        bill("EUINEN-1", "1320.96", "220.16"),
        bill("CM-1", "20.00", "4.00", InvoiceType="CREDIT_MEMO", OriginalInvoiceId="EUINEN-1"),
        bill("CM-2", "-5.00", InvoiceType="CREDIT_MEMO"),
        bill("RCPT-1", "1320.96", InvoiceType="PAYMENT_RECEIPT"),
        bill("SOLD-1", "99.00", ReceiverRole="SELLER"),
    ]
    by_month(aws, monkeypatch, bills)
    assert synced(lake := fresh(), tmp_path, asking(aws, "invoices")) == ["loaded"]
    oct_usd = (AWS_INC, "2026-10", "USD")
    assert rows(lake, INVOICE) == [
        ("CM-1", *oct_usd, "-20.000000000000", "-4.000000000000", "credit_memo"),
        ("CM-2", *oct_usd, "-5.000000000000", None, "credit_memo"),
        ("EUINEN-1", *oct_usd, "1320.960000000000", "220.160000000000", "issued"),
    ]
    selectors = {call[2]["Selector"]["Value"] for call in aws.asked if call[0] == "ListInvoiceSummaries"}
    assert selectors == {"012345678901"}


def test_e17_a_month_is_not_closed_by_an_invoice_that_is_not_issued(
    aws: Stub, fresh: Callable[[], Lake], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    later = int((NOW + timedelta(days=1)).timestamp())
    coming = {name: value for name, value in bill("B", "2.00").items() if name != "IssuedDate"}
    estimated = {name: value for name, value in coming.items() if name != "InvoiceId"}
    by_month(aws, monkeypatch, [bill("A", "1.00", IssuedDate=later), coming, estimated])
    lake, settings = fresh(), asking(aws, "invoices")
    synced(lake, tmp_path, settings)
    assert rows(lake, "SELECT invoice_id, status FROM invoice ORDER BY 1") == [("A", "open"), ("B", "open")]
    synced(lake, tmp_path, settings, NOW + timedelta(days=2))
    assert rows(lake, "SELECT invoice_id, status FROM invoice ORDER BY 1") == [("A", "issued"), ("B", "open")]


def test_e36_months_come_from_the_calendar_so_a_missing_invoice_joins_no_two_months(
    aws: Stub, fresh: Callable[[], Lake], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_month(aws, monkeypatch, [bill("SEP", "10.00", month="2026-09"), bill("NOV", "7.00", month="2026-11")])
    lake, settings = fresh(), asking(aws, "invoices")
    synced(lake, tmp_path, settings, months=MONTHS)
    by_period = "SELECT period, sum(total_amount)::VARCHAR FROM invoice GROUP BY 1 ORDER BY 1"
    assert rows(lake, by_period) == [("2026-09", "10.000000000000"), ("2026-11", "7.000000000000")]
    # Half a year later September is asked for no more, and still there.
    fetched = fetch(settings, ("2027-03",), NOW, lambda _: None)
    assert [keep(lake, sheet, tmp_path).row_count for sheet in fetched] == [0]
    by_month(aws, monkeypatch, [bill("OCT", "8.00"), bill("NOV", "7.50", month="2026-11")])
    synced(lake, tmp_path, settings, months=MONTHS)
    # What AWS says of a month replaces what it said of it, also by nothing.
    assert rows(lake, by_period) == [("2026-10", "8.000000000000"), ("2026-11", "7.500000000000")]


def test_list_prices_are_the_digits_of_the_price_list(aws: Stub, fresh: Callable[[], Lake], tmp_path: Path) -> None:
    aws.pages = {"GetProducts": [{"PriceList": [product("p5.48xlarge", "55.0400000000")]}]}
    settings = asking(aws, "prices", instance_types=("p5.48xlarge",))
    assert synced(lake := fresh(), tmp_path, settings) == ["loaded"]
    assert rows(
        lake,
        "SELECT provider, sku_id, instance_type, region, unit_price::VARCHAR, currency, usage_unit, tier_start, "
        "strftime(as_of, '%Y-%m-%d') FROM list_price",
    ) == [("AWS", "SKU-p5.48xlarge", "p5.48xlarge", REGION, "55.040000000000", "USD", "Hrs", Decimal(0), "2026-10-01")]
    ((_, region, asked),) = aws.asked
    filters = {one["Field"]: one["Value"] for one in asked["Filters"]}
    assert (region, filters["instanceType"], filters["regionCode"], filters["capacitystatus"]) == (
        "us-east-1", "p5.48xlarge", REGION, "Used",
    )  # fmt: skip


@given(
    st.decimals(min_value=0, max_value=10**9, places=6, allow_nan=False).filter(
        lambda d: len(d.as_tuple().digits) <= 15
    )
)
def test_a_price_that_boto3_parsed_as_a_float_has_the_digits_that_aws_wrote(price: Decimal) -> None:
    told = {
        "ReservedInstancesId": "ri", "Start": datetime(2026, 2, 1, tzinfo=UTC), "End": NOW, "InstanceCount": 3,
        "FixedPrice": float(str(price)), "RecurringCharges": [{"Frequency": "Hourly", "Amount": float(str(price))}],
    }  # fmt: skip
    (row,) = aws_terms.reserved_instances(told, REGION)
    assert (row["upfront"], row["recurring_hourly"]) == (3 * price, 3 * price)
