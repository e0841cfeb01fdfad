"""Made-up screens for the tests of the terminal view."""

from __future__ import annotations

from dataclasses import replace

from league.players import PayoffCell, Player, PlayerKind, Rating
from league.status import LeagueStatus, Share, WorkerStatus
from league.v1.evaluator_pb2 import GetEvaluatorStatusResponse
from league.views.facts import (
    LeagueFacts,
    Note,
    ProcessFacts,
    Screen,
    State,
)

BOTS = ("constant", "random", "based", "clockwork")
NOW = 1_700_000_000.0

EMPTY = Screen(
    run_dir="runs/laptop-1", preset="laptop", device="", started_at=NOW, now=NOW, phase="starting"
)


def rating(rank: int, name: str, mu: float, kind: PlayerKind, step: int = 0) -> Rating:
    player = Player(name=name, game="brawl", kind=kind, step=step)
    return Rating(
        player=player, mu=mu, sigma=1.1, score=mu - 3.3, wins=412, draws=9, losses=79, rank=rank
    )


def ratings() -> tuple[Rating, ...]:
    steps = range(50_000, 650_001, 50_000)
    snapshots = [rating(0, f"main@{s}", 20 + s / 50_000, PlayerKind.SNAPSHOT, s) for s in steps]
    bots = [rating(0, name, 12 + 4 * place, PlayerKind.BOT) for place, name in enumerate(BOTS)]
    best_first = sorted(snapshots + bots, key=lambda r: -r.score)
    return tuple(replace(r, rank=rank) for rank, r in enumerate(best_first, 1))


METRICS = {
    "progress/steps": 652_310.0,
    "progress/target_steps": 1_500_000.0,
    "progress/seconds_left": 431.0,
    "rate/steps_per_second": 6212.0,
    "rate/frames_per_second": 18_636.0,
    "loss/policy": -0.0132,
    "loss/value": 0.4311,
    "policy/entropy": 3.213,
    "policy/approx_kl": 0.0121,
    "policy/clip_fraction": 0.118,
    "value/explained_variance": 0.812,
    "learning/rate": 3e-4,
    "reward/episode_mean": 4.71,
    "match/seconds_mean": 31.2,
    "winrate/constant": 0.99,
    "winrate/based": 0.72,
    "winrate/random": 0.95,
    "winrate/snapshots": 0.533,
    "time/game_share": 0.22,
    "time/inference_share": 0.21,
    "time/opponents_share": 0.08,
    "time/learning_share": 0.47,
    "time/waiting_share": 0.02,
}


LEARNER = WorkerStatus(
    worker="learner-main",
    incarnation=1,
    player="main",
    step=652_310,
    mix="league",
    activity="rollout",
    last_beat_at=NOW,
    metrics=METRICS,
    open_leases=128,
)


def full() -> Screen:
    shares = tuple(
        Share(
            player="main",
            mix="league",
            category=name,
            configured=set_to,
            expected=set_to,
            realised=met,
            matches=matches,
        )
        for name, set_to, met, matches in (
            ("snapshots", 0.7, 0.689, 4120),
            ("constant", 0.05, 0.053, 310),
            ("based", 0.15, 0.156, 930),
            ("random", 0.1, 0.102, 611),
        )
    )
    status = LeagueStatus(
        game="brawl",
        log_position=18_230,
        open_leases=131,
        workers=(LEARNER,),
        shares=shares,
        version="0.1.0",
    )
    exams = tuple(
        PayoffCell(row="main@650000", column=bot, wins=318, draws=6, losses=76)
        for bot in reversed(BOTS)
    )
    league = LeagueFacts(
        steps=652_310,
        target_steps=1_500_000,
        status=status,
        ratings=ratings(),
        evaluations=exams,
        snapshots=13,
        newest="main@650000",
        evaluator=GetEvaluatorStatusResponse(
            current="main@650000",
            matches_done=312,
            matches_total=700,
            queue=("main@700000",),
            drained=False,
        ),
    )
    processes = (
        ProcessFacts(
            name="matchmaker", state=State.RUNNING, pid=4711, started_at=NOW - 700, restarts=0
        ),
        ProcessFacts(
            name="learner-main", state=State.RUNNING, pid=4712, started_at=NOW - 60, restarts=1
        ),
        ProcessFacts(
            name="evaluator-0",
            state=State.WAITING,
            pid=4713,
            started_at=NOW - 700,
            restarts=1,
        ),
    )
    notes = (
        Note(at=NOW - 700, text="Run folder runs/laptop-1 made with preset laptop."),
        Note(at=NOW - 500, text="Opponents now: based."),
        Note(
            at=NOW - 62,
            text="learner-main ended (signal 9): it restarts in 0.5 s.",
            is_trouble=True,
        ),
        Note(at=NOW - 10, text="main@650000 joined the league (13 active snapshots)."),
    )
    return Screen(
        run_dir="runs/laptop-1",
        preset="laptop",
        device="Training on the CPU (no NVIDIA GPU found), 15.6 GiB of memory.",
        started_at=NOW - 700,
        now=NOW,
        league=league,
        processes=processes,
        notes=notes,
        logs_dir="runs/laptop-1/logs",
    )
