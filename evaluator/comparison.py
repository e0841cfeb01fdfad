"""Which of two players is stronger: direct matches in pairs until a sequential test has decided."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum

from league.cli.members import Finder, bouts_of, play
from league.errors import DataCorrupt, InvalidInput
from league.replay import Bout, Recipe
from league.stats.gates import Estimate, Gate, Result, Verdict, elo_of, estimate


class Finding(Enum):
    """How a comparison ended."""

    FIRST = "first"
    SECOND = "second"
    ALIKE = "alike"
    UNDECIDED = "undecided"


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Two players and the same sequential test for each: is it stronger than the other?

    Attributes:
        first, second: the players' names.
        gates: what both tests have counted.
        failed: matches that could not be played to their end; their pairs do not count.
    """

    first: str
    second: str
    gates: tuple[Gate, Gate]
    failed: int = 0

    @property
    def finding(self) -> Finding:
        """What both tests say together."""
        verdicts = [gate.verdict for gate in self.gates]
        if Verdict.ACCEPT in verdicts:
            return Finding.SECOND if verdicts[1] is Verdict.ACCEPT else Finding.FIRST
        return Finding.UNDECIDED if Verdict.CONTINUE in verdicts else Finding.ALIKE

    @property
    def matches(self) -> int:
        """Those that the test which decided last has counted."""
        return self._last[1].matches

    @property
    def elo(self) -> Estimate | None:
        """By how much `first` is stronger in Elo, with a 95 % interval, the stop allowed for; None
        without a pair.
        """
        seat, gate = self._last
        found = estimate(gate.test, gate.counts, gate.risks)
        if found is None:
            return None
        score, low, high = (elo_of(share) for share in (found.score, found.low, found.high))
        return Estimate(score, low, high) if seat == 0 else Estimate(-score, -high, -low)

    @property
    def _last(self) -> tuple[int, Gate]:
        """The test that accepts, else the one that counted more, with its player's place."""
        if self.finding in (Finding.FIRST, Finding.SECOND):
            seat = int(self.finding is Finding.SECOND)
        else:
            seat = int(self.gates[1].results > self.gates[0].results)
        return seat, self.gates[seat]

    def sentence(self) -> str:
        """The verdict, for people."""
        elo, (elo0, elo1) = self.elo, self.gates[0].test.values
        if elo is None:
            return f"No pair of {self.first} and {self.second} has ended."
        first, second = self.first, self.second
        if self.finding is Finding.SECOND or (self.finding is not Finding.FIRST and elo.score < 0):
            first, second, elo = second, first, Estimate(-elo.score, -elo.high, -elo.low)
        lead = f"{elo.score:.0f} Elo (95 % interval {elo.low:.0f} to {elo.high:.0f})"
        if math.isinf(elo.score):
            lead = f"more than {elo.low:.0f} Elo"
        after = f"after {self.matches:,} matches"
        if self.finding is Finding.ALIKE:
            return (
                f"Neither of {self.first} and {self.second} is {elo1:g} Elo stronger: {first} "
                f"leads by {lead} {after}."
            )
        if self.finding is Finding.UNDECIDED:
            return (
                f"Not decided {after}: {first} leads {second} by {lead}, too little to tell "
                f"{elo0:g} from {elo1:g} Elo. Raise --most or --elo1."
            )
        risk = f"; {self.gates[0].risks.alpha:.0%} of such tests err" if elo.low <= 0 else ""
        return f"{first} is stronger than {second} by {lead} {after}{risk}."


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
    """Plays pairs of matches, each seed once from either seat, until both tests have decided.

    Pairs count in the order in which they began: short matches end first, and counting them first
    would favour who wins or loses quickly. What is still played when the tests decide is left out.
    Of a mixture a member is drawn for each pair.

    Args:
        gate: the test that each player has to pass, without results.
        most: matches after which it ends undecided.
        on_pair: sees the comparison after each pair.

    Raises:
        InvalidInput: both names mean one player.
        DataCorrupt: no pair could be played to its end.
    """
    settings = finder.settings(names)
    first, second = finder.entrants(settings.spec(), names)
    if first.shares == second.shares:
        raise InvalidInput(f"{names[0]} and {names[1]} are the same player: name two")
    seen = Comparison(first=first.name, second=second.name, gates=(gate, gate))
    recipe, everyone = Recipe.of(settings), [*first.members, *second.members]
    bouts = bouts_of(first, second, most - most % 2, seed)
    places = {bout.match_id(recipe): place for place, bout in enumerate(bouts)}
    failures: dict[Bout, str] = {}
    scores: dict[int, float] = {}
    pair = 0
    for replay in play(settings, everyone, bouts, seed=seed, greedy=greedy, failures=failures):
        place = places[replay.match_id]
        scores[place] = replay.outcome if place % 2 == 0 else 1.0 - replay.outcome
        failed = {places[bout.match_id(recipe)] for bout in failures}
        while (both := {2 * pair, 2 * pair + 1}) <= scores.keys() | failed:
            if both <= scores.keys():
                won = (scores[2 * pair] + scores[2 * pair + 1]) / 2
                one, other = seen.gates
                gates = one.take([Result(pair, won)]), other.take([Result(pair, 1.0 - won)])
                seen = replace(seen, gates=gates, failed=len(failures))
                on_pair(seen)
            pair += 1
            if seen.finding is not Finding.UNDECIDED:
                return seen
    if not seen.matches:
        why = next(iter(failures.values()))
        raise DataCorrupt(f"no pair of matches could be played to its end: {why}")
    return seen
