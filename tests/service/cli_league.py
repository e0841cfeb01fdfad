"""Leagues for the command line's tests: real matchmaker, real weights, results made up by rank."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

import pytest
from evaluator_league import register_bots_and_live, register_snapshot
from torch.utils.tensorboard import SummaryWriter

from league.cli.main import main
from league.players import Assignment, Book, MatchResult, Pairing, SeatResult
from league.rpc.client import MatchmakerClient
from league.runs.finding import FORMAT
from league.runs.folder import write_config
from league.settings.base import resolve
from league.stages import Place, Stage
from matchmaker.main import MatchmakerServer
from matchmaker.store.sqlite import locked

STAGES = (
    Stage(
        name="constant",
        mix="constant",
        until_opponent="constant",
        until_win_rate=0.9,
        max_steps=2000,
    ),
    Stage(
        name="based",
        mix="based",
        until_opponent="based",
        until_win_rate=0.9,
        max_steps=2000,
    ),
    Stage(name="league", mix="league"),
)
STRENGTH = {"constant": 0, "random": 1, "clockwork": 2, "main@1000": 3, "based": 4, "main@2000": 5}


@dataclass(frozen=True)
class Live:
    """A league that is served in this process: no process to start."""

    address: str
    ids: dict[str, str]
    """A match id by category (``snapshots``, …)."""


@contextmanager
def live_league(folder: Path) -> Iterator[Live]:
    """A live league of what a run holds, asked by most tests."""
    with (
        MatchmakerServer(db=folder / "league.db", port=0) as server,
        MatchmakerClient(server.address) as client,
    ):
        yield Live(server.address, fill(client, folder))


def asking(league: Live, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """What runs a command of the live league and returns what it printed."""

    def call(*words: str) -> str:
        assert main([*words, "--address", league.address]) == 0
        return capsys.readouterr().out

    return call


def rows(text: str) -> list[dict[str, str]]:
    """A table that a command printed."""
    return list(csv.DictReader(io.StringIO(text), delimiter="\t"))


@contextmanager
def announced(run_dir: Path, address: str) -> Iterator[None]:
    """Says for a read-only matchmaker that it serves the run at `address`, which only the log's
    writer says by itself.
    """
    with os.fdopen(locked(run_dir / "league.db"), "w") as lock:
        lock.write(address)
        lock.flush()
        yield


@contextmanager
def served(run_dir: Path, *, read_only: bool = True) -> Iterator[Path]:
    """The run folder while a matchmaker serves it, so that commands need not start one."""
    with (
        MatchmakerServer(db=run_dir / "league.db", port=0, read_only=read_only) as server,
        announced(run_dir, server.address) if read_only else nullcontext(),
    ):
        yield run_dir


def make_run(run_dir: Path) -> dict[str, str]:
    """Fills a run folder as a league leaves it. Returns a match id by category (``snapshots``,
    …).
    """
    run_dir.mkdir(parents=True)
    (run_dir / "run.json").write_text(
        json.dumps({"format": FORMAT, "version": "0.1.0", "preset": "smoke"})
    )
    write_config(
        run_dir / "config.toml", resolve(assignments=["game.match_seconds=4"], environment={})
    )
    with SummaryWriter(str(run_dir / "learner-main" / "tensorboard")) as writer:
        for step in (1000, 2000):
            writer.add_scalar("policy/entropy", 5000 / step, step)
    with (
        MatchmakerServer(db=run_dir / "league.db", port=0, seed=3) as server,
        MatchmakerClient(server.address) as client,
    ):
        return fill(client, run_dir)


def fill(client: MatchmakerClient, run_dir: Path) -> dict[str, str]:
    """Players, 40 matches of training, and a gauntlet of every pair in both books."""
    register_bots_and_live(client)
    register_snapshot(client, run_dir, 1000)
    register_snapshot(client, run_dir, 2000, parent="main@1000")
    learner = client.open_incarnation("learner-main", "main").number
    training = client.acquire_matches(learner, 40, "league")
    client.report_results(learner, [result_of(match) for match in training[:-1]])
    client.heartbeat(learner, 1, step=2000, mix="league", activity="rollout")
    client.enter_stage(learner, 1400, STAGES, Place(index=1, since_step=1400))
    evaluator = client.open_incarnation("evaluator-0").number
    names = list(STRENGTH)
    pairings = [
        Pairing(player=names[high], opponent=names[low], pairs=3, book=book, seed=7)
        for high in range(len(names))
        for low in range(high)
        for book in (Book.EVAL, Book.GREEDY)
    ]
    gauntlet = client.acquire_pairings(evaluator, pairings)
    client.report_results(evaluator, [result_of(match) for match in gauntlet])
    by = "user@host"
    client.request_evaluation("main", ["based", "random=3,constant=1"], 6, by)
    client.request_evaluation("main@1000", ["clockwork"], 40, by, Book.GREEDY)
    ids = {match.category: match.match_id for match in [*gauntlet, *training]}
    return ids | {"open": training[-1].match_id}


def result_of(match: Assignment) -> MatchResult:
    strengths = [STRENGTH.get(player.name, 4.5) for player in match.seats]
    draw = match.ordinal % 7 == 0
    outcome = 0.5 if draw else float(strengths[0] > strengths[1])
    return MatchResult(
        match_id=match.match_id,
        lease_token=match.lease_token,
        outcome=outcome,
        frames=900,
        seats=_seats(match),
        finished_at=1_700_000_000.0,
    )


def _seats(match: Assignment) -> tuple[SeatResult, SeatResult]:
    def seat(index: int) -> SeatResult:
        player, live = match.seats[index], index == match.learner_seat
        steps: Sequence[int] = (1500, 1600) if live else (0, 0)
        return SeatResult(
            player=player.name,
            digest=player.digest,
            step_start=steps[0],
            step_end=steps[1],
            stats={"damage_dealt": 10.0 * index, "knockouts": 1.0},
        )

    return seat(0), seat(1)
