"""A small AWS for tests: real HTTP answers in the wire formats that boto3 speaks, page by page, refusals too.

JSON services are told by the header X-Amz-Target, Savings Plans by their path, EC2 and STS by the form field Action.
"""

from __future__ import annotations

import json
import re
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl
from xml.sax.saxutils import escape

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pytest

ACCOUNT = "012345678901"
SECRET = "a-secret-that-nothing-may-print"
FORMS = {"ec2": "http://ec2.amazonaws.com/doc/2016-11-15/", "sts": "https://sts.amazonaws.com/doc/2011-06-15/"}
EMPTY: dict[str, Any] = {
    "DescribeSavingsPlans": {"savingsPlans": []}, "GetProducts": {"PriceList": []},
    "ListInvoiceSummaries": {"InvoiceSummaries": []}, "DescribeInstances": {"reservationSet": []},
    "DescribeReservedInstances": {"reservedInstancesSet": []}, "DescribeCapacityBlocks": {"capacityBlockSet": []},
    "DescribeCapacityReservations": {"capacityReservationSet": []},
}  # fmt: skip


@dataclass
class Refusal:
    """An error instead of a page; `times` of them, then what follows in the list is answered in its place."""

    code: str
    status: int = 400
    message: str = f"the string to sign held {SECRET}"
    times: int = 1_000_000


@dataclass(frozen=True)
class Raw:
    """An answer that is none."""

    body: str
    status: int = 200


@dataclass
class Stub:
    """What the account has, and what it was asked."""

    address: str
    pages: dict[str, list[Any]] = field(default_factory=dict)
    """By operation, or "operation region" where regions differ: its pages in order, as the wire names things."""
    asked: list[tuple[str, str, dict[str, Any]]] = field(default_factory=list)
    """Operation, region, parameters."""

    def operations(self) -> list[str]:
        return [operation for operation, _, _ in self.asked]

    def answer(self, operation: str, region: str, asked: dict[str, Any]) -> Any:
        """The page that is asked for; its token is its number."""
        self.asked.append((operation, region, asked))
        number = int(asked.get("NextToken") or asked.get("nextToken") or 0)
        pages = self.pages.get(f"{operation} {region}", self.pages.get(operation, [EMPTY.get(operation, {})]))
        page = pages[number]
        if isinstance(page, Refusal):
            if page.times:
                page.times -= 1
                return page
            del pages[number]
            page = pages[number]
        if isinstance(page, Raw) or number + 1 == len(pages):
            return page
        return page | {token_of(operation): str(number + 1)}


def token_of(operation: str) -> str:
    """How an operation names its next page: as JSON services do, or in small as Savings Plans and EC2's XML do."""
    return "NextToken" if operation in ("GetProducts", "ListInvoiceSummaries") else "nextToken"


@contextmanager
def aws_stub() -> Iterator[Stub]:
    """Run the small AWS on a free port of this machine."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            found = re.search(r"Credential=[^/]+/\d+/([^/]+)/([^/]+)/", self.headers["Authorization"])
            assert found
            region, service = found.groups()
            if service in FORMS:
                form = dict(parse_qsl(body))
                self.reply_xml(service, form["Action"], stub.answer(form["Action"], region, form))
            else:
                target = self.headers.get("X-Amz-Target", "").rpartition(".")[2]
                operation = target or self.path.strip("/")
                self.reply_json(stub.answer(operation, region, json.loads(body or "{}")))

        def reply_json(self, page: Any) -> None:
            if isinstance(page, Refusal):
                self.reply(page.status, "application/json", json.dumps({"__type": page.code, "message": page.message}))
            elif isinstance(page, Raw):
                self.reply(page.status, "text/html", page.body)
            else:
                self.reply(200, "application/json", json.dumps(page))

        def reply_xml(self, service: str, operation: str, page: Any) -> None:
            if operation == "GetCallerIdentity" and not page:
                page = {"GetCallerIdentityResult": {"Account": ACCOUNT}}
            if isinstance(page, Refusal):
                error = f"<Error><Code>{page.code}</Code><Message>{page.message}</Message></Error>"
                body = f"<Response><Errors>{error}</Errors></Response>"
                self.reply(
                    page.status, "text/xml", body if service == "ec2" else f"<ErrorResponse>{error}</ErrorResponse>"
                )
            elif isinstance(page, Raw):
                self.reply(page.status, "text/html", page.body)
            else:
                space = FORMS[service]
                self.reply(200, "text/xml", f'<{operation}Response xmlns="{space}">{xml(page)}</{operation}Response>')

        def reply(self, status: int, kind: str, text: str) -> None:
            body = text.encode()
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    stub = Stub("")
    with serving(Handler) as address:
        stub.address = address
        yield stub


@contextmanager
def serving(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    """The address of a server on a free port of this machine."""
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def xml(value: Any) -> str:
    """EC2's XML: a dictionary's entries are elements, a list's are elements `item`."""
    if isinstance(value, dict):
        return "".join(f"<{name}>{xml(inner)}</{name}>" for name, inner in value.items())
    if isinstance(value, list):
        return "".join(f"<item>{xml(inner)}</item>" for inner in value)
    return escape(str(value))


def credentials(tries: int = 1) -> dict[str, str]:
    """The environment of somebody who may sign, and has no profile or instance role."""
    return {
        "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_MAX_ATTEMPTS": str(tries),
        "AWS_EC2_METADATA_DISABLED": "true", "AWS_CONFIG_FILE": "/dev/null", "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
    }  # fmt: skip


def sign_in(monkeypatch: pytest.MonkeyPatch, tries: int = 1) -> None:
    """Give this process those credentials, and none of its own."""
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_DEFAULT_REGION", "AWS_REGION", "AWS_ENDPOINT_URL"):
        monkeypatch.delenv(name, raising=False)
    for name, value in credentials(tries).items():
        monkeypatch.setenv(name, value)
