"""Who is asking, and which teams' money they may see.

The queries enforce it, not the pages: every report of scope `team` filters by the scope's teams, and reports of scope
`finance` are refused to anybody who does not see all teams.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from fleet.errors import GputallyError

Role = Literal["finance", "platform", "team"]


class NotAllowedError(GputallyError):
    """The question is one that this scope may not ask."""


@dataclass(frozen=True, slots=True)
class Scope:
    """A role and the teams it sees; `teams` None means all of them. Frozen and hashable: part of every cache key."""

    role: Role
    teams: tuple[str, ...] | None

    def __post_init__(self) -> None:
        """Refuse a team role that sees everything."""
        if self.role == "team" and self.teams is None:
            raise ValueError("the team role must name its teams")

    @property
    def sees_all(self) -> bool:
        """Whether every team's money may be shown."""
        return self.teams is None

    def may_see(self, team: str) -> bool:
        """Whether this team's money may be shown."""
        return self.teams is None or team in self.teams


LOCAL: Final = Scope("finance", None)
"""Whoever can reach a portal that is bound to the loopback address: there is no sign-in yet."""


def current_scope() -> Scope:
    """The scope of the present visitor, decided anew on every run."""
    return LOCAL
