"""Collects the state of a population (several mains that copy each other) from the log's events."""

from __future__ import annotations

import json
from collections.abc import Iterable

from league.players import Event
from league.population import Member, MemberCopy, Population

EVENTS = ("member_compared", "member_copied")
"""Kinds of events that `PopulationState` reads."""


class PopulationState:
    """Keeps the newest comparison of each member, and all copies."""

    def __init__(self, events: Iterable[Event] = ()) -> None:
        self.members: dict[str, Member] = {}
        self.copies: list[MemberCopy] = []
        for event in events:
            self.take(event)

    def take(self, event: Event) -> None:
        """Applies an event of a kind in `EVENTS`."""
        data = json.loads(event.data_json)
        if event.kind == "member_compared":
            member = Member(**data["member"] | {"at": event.at})
        else:
            copy = MemberCopy(**data["copy"] | {"number": event.position, "at": event.at})
            self.copies.append(copy)
            member = Member(player=copy.player, step=copy.step, values=copy.values, at=event.at)
        self.members[member.player] = member

    def newest_copy(self, player: str) -> MemberCopy | None:
        """Returns the newest copy that a member made, or None."""
        return next((copy for copy in reversed(self.copies) if copy.player == player), None)

    def all(self) -> Population:
        return Population(members=tuple(self.members.values()), copies=tuple(self.copies))
