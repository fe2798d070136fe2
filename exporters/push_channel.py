"""How an agent reaches its hub: address, certificates and token, and what a failed call means.

Certificates and token are read from their files for each connection, so they may be renewed at any time.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import grpc

from fleet.address import is_loopback, split_address
from fleet.errors import ConfigError, GputallyError, quoted

if TYPE_CHECKING:
    from collections.abc import Mapping

Reason = Literal[
    "unavailable", "identity", "duplicate_node", "timeout", "tls", "later", "protocol", "token", "spool", "internal"
]
"""Why a connection to the hub ended badly; the last three are the agent's own doing."""

_REASONS: Final[Mapping[str, Reason]] = {
    "UNAUTHENTICATED": "identity",
    "PERMISSION_DENIED": "identity",
    "ALREADY_EXISTS": "duplicate_node",
    "RESOURCE_EXHAUSTED": "later",
    "DEADLINE_EXCEEDED": "timeout",
    "UNIMPLEMENTED": "protocol",
    "INVALID_ARGUMENT": "protocol",
    "DATA_LOSS": "protocol",
}
_TLS_WORDS: Final = ("ssl", "handshake", "certificate", "verification")
_OPTIONS: Final = (
    # Subchannels are shared by address, with their back-off: a new connection must use the new certificates, now.
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.enable_retries", 0),
    ("grpc.max_receive_message_length", 1 << 20),
    ("grpc.max_send_message_length", -1),
    # Batches and their deadlines show whether the hub lives; pings only keep routers from forgetting the connection.
    # Servers take pings more frequent than one in five minutes for an attack.
    ("grpc.keepalive_time_ms", 310_000),
    ("grpc.keepalive_timeout_ms", 20_000),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PushSettings:
    """Where the hub is and how to be known there. ConfigError for a combination that is not safe.

    `address` is host:port. `ca` names the file of the certificates that may sign the hub's (the system's without it);
    `certificate` and `key` are the files of the agent's own; an empty name is none. TLS is left out where the network
    is trusted (`insecure`), and on loopback without a `ca`. `server_name` is the name in the hub's certificate if it
    is not the host of the address.
    """

    address: str
    ca: str = ""
    certificate: str = ""
    key: str = ""
    token_file: str = ""
    insecure: bool = False
    server_name: str = ""
    batches_in_flight: int = 8
    answer_seconds: float = 60.0
    first_pause_seconds: float = 1.0
    longest_pause_seconds: float = 60.0

    def __post_init__(self) -> None:
        """Refuse what is no address, half of a pair, and certificates that would not be used."""
        try:
            port = split_address(self.address)[1]
        except ValueError as error:
            raise ConfigError(f"the hub's address {error}") from None
        if port == 0:
            raise ConfigError(f"the hub's address {quoted(self.address)} is not host:port: a hub has no port 0")
        if bool(self.certificate) != bool(self.key):
            raise ConfigError("the agent's certificate and its key go together: give both or none")
        if self.is_plaintext and (self.ca or self.certificate):
            raise ConfigError("certificates have no use without TLS: give a ca, and do not set insecure")

    @property
    def is_plaintext(self) -> bool:
        """Whether the connection goes without TLS."""
        return self.insecure or (not self.ca and is_loopback(split_address(self.address)[0]))


class ConnectError(GputallyError):
    """No connection to the hub; `reason` is the word for the metric."""

    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__(message)
        self.reason = reason


def open_channel(settings: PushSettings) -> tuple[Any, tuple[tuple[str, str], ...]]:
    """A fresh channel and the metadata of its calls. ConnectError when a file cannot be used; nothing is sent yet."""
    token = _token(settings.token_file)
    metadata = (("authorization", f"Bearer {token}"),) if token else ()
    options: list[tuple[str, int | str]] = list(_OPTIONS)
    if settings.is_plaintext:
        return grpc.insecure_channel(settings.address, options=options), metadata
    if settings.server_name:
        options.append(("grpc.ssl_target_name_override", settings.server_name))
    credentials = grpc.ssl_channel_credentials(
        _read(settings.ca, "tls"), _read(settings.key, "tls"), _read(settings.certificate, "tls")
    )
    return grpc.secure_channel(settings.address, credentials, options=options), metadata


def failure_of(error: Any) -> ConnectError:
    """What an error of gRPC means."""
    code, details = error.code().name, str(error.details() or "")
    reason = _REASONS.get(code, "unavailable")
    if code == "UNAVAILABLE" and any(word in details.lower() for word in _TLS_WORDS):
        reason = "tls"
    return ConnectError(reason, f"{code}: {quoted(details, 300)}")


def _token(path: str) -> str:
    content = _read(path, "token")
    if content is None:
        return ""
    token = content.decode("ascii", errors="replace").strip()
    if not token or not token.isprintable() or not token.isascii():
        raise ConnectError("token", f"{path} holds no token: one line of printable ASCII is needed")
    return token


def _read(path: str, reason: Reason) -> bytes | None:
    if not path:
        return None
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise ConnectError(reason, f"{path} cannot be read: {error.strerror}") from None
