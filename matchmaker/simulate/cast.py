"""The league's players in a simulation: bots, learners and snapshots, numbered as in the
scenario.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

from league.ids import SnapshotName
from league.players import Player, PlayerKind, Role
from matchmaker.sampling.roles import LEARNING
from matchmaker.settings import MatchmakerSettings
from matchmaker.simulate.scenarios import Scenario

BOTS = ("random", "constant", "based")
"""Of the built-in scenarios, the weakest first; the mixes of the presets name them."""
LEARNER_NAMES = {
    Role.MAIN: "main",
    Role.MAIN_EXPLOITER: "main-exploiter",
    Role.LEAGUE_EXPLOITER: "league-exploiter",
}


@dataclass
class Cast:
    """Who is who: names by number, and numbers by name. Snapshots are added as they are made.

    `given`: names of the snapshots of a scenario that brings its own.
    """

    game: str
    learners: list[Player]
    names: list[str]
    given: list[str] = field(default_factory=list)
    number: dict[str, int] = field(init=False)

    def __post_init__(self) -> None:
        self.number = {name: number for number, name in enumerate(self.names)}

    def first(self, scenario: Scenario) -> list[Player]:
        """Everybody that is there from the start, in order; a scenario that drifts has no
        snapshots then.
        """
        bots = [
            Player(name=name, game=self.game, kind=PlayerKind.BOT)
            for name in self.names[: scenario.bots]
        ]
        players = [*bots, *self.learners]
        if not scenario.drifts:
            if self.given:
                return players + [self._given(name) for name in self.given]
            spare = scenario.players - len(players)
            players += [
                self.snapshot(
                    self.learners[place % len(self.learners)], 1 + place // len(self.learners)
                )
                for place in range(spare)
            ]
        return players

    def snapshot(self, learner: Player, step: int) -> Player:
        """A new one; it takes the next number."""
        return self._add(str(SnapshotName(learner.name, step)), learner.role, learner.name)

    def _given(self, name: str) -> Player:
        """One of a file's: of a main, whoever that was."""
        return self._add(name, Role.MAIN, "")

    def _add(self, name: str, role: Role, parent: str) -> Player:
        self.number[name] = len(self.names)
        self.names.append(name)
        return Player(
            name=name,
            game=self.game,
            kind=PlayerKind.SNAPSHOT,
            role=role,
            parent=parent,
            digest=hashlib.sha256(name.encode()).hexdigest(),
            step=SnapshotName.parse(name).step,
        )

    def replace_learner(self, number: int, before: Player, after: Player) -> None:
        """A new generation: another live player in the same place."""
        self.learners[self.learners.index(before)] = after
        self.names[number] = after.name
        self.number[after.name] = number


def cast_of(settings: MatchmakerSettings, learners: int, bots: tuple[str, ...] = BOTS) -> Cast:
    """Learners are mains, or of all three roles in turn where the settings have role rules."""
    roles = LEARNING if settings.roles != "mix" else (Role.MAIN,)
    made = []
    for place in range(learners):
        role, turn = roles[place % len(roles)], place // len(roles)
        name = LEARNER_NAMES[role] + (f"-{turn + 1}" if turn else "")
        made.append(Player(name=name, game=settings.game, kind=PlayerKind.LIVE, role=role))
    return Cast(settings.game, made, [*bots, *(player.name for player in made)])
