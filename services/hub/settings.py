"""What a hub needs to know, with every path resolved and every unsafe combination refused."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from exporters.page_server import PageSettings
from fleet.address import is_loopback, split_address
from fleet.errors import ConfigError
from store.telemetry_arrow import BatchLimits

if TYPE_CHECKING:
    from fleet.hub_config import Hub

MEBIBYTE = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class HubSettings:
    """How one hub listens, whom it believes and how much it takes. Made by `hub_settings`."""

    listen: tuple[str, int]
    pages: PageSettings
    tls_certificate: Path | None
    tls_key: Path | None
    client_ca: Path | None
    token_file: Path | None
    group_rows: int
    group_seconds: float
    queue_rows: int
    queue_bytes: int
    limits: BatchLimits
    drain_seconds: float

    @property
    def mode(self) -> str:
        """How agents are known, in words, for the log."""
        wire = "TLS" if self.tls_certificate else "no TLS"
        ways = [name for name, on in (("client certificate", self.client_ca), ("token", self.token_file)) if on]
        return f"{wire}, {' and '.join(ways) or 'agents are not authenticated'}"


def hub_settings(workspace: Path, hub: Hub) -> HubSettings:
    """Resolve the section `[hub]` of a workspace.

    Raises ConfigError when a file is missing, or when others could reach a hub that does not know who they are.
    """
    certificate = _file(workspace, "tls_certificate", hub.tls_certificate)
    key = _file(workspace, "tls_key", hub.tls_key)
    settings = HubSettings(
        listen=split_address(hub.listen),
        pages=PageSettings(
            listen=hub.metrics_listen,
            tls_certificate=str(certificate or "") if hub.metrics_tls else "",
            tls_key=str(key or "") if hub.metrics_tls else "",
        ),
        tls_certificate=certificate,
        tls_key=key,
        client_ca=_file(workspace, "client_ca", hub.client_ca),
        token_file=_file(workspace, "token_file", hub.token_file),
        group_rows=hub.group_rows,
        group_seconds=hub.group_milliseconds / 1000,
        queue_rows=hub.queue_rows,
        queue_bytes=hub.queue_mebibytes * MEBIBYTE,
        limits=BatchLimits(bytes=hub.batch_mebibytes * MEBIBYTE, rows=hub.batch_rows),
        drain_seconds=hub.drain_seconds,
    )
    if not hub.insecure and not is_loopback(settings.listen[0]):
        if not settings.tls_certificate:
            raise ConfigError(
                f"hub.listen {hub.listen} is not a loopback address and hub.tls_certificate is not set: what agents "
                "send, tokens included, could be read on the way; set `insecure = true` if TLS ends in front of the hub"
            )
        if not settings.client_ca and not settings.token_file:
            raise ConfigError(
                f"hub.listen {hub.listen} is not a loopback address and neither hub.client_ca nor hub.token_file is "
                "set: anybody could send telemetry in any node's name"
            )
    return settings


def _file(workspace: Path, name: str, text: str) -> Path | None:
    if not text:
        return None
    path = workspace / Path(text).expanduser()
    if not path.is_file():
        raise ConfigError(f"hub.{name}: there is no file {path}")
    return path
