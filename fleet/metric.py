"""What a metric is: a name that obeys one grammar, a kind, a unit, labels and a help text.

The grammar is `gputally_<noun>_<unit>[_total]`. Units are base units (seconds, bytes, joules,
watts, celsius, hertz, ratios from 0 to 1) or the plural of what is counted. Money ends in
`amount`, its unit being the label `currency`. A state or a set of attributes is an `info`
metric: the value is 1, what matters is in the labels, and the name ends in `_info`.
"""

import re
from dataclasses import dataclass
from typing import Literal

MetricKind = Literal["gauge", "counter", "histogram", "info"]

UNITS = (
    "seconds", "bytes", "ratio", "joules", "watts", "celsius", "hertz", "amount",
    "batches", "claims", "errors", "events", "gpus", "pages", "requests", "rows", "tokens",
)  # fmt: skip
"""The units a name may end in; the second line is counted nouns."""

_NAME = re.compile(r"gputally(_[a-z][a-z0-9]*){2,}", re.ASCII)
_LABEL = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", re.ASCII)
# Prometheus adds these itself: suffixes to histograms, labels to buckets and to every target.
_RESERVED_SUFFIXES = ("_bucket", "_count", "_created", "_sum")
_RESERVED_LABELS = ("instance", "job", "le", "quantile")


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric of the catalogue. ValueError when it breaks the grammar above."""

    name: str
    kind: MetricKind
    unit: str
    labels: tuple[str, ...]
    help: str

    def __post_init__(self) -> None:
        """Check name, ending, labels and help."""
        if not _NAME.fullmatch(self.name):
            raise ValueError(f"{self.name}: a name is gputally_<noun>_<unit>[_total] in lower case")
        if self.name.endswith(_RESERVED_SUFFIXES):
            raise ValueError(f"{self.name}: Prometheus keeps this ending for itself")
        self._check_ending()
        self._check_labels()
        if not self.help.endswith(".") or "\n" in self.help:
            raise ValueError(f"{self.name}: the help text is one line that ends with a full stop")

    def _check_ending(self) -> None:
        if self.kind == "info":
            if self.unit or not self.name.endswith("_info"):
                raise ValueError(f"{self.name}: an info metric has no unit and ends in _info")
            return
        if self.unit not in UNITS:
            raise ValueError(f"{self.name}: {self.unit!r} is not a unit, use one of {', '.join(UNITS)}")
        ending = f"_{self.unit}_total" if self.kind == "counter" else f"_{self.unit}"
        if not self.name.endswith(ending):
            raise ValueError(f"{self.name}: a {self.kind} in {self.unit} ends in {ending}")

    def _check_labels(self) -> None:
        for label in self.labels:
            if not _LABEL.fullmatch(label) or label in _RESERVED_LABELS:
                raise ValueError(f"{self.name}: {label!r} cannot be a label")
        if len(set(self.labels)) != len(self.labels):
            raise ValueError(f"{self.name}: a label appears twice")
        if (self.unit == "amount") != ("currency" in self.labels):
            raise ValueError(f"{self.name}: amounts, and only amounts, carry the label currency")
