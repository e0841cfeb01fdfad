"""Many gates, and the usual rule instead of one, for candidates of known strength."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from league.stats.gates import BernoulliTest, MultinomialTest, Risks
from league.stats.gates.multinomial import likeliest_of_mean

# Shape suffixes: R runs, C cells.


@dataclass(frozen=True)
class Runs:
    """How many tests ended: whether they accepted, and the counts they stopped at."""

    accepted_R: NDArray[np.bool_]
    counts_RC: NDArray[np.int64]

    @property
    def rate(self) -> float:
        return float(self.accepted_R.mean())

    @property
    def error(self) -> float:
        """Standard error of the rate, of a rate of 1 % when none or all accepted."""
        rate = min(max(self.rate, 0.01), 0.99)
        return float(np.sqrt(rate * (1 - rate) / len(self.accepted_R)))

    @property
    def length_R(self) -> NDArray[np.int64]:
        return self.counts_RC.sum(1)

    @property
    def length(self) -> float:
        return float(self.length_R.mean())


def bernoulli_runs(
    test: BernoulliTest,
    score: float,
    *,
    drawn: float = 0.0,
    runs: int = 1000,
    seed: int = 0,
    risks: Risks | None = None,
) -> Runs:
    """Matches won with `score` − `drawn`/2 and drawn with `drawn`, until each test has decided."""
    risks, rng = risks or Risks(), np.random.default_rng(seed)
    moves = np.array([test.loss, (test.loss + test.win) / 2, test.win])
    shares = np.array([1 - score - drawn / 2, drawn, score - drawn / 2])
    counts_RC = np.zeros((runs, 3), np.int64)
    accepted_R, open_R, llr_R = np.zeros(runs, bool), np.ones(runs, bool), np.zeros(runs)
    while open_R.any():
        at = np.flatnonzero(open_R)
        cells = np.minimum(np.searchsorted(np.cumsum(shares), rng.random(len(at)), side="right"), 2)
        counts_RC[at, cells] += 1
        llr_R[at] += moves[cells]
        high, low = llr_R[at] >= risks.upper, llr_R[at] <= risks.lower
        accepted_R[at[high]] = True
        open_R[at[high | low]] = False
    return Runs(accepted_R, counts_RC)


def pair_runs(
    test: MultinomialTest,
    shares: list[float],
    *,
    runs: int = 100,
    seed: int = 0,
    risks: Risks | None = None,
) -> Runs:
    """Pairs (or matches, of three cells) of a fixed distribution, until each test has decided."""
    risks, rng = risks or Risks(), np.random.default_rng(seed)
    accepted, stopped = [], []
    for _ in range(runs):
        counts, llr = [0] * test.cells, 0.0
        drawn = iter(())
        while risks.lower < llr < risks.upper:
            cell = next(drawn, None)
            if cell is None:
                drawn = iter(rng.choice(test.cells, 256, p=shares).tolist())
                continue
            counts[cell] += 1
            llr = test.llr(tuple(counts))
        accepted.append(llr >= risks.upper)
        stopped.append(counts)
    return Runs(np.array(accepted), np.array(stopped))


def independent_pairs(score: float, drawn: float = 0.0) -> list[float]:
    """Shares of pairs of two independent matches of this score and share of draws."""
    win, loss = score - drawn / 2, 1 - score - drawn / 2
    return np.convolve([loss, drawn, win], [loss, drawn, win]).tolist()


def seat_pairs(score: float) -> list[float]:
    """Shares of pairs in a game whose seat decides most, tilted to a score."""
    likeliest = likeliest_of_mean([0.02, 0.13, 0.70, 0.13, 0.02], score)
    return [share / sum(likeliest) for share in likeliest]


def peeking(
    score: float,
    *,
    bar: float = 0.7,
    decay: float = 0.99,
    games: int = 2000,
    least: int = 8,
    runs: int = 1000,
    seed: int = 0,
) -> Runs:
    """The usual rule: accept as soon as the decayed win rate exceeds `bar`, checked after every
    game from `least` games on; given up after `games`."""
    rng = np.random.default_rng(seed)
    won_R, played, accepted_R = np.zeros(runs), 0.0, np.zeros(runs, bool)
    counts_RC = np.zeros((runs, 3), np.int64)
    for game in range(1, games + 1):
        win_R = rng.random(runs) < score
        counts_RC[~accepted_R, 2 * win_R[~accepted_R].astype(int)] += 1
        won_R, played = decay * won_R + win_R, decay * played + 1
        if game >= least:
            accepted_R |= won_R > bar * played
    return Runs(accepted_R, counts_RC)
