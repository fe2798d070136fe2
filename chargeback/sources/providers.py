"""Every provider whose bills can be read: how its files are grouped into deliveries."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from chargeback.sources import aws, azure, focus, gcp, neocloud

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from chargeback.sources.export import Export
    from store.lake import Connection

PROVIDERS: Final[Mapping[str, Callable[[Connection, Sequence[Path]], tuple[Export, ...]]]] = MappingProxyType(
    {
        "focus": focus.exports,
        "aws": aws.exports,
        "gcp": gcp.exports,
        "azure": azure.exports,
        "neocloud": neocloud.exports,
    }
)
"""`gputally load charges --provider NAME`. InputError when a file is none of the provider's."""
