"""Local servers that several modules of tests speak to."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.chargeback.sources.aws_buckets import Store


@pytest.fixture(scope="session")
def s3_endpoint() -> Iterator[str]:
    """An S3 server of this process; imported only by who asks for it, since it is large."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def s3_credentials(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Found by boto3's own chain, and nothing of this machine's."""
    from tests.chargeback.sources.aws_buckets import KEY_ID, SECRET

    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY_ID)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "absent"))


@pytest.fixture(params=[True, False], ids=["versioned", "plain"])
def store(request: pytest.FixtureRequest, s3_endpoint: str, s3_credentials: None) -> Store:
    """A bucket that keeps versions, and then one that does not."""
    from tests.chargeback.sources.aws_buckets import Store

    return Store(s3_endpoint, is_versioned=request.param)


@pytest.fixture
def plain(s3_endpoint: str, s3_credentials: None) -> Store:
    """A bucket that keeps no versions."""
    from tests.chargeback.sources.aws_buckets import Store

    return Store(s3_endpoint, is_versioned=False)


@pytest.fixture
def versioned(s3_endpoint: str, s3_credentials: None) -> Store:
    """A bucket that keeps versions."""
    from tests.chargeback.sources.aws_buckets import Store

    return Store(s3_endpoint, is_versioned=True)
