"""The portal's server: where it listens, what it refuses, and the one file that it hands out."""

from __future__ import annotations

import socket
import time
from typing import TYPE_CHECKING, Any

import httpx
import pytest
import streamlit.config
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import PlainTextResponse
from starlette.routing import Route, WebSocketRoute
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from chargeback.finance_csv import csv_bytes
from fleet.config import load_config
from fleet.errors import ConfigError, GputallyError
from fleet.ticket import issue
from services.portal import Exporter, Guard, build_app, content_policy, listen, require_loopback, serve
from store.lake import Lake

if TYPE_CHECKING:
    from pathlib import Path

    from starlette.requests import Request
    from starlette.websockets import WebSocket

KEY = b"k" * 32


@pytest.fixture(scope="module")
def exports(demo_workspace: Path) -> TestClient:
    exporter = Exporter(demo_workspace, load_config(demo_workspace), KEY)
    return TestClient(Starlette(routes=[Route("/export/{period}.csv", exporter.answer)]))


@pytest.fixture(scope="module")
def published(demo_workspace: Path) -> tuple[str, bytes]:
    """The build's id and its finance CSV, read past the portal."""
    config = load_config(demo_workspace)
    with Lake.open(demo_workspace / config.lake.catalog, demo_workspace / config.lake.data, read_only=True) as lake:
        build_id = lake.connection.execute("SELECT build_id FROM lake.build WHERE period = '2020-05'").fetchone()
        assert build_id
        return build_id[0], csv_bytes(lake.connection, "2020-05")


def ticket(key: bytes = KEY, *, seconds: int = 60, **claims: str) -> str:
    return issue(key, claims, expires_s=int(time.time()) + seconds)


def test_the_export_is_the_finance_csv_byte_for_byte(exports: TestClient, published: tuple[str, bytes]) -> None:
    build_id, content = published
    good = ticket(role="finance", period="2020-05", build=build_id)
    answer = exports.get("/export/2020-05.csv", params={"ticket": good})
    assert answer.status_code == 200
    assert answer.content == content
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["content-disposition"] == 'attachment; filename="chargeback-2020-05.csv"'
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    assert exports.get("/export/2020-05.csv", params={"ticket": good}).content == content


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({}, 200),
        ({"role": "team"}, 403),
        ({"role": ""}, 403),
        ({"period": "2020-06"}, 403),
        ({"build": "0" * 16}, 409),
        ({"key": b"x" * 32}, 403),
        ({"seconds": -1}, 403),
    ],
)
def test_a_ticket_is_judged_at_every_request(
    exports: TestClient, published: tuple[str, bytes], change: dict[str, Any], status: int
) -> None:
    claims: dict[str, Any] = {"role": "finance", "period": "2020-05", "build": published[0]} | change
    answer = exports.get("/export/2020-05.csv", params={"ticket": ticket(claims.pop("key", KEY), **claims)})
    assert answer.status_code == status
    assert answer.headers["cache-control"] == "no-store"
    assert (b"team" in answer.content) == (status == 200)


@pytest.mark.parametrize("forged", ["", "x", "x.y", "eyJhIjoxfQ.0", "." * 50, "\u00e9.\u00e9"])
def test_without_a_ticket_nothing_is_sent(exports: TestClient, forged: str) -> None:
    assert exports.get("/export/2020-05.csv", params={"ticket": forged}).status_code == 403
    assert exports.get("/export/2020-05.csv").status_code == 403


def test_an_expired_link_says_what_to_do(exports: TestClient) -> None:
    old = ticket(seconds=-1, role="finance", period="2020-05")
    assert "reload the page" in exports.get("/export/2020-05.csv", params={"ticket": old}).text


@pytest.mark.parametrize("period", ["2020-13", "..", "x"])
def test_only_months_are_exported(exports: TestClient, period: str) -> None:
    good = ticket(role="finance", period=period, build="b")
    assert exports.get(f"/export/{period}.csv", params={"ticket": good}).status_code == 404


