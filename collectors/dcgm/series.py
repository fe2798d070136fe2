"""What the name and labels of one series of dcgm-exporter say: field, device, instance, owner.

It is worked out once for each series and kept, because a page names the same series every time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from collectors.dcgm.fields import BLANK_TEXTS, Field, field_named, is_dcgm
from collectors.samples import Owner

if TYPE_CHECKING:
    from collections.abc import Mapping

    from collectors.exposition import Series


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a series comes from. `known` is None for a field without use here; `board` and `place` are keys.

    `owner` is what the labels `pod` and so on say, `renamed_owner` what `exported_pod` says. `is_unproven` marks a
    claim on a MIG instance that does not say which: its pod may be on any instance of the board.
    """

    is_of_dcgm: bool
    known: Field | None
    board: tuple[str, None] | None = None
    place: tuple[str, str | None] | None = None
    owner: Owner | None = None
    renamed_owner: Owner | None = None
    is_unproven: bool = False
    is_claim: bool = False


def origin_of(series: Series) -> Origin:
    """Work out where a series comes from."""
    labels = series.labels
    known = field_named(series.name)
    uuid = text(labels, "UUID", "uuid")
    if known is None or uuid is None:
        return Origin(is_dcgm(series.name), known)
    instance = text(labels, "GPU_I_ID")
    is_mig_claim = "dra_mig_profile" in labels or "-mig-" in labels.get("dra_device_name", "")
    return Origin(
        is_of_dcgm=True,
        known=known,
        board=(uuid, None),
        place=(uuid, instance),
        owner=_owner(labels, ""),
        renamed_owner=_owner(labels, "exported_"),
        is_unproven=is_mig_claim and not (instance and text(labels, "dra_mig_device_uuid")),
        is_claim="dra_claim_name" in labels,
    )


def text(labels: Mapping[str, str], *names: str) -> str | None:
    """The first of the labels that says something; None if none does."""
    for name in names:
        if (value := labels.get(name)) and value not in BLANK_TEXTS:
            return value
    return None


def _owner(labels: Mapping[str, str], prefix: str) -> Owner | None:
    pod = text(labels, f"{prefix}pod", f"{prefix}pod_name")
    job = text(labels, "hpc_job")
    if pod is None:
        return Owner(hpc_job=job) if job else None
    return Owner(
        namespace=text(labels, f"{prefix}namespace", f"{prefix}pod_namespace"),
        pod=pod,
        container=text(labels, f"{prefix}container", f"{prefix}container_name"),
        pod_uid=text(labels, f"{prefix}pod_uid", "pod_uid"),
        hpc_job=job,
        replica=text(labels, "vgpu"),
    )
