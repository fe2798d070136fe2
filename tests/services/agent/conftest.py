"""A stand-in for the Kubernetes API, for an agent to look for model servers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.certificates import Authority
from tests.collectors.serving.kubernetes_api import Api, kubernetes_api

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture
def api(authority: Authority, tmp_path: Path) -> Iterator[Api]:
    with kubernetes_api(authority, tmp_path) as found:
        yield found
