"""TOML tables meet dataclasses; each misfit is named by its path."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pytest

from fleet.binding import BindError, FieldError, bind


@dataclass(frozen=True, slots=True)
class Engine:
    url: str
    kind: Literal["vllm", "triton"] = "vllm"


@dataclass(frozen=True, slots=True)
class Root:
    name: str = "n"
    port: int = 1
    on: bool = False
    spool: Path = Path("spool")
    tags: tuple[str, ...] = ()
    engines: tuple[Engine, ...] = ()
    by_name: Mapping[str, Engine] = field(default_factory=dict)

    def __post_init__(self):
        if self.port < 1:
            raise FieldError("port", "must be positive")


def test_every_kind_of_value():
    table = {
        "name": "x", "port": 2, "on": True, "spool": "/s", "tags": ["a", "b"],
        "engines": [{"url": "u", "kind": "triton"}], "by_name": {"q": {"url": "v"}},
    }  # fmt: skip
    assert bind(Root, table) == Root("x", 2, True, Path("/s"), ("a", "b"), (Engine("u", "triton"),), {"q": Engine("v")})
    assert bind(Root, {}) == Root()


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"port": "2"}, "port must be a whole number, not a string"),
        ({"port": True}, "port must be a whole number, not true or false"),
        ({"port": 1.0}, "port must be a whole number, not a decimal number"),
        ({"on": 1}, "on must be true or false, not a whole number"),
        ({"name": ["a"]}, "name must be a string, not a list"),
        ({"spool": 1}, "spool must be a string, not a whole number"),
        ({"tags": ["a", 1]}, "tags[1] must be a string, not a whole number"),
        ({"tags": "a"}, "tags must be a list, not a string"),
        (
            {"engines": [{"url": "u", "kind": "vlm"}]},
            "engines[0].kind must be one of 'vllm', 'triton', not 'vlm'",
        ),
        ({"engines": [{}]}, "engines[0].url is missing"),
        ({"engines": [3]}, "engines[0] must be a table, not a whole number"),
        (
            {"by_name": {"a b": {"urn": "u"}}},
            "unknown key by_name.'a b'.urn; did you mean by_name.'a b'.url?",
        ),
        ({"zzz": 1}, "unknown key zzz; known keys: name, port, on, spool, tags, engines, by_name"),
        ({"port": 0}, "port: must be positive"),
    ],
)
def test_what_does_not_fit_is_named_by_its_path(table, message):
    with pytest.raises(BindError) as caught:
        bind(Root, table)
    assert str(caught.value) == message
