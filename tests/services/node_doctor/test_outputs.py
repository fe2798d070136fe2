"""What the doctor of a node says of the kernel's log, the page, the spool and the clock."""

from __future__ import annotations

import socket
from collections import namedtuple
from typing import TYPE_CHECKING, Any

from fleet.agent_config import Agent, AgentHub, AgentPage
from services.agent.doctor import outputs

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from pathlib import Path

    import pytest


def test_a_kernel_log_that_cannot_be_read(tmp_path: Path) -> None:
    (told,) = outputs.kernel_log(Agent(kernel_log=str(tmp_path / "kmsg")))
    assert (told.level, "the driver's own events" in told.message) == ("warn", True)
    (tmp_path / "kmsg").write_text("x\n")
    (told,) = outputs.kernel_log(Agent(kernel_log=str(tmp_path / "kmsg")))
    assert told.level == "ok"
    (told,) = outputs.kernel_log(Agent(kernel_log=""))
    assert told.level == "ok"


def test_a_page_whose_files_cannot_be_used(tmp_path: Path) -> None:
    (told,) = outputs.page(Agent(page=AgentPage(token_file=str(tmp_path / "none"))))
    assert told.level == "fail"
    (tmp_path / "cert").write_text("no certificate")
    bad = AgentPage(tls_certificate=str(tmp_path / "cert"), tls_key=str(tmp_path / "cert"))
    (told,) = outputs.page(Agent(page=bad))
    assert (told.level, "cannot be used" in told.message) == ("fail", True)


def test_a_page_address_that_is_taken_or_free() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        listen = f"127.0.0.1:{taken.getsockname()[1]}"
        (told,) = outputs.page(Agent(page=AgentPage(listen=listen)))
        assert "in use" in told.message
    (told,) = outputs.page(Agent(page=AgentPage(listen=listen)))
    assert "the port is free" in told.message


def with_hub(**changes: Any) -> Agent:
    return Agent(hub=AgentHub(address="127.0.0.1:1"), **changes)


def test_a_spool_is_looked_at_and_not_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stranger: Callable[[], AbstractContextManager[None]]
) -> None:
    config = with_hub(spool=str(tmp_path / "var" / "spool.sqlite"), spool_mebibytes=1)
    (told,) = outputs.spool(config)
    assert told.level == "ok"
    assert list(tmp_path.iterdir()) == []

    usage = namedtuple("usage", "total used free")
    with monkeypatch.context() as patch:
        # A disk cannot be filled in a test.
        patch.setattr(outputs.shutil, "disk_usage", lambda _: usage(2**30, 2**30, 1000))
        (told,) = outputs.spool(config)
    assert (told.level, "rows may be lost" in told.message) == ("warn", True)

    tmp_path.chmod(0o555)
    with stranger():
        (told,) = outputs.spool(config)
    tmp_path.chmod(0o755)
    assert (told.level, "cannot be written" in told.message) == ("fail", True)


def test_the_clock_is_asked_and_left_alone() -> None:
    (told,) = outputs.clock()
    assert told.level in {"ok", "warn"}
