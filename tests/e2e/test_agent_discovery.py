"""A real agent on a node of a cluster: it finds model servers in pods, follows their replacement, sends tokens."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from tests.certificates import Authority
from tests.collectors.serving.kubernetes_api import NODE, kubernetes_api, pod
from tests.collectors.serving.live_engine import LiveEngine, own_address
from tests.e2e import live_agents
from tests.e2e.live_agents import NOWHERE
from tests.services.hub.hubs import wait_until

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

TOKENS = "serving_generation_tokens_total"


def of_page(uid: str, page: LiveEngine, began: int) -> dict[str, Any]:
    """A pod of a StatefulSet: the one that replaces it has its name."""
    found = pod(1, ip=own_address(), port=str(page.port))
    found["metadata"] |= {
        "uid": uid,
        "name": "llama-0",
        "ownerReferences": [{"kind": "StatefulSet", "name": "llama", "controller": True}],
    }
    text = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(began))
    found["status"]["containerStatuses"] = [{"state": {"running": {"startedAt": text}}}]
    return found


def test_tokens_are_exact_over_a_replacement_of_a_pod(tmp_path: Path) -> None:
    with (
        kubernetes_api(Authority(tmp_path / "authority"), tmp_path) as api,
        LiveEngine(host=own_address()) as first,
        LiveEngine(host=own_address(), begin=40) as second,
    ):
        api.serve(of_page("uid-1", first, 1_800_000_000 - 86_400 * 400))
        kubernetes = {
            "discover": True, "api": api.address, "ca": str(api.ca), "token_file": str(api.token_file),
            "period_seconds": 1, "pod_period_seconds": 1, "node": NODE,
        }  # fmt: skip
        settings = {"hub.address": NOWHERE, "kubernetes": kubernetes}
        with live_agents.running(tmp_path, {}, **settings) as agent:
            place = {"server": "ml/llama", "engine_index": "llama-0/0"}
            wait_until(lambda: len(first.values) > 1 and agent.value(TOKENS, **place) in first.values, 20)
            assert (agent.outcome("kubernetes"), agent.outcome("pod:ml/llama-0")) == ("ok", "ok")
            first.is_away, api.status = True, 403
            wait_until(lambda: agent.outcome("kubernetes") == "failed", 20)
            wait_until(lambda: agent.outcome("pod:ml/llama-0") == "failed", 20)
            assert agent.value(TOKENS, **place) is None, "what is not known is not shown"
            api.token_file.write_text("the-next-token\n")
            api.serve(of_page("uid-2", second, int(time.time())))
            api.status = 200
            wait_until(lambda: len(second.values) > 1 and agent.value(TOKENS, **place) in second.values, 20)
            assert agent.outcome("kubernetes") == "ok"
            assert agent.stop() == 0
            assert not [word for word in ("s3cret", "the-next-token") if word in "".join(agent.log)]
        assert api.tokens[-1] == "Bearer the-next-token"
        rows = live_agents.spooled(agent.spool)["engine_window"]
        counted = [row for row in rows if row["engine_index"] == "llama-0/0"]
        assert sum(row["generation_tokens"] for row in counted) == first.generated + second.values[-1]
        assert {row["server"] for row in rows} == {"ml/llama"}
        assert sum(row["counter_resets"] for row in counted) == 0
