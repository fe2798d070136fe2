"""Names in the ledger: its accounts, and the fixed words for pools, categories and policies.

An account is written `<kind>:<name>`. A name may hold anything that people call things, only
bounded in length and free of characters that act instead of show; so accounts are taken apart
by rule, never by a guess at what names look like.
"""

import unicodedata
from dataclasses import dataclass

from fleet.errors import quoted

NAME_LENGTH_LIMIT = 256

ACCOUNT_KINDS = ("invoice", "prepaid", "node", "pool", "server", "team", "rounding")
"""What an account stands for: billed, paid ahead, a machine, an unheld sum, a shared server,
a team (where everything ends), and what no rounding could place."""

POOL_KINDS = (
    "capacity",
    "idle",
    "unattributed",
    "unused_commitment",
    "overhead",
    "unknown",
    "tax",
    "credit",
    "adjustment",
    "rounding",
)
"""Why a sum is in a pool; `capacity` is the pool's paid capacity before it is shared out."""

CATEGORIES = (
    "used",
    "held_idle",
    "held",
    "idle",
    "unknown",
    "unused_commitment",
    "overhead",
    "serving",
    "unattributed",
    "tax",
    "credit",
    "adjustment",
    "rounding",
)
"""The headings of a statement, in the order they are printed."""

POLICIES = ("proportional", "even", "quota", "central")
"""The ways in which a pool is distributed to teams."""

# Besides controls (Cc): line and paragraph separators, and lone surrogates (not UTF-8).
_REFUSED_CHARACTER_CLASSES = ("Cc", "Cs", "Zl", "Zp")
# Marks that turn the direction of text and so can make one name look like another.
_DIRECTION_MARKS = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


@dataclass(frozen=True, slots=True, order=True)
class Account:
    """One account; `name` is all that follows the kind, as written. `str()` writes it back."""

    kind: str
    name: str

    def __str__(self) -> str:
        """`<kind>:<name>`."""
        return f"{self.kind}:{self.name}"


def bounded_name(text: str) -> str:
    """The text itself if it can serve as a name: 1 to 256 characters, none of them hidden.

    ValueError for control characters, line separators, direction overrides and surrogates.
    """
    if not text:
        raise ValueError("a name must not be empty")
    if len(text) > NAME_LENGTH_LIMIT:
        raise ValueError(f"{quoted(text)} is longer than {NAME_LENGTH_LIMIT} characters")
    for character in text:
        if character in _DIRECTION_MARKS or unicodedata.category(character) in _REFUSED_CHARACTER_CLASSES:
            raise ValueError(f"{quoted(text)} holds the control character {character!r}")
    return text


def invoice_account(issuer: str) -> str:
    """What an issuer billed."""
    return f"invoice:{bounded_name(issuer)}"


def prepaid_account(commitment: str) -> str:
    """What was paid for a commitment and not yet consumed."""
    return f"prepaid:{bounded_name(commitment)}"


def node_account(cluster: str, node: str) -> str:
    """What a node cost: `node:<cluster>/<node>`.

    A slash in the cluster (cloud ARNs have one) is written `%2F`, and a percent sign `%25`, so
    that the first slash always ends the cluster and no two nodes share an account.
    """
    plain = bounded_name(cluster).replace("%", "%25").replace("/", "%2F")
    return f"node:{plain}/{bounded_name(node)}"


def pool_account(name: str, kind: str) -> str:
    """What nobody held, of one kind: `pool:<name>/<kind>`; ValueError for an unknown kind."""
    return f"pool:{bounded_name(name)}/{_pool_kind(kind)}"


def server_account(workload: str) -> str:
    """What a shared model server cost, before its tenants take it over."""
    return f"server:{bounded_name(workload)}"


def team_account(name: str) -> str:
    """What a team pays."""
    return f"team:{bounded_name(name)}"


def rounding_account(issuer: str) -> str:
    """Sub-cent residue and the issuer's own rounding lines."""
    return f"rounding:{bounded_name(issuer)}"


def parse_account(text: str) -> Account:
    """The kind and name of a written account; ValueError if no function here writes it so."""
    kind, _, name = text.partition(":")
    if kind not in ACCOUNT_KINDS:
        raise ValueError(f"{quoted(text)} is not an account: it starts with none of {_list(ACCOUNT_KINDS)}")
    if kind == "node":
        cluster, slash, node = name.partition("/")
        if not slash or node_account(_decoded(cluster), node) != text:
            raise ValueError(f"{quoted(text)} is not an account: a node is node:<cluster>/<node>")
    elif kind == "pool":
        pool, _, pool_kind = name.rpartition("/")
        bounded_name(pool)
        _pool_kind(pool_kind)
    else:
        bounded_name(name)
    return Account(kind, name)


def _decoded(cluster: str) -> str:
    return cluster.replace("%2F", "/").replace("%25", "%")


def _pool_kind(kind: str) -> str:
    if kind not in POOL_KINDS:
        raise ValueError(f"{quoted(kind)} is not a kind of pool: one of {_list(POOL_KINDS)}")
    return kind


def _list(words: tuple[str, ...]) -> str:
    return ", ".join(words)
