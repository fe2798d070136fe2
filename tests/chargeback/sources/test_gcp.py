"""Google Cloud's billing export: whatever its shape, a row is billed once, in its invoice month, to the last digit."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.chargeback.ledger import compute, put
from tests.chargeback.sources.gcp_rows import charges, credit, credited, ledger, row, staged, write_json

if TYPE_CHECKING:
    from store.lake import Connection

NISE = Path(__file__).parents[2] / "fixtures" / "billing" / "gcp"
BY_CATEGORY = "charge_category, sum(billed_cost), sum(effective_cost), count(*)"


@pytest.fixture(scope="module")
def con() -> Connection:
    return ledger()


def test_the_columns_of_a_charge_are_those_of_focus(con: Connection, tmp_path: Path) -> None:
    staged(con, write_json(tmp_path / "a.json", [credited()]))
    found = con.execute("FROM staged_charge WHERE charge_category = 'Usage'").fetchone()
    assert found is not None
    charge = dict(zip([column[0] for column in con.description or ()], found, strict=True))
    expected = {
        "provider": "Google Cloud", "invoice_issuer": "Google Cloud", "billing_account_id": "010101-F0FFF0-10X10X",
        "sub_account_id": "gpu-prod", "sub_account_name": "GPU prod", "invoice_id": None, "charge_class": None,
        "billed_cost": Decimal("8.5"), "effective_cost": Decimal("8.5"), "list_cost": Decimal(12),
        "contracted_cost": None, "list_unit_price": None, "billing_currency": "USD", "x_fx_rate": Decimal(1),
        "pricing_category": "Standard", "pricing_quantity": Decimal(1), "pricing_unit": "hour",
        "consumed_quantity": Decimal(3600), "consumed_unit": "seconds", "resource_type": "instances",
        "resource_id": "//compute.googleapis.com/projects/1/zones/us-central1-a/instances/4567890123456789012",
        "resource_name": "gke-prod-h100-1", "region_id": "us-central1", "availability_zone": "us-central1-a",
        "service_name": "Compute Engine", "service_category": "Compute", "sku_id": "GPU-SKU",
        "x_instance_type": "a3-highgpu-8g", "x_line_type": "regular", "x_is_split_row": False,
        "tags": '{"goog-k8s-cluster-name":"prod","k8s-namespace":"train","team":"infra"}',
    }  # fmt: skip
    assert {name: charge[name] for name in expected} == expected
    assert "SUSTAINED_USAGE_DISCOUNT" in charge["x_credits"]


def test_o20_the_synthetic_export_by_invoice_month_and_by_month_of_use(con: Connection) -> None:
    staged(con, NISE / "nise-flat-202610.csv", NISE / "nise-flat-202611.csv")
    month = "strftime(billing_period_start, '%Y%m')"
    assert charges(con, f"{month}, {BY_CATEGORY}", "GROUP BY ALL") == [
        ("202610", "Credit", "-26.4", "-26.4", 48),
        ("202610", "Usage", "6547.44", "6547.44", 120),
        ("202611", "Credit", "-26.4", "-26.4", 48),
        ("202611", "Usage", "2299.92", "2299.92", 72),
    ]
    used = "WHERE charge_category = 'Usage' GROUP BY ALL"
    assert charges(con, "strftime(charge_period_start, '%Y%m'), sum(billed_cost)", used) == [
        ("202610", "6635.52"),
        ("202611", "2211.84"),
    ]


def test_e11_an_invoice_month_holds_hours_of_its_neighbours(con: Connection, tmp_path: Path) -> None:
    hours = [
        ("2025-07-31 23:00", "2025-08-01 00:00"),
        ("2025-08-15 00:00", "2025-08-15 01:00"),
        ("2025-09-01 06:00", "2025-09-01 07:00"),
    ]
    rows = [
        row(invoice={"month": "202508"}, usage_start_time=f"{start}:00 UTC", usage_end_time=f"{end}:00 UTC")
        for start, end in hours
    ]
    staged(con, write_json(tmp_path / "a.json", rows))
    billed = "strftime(billing_period_start, '%Y-%m-%d'), strftime(billing_period_end, '%Y-%m-%d'), sum(billed_cost)"
    assert charges(con, billed, "GROUP BY ALL") == [("2025-08-01", "2025-09-01", "31.5")]


def test_e12_credits_are_added_once_and_their_row_counts_once(con: Connection, tmp_path: Path) -> None:
    staged(con, write_json(tmp_path / "a.json", [credited(cost=10.5), row(cost=1)]))
    # 10.5 - 1.5 - 0.5 = 8.5, not (10.5 - 1.5) + (10.5 - 0.25) + (10.5 - 0.5).
    assert charges(con, "charge_category, billed_cost, effective_cost, part_row, source_row") == [
        ("Usage", "8.5", "8.5", 1, 1),
        ("Usage", "1", "1", 2, 2),
        ("Credit", "-0.25", "-0.25", 1, 7),
    ]


def test_e13_labels_neither_multiply_nor_filter_a_row(con: Connection, tmp_path: Path) -> None:
    many = [{"key": f"k{number}", "value": str(number)} for number in range(20)]
    rows = [
        row(
            labels=[
                *many,
                {"key": "team", "value": "ml"},
                {"key": "k1", "value": "one"},
                {"key": "empty", "value": None},
            ]
        ),
        row(labels=[], project={"labels": []}),
        row(labels=[], system_labels=[], project=None),
    ]
    staged(con, write_json(tmp_path / "a.json", rows))
    assert charges(con, "sum(billed_cost), count(*)") == [("31.5", 3)]
    # The resource's own label is nearer than its project's; of a key that is given twice the later text counts.
    assert charges(con, "tags ->> '$.team', tags ->> '$.k1', tags ->> '$.empty', tags IS NULL") == [
        ("ml", "one", "", False),
        (None, None, None, True),
        (None, None, None, True),
    ]


def test_e41_times_are_utc_whatever_their_spelling_and_the_invoice_month_is_kept_beside_them(
    con: Connection, tmp_path: Path
) -> None:
    spelt = ["2026-08-10 07:00:00 UTC", "2026-08-10T07:00:00Z", "2026-08-10 00:00:00-07", "2026-08-10T07:00:00"]
    staged(con, write_json(tmp_path / "a.json", [row(usage_start_time=text, usage_end_time=text) for text in spelt]))
    when = "DISTINCT strftime(charge_period_start, '%Y-%m-%dT%H:%M'), strftime(billing_period_start, '%Y-%m-%dT%H:%M')"
    assert con.execute(f"SELECT {when} FROM staged_charge").fetchall() == [("2026-08-10T07:00", "2026-08-01T00:00")]
    assert charges(con, "x_zone_assumed") == [(False,), (False,), (False,), (True,)]


def test_e35_promotional_credits_stand_beside_usage_and_their_end_is_flagged(con: Connection, tmp_path: Path) -> None:
    paid = [credit(-10, "PROMOTION")]
    rows = [
        row(
            cost=10,
            credits=[] if day == 31 else paid,
            usage_start_time=f"2026-08-{day} 00:00:00 UTC",
            usage_end_time=end,
        )
        for day in (29, 30, 31)
        for end in [f"2026-08-{day} 01:00:00 UTC"]
    ]
    staged(con, write_json(tmp_path / "a.json", rows[:2]))
    staged(con, write_json(tmp_path / "a.json", rows), flagged=["I15"])
    usage = "sum(billed_cost) FILTER (WHERE charge_category = 'Usage')"
    # Usage is the same each day; what is to be paid is not.
    found = charges(con, f"day(charge_period_start), {usage}, sum(billed_cost)", "GROUP BY ALL")
    assert found == [(29, "10", "0"), (30, "10", "0"), (31, "10", "10")]


def test_kinds_of_cost_become_categories(con: Connection, tmp_path: Path) -> None:
    kinds = ["regular", "tax", "adjustment", "rounding_error", None]
    staged(con, write_json(tmp_path / "a.json", [row(cost_type=kind, cost=0.001) for kind in kinds]))
    assert charges(con, "charge_category, pricing_quantity, list_cost") == [
        ("Usage", "1", "12"),
        ("Tax", None, None),
        ("Adjustment", None, None),
        ("Adjustment", None, None),
        ("Usage", "1", "12"),
    ]


def test_only_an_adjustment_of_an_earlier_month_is_a_correction(con: Connection, tmp_path: Path) -> None:
    earlier = {"usage_start_time": "2026-07-31 22:00:00 UTC", "usage_end_time": "2026-07-31 23:00:00 UTC"}
    adjusted = {"adjustment_info": {"id": "a1", "type": "USAGE_CORRECTION", "mode": "COMPLETE_NEGATION"}, "cost": -10.5}
    rows = [row(**adjusted), row(**adjusted, **earlier), row(**earlier)]
    staged(con, write_json(tmp_path / "a.json", rows))
    assert charges(con, "charge_class, billed_cost") == [(None, "-10.5"), ("Correction", "-10.5"), (None, "10.5")]


def test_reserved_capacity_is_used_or_unused_as_its_system_label_says(con: Connection, tmp_path: Path) -> None:
    def label(name: str, value: str) -> dict[str, str]:
        return {"key": f"compute.googleapis.com/{name}", "value": value}

    named = [label("reservation_name", "h100"), label("reservation_project_id", "gpu-prod")]
    rows = [
        row(system_labels=[*named, label("is_unused_reservation", "false")]),
        row(system_labels=[*named, label("is_unused_reservation", "true")]),
        row(system_labels=[label("is_unused_reservation", "true")]),
    ]
    staged(con, write_json(tmp_path / "a.json", rows))
    assert charges(con, "capacity_reservation_id, capacity_reservation_status") == [
        ("gpu-prod/h100", "Used"),
        ("gpu-prod/h100", "Unused"),
        (None, None),
    ]


def test_a_node_is_found_by_the_last_part_of_its_resource_and_promotions_are_a_line_of_their_own(
    con: Connection, tmp_path: Path
) -> None:
    cores = row(sku={"id": "CORE", "description": "A3 Instance Core running in Iowa"}, cost=2.1)
    staged(
        con, write_json(tmp_path / "a.json", [credited(cost=80), cores, row(cost_type="tax", cost=8, resource=None)])
    )
    hour = ("2026-08-10T00:00:00Z", "2026-08-10T01:00:00Z")
    node = dict(zip(("valid_from", "valid_to"), hour, strict=True))
    node |= {
        "cluster": "c",
        "node": "gke-prod-h100-1",
        "gpu_count": 8,
        "pool": "p",
        "resource_id": "4567890123456789012",
    }
    put(con, "node", [node], kind="inventory")
    held = {
        "held_from": hour[0],
        "held_to": hour[1],
        "gpus": 6,
        "cluster": "c",
        "node": "gke-prod-h100-1",
        "team": "red",
    }
    put(con, "holding", [held], kind="holdings")
    put(con, "charge", [], kind="charges")
    con.execute("INSERT INTO lake.charge BY NAME SELECT 'charges' AS snapshot_id, * FROM staged_charge")
    compute(con, period="2026-08")
    # 80 - 1.5 - 0.5 + 2.1 = 80.10 for 8 GPUs: 6 held, 2 idle.
    assert charges(con, "category, sum(amount)", "GROUP BY ALL", "statement_line") == [
        ("credit", "-0.25"),
        ("held", "60.08"),
        ("idle", "20.02"),
        ("tax", "8"),
    ]
