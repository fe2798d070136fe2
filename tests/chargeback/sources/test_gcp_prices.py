"""List prices with the real CloudCatalog client over gRPC, from a local server: exact, and whole or not at all."""

from __future__ import annotations

from concurrent import futures
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import grpc
import pytest
from google.cloud.billing_v1 import CloudCatalogClient
from google.cloud.billing_v1.services.cloud_catalog.transports import CloudCatalogGrpcTransport
from google.cloud.billing_v1.types import (
    Category,
    ListSkusRequest,
    ListSkusResponse,
    PricingExpression,
    PricingInfo,
    Sku,
)
from google.protobuf.timestamp_pb2 import Timestamp
from google.type.money_pb2 import Money
from hypothesis import given
from hypothesis import strategies as st

from chargeback.sheets import keep
from chargeback.sources.gcp_prices import amount, fetch
from fleet.errors import SourceError
from store.lake import Lake

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

H100 = 9_796_550_569
"""Nano-dollars of a GPU hour."""


def sku(sku_id: str, rates: list[tuple[float, int]], **changes: Any) -> Sku:
    """An SKU with tiers of (start, nano-units)."""
    tiers = [
        PricingExpression.TierRate(
            start_usage_amount=start,
            unit_price=Money(currency_code="USD", units=int(nanos / 10**9), nanos=nanos - int(nanos / 10**9) * 10**9),
        )
        for start, nanos in rates
    ]
    expression = {"usage_unit": "h", "base_unit": "s", "base_unit_conversion_factor": 3600, "display_quantity": 1}
    expression |= changes
    info = PricingInfo(
        effective_time=Timestamp(seconds=1_700_000_000),
        pricing_expression=PricingExpression(tiered_rates=tiers, **expression),
    )
    category = Category(resource_family="Compute", resource_group="GPU", usage_type="OnDemand")
    regions = ["us-central1", "us-east4"]
    return Sku(
        sku_id=sku_id, description=f"GPU {sku_id}", category=category, service_regions=regions, pricing_info=[info]
    )


@dataclass
class Catalogue:
    """Pages of SKUs, which page is refused how often, and what was asked."""

    pages: list[list[Sku]]
    refused_page: int = -1
    refusals: int = 0
    asked: list[ListSkusRequest] = field(default_factory=list)

    def list_skus(self, raw: bytes, context: grpc.ServicerContext) -> bytes:
        request: ListSkusRequest = ListSkusRequest.deserialize(raw)
        self.asked.append(request)
        page = int(request.page_token or 0)
        if page == self.refused_page and self.refusals > 0:
            self.refusals -= 1
            context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "quota of the minute is used up")
        following = str(page + 1) if page + 1 < len(self.pages) else ""
        answer: bytes = ListSkusResponse.serialize(ListSkusResponse(skus=self.pages[page], next_page_token=following))
        return answer


@pytest.fixture
def catalogue() -> Catalogue:
    tiers = [(0.0, 0), (1024.0, 120_000_000), (10240.5, 85_000_000)]
    storage = {
        "usage_unit": "GiBy.mo",
        "base_unit": "By.s",
        "base_unit_conversion_factor": 2.7831e15,
        "display_quantity": 1000,
    }
    pages = [[sku("H100", [(0.0, H100)])], [sku("EGRESS", tiers, **storage)], [sku("CREDIT", [(0.0, -1_750_000_000)])]]
    return Catalogue(pages)


@pytest.fixture
def client(catalogue: Catalogue) -> Iterator[CloudCatalogClient]:
    server = grpc.server(futures.ThreadPoolExecutor(2))
    method = {"ListSkus": grpc.unary_unary_rpc_method_handler(catalogue.list_skus)}
    server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler("google.cloud.billing.v1.CloudCatalog", method),)
    )
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
        yield CloudCatalogClient(transport=CloudCatalogGrpcTransport(channel=channel))
    server.stop(None).wait()


def test_prices_are_exact_by_region_and_tier_through_all_pages(
    catalogue: Catalogue, client: CloudCatalogClient, tmp_path: Path
) -> None:
    sheet = fetch("gcp-prices.csv", client=client)
    assert [request.page_token for request in catalogue.asked] == ["", "1", "2"]
    assert {(request.parent, request.currency_code) for request in catalogue.asked} == {
        ("services/6F81-5844-456A", "USD")
    }
    with Lake.open(tmp_path / "catalog.sqlite", tmp_path / "data") as lake:
        assert keep(lake, sheet, tmp_path / "cache").outcome == "loaded"
        assert keep(lake, fetch("gcp-prices.csv", client=client), tmp_path / "cache").outcome == "unchanged"
        query = (
            "SELECT sku_id, tier_start, unit_price, usage_unit, base_unit_factor, display_quantity FROM lake.list_price"
        )
        found = lake.connection.execute(f"{query} WHERE region = 'us-east4' ORDER BY ALL").fetchall()
        when = lake.connection.execute(
            "SELECT DISTINCT provider, usage_type, currency, epoch(as_of) FROM lake.list_price"
        ).fetchall()
    factor = Decimal(2_783_100_000_000_000)
    assert found == [
        ("CREDIT", 0, Decimal("-1.75"), "h", 3600, 1),
        ("EGRESS", 0, 0, "GiBy.mo", factor, 1000),
        ("EGRESS", 1024, Decimal("0.12"), "GiBy.mo", factor, 1000),
        ("EGRESS", Decimal("10240.5"), Decimal("0.085"), "GiBy.mo", factor, 1000),
        ("H100", 0, Decimal("9.796550569"), "h", 3600, 1),
    ]
    assert when == [("Google Cloud", "OnDemand", "USD", 1_700_000_000)]


def test_a_quota_that_is_used_up_for_the_moment_is_waited_for(catalogue: Catalogue, client: CloudCatalogClient) -> None:
    catalogue.refused_page, catalogue.refusals = 1, 2
    sheet = fetch("p.csv", client=client, first_pause_seconds=0.01)
    assert len(sheet.rows) == 10
    assert [request.page_token for request in catalogue.asked] == ["", "1", "1", "1", "2"]


def test_a_page_that_never_comes_leaves_no_sheet(catalogue: Catalogue, client: CloudCatalogClient) -> None:
    catalogue.refused_page, catalogue.refusals = 1, 1000
    with pytest.raises(SourceError, match=r"list prices of service 6F81-5844-456A: .*quota of the minute"):
        fetch("p.csv", client=client, first_pause_seconds=0.01, retry_seconds=0.2)


def test_an_sku_without_a_price_or_region_is_no_reason_to_fail(
    catalogue: Catalogue, client: CloudCatalogClient
) -> None:
    catalogue.pages = [[Sku(sku_id="NONE"), Sku(sku_id="ANYWHERE", pricing_info=sku("X", [(0.0, 5)]).pricing_info)]]
    (only,) = fetch("p.csv", client=client).rows
    assert (only["sku_id"], only["region"], only["unit_price"]) == ("ANYWHERE", None, Decimal("0.000000005"))


@given(st.integers(-(10**27), 10**27))
def test_money_is_units_and_nanos_of_one_sign(nanos: int) -> None:
    units, rest = (abs(part) * (1 if nanos >= 0 else -1) for part in divmod(abs(nanos), 10**9))
    assert amount(units, rest) * 10**9 == nanos
