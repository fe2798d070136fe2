"""A model server that is there: a recorded page of vLLM over HTTP, of which one counter grows with each visit."""

from __future__ import annotations

import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise

from tests.collectors.serving.engine_pages import FIXTURES

PAGE = (FIXTURES / "vllm" / "0.33.0-dp2-lora-spec.prom").read_text()
_TOKENS = re.compile(r'(vllm:generation_tokens_total\{engine="0",.*\}) .*')


class LiveEngine:
    """Serves `/metrics` and `/version`. `values` are what the tokens of engine 0 stood at in each page."""

    def __init__(self, begin: int = 1_000, step: int = 7, token: str | None = None) -> None:
        self.values: list[int] = []
        self.is_away = False
        self._next, self._step, self._token = begin, step, token
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/metrics"

    def __enter__(self) -> LiveEngine:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(5)

    def restart(self) -> None:
        """Begin to count again."""
        with self._lock:
            self._next = 3

    @property
    def generated(self) -> int:
        """What was generated between the first page and the last one."""
        return sum(new - old if new >= old else new for old, new in pairwise(self.values))

    def _answer(self, path: str, token: str | None) -> tuple[int, str]:
        if self.is_away or (self._token and token != f"Bearer {self._token}"):
            return (503 if self.is_away else 401), ""
        if path == "/version":
            return 200, '{"version": "0.33.0"}'
        with self._lock:
            self.values.append(self._next)
            self._next += self._step
            return 200, _TOKENS.sub(rf"\g<1> {float(self.values[-1])}", PAGE)

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
