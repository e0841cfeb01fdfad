"""Implements ``bin/league prune``, which removes unneeded weights of retired snapshots."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from league.errors import LeagueError
from league.evaluations import EvaluationState
from league.exploiters import is_mains_snapshot
from league.players import Player, PlayerKind, PlayerState
from league.replay.file import SUFFIX, load_replay
from league.runs.records import read_rows
from matchmaker.state.analysis import EVENT as ANALYSIS
from matchmaker.state.analysis import analysis_of
from matchmaker.state.evaluations import EVENTS as EVALUATIONS
from matchmaker.state.evaluations import Evaluations
from matchmaker.state.exploiters import EVENTS, ExploiterState
from matchmaker.store.transaction import Reader


def unneeded(reader: Reader, run_dir: Path) -> list[Player]:
    """Returns the retired snapshots whose weights neither the league nor the run's folder needs."""
    players = {player.name: player for player in reader.players()}
    names = {*_needed_by_league(reader, players), *_needed_by_run(reader, run_dir, players)}
    needed = {players[name].digest for name in names if name in players}
    for file in (run_dir / "replays").glob(f"*{SUFFIX}"):
        with suppress(LeagueError):  # a damaged replay can't be watched, so it needs no weights
            needed |= {seat.digest for seat in load_replay(file).seats}
    return [player for player in players.values() if player.digest not in needed]


def _needed_by_league(reader: Reader, players: dict[str, Player]) -> Iterator[str]:
    """Yields milestones (snapshots that the league keeps for good), all players that are not
    retired snapshots, and the parents of all these players. Also yields the players that the last
    analysis, an exploiter's generation or an open evaluation needs.
    """
    for player in players.values():
        if (
            player.kind is not PlayerKind.SNAPSHOT
            or player.state is not PlayerState.RETIRED
            or player.milestone
        ):
            yield from (player.name, player.parent)
    if analyses := reader.events_of(ANALYSIS):
        yield from analysis_of(analyses[-1]).support
    exploiters = ExploiterState(reader.events_of(*EVENTS))
    for generations in exploiters.generations.values():
        yield from (name for generation in generations for name in generation.victims)
        yield generations[-1].parent  # the next generation begins with its weights
    for evaluation, targets in Evaluations(reader.events_of(*EVALUATIONS)).asked.values():
        if evaluation.state is EvaluationState.OPEN:  # also if it is done, as it may open again
            yield from (name for target in targets for name in (target.player, target.opponent))


def _needed_by_run(reader: Reader, run_dir: Path, players: dict[str, Player]) -> Iterator[str]:
    """Yields the players that learners need to continue from any checkpoint, and the players that
    the evaluator's next matches need.
    """
    checkpoints = run_dir.glob("learner-*/**/checkpoints/step_*.pt")
    since = min((file.stat().st_mtime for file in checkpoints), default=math.inf)
    for seats in reader.seats_since(since):
        yield from seats
    rows = read_rows(run_dir / "evaluator" / "evaluation_results.csv")
    evaluated = {row["player"] for row in rows}
    ends: dict[str, list[str]] = {}
    for player in filter(is_mains_snapshot, players.values()):
        ends.setdefault(player.creator, []).append(player.name)
        if player.created_at >= since or (evaluated and player.name not in evaluated):
            yield from (player.name, player.parent)
    for names in ends.values():
        yield from (names[0], names[-1])  # milestones meet the oldest snapshot
