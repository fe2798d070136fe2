"""gputally.toml: the template is the default, mistakes are named, the fingerprint follows the books."""

import copy
import pickle
import tomllib
from dataclasses import fields, replace
from itertools import pairwise
from typing import get_args

import pytest

from fleet.config import (
    DEFAULT_POLICIES,
    TEMPLATE,
    Config,
    Lake,
    Ledger,
    Policy,
    PoolPolicy,
    Portal,
    config_fingerprint,
    load_config,
    parse_config,
)
from fleet.errors import ConfigError
from fleet.hub_config import Hub
from fleet.identity import POLICIES, POOL_KINDS
from fleet.ledger_config import Server, TokenWeights


def test_the_template_is_the_default():
    assert parse_config(TEMPLATE) == Config()
    assert parse_config("") == Config()


def test_the_template_shows_and_explains_every_key():
    table = tomllib.loads(TEMPLATE)
    assert table.keys() | {"sources"} == {f.name for f in fields(Config)}  # those are shown as comments
    for name, cls in (("lake", Lake), ("ledger", Ledger), ("portal", Portal), ("hub", Hub)):
        assert table[name].keys() == {f.name for f in fields(cls)}
    assert table["pools"].keys() == DEFAULT_POLICIES.keys()
    lines = TEMPLATE.splitlines()
    for above, line in pairwise(lines):
        if "=" in line and not line.startswith("#"):
            assert above.startswith("# ")


def test_token_weights_are_exact_millionths():
    weights = parse_config("[ledger.token_weights]\ninput = '0.333333'\ncached_input = '1e-6'").ledger.token_weights
    assert weights.millionths() == (333_333, 1, 4_000_000)


def test_words_agree_with_the_ledger():
    assert get_args(Policy) == POLICIES
    assert {"capacity", *DEFAULT_POLICIES} == set(POOL_KINDS)


def test_policies_have_defaults_and_can_be_set():
    config = parse_config('[pools.idle]\npolicy = "quota"\n[pools]\ntax.policy = "even"')
    assert config.policy("idle") == "quota"
    assert config.policy("tax") == "even"
    assert config.policy("credit") == "proportional"
    assert {kind: Config().policy(kind) for kind in DEFAULT_POLICIES} == dict(DEFAULT_POLICIES)
    with pytest.raises(ValueError, match="'capacity' is not a kind of pool with a policy"):
        config.policy("capacity")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[ledger]\ncurency = 'USD'", "unknown key ledger.curency; did you mean ledger.currency?"),
        ("[ledgr]", "unknown key ledgr; did you mean ledger?"),
        ("[pools.idel]\npolicy = 'even'", "unknown key pools.idel; did you mean pools.idle?"),
        ("[pools.capacity]\npolicy = 'even'", "unknown key pools.capacity; known keys: idle, "),
        ("[pools.idle]", "pools.idle.policy is missing"),
        ("[pools]\nidle = 'even'", "pools.idle must be a table, not a string"),
        (
            "[pools.idle]\npolicy = 'fair'",
            "pools.idle.policy must be one of 'proportional', 'even', 'quota', 'central', not 'fair'",
        ),
        ("[ledger]\nbasis = 'used'", "ledger.basis must be one of 'held', not 'used'"),
        ("[ledger]\ncurrency = 'usd'", "ledger.currency: 'usd' is not a currency code"),
        ("[ledger]\ntime_zone = 'Mars/Base'", "ledger.time_zone: 'Mars/Base' is not a time zone"),
        ("[ledger]\ncentral_team = ''", "ledger.central_team: a name must not be empty"),
        ("[ledger.token_weights]\ninput = 1", "ledger.token_weights.input must be a string, not a whole number"),
        ("[ledger.token_weights]\ninput = '1,5'", "ledger.token_weights.input: '1,5' is not a plain decimal"),
        ("[ledger.token_weights]\noutput = '-4'", "ledger.token_weights.output: must be from 0 to 1000000, not -4"),
        ("[ledger.token_weights]\noutput = '1e-7'", "ledger.token_weights.output: 1E-7 has more than 6 decimals"),
        (
            "[ledger.token_weights]\ninput = '0'\ncached_input = '0'\noutput = '0.0'",
            "ledger.token_weights.output: one of the weights must be more than 0",
        ),
        ("[ledger]\nservers = [{ match_workload = 'x' }]", "ledger.servers[0].name is missing"),
        ("[[ledger.servers]]\nname = 'a'", "ledger.servers[0].match_workload: give match_namespace, match_workload"),
        ('[[ledger.servers]]\nname = "a\\nb"\nmatch_workload = "x"', "ledger.servers[0].name: "),
        (
            "[ledger]\nservers = [{ name = 'a', match_workload = 'x' }, { name = 'a', match_workload = 'y' }]",
            "ledger.servers: two are called 'a'",
        ),
        (
            "[ledger]\nservers = [{ name = 'a', match_workload = 'x', max_running_requests = -1 }]",
            "ledger.servers[0].max_running_requests: must be from 0 (not known) to 1000000",
        ),
        ("[ledger.spare_replicas]\nkv_ratio = '0'", "spare_replicas.kv_ratio: must be more than 0 and at most 1, not"),
        ("[ledger.spare_replicas]\nrunning_ratio = '1.1'", "spare_replicas.running_ratio: must be more than 0 and"),
        ("[ledger.spare_replicas]\nrunning_ratio = 'x'", "spare_replicas.running_ratio: 'x' is not a plain decimal"),
        ("[ledger.spare_replicas]\nobserved_days = 32", "spare_replicas.observed_days: must be from 1 to 31, not 32"),
        ("[portal]\nport = '1'", "portal.port must be a whole number, not a string"),
        ("[portal]\nport = 0", "portal.port: must be from 1 to 65535, not 0"),
        ("[portal]\nport = 2026-10-01", "portal.port must be a whole number, not a date or time"),
        ("[hub]\nlisten = '9470'", "hub.listen: '9470' is not host:port"),
        ("[hub]\nlisten = '::1:9470'", "hub.listen: '::1:9470': put an IPv6 address into brackets"),
        ("[hub]\nmetrics_listen = 'x:99999'", "hub.metrics_listen: 'x:99999' is not host:port"),
        ("[hub]\ngroup_rows = 0", "hub.group_rows: must be from 1 to 1000000000, not 0"),
        ("[hub]\ntls_key = 'k'", "hub.tls_key: tls_certificate and tls_key are given together"),
        ("[hub]\nclient_ca = 'c'", "hub.tls_certificate: client_ca and metrics_tls need a certificate"),
        ("[hub]\nqueue_rows = 10", "hub.queue_rows: the queue must hold at least one batch"),
        ("[hub]\nbatch_mebibytes = 1000", "hub.queue_rows: the queue must hold at least one batch"),
        ("[lake]\ncatalog = ' '", "lake.catalog: must not be empty"),
        ("[ledger]\ncurrency = \n", "(at line 2"),
        ("lake = 1", "lake must be a table, not a whole number"),
        ('"a\\nb" = 1', r"unknown key 'a\nb'; known keys: "),
    ],
)
def test_mistakes_are_named_by_their_path(text, message):
    with pytest.raises(ConfigError) as caught:
        parse_config(text)
    assert str(caught.value).startswith("gputally.toml: ")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_nesting_without_end_is_refused():
    with pytest.raises(ConfigError, match=r"x\.toml: "):
        parse_config("a = " + "[" * 100_000, file="x.toml")


