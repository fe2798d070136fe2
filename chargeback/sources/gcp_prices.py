"""List prices of Google Cloud's SKUs, from the Cloud Billing catalogue (CloudCatalog), as a sheet of kind `prices`.

Source: Cloud Billing API v1, `services.skus.list`. A price is `units + nanos / 10^9` (both of one sign) for one
`usage_unit`, from `start_usage_amount` of them on; an SKU has a row for each region and tier. `display_quantity` is how
many units Google's own pages show the price for, and changes no price.
"""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from google.api_core.exceptions import GoogleAPIError, ResourceExhausted, ServiceUnavailable
from google.api_core.retry import Retry, if_exception_type
from google.auth.exceptions import GoogleAuthError
from google.cloud.billing_v1 import CloudCatalogClient

from chargeback.sources.sheet import Sheet
from fleet.errors import SourceError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from google.cloud.billing_v1.types import Sku

    from chargeback.sources.sheet import Cells

COMPUTE_ENGINE = "6F81-5844-456A"
"""The id of the service whose SKUs GPUs are."""
RETRY_SECONDS = 120.0
FIRST_PAUSE_SECONDS = 1.0
NANOS_A_UNIT = 1_000_000_000


def fetch(
    name: str,
    *,
    service: str = COMPUTE_ENGINE,
    currency: str = "USD",
    client: CloudCatalogClient | None = None,
    progress: Callable[[str], None] = lambda _: None,
    first_pause_seconds: float = FIRST_PAUSE_SECONDS,
    retry_seconds: float = RETRY_SECONDS,
) -> Sheet:
    """The whole price list of a service, as a sheet called `name`.

    A quota that is used up for the moment is waited for. SourceError, and no sheet, where a page does not come.
    """
    retry = Retry(
        predicate=if_exception_type(ResourceExhausted, ServiceUnavailable),
        initial=first_pause_seconds,
        maximum=30.0,
        timeout=retry_seconds,
    )
    request = {"parent": f"services/{service}", "currency_code": currency}
    rows: list[Cells] = []
    try:
        client = client or CloudCatalogClient()
        for sku in client.list_skus(request=request, retry=retry):
            if len(rows) % 1000 == 0:
                progress(f"prices: {len(rows):,}")
            rows += price_rows(sku)
    except (GoogleAPIError, GoogleAuthError) as error:
        said = str(error).strip().partition("\n")[0]
        raise SourceError(f"list prices of service {service}: {said or type(error).__name__}") from error
    return Sheet("prices", name, tuple(rows), ("sku_id", "region", "tier_start"))


def price_rows(sku: Sku) -> Iterator[Cells]:
    """The rows of an SKU: its newest price by region and tier; none if it has no price."""
    for info in list(sku.pricing_info)[-1:]:
        priced = info.pricing_expression
        for region in list(sku.service_regions) or [""]:
            for rate in priced.tiered_rates:
                yield {
                    "provider": "Google Cloud",
                    "sku_id": sku.sku_id,
                    "description": sku.description,
                    "region": region or None,
                    "usage_type": sku.category.usage_type,
                    "usage_unit": priced.usage_unit,
                    "base_unit": priced.base_unit,
                    "base_unit_factor": _shortest(priced.base_unit_conversion_factor),
                    "display_quantity": _shortest(priced.display_quantity),
                    "tier_start": _shortest(rate.start_usage_amount),
                    "unit_price": amount(rate.unit_price.units, rate.unit_price.nanos),
                    "currency": rate.unit_price.currency_code,
                    "as_of": info.effective_time,
                }


def amount(units: int, nanos: int) -> Decimal:
    """An amount of google.type.Money, exactly: -1.75 is -1 unit and -750,000,000 nanos."""
    return Decimal(units * NANOS_A_UNIT + nanos).scaleb(-9)


def _shortest(number: float) -> Decimal:
    """The decimal that names a double of the API."""
    return Decimal(repr(number))
