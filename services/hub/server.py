"""Run a hub: start its parts, serve until told to stop, commit and answer what has arrived, end."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import ssl
from typing import TYPE_CHECKING, Any, Final

import grpc

from exporters.hub import HubMetrics
from exporters.page_server import PageServer
from fleet.errors import ConfigError, GputallyError
from services.hub.claims import NodeClaims
from services.hub.committer import Committer
from services.hub.health import Health
from services.hub.identity import Identity, TokenFile
from services.hub.intake import Intake
from services.hub.waiting import Budget

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from services.hub.settings import HubSettings
    from store.lake import Lake

LOG = logging.getLogger("gputally.hub")
FRAME_BYTES: Final = 64 * 1024
"""Room for a message's own fields beside its batch: a batch a little too large is refused by name, not cut off."""
MAX_STREAMS: Final = 20_000
ANSWER_SECONDS: Final = 5.0
"""At the end: time for the last answers to reach their senders."""


def run_hub(settings: HubSettings, open_lake: Callable[[], Lake]) -> int:
    """Serve until SIGTERM or SIGINT; return the exit status, 0 when all that had arrived was committed in time.

    Raises GputallyError when an address, a certificate or the lake cannot be had.
    """
    return asyncio.run(_serve(settings, open_lake))


async def _serve(settings: HubSettings, open_lake: Callable[[], Lake]) -> int:
    metrics, health = HubMetrics(), Health()
    identity = Identity(by_certificate=settings.client_ca is not None, tokens=_tokens(settings))
    budget = Budget(settings.queue_rows, settings.queue_bytes)
    intake = Intake(identity, NodeClaims(), budget, metrics, settings.limits)
    committer = Committer(
        open_lake, intake.deliver, metrics, health,
        limits=settings.limits, group_rows=settings.group_rows, group_seconds=settings.group_seconds,
    )  # fmt: skip
    intake.start(committer)
    committer.start()
    server = _server(settings, intake)
    port = _listen(server, settings)
    pages = PageServer(settings.pages, metrics.page, health.health, health.ready)
    pages.start()
    await server.start()
    health.is_ready = True
    LOG.info(
        "hub ready",
        extra={
            "listen": f"{settings.listen[0]}:{port}",
            "metrics": f"{settings.pages.address()[0]}:{pages.port}",
            "mode": settings.mode,
        },
    )
    await _told_to_stop()
    health.is_ready = False
    try:
        await asyncio.wait_for(_drain(server, intake, committer), settings.drain_seconds)
    except TimeoutError:
        LOG.warning("stopped before everything was committed; senders will send it again")
        # The committer may be inside a transaction that nothing can end: leave it to the lake to undo.
        _leave(1)
    pages.stop()
    LOG.info("hub stopped")
    return 0


async def _drain(server: Any, intake: Intake, committer: Committer) -> None:
    """New calls are turned away; what was read is committed and answered, then the open calls end by themselves."""
    stopping = asyncio.create_task(server.stop(grace=3600))
    intake.drain()
    await asyncio.to_thread(committer.close)
    await intake.ended(ANSWER_SECONDS)
    await server.stop(grace=0)
    await stopping


async def _told_to_stop() -> None:
    """Return at the first SIGTERM or SIGINT; the second one ends the process at once."""
    loop = asyncio.get_running_loop()
    told = asyncio.Event()

    def on_signal() -> None:
        if told.is_set():
            _leave(1)
        LOG.info("stopping: committing what has arrived")
        told.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, on_signal)
    await told.wait()


def _leave(status: int) -> None:
    logging.shutdown()
    os._exit(status)


def _server(settings: HubSettings, intake: Intake) -> Any:
    server = grpc.aio.server(
        options=[
            ("grpc.max_receive_message_length", settings.limits.bytes + FRAME_BYTES),
            ("grpc.so_reuseport", 0),
            # A sender that vanished without a word is noticed, so that its node may speak from elsewhere.
            ("grpc.keepalive_time_ms", 60_000),
            ("grpc.keepalive_timeout_ms", 20_000),
            ("grpc.http2.min_recv_ping_interval_without_data_ms", 10_000),
            ("grpc.keepalive_permit_without_calls", 1),
        ],
        maximum_concurrent_rpcs=MAX_STREAMS,
    )
    server.add_generic_rpc_handlers((intake.handler(),))
    return server


def _listen(server: Any, settings: HubSettings) -> int:
    host, port = settings.listen
    address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    try:
        if settings.tls_certificate:
            taken = server.add_secure_port(address, _credentials(settings))
        else:
            taken = server.add_insecure_port(address)
    except RuntimeError:
        taken = 0
    if not taken:
        raise GputallyError(f"hub.listen: the hub cannot listen on {address}; is another one running?")
    return int(taken)


def _credentials(settings: HubSettings) -> Any:
    assert settings.tls_certificate, "asked for only with a certificate"
    assert settings.tls_key, "the configuration gives both or none"
    # Loading them here tells a bad pair in words; gRPC would only fail every handshake.
    _check_pair(settings)
    authority = _read(settings.client_ca) if settings.client_ca else None
    pair = (_read(settings.tls_key), _read(settings.tls_certificate))
    return grpc.ssl_server_credentials([pair], authority, require_client_auth=authority is not None)


def _check_pair(settings: HubSettings) -> None:
    assert settings.tls_certificate, "asked for only with a certificate"
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(settings.tls_certificate, settings.tls_key)
        if settings.client_ca:
            ssl.create_default_context(cafile=str(settings.client_ca))
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(f"hub.tls_certificate, tls_key or client_ca cannot be used: {error.strerror}") from None


def _tokens(settings: HubSettings) -> TokenFile | None:
    if not settings.token_file:
        return None
    try:
        return TokenFile(settings.token_file)
    except (OSError, UnicodeDecodeError):
        raise ConfigError(f"hub.token_file {settings.token_file} cannot be read") from None


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from None
