"""Simulated learners climb, take snapshots, and as exploiters begin anew, by the rules of their
role.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from league.players import Player, Role
from matchmaker.sampling import roles
from matchmaker.sampling.slices import situation_of
from matchmaker.simulate.scenarios import Drift

if TYPE_CHECKING:
    from matchmaker.simulate.simulation import Simulation, Worker

STEPS_A_MATCH = 460
"""Learner steps of a match, as in matches of brawl."""


class Learning:
    """What becomes of the learners of a scenario that drifts; in others nothing happens to them."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        self._rng = np.random.default_rng([simulation.plan.seed, 2])
        self._matches: dict[str, int] = defaultdict(int)
        self._since: dict[str, int] = defaultdict(int)
        self._generation: dict[int, int] = defaultdict(lambda: 1)
        self.snapshots = 0
        self.resets = 0

    def steps(self, name: str) -> int:
        """Learner steps of a live player."""
        return STEPS_A_MATCH * self._matches[name]

    @property
    def interval(self) -> int:
        """Matches of a learner between two snapshots, so that the scenario's players suffice."""
        scenario, learners = self._simulation.scenario, len(self._simulation.cast.learners)
        spare = scenario.players - scenario.bots - learners
        trained = self._simulation.plan.matches * (1.0 - self._simulation.plan.clean_share)
        return max(1, int(trained / max(1, spare)))

    def played(self, worker: Worker, matches: int) -> None:
        """The worker's learner has played so many more."""
        scenario = self._simulation.scenario
        if not isinstance(scenario, Drift) or worker.learner is None:
            return
        name = self._simulation.cast.names[worker.learner]
        scenario.advance(worker.learner, matches)
        self._matches[name] += matches
        self._since[name] += matches
        if len(self._simulation.cast.names) < scenario.players and self._due(name):
            self._snapshot(worker, scenario)

    def _due(self, name: str) -> bool:
        settings, view = (
            self._simulation.server.league.settings,
            self._simulation.server.league.view,
        )
        learner = view.players[name]
        if settings.roles == "mix":
            return self._since[name] >= self.interval
        situation = situation_of(settings, learner, view.players, view.tables)
        return roles.snapshot_due(settings.roles, situation, self._since[name], self.interval)

    def _snapshot(self, worker: Worker, scenario: Drift) -> None:
        """Saved first; then, as the role says, the learner begins anew."""
        simulation, number = self._simulation, worker.learner
        assert number is not None
        cast, settings = simulation.cast, simulation.server.league.settings
        learner = next(player for player in cast.learners if player.name == cast.names[number])
        player = cast.snapshot(learner, self.steps(learner.name))
        scenario.copied(number, cast.number[player.name])
        scenario.group_N[cast.number[player.name]] = _base(learner.name)
        simulation.client.register_players([player], worker.incarnation)
        self._since[learner.name] = 0
        self.snapshots += 1
        if settings.roles == "mix" or learner.role is Role.MAIN:
            return
        steps = roles.after_snapshot(settings.roles, learner.role, self._rng.random())
        if roles.Step.RESET_WEIGHTS in steps:
            scenario.reset(number)
            self._new_generation(worker, learner)

    def _new_generation(self, worker: Worker, learner: Player) -> None:
        """Another live player, with payoff rows and a rating of its own, in the same place."""
        simulation, number = self._simulation, worker.learner
        assert number is not None
        self.resets += 1
        self._generation[number] += 1
        anew = replace(learner, name=f"{_base(learner.name)}-g{self._generation[number]}")
        simulation.cast.replace_learner(number, learner, anew)
        simulation.client.register_players([anew])
        simulation.open(worker)


def _base(name: str) -> str:
    """A learner's name without its generation."""
    return name.partition("-g")[0]
