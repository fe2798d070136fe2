"""Objects of an S3 bucket: found, pinned to one version, and brought to disk without starting over after a cut."""

from __future__ import annotations

import hashlib
import os
import re
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from fleet.errors import MissingDependencyError, SourceError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime
    from pathlib import Path

    from fleet.sources_config import AwsExport

CHUNK_BYTES = 1024 * 1024
MAX_IDLE_TRIES = 3
"""A transfer that is cut goes on where it was, until as many tries in a row bring nothing."""
_CHANGED = frozenset({"NoSuchKey", "NoSuchVersion", "404", "PreconditionFailed", "412", "InvalidRange", "416"})


class ChangedError(Exception):
    """An object is not, or no longer, what was asked for: somebody is writing it. What was kept of it is of no use."""


@dataclass(frozen=True, slots=True)
class Version:
    """One object as it was at one moment: every read of it gives these bytes or fails."""

    key: str
    etag: str
    size_bytes: int
    modified: datetime
    version_id: str | None
    has_md5: bool
    """Whether the ETag is the MD5 of the bytes (not of parts, not of an object encrypted by KMS)."""


class Bucket:
    """A bucket, read with whatever credentials boto3 finds. SourceError names what S3 refuses, never a credential."""

    def __init__(self, settings: AwsExport) -> None:
        """Connect to nothing yet. MissingDependencyError without boto3."""
        try:
            import boto3
            from botocore.config import Config
        except ModuleNotFoundError as error:
            raise MissingDependencyError(f"S3 exports need {error.name}: install gputally[aws]") from None
        self.name = settings.bucket
        config = Config(
            retries={"mode": "standard", "max_attempts": 5},
            connect_timeout=10,
            read_timeout=60,
            s3={"addressing_style": "path"} if settings.endpoint_url else {},
        )
        with _named(f"s3://{self.name}"):
            self._client = boto3.session.Session().client(
                "s3",
                region_name=settings.region or None,
                endpoint_url=settings.endpoint_url or None,
                config=config,
            )

    def listed(self, prefix: str) -> Iterator[tuple[str, datetime]]:
        """Each key under a prefix and when it was written."""
        with self._asking(prefix):
            for page in self._client.get_paginator("list_objects_v2").paginate(Bucket=self.name, Prefix=prefix):
                for found in page.get("Contents", ()):
                    yield found["Key"], found["LastModified"]

    def current(self, key: str, version_id: str | None = None) -> Version | None:
        """An object as it is now, or one version of it; None when it is not there."""
        named = {"VersionId": version_id} if version_id else {}
        try:
            with self._asking(key):
                head = self._client.head_object(Bucket=self.name, Key=key, **named)
        except ChangedError:
            return None
        etag = head["ETag"].strip('"')
        is_kms = str(head.get("ServerSideEncryption", "")).startswith("aws:kms") or "SSECustomerAlgorithm" in head
        return Version(
            key,
            etag,
            int(head["ContentLength"]),
            head["LastModified"],
            head.get("VersionId"),
            has_md5=bool(re.fullmatch(r"[0-9a-f]{32}", etag)) and not is_kms,
        )

    def at(self, key: str, moment: datetime) -> Version | None:
        """An object as it was at a moment: the version that was the newest then, in a bucket that keeps versions.

        None when it was not there, or has been replaced since and the bucket keeps no versions or does not show them.
        """
        now = self.current(key)
        if now is not None and now.modified <= moment:
            return now
        try:
            kept = [found for found in self._versions(key) if found[0].replace(microsecond=0) <= moment]
        except SourceError:
            return None
        return self.current(key, max(kept)[1]) if kept else None

    def _versions(self, key: str) -> list[tuple[datetime, str]]:
        with self._asking(key):
            pages = self._client.get_paginator("list_object_versions").paginate(Bucket=self.name, Prefix=key)
            return [
                (found["LastModified"], found["VersionId"])
                for page in pages
                for found in page.get("Versions", ())
                if found["Key"] == key and found["VersionId"] != "null"
            ]

    def read(self, version: Version, limit_bytes: int) -> bytes:
        """The first bytes of a small object. ChangedError when it was replaced since."""
        with self._asking(version.key), self._opened(version, 0) as body:
            return bytes(body.read(limit_bytes))

    def download(self, version: Version, target: Path) -> None:
        """Bring an object to `target`, going on with what an earlier try left in `target.part`.

        The file appears under its own name only when it is whole and right. ChangedError when the object was replaced.
        """
        if target.is_file() and target.stat().st_size == version.size_bytes:
            return
        part = target.with_name(f"{target.name}.part")
        try:
            part.parent.mkdir(parents=True, exist_ok=True)
            for _ in range(2):
                self._fill(version, part)
                if _is_whole(part, version):
                    part.replace(target)
                    return
                part.unlink()
        except OSError as error:
            raise SourceError(f"{part}: {error.strerror or error}") from error
        raise SourceError(f"s3://{self.name}/{version.key}: arrives damaged: its size or MD5 is not the object's")

    def _fill(self, version: Version, part: Path) -> None:
        if part.is_file() and part.stat().st_size > version.size_bytes:
            part.unlink()
        with part.open("ab") as stream:
            idle_tries = 0
            while stream.tell() < version.size_bytes and idle_tries < MAX_IDLE_TRIES:
                start = stream.tell()
                try:
                    with self._opened(version, start) as body:
                        for chunk in body.iter_chunks(CHUNK_BYTES):
                            stream.write(chunk)
                except Exception as error:  # noqa: BLE001 - what is not botocore's goes on as it is
                    if not _is_cut(error) or (stream.tell() == start and idle_tries == MAX_IDLE_TRIES - 1):
                        self._raise(error, version.key)
                idle_tries = 0 if stream.tell() > start else idle_tries + 1
            stream.flush()
            os.fsync(stream.fileno())

    @contextmanager
    def _opened(self, version: Version, start: int) -> Iterator[Any]:
        named = {"VersionId": version.version_id} if version.version_id else {}
        if start:
            named["Range"] = f"bytes={start}-"
        answer = self._client.get_object(Bucket=self.name, Key=version.key, IfMatch=f'"{version.etag}"', **named)
        with closing(answer["Body"]) as body:
            yield body

    @contextmanager
    def _asking(self, key: str) -> Iterator[None]:
        try:
            yield
        except Exception as error:  # noqa: BLE001 - what is not botocore's goes on as it is
            self._raise(error, key)

    def _raise(self, error: Exception, key: str) -> NoReturn:
        with _named(f"s3://{self.name}/{key}"):
            raise error


@contextmanager
def _named(address: str) -> Iterator[None]:
    """Say what S3 refuses by its code alone: its messages repeat key ids and who was asking."""
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        yield
    except ClientError as error:
        code = str(error.response.get("Error", {}).get("Code", ""))
        if code in _CHANGED:
            raise ChangedError(address) from None
        status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode")
        raise SourceError(f"{address}: S3 answers {status} {code}") from None
    except BotoCoreError as error:
        raise SourceError(f"{address}: {type(error).__name__} (see the AWS credentials, region and endpoint)") from None


def _is_cut(error: Exception) -> bool:
    """Whether a transfer broke off, rather than was refused."""
    from botocore.exceptions import HTTPClientError, IncompleteReadError, ResponseStreamingError

    return isinstance(error, HTTPClientError | IncompleteReadError | ResponseStreamingError)


def _is_whole(path: Path, version: Version) -> bool:
    if path.stat().st_size != version.size_bytes:
        return False
    if not version.has_md5:
        return True
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, lambda: hashlib.md5(usedforsecurity=False)).hexdigest() == version.etag
