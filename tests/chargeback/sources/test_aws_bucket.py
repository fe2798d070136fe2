"""Objects of a bucket: fetched once, gone on with after a kill, and refused without a secret in what is said."""

from __future__ import annotations

import hashlib
import json
import logging
import signal
import subprocess
import sys
import time
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import TYPE_CHECKING
from urllib.request import Request, urlopen

import pytest

from chargeback.sources.aws_bucket import Bucket, Version
from chargeback.sources.aws_s3 import fetch
from fleet.errors import MissingDependencyError, SourceError
from fleet.sources_config import AwsExport
from tests.chargeback.sources.aws_buckets import DATA, START, Store, never, refused, report

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


def requests(caplog: pytest.LogCaptureFixture, operation: str) -> list[str]:
    return [text for text in caplog.messages if f"Making request for OperationModel(name={operation})" in text]


def test_what_is_there_is_not_fetched_again_and_a_rest_is_added(
    plain: Store, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    plain.deliver({"a-1.csv": "1", "a-2.csv": "2"})
    plain.costs(tmp_path, wait=never)
    (whole,) = (path for path in tmp_path.rglob("*a-2.csv"))
    content = whole.read_bytes()
    whole.unlink()
    whole.with_name(f"{whole.name}.part").write_bytes(content[:100])
    with caplog.at_level(logging.DEBUG, "botocore.endpoint"):
        assert plain.costs(tmp_path, wait=never) == ["1", "2"]
    read = [text for text in requests(caplog, "GetObject") if "Manifest" not in text]
    assert (len(read), "'Range': 'bytes=100-'" in read[0], whole.read_bytes() == content) == (1, True, True)


@pytest.mark.parametrize("left", [b"x" * 50, b"x" * 5000])
def test_a_part_that_is_not_of_this_object_is_thrown_away(plain: Store, tmp_path: Path, left: bytes) -> None:
    plain.deliver({"a-1.csv": "1"})
    plain.costs(tmp_path, wait=never)
    (whole,) = tmp_path.rglob("*.csv")
    content = whole.read_bytes()
    whole.rename(whole.with_name(f"{whole.name}.part")).write_bytes(left)
    assert (plain.costs(tmp_path, wait=never), whole.read_bytes()) == (["1"], content)


def test_a_fetch_that_is_killed_goes_on_where_it_was(plain: Store, tmp_path: Path) -> None:
    big = report("1") + b",\n" * 12 * 1024 * 1024
    plain.put(f"{DATA}a-1.csv", big)
    plain.manifest(["a-1.csv"])
    program = (
        "import sys, pathlib; from chargeback.sources.aws_s3 import fetch; from fleet.sources_config import AwsExport; "
        "fetch(AwsExport(*sys.argv[1:7]), pathlib.Path(sys.argv[7]), lambda _: None)"
    )
    found = plain.settings
    names = [found.name, found.bucket, found.prefix, found.export, found.region, found.endpoint_url]
    child = subprocess.Popen([sys.executable, "-c", program, *names, str(tmp_path)])
    while not [path for path in tmp_path.rglob("*.part") if path.stat().st_size] and child.poll() is None:
        time.sleep(0.001)
    child.send_signal(signal.SIGKILL)
    child.wait()
    (part,) = tmp_path.rglob("*.part")
    assert 0 < part.stat().st_size < len(big)
    (export,) = fetch(plain.settings, tmp_path, lambda _: None, wait=never)
    assert export.parts[0].path.read_bytes() == big
    assert not list(tmp_path.rglob("*.part"))


class CuttingServer(ThreadingHTTPServer):
    """Answers each GET with part of an object, then closes the connection as a broken line does."""

    def __init__(self, content: bytes, sent_bytes: int) -> None:
        super().__init__(("127.0.0.1", 0), _CuttingHandler)
        self.content, self.sent_bytes, self.asked = content, sent_bytes, list[str | None]()


class _CuttingHandler(BaseHTTPRequestHandler):
    server: CuttingServer

    def do_GET(self) -> None:
        asked = self.headers.get("Range")
        self.server.asked.append(asked)
        rest = self.server.content[int(asked.removeprefix("bytes=").removesuffix("-")) if asked else 0 :]
        self.send_response(206 if asked else 200)
        self.send_header("Content-Length", str(len(rest)))
        self.end_headers()
        self.wfile.write(rest[: self.server.sent_bytes])

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def cutting(s3_credentials: None) -> Iterator[Callable[[bytes, int], CuttingServer]]:
    servers: list[CuttingServer] = []

    def serve(content: bytes, sent_bytes: int) -> CuttingServer:
        servers.append(CuttingServer(content, sent_bytes))
        Thread(target=servers[-1].serve_forever, args=(0.01,), daemon=True).start()
        return servers[-1]

    yield serve
    for server in servers:
        server.shutdown()
        server.server_close()


def test_a_line_that_breaks_costs_only_the_rest(cutting: Callable[[bytes, int], CuttingServer], tmp_path: Path) -> None:
    content = b"0123456789" * 25
    server = cutting(content, 100)
    settings = AwsExport("cur", "bucket", "pre", "cur", "us-east-1", f"http://127.0.0.1:{server.server_port}")
    version = Version("a.csv", hashlib.md5(content).hexdigest(), len(content), START, None, has_md5=True)
    Bucket(settings).download(version, tmp_path / "a.csv")
    assert ((tmp_path / "a.csv").read_bytes(), server.asked) == (content, [None, "bytes=100-", "bytes=200-"])
    # One that says it is longer than what comes of it is not taken for whole, with or without an MD5 to tell.
    with pytest.raises(SourceError, match=r"s3://bucket/b\.csv: arrives damaged"):
        Bucket(settings).download(replace(version, key="b.csv", size_bytes=300, has_md5=False), tmp_path / "b.csv")
    assert not (tmp_path / "b.csv").exists()


def test_without_boto3_the_extra_is_named(plain: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "boto3", None)
    with pytest.raises(MissingDependencyError, match=r"S3 exports need boto3: install gputally\[aws\]"):
        plain.costs(tmp_path)


def test_a_disk_that_cannot_be_written_is_named(plain: Store, tmp_path: Path) -> None:
    plain.deliver({"a-1.csv": "1"})
    (tmp_path / "cache").write_text("a file where the folder should be")
    with pytest.raises(SourceError, match=r"\.part: (Not a directory|File exists)"):
        plain.costs(tmp_path / "cache")


def test_what_s3_refuses_is_named_without_a_secret(plain: Store, tmp_path: Path, s3_endpoint: str) -> None:
    plain.deliver({"a-1.csv": "1"})
    policy = {
        "Statement": [
            {
                "Effect": "Deny", "Principal": "*", "Action": ["s3:GetObject"],
                "Resource": f"arn:aws:s3:::{plain.name}/{DATA}*",
            }
        ]
    }  # fmt: skip
    plain.s3.put_bucket_policy(Bucket=plain.name, Policy=json.dumps(policy))
    assert refused(plain, tmp_path) == f"s3://{plain.name}/{DATA}a-1.csv: S3 answers 403 403"


def test_keys_that_s3_does_not_know_are_not_repeated(plain: Store, tmp_path: Path, s3_endpoint: str) -> None:
    def ask_for_credentials(requests: str) -> None:
        plain_text = {"Content-Type": "text/plain"}
        urlopen(Request(f"{s3_endpoint}/moto-api/reset-auth", requests.encode(), plain_text, method="POST")).close()

    plain.deliver({"a-1.csv": "1"})
    ask_for_credentials("0")
    try:
        said = refused(plain, tmp_path)
    finally:
        ask_for_credentials("inf")
    assert said == f"s3://{plain.name}/pre/gpu-cur/metadata/: S3 answers 403 InvalidAccessKeyId"


def test_what_cannot_be_reached_is_named(
    plain: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, s3_endpoint: str
) -> None:
    plain.settings = replace(plain.settings, bucket="no-such-bucket-here")
    assert "S3 answers 404 NoSuchBucket" in refused(plain, tmp_path)
    plain.settings = replace(plain.settings, endpoint_url="http://127.0.0.1:9")
    assert "EndpointConnectionError (see the AWS credentials, region and endpoint)" in refused(plain, tmp_path)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    plain.settings = replace(plain.settings, endpoint_url=s3_endpoint)
    assert "NoCredentialsError" in refused(plain, tmp_path)


def test_files_in_the_cache_cannot_leave_it(plain: Store, tmp_path: Path) -> None:
    key = f"{DATA}{'x' * 300}=$(touch y).csv"
    plain.put(key, report("1"))
    plain.manifest([key.removeprefix(DATA)])
    cache = tmp_path / "cache"
    assert plain.costs(cache, wait=never) == ["1"]
    (path,) = (found for found in tmp_path.rglob("*") if found.is_file())
    assert (path.parent, len(path.name) < 100) == (cache / "2026-02", True)
