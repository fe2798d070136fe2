"""How the cost of shared model servers is divided: which servers there are, what a token weighs, what is too much."""

from dataclasses import astuple, dataclass

from fleet.binding import FieldError
from fleet.exact import to_units
from fleet.identity import bounded_name
from fleet.money import parse_decimal

WEIGHT_DIGITS = 6
"""Decimals of a weight: the ledger counts in millionths."""
WEIGHT_LIMIT = 1_000_000
MOST_SLOTS = 1_000_000
MOST_DAYS = 31
"""Replicas are judged by one month."""


@dataclass(frozen=True, slots=True)
class TokenWeights:
    """What a token of each kind weighs, as plain decimals in text: a TOML number would be a float."""

    input: str = "1"
    cached_input: str = "0.1"
    output: str = "4"

    def __post_init__(self) -> None:
        """Refuse what is no decimal, negative, too large or too fine, and weights that are all zero."""
        for name in ("input", "cached_input", "output"):
            text: str = getattr(self, name)
            if not 0 <= _millionths(name, text) <= WEIGHT_LIMIT * 10**WEIGHT_DIGITS:
                raise FieldError(name, f"must be from 0 to {WEIGHT_LIMIT}, not {text}")
        if not any(self.millionths()):
            raise FieldError("output", "one of the weights must be more than 0")

    def millionths(self) -> tuple[int, int, int]:
        """Weights of input, cached input and output as whole millionths."""
        first, second, third = (to_units(parse_decimal(text), WEIGHT_DIGITS) for text in astuple(self))
        return first, second, third


def _millionths(name: str, text: str) -> int:
    try:
        return to_units(parse_decimal(text), WEIGHT_DIGITS)
    except ValueError as error:
        raise FieldError(name, str(error)) from None


@dataclass(frozen=True, slots=True)
class SpareReplicas:
    """Below which load a model server has too many replicas: our own numbers, for no standard gives any.

    Both ratios are limits of a p95, as plain decimals in text: running requests over slots, and the share of the
    cache in use. Nothing is said before a server was watched for that many days of the month.
    """

    running_ratio: str = "0.1"
    kv_ratio: str = "0.3"
    observed_days: int = 7

    def __post_init__(self) -> None:
        """Refuse what is no share above 0, and days that no month has."""
        for name in ("running_ratio", "kv_ratio"):
            text: str = getattr(self, name)
            if not 0 < _millionths(name, text) <= 10**WEIGHT_DIGITS:
                raise FieldError(name, f"must be more than 0 and at most 1, not {text}")
        if not 1 <= self.observed_days <= MOST_DAYS:
            raise FieldError("observed_days", f"must be from 1 to {MOST_DAYS}, not {self.observed_days}")

    def millionths(self) -> tuple[int, int]:
        """Limits of running requests over slots and of the cache in use, as whole millionths."""
        return _millionths("running_ratio", self.running_ratio), _millionths("kv_ratio", self.kv_ratio)


@dataclass(frozen=True, slots=True)
class Server:
    """A shared model server and the holdings that are its: patterns (GLOB) as in the team files.

    `max_running_requests` is how many requests one replica can run at once (vLLM: `max_num_seqs`), 0 where not known.
    """

    name: str
    match_namespace: str = ""
    match_workload: str = ""
    max_running_requests: int = 0

    def __post_init__(self) -> None:
        """Refuse what is no name, a server that would match everything, and slots that no engine has."""
        for name in ("name", "match_namespace", "match_workload"):
            text: str = getattr(self, name)
            if name == "name" or text:
                try:
                    bounded_name(text)
                except ValueError as error:
                    raise FieldError(name, str(error)) from None
        if not self.match_namespace and not self.match_workload:
            raise FieldError("match_workload", "give match_namespace, match_workload or both")
        if not 0 <= self.max_running_requests <= MOST_SLOTS:
            raise FieldError("max_running_requests", f"must be from 0 (not known) to {MOST_SLOTS}")
