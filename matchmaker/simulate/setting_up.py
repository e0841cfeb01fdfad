"""Scenario, players and settings of a simulation, from what was asked for."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from league.errors import InvalidInput
from matchmaker.settings import MatchmakerSettings
from matchmaker.simulate.cast import Cast, cast_of
from matchmaker.simulate.scenario_files import scenario_of_file
from matchmaker.simulate.scenarios import Scenario, scenario_of


def set_up(
    scenario: str, settings: MatchmakerSettings, players: int, learners: int, seed: int
) -> tuple[Scenario, Cast, MatchmakerSettings]:
    """A scenario by name or file, its players, and the settings with room for all of them.

    Raises `InvalidInput` where snapshots must pass gates: no evaluator is simulated that would play
    them.
    """
    if settings.admit == "gate":
        raise InvalidInput(
            'the simulator plays no gates: leave out matchmaker.admit = "gate" for it'
        )
    rng = np.random.default_rng([seed, 0])
    if Path(scenario).suffix in (".toml", ".tsv"):
        truth, cast, settings = scenario_of_file(Path(scenario), settings, learners)
    else:
        truth = scenario_of(scenario, rng, players, learners)
        cast = cast_of(settings, learners)
    room = {"max_saved": max(settings.max_saved, truth.players), "max_open_leases": 1_000_000}
    return truth, cast, settings.model_copy(update=room)
