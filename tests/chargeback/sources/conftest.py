"""What several modules of tests share: a ledger in memory, lakes that are ready at once, and local servers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.chargeback.ledger import empty_lake, memory_ledger

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from store.lake import Connection, Lake
    from tests.chargeback.sources.aws_buckets import Store
    from tests.chargeback.sources.aws_stub import Stub


@pytest.fixture(scope="module")
def con() -> Iterator[Connection]:
    """The empty input tables in memory; times are shown in UTC."""
    con = memory_ledger()
    con.execute("SET TimeZone = 'UTC'")
    yield con
    con.close()


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[], Lake]]:
    """Opens a new, empty lake each time."""
    yield from empty_lake(tmp_path_factory.mktemp("lakes"))


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stub]:
    """A local AWS, which boto3 finds by itself."""
    from tests.chargeback.sources.aws_stub import aws_stub, sign_in

    sign_in(monkeypatch)
    with aws_stub() as stub:
        yield stub


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
