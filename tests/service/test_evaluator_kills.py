"""Evaluators that share their work are killed at random moments: nothing is lost or doubled."""

from __future__ import annotations

import os
import random
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from evaluator_league import matchmaker_of, register_snapshot, write_config
from learner_process import Forked
from waiting import PATIENCE, wait_for

from league.evaluations import EvaluationState
from league.games.registry import game_spec
from league.players import Book
from league.rpc.client import MatchmakerClient
from matchmaker.tools.fsck import fsck

KILLS = int(os.environ.get("KUMITE_KILLS", "60"))


def started(run_dir: Path, address: str, name: str) -> Forked:
    log = run_dir / f"{name}.log"
    log.write_text("")
    words = ["--matchmaker", address, "--name", name, "--run-dir", str(run_dir)]
    return Forked(evaluate, log, words)


def evaluate(words: list[str]) -> None:
    from evaluator.main import main

    sys.exit(main(words))


def playing(client: MatchmakerClient) -> bool:
    return bool(client.status().open_leases)


@pytest.mark.parametrize(
    "kills", [1, pytest.param(KILLS, marks=[pytest.mark.slow, pytest.mark.timeout(1800)])]
)
def test_kills_at_random_moments_lose_no_result_and_double_none(tmp_path: Path, kills: int) -> None:
    write_config(tmp_path, matches_per_snapshot=60, milestone_matches=20)
    chance, names = random.Random(kills), ("evaluator-0", "evaluator-1")
    with matchmaker_of(tmp_path) as client:
        for step in (10, 20, 30):
            register_snapshot(
                client, tmp_path, step, parent=f"main@{step - 10}" if step > 10 else ""
            )
        asked = client.request_evaluation(
            "main@10", ["based=3,random=1", "kiter"], 60 * kills, "me"
        )
        began = time.monotonic()
        processes = {name: started(tmp_path, client.address, name) for name in names}
        try:
            wait_for(lambda: playing(client))
            longest = 2 * (time.monotonic() - began)  # so that half of them play
            for kill in range(kills):
                name = names[kill % 2]
                time.sleep(chance.uniform(0.0, longest))
                assert processes[name].poll() is None, (tmp_path / f"{name}.log").read_text()
                processes[name].kill()
                processes[name].wait()
                processes[name] = started(tmp_path, client.address, name)
                if kill == kills // 2:
                    register_snapshot(client, tmp_path, 40, parent="main@30", milestone=True)
            wait_for(lambda: client.report(asked.number).evaluation.state is EvaluationState.DONE)
            wait_for(lambda: whole(client))
            logs = [tmp_path / f"{name}.log" for name in names]
            wait_for(lambda: all("ready" in log.read_text() for log in logs))
        finally:
            for process in processes.values():
                process.terminate()
            codes = [process.wait(PATIENCE) for process in processes.values()]
        assert codes == [0, 0]
        clean = {
            (book, *sorted((cell.row, cell.column))): cell.games
            for book in (Book.EVAL, Book.GREEDY)
            for cell in client.payoff(book)
        }
        rated = sum(clean.values())
        log_position = client.status().log_position
    findings, _ = fsck(tmp_path / "league.db")
    assert findings == []
    assert rated == log_position, "every result counts once"
    milestone, budget, slack = 13 * (20 + 10) + 3 * 10, 3 * 60, 32 * 4
    assert rated <= milestone + budget + 120 * kills + slack, "evaluators come to an end"
    until = {"based": 45 * kills, "random": 15 * kills, "kiter": 60 * kills}
    for bot, least in until.items():
        wanted = 2 * round(least / 2)
        most = wanted + 1 + (32 * 4)  # and what the budget, or its first matches, chose of them
        assert wanted - 1 <= clean[Book.EVAL, *sorted(("main@10", bot))] <= most
    assert {book for book, *_ in clean} == {Book.EVAL, Book.GREEDY}


def whole(client: MatchmakerClient) -> bool:
    """Whether every snapshot has its first matches, and the milestone all of them."""
    played = Counter[str]()
    for cell in client.payoff(Book.EVAL):
        played[cell.row] += cell.games
    greedy = client.payoff(Book.GREEDY, rows=["main@40"])
    return (
        min(played[f"main@{step}"] for step in (10, 20, 30, 40)) >= 30  # half of 60
        and len(greedy) == len(game_spec("brawl").bots)
        and not client.status().open_leases
    )
