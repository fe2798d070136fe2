"""A model server that is there: a recorded page of vLLM over HTTP, of which one counter grows with each visit."""

from __future__ import annotations

import re
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise

from tests.collectors.serving.engine_pages import FIXTURES

PAGE = (FIXTURES / "vllm" / "0.33.0-dp2-lora-spec.prom").read_text()
_TOKENS = re.compile(r'(vllm:generation_tokens_total\{engine="0",.*\}) .*')


def own_address() -> str:
    """An address of this machine that others could ask: no pod has a loopback address."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.1", 9))  # sends nothing: it only asks which way packets would go
        return str(probe.getsockname()[0])


class LiveEngine:
    """Serves `/metrics` and `/version`. `values` are what the tokens of engine 0 stood at in each page."""

    def __init__(
        self,
        begin: int = 1_000,
        step: int = 7,
        token: str | None = None,
        host: str = "127.0.0.1",
        hang_seconds: float = 0,
        page: str = PAGE,
    ) -> None:
        self.values: list[int] = []
        self.is_away = False
        self._next, self._step, self._token, self._page = begin, step, token, page
        self._lock, self._released, self._hang_seconds = threading.Lock(), threading.Event(), hang_seconds
        self._server = ThreadingHTTPServer((host, 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)

    @property
    def port(self) -> int:
        return self._server.server_port

    @property
    def url(self) -> str:
        return f"http://{self._server.server_address[0]}:{self.port}/metrics"

    def __enter__(self) -> LiveEngine:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._released.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)

    def restart(self) -> None:
        """Begin to count again."""
        with self._lock:
            self._next = 3

    def work(self, tokens: int) -> None:
        """Generate tokens that no page has shown yet."""
        with self._lock:
            self._next += tokens

    def change_token(self, token: str) -> None:
        """Answer those only who have another token from now on."""
        self._token = token

    @property
    def generated(self) -> int:
        """What was generated between the first page and the last one."""
        return sum(new - old if new >= old else new for old, new in pairwise(self.values))

    def _answer(self, path: str, token: str | None) -> tuple[int, str]:
        if self._hang_seconds:
            self._released.wait(self._hang_seconds)
        if self.is_away or (self._token and token != f"Bearer {self._token}"):
            return (503 if self.is_away else 401), ""
        if path == "/version":
            return 200, '{"version": "0.33.0"}'
        with self._lock:
            self.values.append(self._next)
            self._next += self._step
            return 200, _TOKENS.sub(rf"\g<1> {float(self.values[-1])}", self._page)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        engine = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                status, text = engine._answer(self.path, self.headers["Authorization"])
                self.send_response(status)
                self.send_header("Content-Length", str(len(text.encode())))
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, *_: object) -> None:
                pass

        return Handler
