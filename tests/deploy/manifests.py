"""The deployment files as data."""

from __future__ import annotations

import configparser
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from collections.abc import Iterator

DEPLOY = Path(__file__).parents[2] / "deploy"
KUSTOMIZATION = DEPLOY / "kubernetes" / "kustomization.yaml"
KUBERNETES = sorted(path for path in (DEPLOY / "kubernetes").glob("*.yaml") if path != KUSTOMIZATION)
UNITS = sorted((DEPLOY / "systemd").iterdir())


def documents() -> Iterator[dict[str, Any]]:
    """Every object of the manifests."""
    for path in KUBERNETES:
        yield from (found for found in yaml.safe_load_all(path.read_text("utf-8")) if found)


def one(kind: str, name: str) -> dict[str, Any]:
    """The only object of that kind and name."""
    (found,) = [each for each in documents() if (each["kind"], each["metadata"]["name"]) == (kind, name)]
    return found


def pod_of(kind: str, name: str) -> dict[str, Any]:
    """The pod that a workload makes."""
    spec: dict[str, Any] = one(kind, name)["spec"]["template"]["spec"]
    return spec


def container(pod: dict[str, Any], name: str) -> dict[str, Any]:
    (found,) = [each for each in pod["containers"] if each["name"] == name]
    return found


def mounts(pod: dict[str, Any], name: str) -> dict[str, tuple[dict[str, Any], bool]]:
    """Where a container sees which volume, and whether for reading only."""
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    claims = {"lake": {"name": "lake"}}
    return {
        mount["mountPath"]: ((volumes | claims)[mount["name"]], mount.get("readOnly", False))
        for mount in container(pod, name)["volumeMounts"]
    }


def unit(name: str) -> configparser.ConfigParser:
    """A systemd unit; a key that stands twice is an error."""
    parser = configparser.ConfigParser(interpolation=None, delimiters=("=",), comment_prefixes=("#",))
    parser.optionxform = str  # type: ignore[assignment,method-assign]  # as configparser's own manual does it
    parser.read_string((DEPLOY / "systemd" / name).read_text("utf-8"), name)
    return parser