@pytest.fixture(scope="module")
def guarded() -> TestClient:
    async def page(_: Request) -> PlainTextResponse:
        return PlainTextResponse("page")

    async def stream(websocket: WebSocket) -> None:
        await websocket.accept()
        await websocket.send_text("open")
        await websocket.close()

    routes = [
        Route("/", page),
        Route("/_stcore/metrics", page),
        Route("/_stcore/agent/openapi.json", page),
        WebSocketRoute("/s", stream),
    ]
    app = Starlette(routes=routes, middleware=[Middleware(Guard, policy=content_policy())])
    return TestClient(app, base_url="http://127.0.0.1:8501")


def test_pages_carry_the_security_headers(guarded: TestClient) -> None:
    headers = guarded.get("/").headers
    assert "'sha256-" in headers["content-security-policy"]
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert "img-src 'self' data: blob:" in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "same-origin"


@pytest.mark.parametrize("path", ["/_stcore/metrics", "/_stcore/agent/openapi.json"])
def test_pages_without_any_check_are_hidden(guarded: TestClient, path: str) -> None:
    assert guarded.get(path).status_code == 404


@pytest.mark.parametrize("host", ["127.0.0.1:8501", "localhost:8501", "LOCALHOST", "[::1]:8501"])
def test_names_of_this_machine_are_answered(guarded: TestClient, host: str) -> None:
    assert guarded.get("/", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize("host", ["evil.test", "evil.test:8501", "127.0.0.1.evil.test", "10.0.0.7", ""])
def test_a_name_that_was_made_to_point_here_is_refused(guarded: TestClient, host: str) -> None:
    assert guarded.get("/", headers={"Host": host}).status_code == 421


def test_a_socket_is_for_our_own_pages(guarded: TestClient) -> None:
    with guarded.websocket_connect(
        "/s", headers={"Origin": "http://127.0.0.1:8501", "Host": "127.0.0.1:8501"}
    ) as opened:
        assert opened.receive_text() == "open"
    for origin in ("http://evil.test", "http://127.0.0.1:9999", "null"):
        with (
            pytest.raises(WebSocketDisconnect),
            guarded.websocket_connect("/s", headers={"Origin": origin, "Host": "127.0.0.1:8501"}),
        ):
            pass


@pytest.mark.parametrize("host", ["0.0.0.0", "192.168.1.5", "portal.example", "::", ""])
def test_other_machines_are_refused_until_there_is_a_sign_in(host: str) -> None:
    with pytest.raises(ConfigError, match="no sign-in yet"):
        require_loopback(host)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "localhost", "::1"])
def test_this_machine_is_served(host: str) -> None:
    require_loopback(host)


def test_a_port_in_use_is_one_clear_line(demo_workspace: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(GputallyError, match=rf"cannot listen on 127\.0\.0\.1:{port}"):
            listen("127.0.0.1", port)
        with pytest.raises(ConfigError):
            serve(demo_workspace, load_config(demo_workspace), host="0.0.0.0")


def test_the_portals_settings_win_wherever_it_is_started(
    demo_workspace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".streamlit").mkdir()
    (tmp_path / ".streamlit" / "config.toml").write_text('[client]\nshowErrorDetails = "full"\n', encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    build_app(demo_workspace, load_config(demo_workspace), KEY)
    wanted = {
        "runner.magicEnabled": False,
        "server.fileWatcherType": "none",
        "server.enableAgentApi": False,
        "server.enableXsrfProtection": True,
        "server.enableCORS": True,
        "client.showErrorDetails": "none",
        "client.toolbarMode": "viewer",
        "client.disableDataExport": True,
        "browser.gatherUsageStats": False,
        "server.trustedUserHeaders": None,
    }
    found = {name: streamlit.config.get_option(name) for name in wanted}
    assert {name: value or None for name, value in found.items()} == {
        name: value or None for name, value in wanted.items()
    }


def test_the_real_server_answers_and_hides(portal_address: str) -> None:
    assert httpx.get(f"{portal_address}/_stcore/health").text == "ok"
    page = httpx.get(portal_address)
    assert "content-security-policy" in page.headers
    assert "server" not in page.headers
    assert httpx.get(f"{portal_address}/_stcore/metrics").status_code == 404
    assert httpx.get(f"{portal_address}/export/2020-05.csv").status_code == 403
    spoofed = {"Host": "evil.test", "X-Forwarded-For": "127.0.0.1", "X-Forwarded-Host": "127.0.0.1"}
    assert httpx.get(portal_address, headers=spoofed).status_code == 421
