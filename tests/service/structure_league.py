"""A league whose true structure is known: made-up players, real matchmaker, matches that end by
a table.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from league.players import Assignment, Book, MatchResult, Pairing, Player, PlayerKind, SeatResult
from league.rpc.client import MatchmakerClient

STYLES = ("rock", "paper", "scissors")
NAMES = (*STYLES, "rock-too", "weak", "weaker")
"""Rock is there twice; the last two lose to all others."""
STRENGTH = {"weak": -1.5, "weaker": -3.0}
BEATS = {("paper", "rock"), ("rock", "scissors"), ("scissors", "paper")}


def logit(one: str, other: str) -> float:
    """Natural logit of `one` beating `other`."""
    styles = one.removesuffix("-too"), other.removesuffix("-too")
    cyclic = 1.4 * ((styles in BEATS) - (styles[::-1] in BEATS))
    return cyclic + STRENGTH.get(one, 0.0) - STRENGTH.get(other, 0.0)


def chances(names: Sequence[str] = NAMES) -> NDArray[np.float64]:
    """True shares of matches, row against column."""
    return np.array([[1 / (1 + np.exp(-logit(one, other))) for other in names] for one in names])


def fill(
    client: MatchmakerClient,
    names: Sequence[str] = NAMES,
    *,
    pairs: int = 60,
    unmet: Iterable[tuple[str, str]] = (),
    book: Book = Book.EVAL,
    seed: int = 3,
) -> None:
    """All players play each other `pairs` pairs of matches, except those that never meet."""
    rng = np.random.default_rng(seed)
    client.register_players(
        [Player(name=name, game="brawl", kind=PlayerKind.BOT) for name in names]
    )
    evaluator = client.open_incarnation("evaluator-0").number
    apart = {frozenset(pair) for pair in unmet}
    for one, other in itertools.combinations(names, 2):
        if frozenset((one, other)) not in apart:
            pairing = Pairing(player=one, opponent=other, pairs=pairs, book=book, seed=7)
            matches = client.acquire_pairings(evaluator, [pairing])
            verdicts, _ = client.report_results(
                evaluator, [_result(match, rng) for match in matches]
            )
            assert all(verdict.accepted for verdict in verdicts)


def _result(match: Assignment, rng: np.random.Generator) -> MatchResult:
    first, second = match.seats
    chance = 1 / (1 + np.exp(-logit(first.name, second.name)))
    return MatchResult(
        match_id=match.match_id,
        lease_token=match.lease_token,
        outcome=float(rng.random() < chance),
        frames=300,
        seats=(SeatResult(player=first.name), SeatResult(player=second.name)),
        finished_at=1.0,
    )
