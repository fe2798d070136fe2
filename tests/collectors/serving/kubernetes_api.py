"""A stand-in for the API server of a cluster: HTTPS, a token, and pods of a node page by page."""

from __future__ import annotations

import json
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

from collectors.serving.discovery import Kubernetes
from tests.collectors.secured import secured

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.certificates import Authority

NODE = "gpu-node-7"


class Api:
    """What the server answers, and what it was asked."""

    def __init__(self, address: str, authority: Authority, folder: Path) -> None:
        self.pages: list[Any] = []
        self.status = 200
        self.hang_seconds = 0.0
        self.location: str | None = None
        self.asked: list[dict[str, str]] = []
        self.address = address
        self.ca = authority.file
        self.token_file = folder / "token"
        self.tokens: list[str | None] = []

    def serve(self, *pods: object, page_pods: int = 500) -> None:
        """Answer with these pods."""
        parts = [pods[at : at + page_pods] for at in range(0, len(pods), page_pods)] or [()]
        self.pages = [
            {
                "kind": "PodList",
                "metadata": {"continue": f"after-{number}"} if number < len(parts) else {},
                "items": part,
            }
            for number, part in enumerate(parts, 1)
        ]

    def asks(self, **changes: Any) -> Kubernetes:
        """How the stand-in is asked."""
        told = {"node": NODE, "api": self.address, "ca": self.ca, "token_file": self.token_file, **changes}
        return Kubernetes(**told)


def pod(number: int = 1, /, *, engine: object = "vllm", ip: object = "10.244.0.9", **told: object) -> dict[str, Any]:
    """A pod of the node that says so much of itself; `told` becomes annotations."""
    annotations = {f"gputally.io/{name}": value for name, value in {"engine": engine, **told}.items()}
    return {
        "metadata": {"namespace": "ml", "name": f"pod-{number}", "uid": f"uid-{number}", "annotations": annotations},
        "spec": {"nodeName": NODE},
        "status": {"phase": "Running", "podIP": ip},
    }


@contextmanager
def kubernetes_api(authority: Authority, folder: Path) -> Iterator[Api]:
    """A server that runs, and a token that it takes."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            time.sleep(api.hang_seconds)
            query = {name: values[0] for name, values in parse_qs(urlsplit(self.path).query).items()}
            api.asked.append({"path": urlsplit(self.path).path, **query})
            api.tokens.append(self.headers.get("Authorization"))
            number = int(query.get("continue", "after-0").rpartition("-")[2]) if api.status == 200 else 0
            page = api.pages[min(number, len(api.pages) - 1)] if api.pages else b""
            body = page if isinstance(page, bytes) else json.dumps(page).encode()
            self.send_response(api.status)
            if api.location:
                self.send_header("Location", api.location)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with secured(Handler, authority.sign("api")) as address:
        api = Api(address, authority, folder)
        api.token_file.write_text("s3cret\n")
        yield api
