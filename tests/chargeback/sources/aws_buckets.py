"""A bucket of AWS exports on a local S3 server, whose clock the test sets."""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from moto.s3.models import s3_backends

from chargeback.sources.aws_s3 import fetch
from fleet.errors import SourceError
from fleet.sources_config import AwsExport
from tests.chargeback.sources.cur import line

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from chargeback.sources.export import Export

SECRET = "wJalrXUtnFEMI-not-a-real-secret"  # the tests look for it where it must not be
KEY_ID = "AKIAEXAMPLEEXAMPLE00"
START = datetime(2026, 2, 20, tzinfo=UTC)
META = "pre/gpu-cur/metadata/BILLING_PERIOD=2026-02/"
DATA = "pre/gpu-cur/data/BILLING_PERIOD=2026-02/"


class Store:
    """A bucket on the server, whose clock the test sets."""

    def __init__(self, endpoint: str, *, is_versioned: bool) -> None:
        self.s3: Any = boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1")
        self.name = f"bucket-{random.randrange(10**12)}"
        self.s3.create_bucket(Bucket=self.name)
        if is_versioned:
            self.s3.put_bucket_versioning(Bucket=self.name, VersioningConfiguration={"Status": "Enabled"})
        self.minutes = 0
        self.settings = AwsExport("cur", self.name, "pre", "gpu-cur", "us-east-1", endpoint)

    def put(self, key: str, body: bytes, *, in_parts: bool = False) -> None:
        """Write an object a minute after the one before; in parts, its ETag is not its MD5."""
        place = {"Bucket": self.name, "Key": key}
        if in_parts:
            upload = place | {"UploadId": self.s3.create_multipart_upload(**place)["UploadId"]}
            part = {"PartNumber": 1, "ETag": self.s3.upload_part(**upload, PartNumber=1, Body=body)["ETag"]}
            self.s3.complete_multipart_upload(**upload, MultipartUpload={"Parts": [part]})
        else:
            self.s3.put_object(**place, Body=body)
        self.minutes += 1
        (backend,) = (found["global"] for _, found in s3_backends.items() if self.name in found["global"].buckets)
        backend.buckets[self.name].keys[key].last_modified = (START + timedelta(minutes=self.minutes)).replace(
            tzinfo=None
        )

    def manifest(self, names: Sequence[str], execution: str = "e1", folder: str = "") -> None:
        content = {"executionId": execution, "dataFiles": [f"s3://{self.name}/{DATA}{folder}{name}" for name in names]}
        self.put(f"{META}{folder}gpu-cur-Manifest.json", json.dumps(content).encode())

    def deliver(
        self, parts: dict[str, str], execution: str = "e1", folder: str = "", *, in_parts: bool = False
    ) -> None:
        """Files of one line each, with these costs, and then the manifest."""
        for name, cost in parts.items():
            self.put(f"{DATA}{folder}{name}", report(cost), in_parts=in_parts)
        self.manifest(list(parts), execution, folder)

    def costs(self, cache: Path, **options: Any) -> list[str]:
        """What the files of a fetch say, in the order of the manifest."""
        (export,) = fetch(self.settings, cache, lambda _: None, **options)
        return costs(export)


def report(cost: str) -> bytes:
    item = line("Usage", cost, bill_invoicing_entity="AWS")
    return "\n".join([",".join(item), ",".join(item.values()), ""]).encode()


def costs(export: Export) -> list[str]:
    found = []
    for part in export.parts:
        header, cells = part.path.read_text().splitlines()[:2]
        found.append(dict(zip(header.split(","), cells.split(","), strict=True))["line_item_unblended_cost"])
    return found


def never(_: float) -> None:
    raise AssertionError("nothing changes here: there is nothing to wait for")


def refused(store: Store, cache: Path) -> str:
    with pytest.raises(SourceError) as caught:
        store.costs(cache, wait=never)
    assert SECRET not in str(caught.value)
    assert KEY_ID not in str(caught.value)
    return str(caught.value)
