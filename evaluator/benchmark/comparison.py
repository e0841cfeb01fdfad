"""Tests which of two players is stronger: plays pairs of matches until sequential tests decide.

In games with payoffs, the payment to a player in a match is half of the difference between the
player's payoff and the opponent's payoff.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum

import numpy as np

from league.contest.matches import bouts_of, play
from league.contest.members import Finder
from league.errors import DataCorrupt, InvalidInput
from league.replay import Bout, Recipe, Replay
from league.stats.gates import (
    Assigned,
    Estimate,
    Gate,
    Result,
    Verdict,
    elo_of,
    estimate,
    settled,
)


class Finding(Enum):
    """How a comparison ended: which player is stronger, if any."""

    FIRST = "first"
    SECOND = "second"
    ALIKE = "alike"
    UNDECIDED = "undecided"


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Compares two players. For each player, a sequential test decides whether this player is
    stronger.

    Attributes:
        first, second: the players' names.
        gates: the two tests with their counts. In games with payoffs, a pair of matches is counted
            with a probability proportional to the payment in it.
        stake: mean absolute payment per match, over the pairs in which anything was paid. In games
            without payoffs it is 0.
        payoff_unit: unit of payoffs.
        played: number of pairs played to their end.
        failed: number of matches that could not be played to their end. Their pairs do not count.
    """

    first: str
    second: str
    gates: tuple[Gate, Gate]
    stake: float = 0.0
    payoff_unit: str = "payoff"
    played: int = 0
    failed: int = 0

    @property
    def finding(self) -> Finding:
        """Returns the result of both tests together."""
        verdicts = [gate.verdict for gate in self.gates]
        if Verdict.ACCEPT in verdicts:
            return Finding.SECOND if verdicts[1] is Verdict.ACCEPT else Finding.FIRST
        return Finding.UNDECIDED if Verdict.CONTINUE in verdicts else Finding.ALIKE

    @property
    def matches(self) -> int:
        """The number of matches in all pairs that were played to their end."""
        return 2 * self.played

    @property
    def elo(self) -> Estimate | None:
        """Estimates the first player's lead in Elo. The 95 % interval takes into account that the
        tests stop as soon as they have decided. Before the first pair the estimate is None.
        """
        return self._lead(elo_of)

    @property
    def payoff(self) -> Estimate | None:
        """Estimates the mean payment per match to `first`, with an interval computed as for `elo`.
        In games without payoffs it is None.
        """
        return self._lead(lambda share: (2.0 * share - 1.0) * self.stake) if self.stake else None

    def _lead(self, of: Callable[[float], float]) -> Estimate | None:
        seat, gate = self._last
        interval = estimate(gate.test, gate.counts, gate.risks)
        if interval is None and not self.played:
            return None
        interval = interval or Estimate(0.5, 0.0, 1.0)  # too little at stake for any pair to count
        score, low, high = (of(share) for share in (interval.score, interval.low, interval.high))
        return Estimate(score, low, high) if seat == 0 else Estimate(-score, -high, -low)

    @property
    def _last(self) -> tuple[int, Gate]:
        """Returns the test that the estimates use, with the index of its player. This is the test
        that found its player stronger, or else the test with more results.
        """
        if self.finding in (Finding.FIRST, Finding.SECOND):
            seat = int(self.finding is Finding.SECOND)
        else:
            seat = int(self.gates[1].results > self.gates[0].results)
        return seat, self.gates[seat]

    def sentence(self) -> str:
        """Returns the finding as a sentence for people."""
        elo, (elo0, elo1) = self.payoff or self.elo, self.gates[0].test.values
        if elo is None:
            return f"No pair of {self.first} and {self.second} has ended."
        first, second = self.first, self.second
        if self.finding is Finding.SECOND or (self.finding is not Finding.FIRST and elo.score < 0):
            first, second, elo = second, first, Estimate(-elo.score, -elo.high, -elo.low)
        lead = f"{elo.score:.0f} Elo (95 % interval {elo.low:.0f} to {elo.high:.0f})"
        if math.isinf(elo.score):
            lead = f"more than {elo.low:.0f} Elo"
        after, scale = f"after {self.matches:,} matches", "Elo"
        if self.stake:
            interval = f"95 % interval {elo.low:.2f} to {elo.high:.2f}"
            lead = f"{elo.score:.2f} {self.payoff_unit} per match ({interval})"
            scale = "Elo of what is at stake"
        if self.finding is Finding.ALIKE:
            return (
                f"Neither of {self.first} and {self.second} is {elo1:g} {scale} stronger: {first} "
                f"leads by {lead} {after}."
            )
        if self.finding is Finding.UNDECIDED:
            if math.isinf(elo.score):
                return (
                    f"Not decided {after}: {first} has won all of them, but they are too few to "
                    f"tell {elo0:g} from {elo1:g} {scale}. Raise --most."
                )
            return (
                f"Not decided {after}: {first} leads {second} by {lead}, too little to tell "
                f"{elo0:g} from {elo1:g} {scale}. Raise --most or --elo1."
            )
        risk = f"; {self.gates[0].risks.alpha:.0%} of such tests err" if elo.low <= 0 else ""
        return f"{first} is stronger than {second} by {lead} {after}{risk}."


