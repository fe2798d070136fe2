"""The units start programs that exist, as users that need be nobody else, with what can be taken away taken away."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from services import agent
from services.commands import gputally
from tests.deploy.manifests import DEPLOY, UNITS, unit

if TYPE_CHECKING:
    from pathlib import Path

SERVICES = [path.name for path in UNITS if path.suffix == ".service"]
TAKEN_AWAY = (
    "NoNewPrivileges", "ProtectHome", "PrivateTmp", "ProtectKernelModules", "ProtectKernelTunables",
    "ProtectControlGroups", "ProtectHostname", "RestrictNamespaces", "RestrictSUIDSGID", "RestrictRealtime",
    "LockPersonality",
)  # fmt: skip
HIDES_DEVICES = ("PrivateDevices", "DeviceAllow", "DevicePolicy", "ProtectClock", "ProtectKernelLogs", "ProtectProc")


def command(name: str) -> list[str]:
    return unit(name)["Service"]["ExecStart"].split()


@pytest.mark.parametrize("name", SERVICES)
def test_what_can_be_taken_away_is(name: str) -> None:
    service = unit(name)["Service"]
    assert [key for key in TAKEN_AWAY if service.get(key) != "yes"] == []
    assert service["ProtectSystem"] == "strict"
    assert service["SystemCallArchitectures"] == "native"
    assert service["CapabilityBoundingSet"] in {"", "CAP_SYSLOG"}
    assert service.get("DynamicUser") == "yes" or service["User"] not in {"", "root"}


def test_the_agent_still_sees_what_it_reads() -> None:
    service = unit("gputally-agent.service")["Service"]
    # On systemd 252 ProtectClock alone shuts /dev/nvidia* out (systemd#18142).
    assert [key for key in HIDES_DEVICES if key in service] == []
    assert service["AmbientCapabilities"] == "CAP_SYSLOG"
    assert f"/var/lib/{service['StateDirectory']}/spool.sqlite" == agent.Agent().spool


def test_agent_and_hub_may_share_a_machine() -> None:
    """A folder of a user that comes and goes is a link that no other unit may own."""
    folders = {name: unit(name)["Service"]["StateDirectory"] for name in SERVICES}
    assert folders["gputally-hub.service"] == folders["gputally-maintain.service"]
    assert folders["gputally-hub.service"] != folders["gputally-agent.service"]


@pytest.mark.parametrize("name", SERVICES)
def test_commands_exist(name: str) -> None:
    program, *arguments = command(name)
    if program.endswith("/gputally-agent"):
        assert agent.parser().parse_args(arguments).verb == "run"
        return
    option, folder, verb, *_ = arguments
    assert (option, folder) == ("-C", f"/var/lib/{unit(name)['Service']['StateDirectory']}/workspace")
    known = {option for parameter in gputally.commands[verb].params for option in parameter.opts}
    assert set(arguments[3:]) <= known


def test_the_timer_starts_a_service_that_is_there() -> None:
    (timer,) = [path for path in UNITS if path.suffix == ".timer"]
    assert timer.with_suffix(".service") in UNITS
    assert unit(timer.name)["Install"]["WantedBy"] == "timers.target"


def test_systemd_understands_every_line(tmp_path: Path) -> None:
    """Unknown keys and values are told by systemd itself, where it is there; the other tests do without it."""
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("no systemd-analyze on this machine")
    for path in UNITS:
        text = (DEPLOY / "systemd" / path.name).read_text("utf-8")
        program = tmp_path / "program"
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
        for name in ("gputally-agent", "gputally"):
            text = text.replace(f"/opt/gputally/bin/{name} ", f"{program} ")
        (tmp_path / path.name).write_text(text)
    files = [str(tmp_path / path.name) for path in UNITS]
    done = subprocess.run([analyze, "verify", "--man=no", *files], capture_output=True, text=True, check=False)
    assert [line for line in done.stderr.splitlines() if str(tmp_path) in line or "gputally" in line] == []
