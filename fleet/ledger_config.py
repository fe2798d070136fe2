"""How the cost of shared model servers is divided: which servers there are, and what a token weighs."""

from dataclasses import astuple, dataclass

from fleet.binding import FieldError
from fleet.exact import to_units
from fleet.identity import bounded_name
from fleet.money import parse_decimal

WEIGHT_DIGITS = 6
"""Decimals of a weight: the ledger counts in millionths."""
WEIGHT_LIMIT = 1_000_000


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
            try:
                weight = parse_decimal(text)
                to_units(weight, WEIGHT_DIGITS)
            except ValueError as error:
                raise FieldError(name, str(error)) from None
            if not 0 <= weight <= WEIGHT_LIMIT:
                raise FieldError(name, f"must be from 0 to {WEIGHT_LIMIT}, not {text}")
        if not any(self.millionths()):
            raise FieldError("output", "one of the weights must be more than 0")

    def millionths(self) -> tuple[int, int, int]:
        """Weights of input, cached input and output as whole millionths."""
        first, second, third = (to_units(parse_decimal(text), WEIGHT_DIGITS) for text in astuple(self))
        return first, second, third


@dataclass(frozen=True, slots=True)
class Server:
    """A shared model server and the holdings that are its: patterns (GLOB) as in the team files."""

    name: str
    match_namespace: str = ""
    match_workload: str = ""

    def __post_init__(self) -> None:
        """Refuse what is no name, and a server that would match everything."""
        for name in ("name", "match_namespace", "match_workload"):
            text: str = getattr(self, name)
            if name == "name" or text:
                try:
                    bounded_name(text)
                except ValueError as error:
                    raise FieldError(name, str(error)) from None
        if not self.match_namespace and not self.match_workload:
            raise FieldError("match_workload", "give match_namespace, match_workload or both")
