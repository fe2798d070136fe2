"""Whether the hub can be reached, step by step, so that the first thing in the way is named. No row is sent."""

from __future__ import annotations

import socket
import ssl
import time
from typing import TYPE_CHECKING, Any, Final

import grpc

from exporters.push_channel import ConnectError, PushSettings, failure_of, open_channel
from exporters.push_session import METHOD
from fleet.address import split_address
from fleet.errors import ConfigError
from services.finding import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fleet.agent_config import Agent, AgentHub

CONNECT_SECONDS: Final = 5.0
DEADLINE_SECONDS: Final = 20.0
SOON_DAYS: Final = 14
_DAY_SECONDS: Final = 86_400


def look(config: Agent) -> Iterator[Finding]:
    """Files, address, TLS, and whether a hub answers there. The token itself is never shown."""
    hub = config.hub
    if not hub.address:
        yield Finding("ok", "hub", "none: rows stay on this node's page (agent.hub.address is empty)")
        return
    try:
        settings = PushSettings(
            address=hub.address, ca=hub.ca, certificate=hub.certificate, key=hub.key, token_file=hub.token_file,
            insecure=hub.insecure,
        )  # fmt: skip
        channel, metadata = open_channel(settings)
    except (ConfigError, ConnectError) as error:
        yield Finding("fail", "hub", str(error))
        return
    try:
        reached = list(_handshake(hub, is_plaintext=settings.is_plaintext))
        yield from reached
        if not any(finding.level == "fail" for finding in reached):
            yield _answer(channel, metadata)
    finally:
        channel.close()


def _handshake(hub: AgentHub, *, is_plaintext: bool) -> Iterator[Finding]:
    host, port = split_address(hub.address)
    try:
        connection = socket.create_connection((host, port), CONNECT_SECONDS)
    except OSError as error:
        words = f"{hub.address} cannot be reached: {error.strerror or error}; is the hub up, and the way to it open?"
        yield Finding("fail", "hub", words)
        return
    with connection:
        if not is_plaintext:
            yield from _tls(hub, host, connection)
        elif hub.insecure:
            words = f"{hub.address} without TLS (agent.hub.insecure): rows and token can be read on the way"
            yield Finding("warn", "hub", words)
        else:
            yield Finding("ok", "hub", f"{hub.address} on this machine, without TLS")


def _tls(hub: AgentHub, host: str, connection: socket.socket) -> Iterator[Finding]:
    try:
        context = ssl.create_default_context(cafile=hub.ca or None)
        context.set_alpn_protocols(["h2"])
        if hub.certificate:
            context.load_cert_chain(hub.certificate, hub.key)
        with context.wrap_socket(connection, server_hostname=host) as secured:
            certificate: dict[str, Any] = dict(secured.getpeercert() or {})
    except ssl.SSLCertVerificationError as error:
        words = (
            f"{hub.address}: its certificate is not believed: {error.verify_message}; agent.hub.ca names who signs it"
        )
        yield Finding("fail", "hub", words)
        return
    except (OSError, ValueError) as error:
        yield Finding("fail", "hub", f"{hub.address}: no TLS: {getattr(error, 'reason', None) or error}")
        return
    yield _described(f"{hub.address}, TLS", certificate)


def _described(place: str, certificate: dict[str, Any]) -> Finding:
    names = [value for kind, value in certificate.get("subjectAltName", ()) if kind == "DNS"]
    names += [value for part in certificate.get("subject", ()) for kind, value in part if kind == "commonName"]
    days = (ssl.cert_time_to_seconds(certificate["notAfter"]) - time.time()) / _DAY_SECONDS
    words = f"{place}, certificate of {', '.join(dict.fromkeys(names)) or 'nobody'} valid for {days:.0f} days"
    return Finding("warn" if days < SOON_DAYS else "ok", "hub", f"{words}: renew it" if days < SOON_DAYS else words)


def _answer(channel: Any, metadata: Any) -> Finding:
    """Open a stream and end it without a batch: whoever answers that is a hub, and has believed our certificate."""
    try:
        stream = channel.stream_stream(METHOD)
        for _ in stream(iter(()), metadata=metadata, timeout=CONNECT_SECONDS):
            pass
    except grpc.RpcError as error:
        found = failure_of(error)
        return Finding("fail", "hub", f"it does not take a stream ({found.reason}): {found}")
    words = "it answers; whether it believes this node's name and token shows with the first batch, in "
    return Finding("ok", "hub", f'{words}gputally_push_failed_events_total{{reason="identity"}}')