def _assigned(index: int, replay: Replay) -> Assigned:
    """Describes the match with this index in the form that a gate (a sequential test) takes. Odd
    indexes are the second matches of pairs, in which the seats are swapped.
    """
    paid = [stats["payoff"] for stats in replay.stats if "payoff" in stats]
    score, margin = replay.outcome, paid[0] - paid[1] if len(paid) == 2 else None
    if margin is not None and score == 0.5:  # payments may differ by a rounding error
        margin = 0.0
    if index % 2:
        score, margin = 1.0 - score, None if margin is None else -margin
    return Assigned(ordinal=index, is_open=False, score=score, pair=index // 2, margin=margin)


def compare(
    finder: Finder,
    names: tuple[str, str],
    gate: Gate,
    *,
    most: int,
    seed: int = 0,
    greedy: bool = False,
    on_pair: Callable[[Comparison], None] = lambda _: None,
) -> Comparison:
    """Plays pairs of matches, with swapped seats on the same seed, until both tests have decided.

    Pairs count in the order in which they began. Short matches end first, so counting pairs as they
    end would give quick wins or quick losses too much weight. Matches that are in progress when the
    tests decide are left out. If a player is a mixture, one of its members is drawn for each pair.

    Args:
        gate: the test that each player has to pass, still without results.
        most: number of matches after which the comparison ends undecided.
        seed: seed of the first pair and of sampled actions.
        greedy: whether networks take the likeliest action.
        on_pair: receives the comparison after each pair.

    Raises:
        InvalidInput: both names mean the same player.
        DataCorrupt: no pair could be played to its end.
    """
    settings = finder.settings(names)
    spec = settings.spec()
    first, second = finder.entrants(spec, names)
    if first.shares == second.shares:
        raise InvalidInput(f"{names[0]} and {names[1]} are the same player: name two")
    unit = spec.payoff_unit or "payoff"
    seen = Comparison(first=first.name, second=second.name, gates=(gate, gate), payoff_unit=unit)
    recipe, everyone = Recipe.of(settings), [*first.members, *second.members]
    bouts = bouts_of(first, second, most - most % 2, seed)
    places = {bout.match_id(recipe): index for index, bout in enumerate(bouts)}
    failures: dict[Bout, str] = {}
    scores: dict[int, Assigned] = {}
    pair, staked, largest = 0, 0, 2.0 * (spec.largest_payoff or 0.0)
    rng = np.random.default_rng([seed, 4])
    ended: list[Assigned] = []
    for replay in play(settings, everyone, bouts, seed=seed, greedy=greedy, failures=failures):
        index = places[replay.match_id]
        scores[index] = _assigned(index, replay)
        failed = {places[bout.match_id(recipe)] for bout in failures}
        while (both := {2 * pair, 2 * pair + 1}) <= scores.keys() | failed:
            if both <= scores.keys():
                coin = float(rng.random())
                new = [replace(scores[index], coin=coin) for index in sorted(both)]
                margins = [match.margin for match in new if match.margin is not None]
                ended, before = [*ended, *new] if margins else [], seen.gates
                if spec.largest_payoff is None and largest < max(map(abs, margins), default=0.0):
                    new, before, largest = ended, (gate, gate), max(map(abs, margins))
                counted = settled(new, paired=True, stake=2.0 * seen.stake or largest, most=largest)
                mirrored = [Result(result.ordinal, 1.0 - result.score) for result in counted]
                paid = abs(sum(margins)) / 4.0
                staked += paid > 0.0
                seen = replace(
                    seen,
                    gates=(before[0].take(counted), before[1].take(mirrored)),
                    stake=seen.stake + (paid - seen.stake) / staked if paid else seen.stake,
                    played=seen.played + 1,
                    failed=len(failures),
                )
                on_pair(seen)
            pair += 1
            if seen.finding is not Finding.UNDECIDED:
                return seen
    if not seen.matches:
        why = next(iter(failures.values()))
        raise DataCorrupt(f"no pair of matches could be played to its end: {why}")
    return seen