def test_loading_a_workspace(tmp_path):
    with pytest.raises(ConfigError) as caught:
        load_config(tmp_path)
    assert str(caught.value) == f"no gputally.toml in {tmp_path}; run `gputally init {tmp_path}`"
    file = tmp_path / "gputally.toml"
    file.write_text("\ufeff[ledger]\ncurrency = 'EUR'\n", encoding="utf-8")
    assert load_config(tmp_path).ledger.currency == "EUR"
    file.write_bytes(b"[ledger]\ncurrency = '\xff'")
    with pytest.raises(ConfigError, match="is not UTF-8"):
        load_config(tmp_path)
    file.unlink()
    file.mkdir()
    with pytest.raises(ConfigError, match="cannot be read"):
        load_config(tmp_path)


def test_the_fingerprint_follows_the_books_only():
    base = Config()
    same = (parse_config(TEMPLATE), replace(base, lake=Lake(data="x")), replace(base, portal=Portal(port=9)))
    prints = [config_fingerprint(config) for config in (base, *same)]
    assert len(set(prints)) == 1
    assert len(prints[0]) == 64
    changed = (
        replace(base, ledger=Ledger(currency="EUR")),
        replace(base, ledger=Ledger(quota_source="q.csv")),
        replace(base, ledger=Ledger(token_weights=TokenWeights(output="5"))),
        replace(base, ledger=Ledger(weight_basis="measured")),
        replace(base, ledger=Ledger(servers=(Server("a", match_workload="a-*"),))),
        replace(base, pools={"idle": PoolPolicy("quota")}),
    )
    assert len({prints[0], *map(config_fingerprint, changed)}) == 1 + len(changed)


def test_a_config_cannot_be_changed_but_can_be_sent():
    config = Config(pools={"idle": PoolPolicy("quota")})
    with pytest.raises(TypeError):
        config.pools["idle"] = PoolPolicy("even")
    assert pickle.loads(pickle.dumps(config)) == config
    assert copy.deepcopy(config) == config
    with pytest.raises(ValueError, match="'lost' is not a kind of pool"):
        Config(pools={"lost": PoolPolicy("even")})
