"""Manifests of AWS deliveries: which files are one complete delivery of an export and a billing period.

A manifest is written after all of its files, so what it names is complete and what it does not name is left over from
an earlier delivery. Sources: AWS Data Exports manifest reference (`executionId`, `exportArn`, `dataFiles`), AWS CUR
user guide (`assemblyId`, `reportName`, `billingPeriod`, `reportKeys`).
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Final

from chargeback.sources.export import Export, Part
from fleet.errors import InputError, Problem, quoted

if TYPE_CHECKING:
    from pathlib import Path

    from chargeback.sources.export import Dialect

MAX_MANIFEST_BYTES = 16 * 1024 * 1024
MAX_FILES = 100_000
_NAME: Final = re.compile(r"[\w!.*'()\- ]{1,256}", re.ASCII)
_EXECUTION: Final = re.compile(r"[\w.:\-]{1,128}", re.ASCII)
_ARN: Final = re.compile(
    r"arn:[\w-]+:bcm-data-exports:[\w-]*:\d*:export/(.+?)(-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})?"
)
_PARTITION: Final = re.compile(r"(?:^|/)BILLING_PERIOD=(\d{4}-(?:0[1-9]|1[0-2]))/")
_FOLDER: Final = re.compile(r"(?:^|/)(?:BILLING_PERIOD=\d{4}-\d{2}|\d{8}-\d{8})/")
_FILE_END = "-Manifest.json"


@dataclass(frozen=True, slots=True)
class Manifest:
    """One complete delivery: its files by their keys in the bucket."""

    export_name: str
    period: str
    """Billing period, YYYY-MM."""
    execution_id: str | None
    keys: tuple[str, ...]

    def export(self, dialect: Dialect, parts: tuple[Part, ...]) -> Export:
        """The delivery, once its files are at hand."""
        source = f"aws/{self.export_name}/{self.period}"
        return Export(source, dialect, parts, self.export_name, self.period, self.execution_id)


def read_manifest(path: Path) -> Manifest:
    """Read a manifest from disk. InputError when it is none, or says something that has no meaning."""
    try:
        with path.open("rb") as stream:
            text = stream.read(MAX_MANIFEST_BYTES + 1)
    except OSError as error:
        raise InputError([Problem(path.name, f"cannot be read: {error.strerror}")]) from error
    return parse_manifest(text, path.name)


def parse_manifest(text: bytes, file: str) -> Manifest:
    """Read a manifest's text; `file` is its name, which a CUR 2.0 export without an ARN is named by."""
    if len(text) > MAX_MANIFEST_BYTES:
        raise _refused(file, "is too large for a manifest")
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _refused(file, "is no JSON") from error
    if isinstance(content, dict) and "dataFiles" in content:
        manifest = _data_export(content, file)
    elif isinstance(content, dict) and "reportKeys" in content:
        manifest = _legacy_report(content, file)
    else:
        raise _refused(file, "is no manifest of an AWS export: it has neither dataFiles nor reportKeys")
    if not _NAME.fullmatch(manifest.export_name):
        raise _refused(file, f"{quoted(manifest.export_name)} is not the name of an export")
    if manifest.execution_id is not None and not _EXECUTION.fullmatch(manifest.execution_id):
        raise _refused(file, f"{quoted(manifest.execution_id)} is not the id of an execution")
    return manifest


def _data_export(content: dict[str, Any], file: str) -> Manifest:
    keys = []
    for uri in _texts(content["dataFiles"], file, "dataFiles"):
        found = re.fullmatch(r"s3://[^/]+/(.+)", uri, re.DOTALL)
        if not found:
            raise _refused(file, f"{quoted(uri)} is not the address of an S3 object")
        keys.append(_checked(found[1], file))
    periods = {found[1] if (found := _PARTITION.search(key)) else None for key in keys}
    if len(periods) > 1 or None in periods:
        raise _refused(file, "names files of no billing period or of several (folders BILLING_PERIOD=YYYY-MM)")
    named = _ARN.fullmatch(str(content.get("exportArn", "")))
    name = named[1] if named else file.removesuffix(_FILE_END)
    if name == file:
        raise _refused(file, "does not say which export it is of: it has no exportArn")
    return Manifest(name, str(periods.pop()), _text(content.get("executionId")), tuple(keys))


def _legacy_report(content: dict[str, Any], file: str) -> Manifest:
    keys = tuple(_checked(key, file) for key in _texts(content["reportKeys"], file, "reportKeys"))
    billing_period = content.get("billingPeriod")
    start = billing_period.get("start") if isinstance(billing_period, dict) else None
    found = re.fullmatch(r"(\d{4})-?(0[1-9]|1[0-2])-?01T.{0,20}", str(start))
    if not found:
        raise _refused(file, f"billingPeriod.start {quoted(str(start))} is not the first day of a month")
    name = str(content.get("reportName", "")) or file.removesuffix(_FILE_END)
    return Manifest(name, f"{found[1]}-{found[2]}", _text(content.get("assemblyId")), keys)


def _texts(value: object, file: str, field: str) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        raise _refused(file, f"{field} is not a list of texts")
    if not value:
        raise _refused(file, f"{field} is empty: nothing was delivered")
    if len(value) > MAX_FILES or len(set(value)) < len(value):
        raise _refused(file, f"{field} names a file twice, or more than {MAX_FILES:,}")
    return value


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _checked(key: str, file: str) -> str:
    """A key of a bucket that is also a path below a folder, and nothing else."""
    parts = key.split("/")
    if len(key.encode()) > 1024 or not key.isprintable() or "\\" in key or {"", ".", ".."} & set(parts):
        raise _refused(file, f"{quoted(key)} is not a key that a file can have")
    return key


def parts_on_disk(manifest: Manifest, path: Path) -> tuple[Part, ...]:
    """Find a manifest's files in a folder that mirrors the bucket, or any part of it, or beside the manifest.

    InputError names each that is not there: a delivery is loaded whole or not at all.
    """
    found = {key: _find(key, path) for key in manifest.keys}
    missing = [key for key, place in found.items() if place is None]
    if missing:
        raise InputError([Problem(path.name, f"names {quoted(key, 300)}, which is not there") for key in missing])
    return tuple(Part(key, place) for key, place in found.items() if place is not None)


def _find(key: str, manifest: Path) -> Path | None:
    """The file whose path ends as much like the key as any does, below a folder that the manifest lies in.

    A path counts only with its period's folder in it, so that another period's file of the same name never does.
    """
    parts = PurePosixPath(key).parts
    beside = manifest.absolute().parent
    for start in range(len(parts)):
        tail = "/".join(parts[start:])
        for folder in [beside, *beside.parents] if _FOLDER.search(tail) else []:
            if (folder / tail).is_file():
                return folder / tail
    place = beside / parts[-1]
    return place if place.is_file() else None


def _refused(file: str, message: str) -> InputError:
    return InputError([Problem(file, message)])
