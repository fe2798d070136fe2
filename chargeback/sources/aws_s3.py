"""AWS exports from S3: of each billing period the newest complete delivery, exactly the files that its manifest names.

A manifest is written after its files. So an object that is newer than the manifest belongs to a delivery still under
way: in a bucket that keeps versions the one before is read, in others it is waited for. Deliveries never mix.
"""

from __future__ import annotations

import hashlib
import re
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from chargeback.sources.aws_bucket import Bucket, ChangedError, Version
from chargeback.sources.aws_columns import dialect_of
from chargeback.sources.aws_manifest import MAX_MANIFEST_BYTES, Manifest, parse_manifest
from chargeback.sources.export import Export, Part
from fleet.errors import SourceError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from fleet.sources_config import AwsExport

TRIES = 3
WAIT_SECONDS = 20.0
"""Between tries: AWS writes the files of a delivery within minutes, and its manifest last."""


def fetch(
    settings: AwsExport,
    cache: Path,
    progress: Callable[[str], None],
    *,
    period: str | None = None,
    wait: Callable[[float], None] = time.sleep,
) -> tuple[Export, ...]:
    """Bring every period of an export (or one, YYYY-MM) into folder `cache`, which holds what earlier calls brought.

    SourceError when S3 refuses, when there is no such export, or when a delivery stays incomplete; InputError when a
    manifest or a file is not what it should be.
    """
    bucket = Bucket(settings)
    manifests = {found: key for found, key in _manifests(bucket, settings).items() if period in (None, found)}
    if not manifests:
        root = f"s3://{settings.bucket}/{_root(settings)}"
        of_period = f" of {period}" if period else ""
        raise SourceError(f"{root}: no manifest of a delivery{of_period} (bucket, prefix and export of the source)")
    return tuple(
        _Reading(bucket, settings, found, cache / found, progress, wait).delivery(key)
        for found, key in sorted(manifests.items())
    )


def _root(settings: AwsExport) -> str:
    """Where an export's folders lie in its bucket."""
    return "/".join(part for part in (settings.prefix.strip("/"), settings.export.strip("/")) if part) + "/"


def _manifests(bucket: Bucket, settings: AwsExport) -> dict[str, str]:
    """The key of the newest manifest of each period, whether deliveries overwrite each other or lie side by side."""
    root = _root(settings)
    partition = re.compile(re.escape(root) + r"metadata/BILLING_PERIOD=(\d{4})-(\d{2})/(?:[^/]+/)?[^/]*Manifest\.json")
    months = re.compile(re.escape(root) + r"(\d{4})(\d{2})01-\d{8}/(?:[^/]+/)?[^/]*Manifest\.json")
    for prefix, form in ((f"{root}metadata/", partition), (root, months)):
        newest = {
            f"{found[1]}-{found[2]}": key
            for _, key in sorted((modified, key) for key, modified in bucket.listed(prefix))
            if (found := form.fullmatch(key))
        }
        if newest:
            return newest
    return {}


@dataclass(frozen=True, slots=True)
class _Reading:
    """Reading one period of an export."""

    bucket: Bucket
    settings: AwsExport
    period: str
    folder: Path
    progress: Callable[[str], None]
    wait: Callable[[float], None]

    def delivery(self, manifest_key: str) -> Export:
        """The newest delivery, whole. What changes while it is read is read again, from the newest manifest on."""
        for tries_left in reversed(range(TRIES)):
            try:
                manifest, versions = self._pinned(manifest_key)
                parts = self._downloaded(manifest, versions)
            except ChangedError as error:
                if tries_left == 0:
                    raise SourceError(f"{error}: is being replaced or was deleted; try again later") from None
                self.wait(WAIT_SECONDS)
                manifest_key = _manifests(self.bucket, self.settings).get(self.period, manifest_key)
            else:
                return manifest.export(dialect_of(parts), parts)
        raise AssertionError("unreachable: the last try returns or raises")

    def _pinned(self, key: str) -> tuple[Manifest, tuple[Version, ...]]:
        """A manifest, and each file that it names as it was when the manifest was written."""
        found = self._there(key, self.bucket.current(key))
        manifest = parse_manifest(self.bucket.read(found, MAX_MANIFEST_BYTES + 1), key.rpartition("/")[2])
        if manifest.period != self.period:
            raise SourceError(f"s3://{self.bucket.name}/{key}: is of {manifest.period}, in the folder of {self.period}")
        return manifest, tuple(self._there(name, self.bucket.at(name, found.modified)) for name in manifest.keys)

    def _there(self, key: str, version: Version | None) -> Version:
        if version is None:
            raise ChangedError(f"s3://{self.bucket.name}/{key}")
        return version

    def _downloaded(self, manifest: Manifest, versions: tuple[Version, ...]) -> tuple[Part, ...]:
        parts = []
        for version in versions:
            self.progress(f"{manifest.export_name} {manifest.period} {version.key.rpartition('/')[2]}")
            place = self.folder / _file_name(version)
            self.bucket.download(version, place)
            parts.append(Part(version.key, place))
        kept = {part.path.name for part in parts}
        for place in self.folder.iterdir():
            if place.name not in kept:
                place.unlink()
        return tuple(parts)


def _file_name(version: Version) -> str:
    """A name in the cache that only these very bytes have, and that no key can lead out of it."""
    content = hashlib.sha256(f"{version.key}\n{version.etag}\n{version.size_bytes}".encode()).hexdigest()[:24]
    return f"{content}-{re.sub(r'[^A-Za-z0-9._-]', '_', version.key)[-60:]}"
