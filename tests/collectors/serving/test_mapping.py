"""Mappings are data: names in one spelling, versions compared as numbers, signals that rows have."""

from __future__ import annotations

from dataclasses import fields

import pytest

from collectors.serving.engines import ENGINES
from collectors.serving.mapping import KINDS, Source, parsed_version, plain_name
from collectors.serving.samples import COUNTERS, HISTOGRAMS, EngineSample


def test_a_colon_and_an_underscore_and_what_ray_adds_are_one_name() -> None:
    spellings = ["vllm:num_requests_running", "vllm_num_requests_running", "ray_vllm:num_requests_running"]
    assert {plain_name(name) for name in spellings} == {"vllm_num_requests_running"}


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("0.11.2", (0, 11, 2)),
        ("v0.9.1.dev3+cpu", (0, 9, 1)),
        ("0.8.5.post1", (0, 8, 5)),
        ("main", None),
        ("", None),
        (None, None),
    ],
)
def test_a_version_is_the_numbers_at_its_start(text: str | None, version: tuple[int, ...] | None) -> None:
    assert parsed_version(text) == version


def test_a_source_of_some_versions_is_not_used_while_the_version_is_unknown() -> None:
    old, new = Source("x", before="0.9"), Source("x", since="0.9")
    assert [source.fits(None, None) for source in (old, new)] == [False, False]
    assert [source.fits((0, 8, 5), None) for source in (old, new)] == [True, False]
    assert [source.fits((0, 10), None) for source in (old, new)] == [False, True]
    # A lowest version excludes what ended before it, and allows what began before it.
    assert [source.fits(None, (0, 9, 2)) for source in (old, new)] == [False, True]


def test_every_signal_has_its_field_and_every_field_its_kind() -> None:
    names = {field.name for field in fields(EngineSample)}
    assert {name for name, kind in KINDS.items() if kind != "histogram"} <= names
    assert {name for name, kind in KINDS.items() if kind in {"counter", "counters"}} == set(COUNTERS)
    assert {name for name, kind in KINDS.items() if kind == "histogram"} == set(HISTOGRAMS)


@pytest.mark.parametrize("kind", ENGINES)
def test_a_mapping_names_known_signals_once_and_requires_what_it_has(kind: str) -> None:
    mapping = ENGINES[kind]
    names = [signal.name for signal in mapping.signals]
    assert mapping.kind == kind
    assert len(names) == len(set(names))
    assert set(names) <= KINDS.keys()
    assert mapping.required
    assert set(mapping.required) <= set(names)
    for signal in mapping.signals:
        for source in signal.sources:
            for part in source.parts():
                assert all(parsed_version(text) for text in (part.since, part.before) if text)


@pytest.mark.parametrize("kind", ENGINES)
def test_no_label_of_a_person_a_key_or_a_worker_may_leave(kind: str) -> None:
    secret = {
        "api_key",
        "hashed_api_key",
        "user",
        "end_user",
        "user_agent",
        "client_ip",
        "WorkerId",
        "ReplicaId",
        "pid",
    }
    assert not ENGINES[kind].allowed_labels & secret
