"""Finds a worker that plays a different game than the other workers, because of other rules or
corrupted weights.

Matches of frozen players are repeatable, so it makes no difference which worker plays them. For any
two players, this module compares the matches that one worker played with the matches that all other
workers played. It compares the two sets in the order of assignment: the worker's first pair of
matches (two seats, same seed) is compared with the other workers' first pair, and so on. If all
workers play the same game, the worker's pair is as likely as the others' pair to have more points
(or draws, or failures). So the comparison of the two pairs is a fair coin toss, whatever the
players' strengths, the seats, and the correlation of matches on a common seed.

The fair coin is tested against a coin whose probability p is drawn from Beta(a, a). The likelihood
ratio of the second hypothesis to the first is an e-value. With fair coins, the probability that the
e-value ever exceeds 10,000 during a run is at most 1 in 10,000 (Ville's inequality). So the e-value
may be checked at any time. Six e-values are averaged:

- three for the points of each pair of players, with three values of a. These three detect rules
  that favour one of the two players.
- one for each player's points against all opponents together, combined as a weighted mean over the
  players. This e-value detects corrupted weights of a player.
- one for draws and one for failures, over all matches.

Source: Ramdas, Grünwald, Vovk and Shafer, Game-theoretic statistics and safe anytime-valid
inference (2023).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

CERTAIN = math.log(10_000.0)
"""Log of the least e-value at which a worker is certain to differ from the others."""
LEAD = math.log(100.0)
"""A worker is certain to differ only if the evidence against it exceeds the evidence against every
other worker by at least this difference of logs. If two workers have similar evidence against them,
the results don't show which of them is right.
"""
_WIDTHS = (1.0, 4.0, 16.0)
"""Values of a for the e-values of points. The coin's probability p has a standard deviation of .29,
.17 or .09.
"""


_FEW = 256
"""In the weighted mean over the players, the first players up to this number have equal weights,
which sum to ½. The weights of all later players sum to less than ½.
"""


class PairOfMatches(NamedTuple):
    """Sums up two matches on a common seed with swapped seats, from the first player's point of
    view.
    """

    points: float
    draws: int
    failures: int


class Suspect(NamedTuple):
    """Gives the evidence that a worker plays a different game, and the player whose points differ
    most.
    """

    worker: str
    evidence: float
    """Log of the e-value, which measures the evidence."""
    player: str
    share: float
    """Share of the points that the player earns in `matches` matches that this worker played."""
    others: float
    """Share of the points that the player earns in as many matches that other workers played."""
    matches: int
    failures: int
    others_failures: int

    @property
    def words(self) -> str:
        """Describes the difference for an operator."""
        parts = []
        if self.failures != self.others_failures:
            parts.append(
                f"{self.failures} of its matches failed, and {self.others_failures} of theirs"
            )
        if self.player:
            parts.append(
                f"{self.player} earns {self.share:.0%} of the points with it and {self.others:.0%} "
                f"with them, in {self.matches} matches each"
            )
        return "; ".join(parts)


@dataclass(slots=True)
class _Coin:
    """Counts the tosses of a coin that should be fair (comparisons without a tie), and the worker's
    wins.
    """

    ups: int = 0
    tosses: int = 0

    def toss(self, mine: float, theirs: float) -> None:
        if mine != theirs:
            self.ups += mine > theirs
            self.tosses += 1

    def evidence(self, width: float) -> float:
        """Returns the log-likelihood ratio of a coin with p ~ Beta(width, width) to a fair coin."""
        downs = self.tosses - self.ups
        return (
            self.tosses * math.log(2.0)
            + _log_beta(self.ups + width, downs + width)
            - _log_beta(width, width)
        )


@dataclass(slots=True)
class _OfPlayer:
    coin: _Coin = field(default_factory=_Coin)
    mine: float = 0.0
    theirs: float = 0.0
    matches: int = 0


@dataclass(slots=True)
class _OfWorker:
    """Collects the comparisons of a worker with all other workers."""

    pairs: dict[object, _Coin] = field(default_factory=lambda: defaultdict(_Coin))
    by_width: list[float] = field(default_factory=lambda: [0.0] * len(_WIDTHS))
    players: dict[str, _OfPlayer] = field(default_factory=lambda: defaultdict(_OfPlayer))
    draws: _Coin = field(default_factory=_Coin)
    failing: _Coin = field(default_factory=_Coin)
    failures: int = 0
    others_failures: int = 0


@dataclass(slots=True)
class _Pair:
    """Keeps all matches of two players in a book (one kind of match), and the workers that played
    the matches.

    For each worker, `mine` is the position of the worker's next match to compare, and `theirs` is
    the position of the other workers' match to compare it with.
    """

    workers: list[str] = field(default_factory=list)
    matches: list[PairOfMatches] = field(default_factory=list)
    mine: dict[str, int] = field(default_factory=dict)
    theirs: dict[str, int] = field(default_factory=dict)


class Homogeneity:
    """Compares workers. It takes matches in the order of their assignment."""

    def __init__(self) -> None:
        self._pairs: dict[tuple[str, str, str], _Pair] = defaultdict(_Pair)
        self._workers: dict[str, _OfWorker] = defaultdict(_OfWorker)

    def add(self, worker: str, book: str, first: str, second: str, matches: PairOfMatches) -> None:
        """Adds a pair of matches of two players.

        Args:
            worker: the worker that played the matches.
            book: the book, which says the kind of match.
            first, second: the players, always in the same order.
            matches: the results from the first player's point of view.
        """
        pair = self._pairs[book, first, second]
        pair.workers.append(worker)
        pair.matches.append(matches)
        pair.mine.setdefault(worker, 0)
        for name in pair.mine:
            while (both := _next(pair, name)) is not None:
                self._compare(name, (book, first, second), *both)

    def _compare(
        self, worker: str, pair: tuple[str, str, str], mine: PairOfMatches, theirs: PairOfMatches
    ) -> None:
        of = self._workers[worker]
        of.failures += mine.failures
        of.others_failures += theirs.failures
        of.failing.toss(mine.failures, theirs.failures)
        if mine.failures or theirs.failures:
            return
        of.draws.toss(mine.draws, theirs.draws)
        coin = of.pairs[pair]
        before = [coin.evidence(width) for width in _WIDTHS]
        coin.toss(mine.points, theirs.points)
        for index, width in enumerate(_WIDTHS):
            of.by_width[index] += coin.evidence(width) - before[index]
        for player, sign in zip(pair[1:], (1.0, -1.0), strict=True):
            its = of.players[player]
            its.coin.toss(sign * mine.points, sign * theirs.points)
            its.mine += mine.points if sign > 0 else 2.0 - mine.points
            its.theirs += theirs.points if sign > 0 else 2.0 - theirs.points
            its.matches += 2

    def suspects(self) -> list[Suspect]:
        """Returns every worker that was compared, most evidence first."""
        suspects = [_suspect(worker, of) for worker, of in self._workers.items()]
        return sorted(suspects, key=lambda suspect: -suspect.evidence)


def found(suspects: Sequence[Suspect]) -> tuple[Suspect | None, list[Suspect]]:
    """Names the workers that play a different game.

    Args:
        suspects: all compared workers, most evidence first.

    Returns:
        The worker that certainly differs, or None, and a list. The list is filled if several
        workers certainly differ but the results don't show which of them is right, as with only two
        workers. The list then has all of these workers.
    """
    certain = [suspect for suspect in suspects if suspect.evidence >= CERTAIN]
    if certain and suspects[0].evidence - suspects[1].evidence >= LEAD:
        return certain[0], []
    return None, certain if len(certain) > 1 else []


def _next(pair: _Pair, worker: str) -> tuple[PairOfMatches, PairOfMatches] | None:
    """Returns a worker's next match and the other workers' next match, or None while either is
    missing.
    """
    end, mine, theirs = len(pair.workers), pair.mine[worker], pair.theirs.get(worker, 0)
    while mine < end and pair.workers[mine] != worker:
        mine += 1
    while theirs < end and pair.workers[theirs] == worker:
        theirs += 1
    is_there = mine < end and theirs < end
    pair.mine[worker], pair.theirs[worker] = mine + is_there, theirs + is_there
    return (pair.matches[mine], pair.matches[theirs]) if is_there else None


def _suspect(worker: str, of: _OfWorker) -> Suspect:
    by_player = {name: its.coin.evidence(1.0) for name, its in of.players.items()}
    one_of = [
        evidence + _log_weight(rank) for rank, evidence in enumerate(by_player.values(), start=1)
    ]
    parts = [*of.by_width, _log_sum(one_of), of.draws.evidence(1.0), of.failing.evidence(1.0)]
    player = max(by_player, key=by_player.__getitem__, default="")
    its = of.players[player] if player else _OfPlayer()
    return Suspect(
        worker=worker,
        evidence=_log_sum(parts) - math.log(len(parts)),
        player=player,
        share=its.mine / (its.matches or 1),
        others=its.theirs / (its.matches or 1),
        matches=its.matches,
        failures=of.failures,
        others_failures=of.others_failures,
    )


def _log_weight(rank: int) -> float:
    """Returns the log weight of a player by its rank in the order of first matches. All weights sum
    to less than 1.
    """
    return -math.log(2.0 * _FEW if rank <= _FEW else 2.0 * rank * (rank + 1) / (_FEW + 1))


def _log_sum(logs: Sequence[float]) -> float:
    most = max(logs, default=0.0)
    return most + math.log(sum(math.exp(value - most) for value in logs)) if logs else 0.0


def _log_beta(a: float, b: float) -> float:
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)
