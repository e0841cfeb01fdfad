"""The players of a simulated league, and what is needed to simulate it.

Bots come first, then learners, then snapshots in the order in which they are registered; a player's
number is the same in the scenario.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from league.errors import InvalidInput
from league.ids import SnapshotName
from league.players import Player, PlayerKind, Role
from matchmaker.sampling.roles import LEARNING
from matchmaker.settings import MatchmakerSettings
from matchmaker.simulate.scenario_files import scenario_of_file
from matchmaker.simulate.scenarios import BOTS, Scenario, scenario_of

LEARNER_NAMES = {
    Role.MAIN: "main",
    Role.MAIN_EXPLOITER: "main-exploiter",
    Role.LEAGUE_EXPLOITER: "league-exploiter",
}


@dataclass
class Roster:
    """Names by number and numbers by name; it grows by snapshots.

    Attributes:
        given: names of the snapshots of a scenario file.
    """

    game: str
    learners: list[Player]
    names: list[str]
    given: tuple[str, ...] = ()
    number: dict[str, int] = field(init=False)

    def __post_init__(self) -> None:
        self.number = {name: number for number, name in enumerate(self.names)}

    def first(self, scenario: Scenario) -> list[Player]:
        """Returns the players from the start; a scenario that drifts has no snapshots then."""
        bots = [
            Player(name=name, game=self.game, kind=PlayerKind.BOT)
            for name in self.names[: scenario.bots]
        ]
        players = [*bots, *self.learners]
        if scenario.drifts:
            return players
        if self.given:
            return players + [self._add(name, Role.MAIN, "") for name in self.given]
        for place in range(scenario.players - len(players)):
            turn, learner = divmod(place, len(self.learners))
            players.append(self.snapshot(self.learners[learner], 1 + turn))
        return players

    def snapshot(self, learner: Player, step: int) -> Player:
        """Adds a snapshot of a learner, under the next number."""
        return self._add(str(SnapshotName(learner.name, step)), learner.role, learner.name)

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
        """Puts another live player, a new generation, in a learner's place."""
        self.learners[self.learners.index(before)] = after
        self.names[number] = after.name
        self.number[after.name] = number


def set_up(
    scenario: str, settings: MatchmakerSettings, players: int, learners: int, seed: int
) -> tuple[Scenario, Roster, MatchmakerSettings]:
    """Returns a scenario by name or file, its players, and the settings with room for all of them.

    Learners are mains, or of all three roles in turn if the settings have role rules.

    Raises:
        InvalidInput: unknown scenario, too few players, or snapshots that must pass gates, because
            no evaluator is simulated.
    """
    if settings.admit == "gate":
        raise InvalidInput(
            'matchmaker.admit = "gate" can\'t be simulated, for nothing plays the gates: leave it out'
        )
    roles = LEARNING if settings.roles != "mix" else (Role.MAIN,)
    live = []
    for place in range(learners):
        turn, role = place // len(roles), roles[place % len(roles)]
        name = LEARNER_NAMES[role] + (f"-{turn + 1}" if turn else "")
        live.append(Player(name=name, game=settings.game, kind=PlayerKind.LIVE, role=role))
    names = [player.name for player in live]
    if Path(scenario).suffix in (".toml", ".tsv"):
        found = scenario_of_file(Path(scenario), learners)
        truth: Scenario = found.scenario
        roster = Roster(settings.game, live, [*found.bots, *names], found.snapshots)
        if not set(settings.mixes.get("league", {})) & set(found.bots):
            mix = {"snapshots": 7.0} | {bot: 3.0 / len(found.bots) for bot in found.bots}
            settings = settings.model_copy(update={"mixes": settings.mixes | {"league": mix}})
    else:
        truth = scenario_of(scenario, np.random.default_rng([seed, 0]), players, learners)
        roster = Roster(settings.game, live, [*BOTS, *names])
    room = max(settings.max_saved, truth.players)
    return truth, roster, settings.model_copy(update={"max_saved": room})
