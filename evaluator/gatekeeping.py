"""Plays the gates of candidates, and gives those up that can't be played."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from evaluator.gates import Desk, GateRun
from evaluator.pace import Pace
from evaluator.play import Arena
from evaluator.settings import EvaluatorSettings
from evaluator.weights import Weights
from league.errors import DataCorrupt, Fenced, InvalidInput, NotFound, Refused
from league.exploiters import CandidateGate
from league.games.base import BatchedGame
from league.players import Player, PlayerKind
from league.rpc.client import MatchmakerClient

UNPLAYABLE = (DataCorrupt, NotFound, InvalidInput)
_log = logging.getLogger("evaluator")


@dataclass(frozen=True, kw_only=True)
class GateProgress:
    """How far a gate is: matches counted against the victim whose turn it is, and frames played
    for it.
    """

    gate: CandidateGate
    frames: int
    matches_per_second: float


class Gatekeeper:
    """Plays gates on `game` until `stop` is set."""

    def __init__(
        self,
        client: MatchmakerClient,
        game: BatchedGame,
        weights: Weights,
        settings: EvaluatorSettings,
        stop: threading.Event,
    ) -> None:
        self._client, self._game, self._weights = client, game, weights
        self._settings, self._stop = settings, stop

    def play(
        self,
        gate: CandidateGate,
        players: Mapping[str, Player],
        incarnation: int,
        tell: Callable[[GateProgress], None],
    ) -> GateRun | None:
        """Plays a gate to its end, or until it is told to stop; the run has what is left to hand
        back then.

        None when it was given up: its candidate or a victim can't play. `tell` hears of every
        decision.
        """
        try:
            frame_skip = self._frame_skip(gate, players)
            return self._play(gate, players[gate.candidate], frame_skip, incarnation, tell)
        except (*UNPLAYABLE, Refused) as error:
            if isinstance(error, Fenced):
                raise
            _log.error("the gate of %s is given up: %s", gate.candidate, error)
            self._client.release_matches(incarnation, reason="the gate is given up")
            self._client.give_up_gate(incarnation, gate.candidate, str(error)[:400])
            return None

    def _frame_skip(self, gate: CandidateGate, players: Mapping[str, Player]) -> int:
        """Frames of a decision; raises what `UNPLAYABLE` names, or `InvalidInput` where they
        differ.
        """
        skip = self._weights.card(players[gate.candidate]).frame_skip
        for test in gate.victims:
            victim = players[test.victim]
            if victim.kind is PlayerKind.BOT:
                continue
            pace = self._weights.card(victim).frame_skip
            if pace != skip:
                raise InvalidInput(
                    f"{victim.name} decides every {pace} frames, the candidate every {skip}"
                )
        return skip

    def _play(
        self,
        gate: CandidateGate,
        candidate: Player,
        frame_skip: int,
        incarnation: int,
        tell: Callable[[GateProgress], None],
    ) -> GateRun:
        settings = self._settings
        arena = Arena(
            self._game,
            self._weights.network,
            frame_skip=frame_skip,
            seed=settings.seed + candidate.step,
        )
        desk = Desk(
            client=self._client,
            incarnation=incarnation,
            report_seconds=settings.report_seconds,
            say=_log.warning,
        )
        run, began, pace = GateRun(desk, arena, gate), time.monotonic(), Pace(settings.cpu_share)
        while not run.finished and not self._stop.is_set():
            run.step()
            pace.rest(self._stop.wait)
            speed = run.accepted / max(1e-9, time.monotonic() - began)
            tell(GateProgress(gate=run.gate, frames=arena.frames_played, matches_per_second=speed))
        if run.finished:
            _log.info(
                "the gate of %s: %s %s", gate.candidate, run.gate.state.value, run.gate.reason
            )
        return run
