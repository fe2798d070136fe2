"""Azure's FOCUS exports: what Azure says in columns of its own, and ids that mean the same in any letter case."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from chargeback.sources.azure import exports
from tests.chargeback.ledger import write_rows
from tests.chargeback.sources.azure_rows import ORDER, RESERVATION, VM, charges, found, staged
from tests.chargeback.sources.focus_files import FEBRUARY, unpacked

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from chargeback.sources.judging import Broken
    from store.lake import Connection

LINE = FEBRUARY | {
    "BilledCost": "2", "ProviderName": "Microsoft", "InvoiceIssuerName": "Microsoft", "ResourceId": VM,
    "x_SkuDetails": "", "CommitmentDiscountId": "", "CommitmentDiscountStatus": "", "x_InvoiceId": "",
    "x_CostCenter": "", "InvoiceId": "",
}  # fmt: skip
USED = {
    "BilledCost": "0", "EffectiveCost": "3", "CommitmentDiscountId": RESERVATION, "CommitmentDiscountStatus": "Used",
    "ConsumedQuantity": "8", "ConsumedUnit": "Hours", "ListCost": "0", "ContractedCost": "0",
}  # fmt: skip


def staged_lines(con: Connection, folder: Path, *lines: Mapping[str, str]) -> tuple[Broken, ...]:
    return staged(con, [write_rows(folder / "focus.csv", "charges", [LINE | dict(line) for line in lines])])


def test_e32_a_commitment_is_its_order_in_one_letter_case(con: Connection, tmp_path: Path) -> None:
    bought = {"ChargeCategory": "Purchase", "CommitmentDiscountId": ORDER, "ResourceId": ORDER, "EffectiveCost": "0"}
    unused = USED | {
        "CommitmentDiscountStatus": "Unused", "CommitmentDiscountId": RESERVATION.upper(),
        "ResourceId": RESERVATION.lower(), "ConsumedQuantity": "", "ConsumedUnit": "",
    }  # fmt: skip
    assert found(staged_lines(con, tmp_path, bought, USED, unused)) == {}
    order = ORDER.lower()
    assert charges(con, "commitment_discount_id, x_stated_commitment_id, resource_id, x_stated_resource_id") == [
        (order, ORDER, order, None),
        (order, RESERVATION, VM.lower(), None),
        (order, RESERVATION.upper(), order, RESERVATION.lower()),
    ]


def test_e26_list_and_contracted_costs_of_0_are_unknown_for_reserved_usage(con: Connection, tmp_path: Path) -> None:
    staged_lines(con, tmp_path, USED, {"BilledCost": "0", "ListCost": "0", "ContractedCost": "0"})
    assert charges(con, "list_cost, contracted_cost") == [(None, None), (0, 0)]


def test_reserved_capacity_normalised_hours_and_scale_sets_come_from_the_sku(con: Connection, tmp_path: Path) -> None:
    scale_set = VM.replace("virtualMachines/GPU-1", "virtualMachineScaleSets/aks-gpu")
    reserved = '{"VMCapacityReservationId":"F8-1","RINormalizationRatio":2.0,"VMName":"aks-gpu_7"}'
    group = VM.replace("virtualMachines/GPU-1", "capacityReservationGroups/G/capacityReservations/CR")
    lines = (
        USED | {"ResourceId": scale_set, "x_SkuDetails": reserved},
        {"ResourceId": group, "x_SkuDetails": '{"VMCapacityReservationId":"F8-1"}'},
        {"x_SkuDetails": "no JSON"},
    )
    assert found(staged_lines(con, tmp_path, *lines)) == {}
    reservation = "capacity_reservation_id, capacity_reservation_status"
    assert charges(con, f"resource_id, {reservation}, commitment_discount_quantity, x_stated_resource_id") == [
        (f"{scale_set.lower()}/virtualmachines/7", "f8-1", "Used", 16, scale_set),
        ("f8-1", "f8-1", "Unused", None, group),
        (VM.lower(), None, None, None, None),
    ]


def test_e27_invoice_and_cost_center_come_from_azure_s_own_columns_and_tax_from_nowhere(
    con: Connection, tmp_path: Path
) -> None:
    first, second = {"x_InvoiceId": "G1", "x_CostCenter": "ml"}, {"x_InvoiceId": "G1", "x_CostCenter": "ML"}
    broken = staged_lines(con, tmp_path, first, second | {"InvoiceId": "G2"}, {})
    assert {one.identity: one.severity for one in broken} == {"M3": "info", "M4": "warn"}
    assert charges(con, "invoice_id, x_cost_center") == [("G1", "ml"), ("G2", "ML"), (None, None)]


def test_a_run_of_several_parts_is_one_delivery(con: Connection, tmp_path: Path) -> None:
    folder = tmp_path / "ml-focus" / "20260201-20260228" / "11111111-2222-3333-4444-555555555555"
    parts = [write_rows(folder / f"part_{number}_0001.csv", "charges", [LINE]) for number in (0, 1)]
    loose = write_rows(tmp_path / "x.csv", "charges", [LINE])
    alone, run = exports(con, [*parts, loose])
    assert (alone.source, len(alone.parts)) == ("x.csv", 1)
    assert (run.source, run.execution_id, len(run.parts)) == ("azure/ml-focus/2026-02", folder.name, 2)


def test_a_conformant_export_keeps_its_totals(con: Connection, tmp_path: Path) -> None:
    assert staged(con, [unpacked(tmp_path, "focus-1.3-azure")]) == ()
    total = Decimal("37603.158611616752")
    assert con.sql("SELECT sum(billed_cost), sum(effective_cost) FROM staged_charge").fetchall() == [(total, total)]
