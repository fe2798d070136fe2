"""A small BigQuery for tests: the REST calls that google-cloud-bigquery makes to run a query and page through its rows.

It holds a billing export table as rows of JSON and answers the two queries of the fetcher from it; it runs no SQL.
"""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterator

TABLE = "billing-project.export.gcp_billing_export_resource_v1_010101"


@dataclass
class Table:
    """What the server holds, how it fails, and what it was asked."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    """Rows of the export, each with its `export_microseconds` beside the columns."""
    columns: tuple[str, ...] = ("billing_account_id", "invoice", "cost", "currency", "usage_start_time", "export_time")
    partitioned_by: str | None = ""
    """Column of the partitions, "" = by the time of ingestion, None = none."""
    rows_a_page: int = 2
    fails_at_page: int | None = None
    """The page of rows that the server refuses; it cuts the connection at -1."""
    queries: list[dict[str, Any]] = field(default_factory=list)
    pages: int = 0

    def month(self, query: dict[str, Any]) -> list[dict[str, Any]]:
        """The rows that a query asks for, by its parameter."""
        (parameter,) = query["queryParameters"]
        assert parameter["name"] == "invoice_month"
        return [one for one in self.rows if one["invoice"]["month"] == parameter["parameterValue"]["value"]]


@contextmanager
def bigquery_server(table: Table) -> Iterator[str]:
    """Serve `table` on a free port of this machine while the block runs; yield the address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(table))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _handler(table: Table) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            url = urlsplit(self.path)
            if "/tables/" in url.path:
                self._answer(_described(table))
            elif "/queries/" in url.path:
                asked = {name: values[0] for name, values in parse_qs(url.query).items()}
                self._page(url.path.rsplit("/", 1)[1], asked)
            else:
                self._answer(_job(url.path.rsplit("/", 1)[1]))

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            table.queries.append(body["configuration"]["query"])
            self._answer(_job(str(len(table.queries) - 1)))

        def _page(self, job: str, asked: dict[str, str]) -> None:
            query = table.queries[int(job)]
            columns, rows = _result(table, query)
            if asked.get("maxResults") == "0":
                self._answer({**_job(job), **_schema(columns, len(rows))})
                return
            if "line" in columns:
                table.pages += 1
                if table.fails_at_page == table.pages:
                    self._answer(
                        {"error": {"code": 403, "message": "quota exceeded", "errors": [{"reason": "quotaExceeded"}]}},
                        403,
                    )
                    return
            start = int(asked.get("pageToken", "0"))
            size = min(int(asked.get("maxResults", len(rows))), table.rows_a_page)
            cells = [{"f": [{"v": value} for value in one]} for one in rows[start : start + size]]
            more = {"pageToken": str(start + size)} if start + size < len(rows) else {}
            self._answer({**_job(job), **_schema(columns, len(rows)), "rows": cells, **more})

        def _answer(self, body: dict[str, Any], status: int = 200) -> None:
            content = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            pass

    return Handler


def _described(table: Table) -> dict[str, Any]:
    project, dataset, name = TABLE.split(".")
    reference = {"projectId": project, "datasetId": dataset, "tableId": name}
    partitions = {"type": "DAY", **({"field": table.partitioned_by} if table.partitioned_by else {})}
    return {
        "tableReference": reference,
        "schema": {"fields": [{"name": column, "type": "STRING"} for column in table.columns]},
        **({} if table.partitioned_by is None else {"timePartitioning": partitions}),
    }


def _job(job: str) -> dict[str, Any]:
    return {
        "jobReference": {"projectId": "billing-project", "jobId": job, "location": "EU"},
        "configuration": {"query": {}},
        "status": {"state": "DONE"},
        "jobComplete": True,
    }


def _result(table: Table, query: dict[str, Any]) -> tuple[tuple[str, str], list[tuple[str | None, str | None]]]:
    month = table.month(query)
    if "COUNT(*)" in query["query"]:
        newest = max((one["export_microseconds"] for one in month), default=None)
        return ("row_count", "exported_microseconds"), [(str(len(month)), None if newest is None else str(newest))]
    kept = [{name: value for name, value in one.items() if name != "export_microseconds"} for one in month]
    exported = [str(one["export_microseconds"]) for one in month]
    return ("line", "exported_microseconds"), list(zip(map(json.dumps, kept), exported, strict=True))


def _schema(columns: tuple[str, str], row_count: int) -> dict[str, Any]:
    kinds = {"line": "STRING"}
    fields = [{"name": name, "type": kinds.get(name, "INTEGER")} for name in columns]
    return {"schema": {"fields": fields}, "totalRows": str(row_count)}
