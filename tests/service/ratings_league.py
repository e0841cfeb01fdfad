"""Matches of a small league whose ratings a test looks at."""

from dataclasses import replace

import numpy as np
from small_league import learner_wins, played, report

from league.players import Book, Pairing

BOTS = {"one": {"based": 1.0, "random": 1.0, "constant": 1.0}}


def at_step(result, step):
    """As a learner reports it at `step`; its opponent's seat says so too."""
    return replace(
        result, seats=tuple(replace(s, step_start=step, step_end=step) for s in result.seats)
    )


def train(league, incarnation, count, outcome=learner_wins, step=1, mix="one"):
    for match in league.client.acquire_matches(incarnation, count, mix):
        report(league, incarnation, at_step(played(match, outcome(match)), step))


def pair(league, player, opponent, pairs, outcome=1.0, worker="evaluator-0", book=Book.EVAL):
    """Clean matches that `player` wins, or draws; both seats."""
    evaluator = league.client.open_incarnation(worker).number
    pairing = Pairing(player=player, opponent=opponent, pairs=pairs, book=book, seed=1)
    matches = league.client.acquire_pairings(evaluator, [pairing])
    outcomes = [outcome if match.seats[0].name == player else 1.0 - outcome for match in matches]
    results = [played(match, one) for match, one in zip(matches, outcomes, strict=True)]
    for start in range(0, len(results), 500):
        assert all(v.accepted for v in report(league, evaluator, *results[start : start + 500]))


def random_outcome(seed):
    rng = np.random.default_rng(seed)
    return lambda match: float(rng.choice([0.0, 0.5, 1.0], p=[0.3, 0.4, 0.3]))


def belief(league, name, book=Book.TRAIN):
    return league.server.league.view.tables[book].belief(name)


def books(league):
    return league.server.league.view.books


def many(league, incarnation, count, seed=3):
    """As `train`, in one report each 500."""
    outcome = random_outcome(seed)
    for start in range(0, count, 500):
        league.play(incarnation, min(500, count - start), outcome, mix="one")
