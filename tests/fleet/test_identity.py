"""Accounts are written, read back and never shared by two things."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleet import identity
from fleet.identity import Account, bounded_name, node_account, parse_account, pool_account

names = st.text(st.characters(exclude_categories=("Cc", "Cf", "Cs", "Zl", "Zp")), min_size=1, max_size=12)


@pytest.mark.parametrize(
    ("written", "kind", "name"),
    [
        (identity.invoice_account("AWS"), "invoice", "AWS"),
        (identity.prepaid_account("cr-1"), "prepaid", "cr-1"),
        (identity.node_account("east", "gpu-01"), "node", "east/gpu-01"),
        (identity.pool_account("h100", "idle"), "pool", "h100/idle"),
        (identity.server_account("llama:70b"), "server", "llama:70b"),
        (identity.team_account("vision"), "team", "vision"),
        (identity.rounding_account("AWS"), "rounding", "AWS"),
    ],
)
def test_accounts_are_written_and_read(written, kind, name):
    assert written == f"{kind}:{name}"
    assert parse_account(written) == Account(kind, name)
    assert str(parse_account(written)) == written


@given(names | st.just("a/%2Fb"), names, names, names)
@settings(max_examples=80)
def test_two_nodes_never_share_an_account(cluster, node, other_cluster, other_node):
    same = (cluster, node) == (other_cluster, other_node)
    assert (node_account(cluster, node) == node_account(other_cluster, other_node)) == same
    assert str(parse_account(node_account(cluster, node))) == node_account(cluster, node)


def test_a_slash_in_a_cluster_does_not_move_its_end():
    assert node_account("a/b", "c") == "node:a%2Fb/c"
    assert node_account("a", "b/c") == "node:a/b/c"
    assert node_account("a%2Fb", "c") == "node:a%252Fb/c"


@pytest.mark.parametrize(
    "text",
    ["", "team", "team:", "crew:a", "Team:a", "node:a", "node:/a", "node:a/", "node:a%2/b", "pool:h100/lost",
     "pool:idle", "pool:/idle", "team:a\nb"],
)  # fmt: skip
def test_what_is_no_account_is_refused(text):
    with pytest.raises(ValueError, match=r"."):
        parse_account(text)


@pytest.mark.parametrize("text", ["a", "a b", "équipe", "チーム", "👩‍💻", "x" * 256, "=1+1", "a/b:c"])
def test_names_may_be_nearly_anything(text):
    assert bounded_name(text) == text


@pytest.mark.parametrize("text", ["", "x" * 257, "a\nb", "a\0", "\x7f", "a\u2028b", "a\u202eb", "\ud800"])
def test_hidden_characters_and_long_names_are_refused(text):
    with pytest.raises(ValueError, match=r"must not be empty|longer than|control character"):
        bounded_name(text)


def test_pool_kinds_are_closed():
    with pytest.raises(ValueError, match="'lost' is not a kind of pool"):
        pool_account("h100", "lost")


def test_the_fixed_words():
    assert identity.CATEGORIES == (
        "used", "held_idle", "held", "idle", "unknown", "unused_commitment", "overhead", "serving",
        "unattributed", "tax", "credit", "adjustment", "rounding",
    )  # fmt: skip
    assert identity.POLICIES == ("proportional", "even", "quota", "central")
    assert set(identity.POOL_KINDS) - set(identity.CATEGORIES) == {"capacity"}
