"""An evaluator that works in a thread against a real matchmaker and plays the real game."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import grpc
from evaluator_league import MATCH_SECONDS
from waiting import PATIENCE

from evaluator.clean.runner import Evaluator
from evaluator.clean.service import EvaluatorServer
from evaluator.settings import EvaluatorSettings
from league.games.registry import game_spec, make_batched
from league.replay import Recipe
from league.rpc.client import MatchmakerClient
from league.service.settings import OperationsSettings
from league.v1 import evaluator_pb2 as e
from league.v1.evaluator_pb2_grpc import EvaluatorServiceStub

BOTS = [bot.name for bot in game_spec("brawl").bots]
FIRST = 10
SETTINGS = EvaluatorSettings(matches_per_snapshot=19, milestone_matches=4)
"""A snapshot plays `FIRST` matches at once, and no pair is chosen for its information: the rest of
the budget of one snapshot is less than what is allocated at once."""


class Running:
    """An evaluator that works in a thread, and a stub that speaks to its service."""

    def __init__(self, evaluator: Evaluator, stub: EvaluatorServiceStub, address: str) -> None:
        self.evaluator, self.stub, self.address = evaluator, stub, address
        self.error: BaseException | None = None
        self.thread = threading.Thread(target=self._work)
        self.thread.start()

    def _work(self) -> None:
        try:
            self.evaluator.open()
            self.evaluator.run()
        except BaseException as error:
            self.error = error

    def status(self) -> e.GetEvaluatorStatusResponse:
        return self.stub.GetEvaluatorStatus(e.GetEvaluatorStatusRequest())

    def stop(self) -> None:
        self.evaluator.stop.set()
        self.thread.join(PATIENCE)
        assert not self.thread.is_alive()


@contextmanager
def running(
    client: MatchmakerClient,
    run_dir: Path,
    match_seconds: float = MATCH_SECONDS,
    operations: OperationsSettings | None = None,
    worker: str = "evaluator-0",
    **changes: object,
) -> Iterator[Running]:
    settings = EvaluatorSettings(**(SETTINGS.model_dump() | changes))
    game = make_batched("brawl", 8, max_frames=round(match_seconds * 30))
    with MatchmakerClient(client.address, wait_seconds=5) as own:
        recipe = Recipe(name="brawl", version=game.spec.version, max_frames=game.spec.max_frames)
        evaluator = Evaluator(own, game, run_dir, settings, recipe=recipe, worker=worker)
        with (
            EvaluatorServer(evaluator, client, operations=operations) as server,
            grpc.insecure_channel(server.address) as channel,
        ):
            run = Running(evaluator, EvaluatorServiceStub(channel), server.address)
            try:
                yield run
            finally:
                run.stop()
