"""A hub, a spool and a pusher between them."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

from tests.exporters.agent import Agent
from tests.exporters.hub import Hub
from tests.exporters.site import Site

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@pytest.fixture
def ended() -> Iterator[ExitStack]:
    """What a test started ends with it."""
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def new_hub(ended: ExitStack) -> Callable[..., Hub]:
    """Start a hub."""

    def start(**changes: Any) -> Hub:
        hub = Hub(**changes).start()
        ended.callback(hub.stop)
        return hub

    return start


@pytest.fixture
def agent(ended: ExitStack, tmp_path: Path) -> Agent:
    """An agent that has not begun to push."""
    made = Agent(tmp_path / "spool")
    ended.callback(made.stop)
    return made


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """Its servers look often whether they are to stop, so that tests end soon."""
    monkeypatch.setattr("exporters.page_server._LOOK_SECONDS", 0.02)
    made = Site()
    with made.stack:
        yield made
