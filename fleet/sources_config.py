"""The sections `[[sources]]` of `gputally.toml`: where `gputally sync` fetches bills, prices and commitments.

Nothing secret stands here: each provider's own chain of credentials is used (environment, profile, workload identity).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, TypeAlias
from urllib.parse import urlsplit

from fleet.binding import FieldError
from fleet.errors import quoted
from fleet.identity import bounded_name
from fleet.money import minor_unit_digits

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,62}", re.ASCII)
_REGION = re.compile(r"[a-z0-9-]{1,32}", re.ASCII)
_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{2,254}", re.ASCII)
_TABLE = re.compile(r"[A-Za-z0-9_-]{1,1024}\.[A-Za-z0-9_*$-]{1,1024}", re.ASCII)
_INSTANCE_TYPE = re.compile(r"[a-z0-9-]{1,32}\.[a-z0-9-]{1,32}", re.ASCII)
AwsList = Literal["commitments", "reservations", "invoices", "prices"]


@dataclass(frozen=True, slots=True)
class AwsExport:
    """A CUR 2.0 data export or a legacy cost and usage report in an S3 bucket."""

    name: str
    bucket: str
    prefix: str
    export: str
    region: str = ""
    endpoint_url: str = ""
    kind: Literal["aws_export"] = "aws_export"

    def __post_init__(self) -> None:
        """Refuse what is no bucket, name, region or address."""
        _check_name(self.name)
        if not _BUCKET.fullmatch(self.bucket):
            raise FieldError("bucket", f"{quoted(self.bucket)} is not the name of a bucket")
        _check_text("prefix", self.prefix, may_be_empty=True)
        _check_text("export", self.export)
        _check_region("region", self.region, may_be_empty=True)
        _check_address("endpoint_url", self.endpoint_url)


@dataclass(frozen=True, slots=True)
class AwsApi:
    """What AWS says beside the bill. `regions` are those of commitments and reservations, and of the prices of
    `instance_types`."""

    name: str
    regions: tuple[str, ...]
    services: tuple[AwsList, ...] = ("commitments", "reservations", "invoices")
    instance_types: tuple[str, ...] = ()
    endpoint_url: str = ""
    kind: Literal["aws_api"] = "aws_api"

    def __post_init__(self) -> None:
        """Refuse what is no region, type or address, prices of nothing, and a source that would fetch nothing."""
        _check_name(self.name)
        for name in ("regions", "services"):
            if not getattr(self, name):
                raise FieldError(name, "must not be empty")
        for region in self.regions:
            _check_region("regions", region)
        for name in ("regions", "services", "instance_types"):
            values: tuple[str, ...] = getattr(self, name)
            if len(set(values)) < len(values):
                raise FieldError(name, "names something twice")
        for kind in self.instance_types:
            if not _INSTANCE_TYPE.fullmatch(kind):
                raise FieldError("instance_types", f"{quoted(kind)} is not a type such as p5.48xlarge")
        if ("prices" in self.services) != bool(self.instance_types):
            raise FieldError("instance_types", 'and "prices" in services belong together')
        _check_address("endpoint_url", self.endpoint_url)


@dataclass(frozen=True, slots=True)
class GcpBigQuery:
    """Google Cloud's billing export in BigQuery: `table` is DATASET.TABLE of the project."""

    name: str
    project: str
    table: str
    location: str = ""
    kind: Literal["gcp_bigquery"] = "gcp_bigquery"

    def __post_init__(self) -> None:
        """Refuse what is no project, table or place."""
        _check_name(self.name)
        _check_text("project", self.project)
        if not _TABLE.fullmatch(self.table):
            raise FieldError("table", f"{quoted(self.table)} is not DATASET.TABLE")
        _check_text("location", self.location, may_be_empty=True)


@dataclass(frozen=True, slots=True)
class GcpPrices:
    """Google Cloud's public list prices; `service` is the id of one service, empty is Compute Engine."""

    name: str
    currency: str = "USD"
    service: str = ""
    kind: Literal["gcp_prices"] = "gcp_prices"

    def __post_init__(self) -> None:
        """Refuse what is no currency or name."""
        _check_name(self.name)
        try:
            minor_unit_digits(self.currency)
        except ValueError as error:
            raise FieldError("currency", str(error)) from None
        _check_text("service", self.service, may_be_empty=True)


Source: TypeAlias = AwsExport | AwsApi | GcpBigQuery | GcpPrices


def check_names(sources: tuple[Source, ...]) -> None:
    """FieldError when two sources share a name. Case does not tell them apart, as on some disks no files."""
    names = [source.name.casefold() for source in sources]
    for source in sources:
        if names.count(source.name.casefold()) > 1:
            raise FieldError("sources", f"two are called {quoted(source.name)}")


def _check_name(text: str) -> None:
    if not _NAME.fullmatch(text):
        raise FieldError("name", f"{quoted(text)} is not a name of up to 63 letters, digits, - and _")


def _check_text(name: str, text: str, *, may_be_empty: bool = False) -> None:
    if may_be_empty and not text:
        return
    try:
        bounded_name(text)
    except ValueError as error:
        raise FieldError(name, str(error)) from None


def _check_region(name: str, text: str, *, may_be_empty: bool = False) -> None:
    if not _REGION.fullmatch(text) and not (may_be_empty and not text):
        raise FieldError(name, f"{quoted(text)} is not a region such as us-east-1")


def _check_address(name: str, text: str) -> None:
    if not text:
        return
    try:
        parts = urlsplit(text)
        is_address = parts.scheme in {"http", "https"} and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        is_address = False
    if not is_address:
        raise FieldError(name, "is not an address such as https://s3.example.com")
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise FieldError(name, "may hold no user, password or query: credentials come from the provider's own chain")


SOURCES_TEMPLATE = """
# What `gputally sync` fetches; repeat for each, without the leading marks. Credentials come from
# each provider's own chain (environment, profile, workload identity), never from this file.

# A cost and usage report in S3: a CUR 2.0 data export or a legacy report.
# [[sources]]
# Name of the source; its files lie in cache/NAME.
# name = "aws-bill"
# kind = "aws_export"
# The bucket, the folder in it and the name of the export.
# bucket = "our-billing"
# prefix = "cur"
# export = "gputally"
# Region of the bucket; empty is that of the profile.
# region = ""
# Another S3 than AWS' own; empty is AWS.
# endpoint_url = ""

# Commitments, capacity reservations, invoices and list prices of AWS.
# [[sources]]
# name = "aws"
# kind = "aws_api"
# Regions with reserved instances, Capacity Blocks and reservations.
# regions = ["us-east-1"]
# What to ask for: "commitments", "reservations" (who used them), "invoices", "prices".
# services = ["commitments", "reservations", "invoices"]
# Types of instances to price, with "prices" in services.
# instance_types = []
# One address for every service; empty is AWS.
# endpoint_url = ""

# The billing export of Google Cloud in BigQuery.
# [[sources]]
# name = "gcp-bill"
# kind = "gcp_bigquery"
# Project, and DATASET.TABLE of the export in it.
# project = "our-billing"
# table = "billing.gcp_billing_export_resource_v1_000000_000000_000000"
# Where the dataset lies; empty lets BigQuery find it.
# location = ""

# List prices of Google Cloud.
# [[sources]]
# name = "gcp-prices"
# kind = "gcp_prices"
# Currency of the prices (ISO 4217).
# currency = "USD"
# Id of one service; empty is Compute Engine.
# service = ""
"""
