"""Pairs the entrants of a tournament: round robin, Swiss, and double elimination.

Entrants are numbers, in the order in which they were named (their seeds). All functions are pure:
they compute the encounters from the results so far. So the log of results is enough to continue a
tournament.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

Key = tuple[int, int, int]
"""Stage, first and second entrant of an encounter."""
Results = Mapping[Key, float]
"""Results of the decided encounters: 1 if the first entrant won, ½ for a draw, 0 if it lost."""
UNKNOWN = -1
"""Placeholder in a bracket for an entrant that depends on undecided encounters."""
MOST_TRIES = 20_000
"""Number of pairings that are tried in a Swiss round before entrants may meet again."""


class Format(StrEnum):
    """How entrants are paired."""

    ROUND_ROBIN = "round-robin"
    SWISS = "swiss"
    DOUBLE_ELIMINATION = "double-elimination"


@dataclass(frozen=True)
class Encounter:
    """Describes the matches of two entrants in a stage.

    Attributes:
        stage: the stage's number. Encounters of a stage don't depend on each other.
        title: the stage's name.
        first, second: the entrants. Without a second entrant, the first has a bye (no opponent).
    """

    stage: int
    title: str
    first: int
    second: int | None

    @property
    def key(self) -> Key:
        return self.stage, self.first, UNKNOWN if self.second is None else self.second


def encounters(form: Format, entrants: int, rounds: int, results: Results) -> list[Encounter]:
    """Returns all encounters that are known so far, stage by stage.

    Args:
        form: the format.
        entrants: the number of entrants, at least 2.
        rounds: rounds of a round robin or a Swiss tournament.
        results: the decided encounters.
    """
    if form is Format.ROUND_ROBIN:
        return [
            Encounter(number, f"Round {number + 1}", first, second)
            for number in range(rounds)
            for first, second in itertools.combinations(range(entrants), 2)
        ]
    if form is Format.SWISS:
        return list(_swiss(entrants, rounds, results))
    return _double_elimination(entrants, results)


def swiss_rounds(entrants: int) -> int:
    """Returns the usual number of rounds: log₂ of the number of entrants, rounded up.

    After these rounds, at most one entrant has won all encounters.
    """
    return math.ceil(math.log2(entrants))


def scores(entrants: int, played: Iterable[Encounter], results: Results) -> list[float]:
    """Returns the points that each entrant won in its encounters. A bye counts as a point."""
    points = [0.0] * entrants
    for one in played:
        if one.second is None:
            points[one.first] += 1.0
        elif one.key in results:
            points[one.first] += results[one.key]
            points[one.second] += 1.0 - results[one.key]
    return points


# --- Swiss


def _swiss(entrants: int, rounds: int, results: Results) -> Iterator[Encounter]:
    """Yields the encounters of all rounds up to the first round that is not decided."""
    done: list[Encounter] = []
    for number in range(rounds):
        points = scores(entrants, done, results)
        order = sorted(range(entrants), key=lambda one: (-points[one], one))
        now: list[Encounter] = []
        title = f"Round {number + 1}"
        if entrants % 2:
            byes = [one.first for one in done if one.second is None]
            free = min(reversed(order), key=byes.count)  # fewest byes so far, then lowest place
            order.remove(free)
            now.append(Encounter(number, title, free, None))
        met = {frozenset((one.first, one.second)) for one in done}
        tries = itertools.count()
        pairs = _paired(order, points, met, tries) or _paired(order, points, set(), tries) or []
        now = [*(Encounter(number, title, *sorted(pair)) for pair in pairs), *now]
        yield from now
        if any(one.second is not None and one.key not in results for one in now):
            return
        done += now


def _paired(
    order: Sequence[int], points: Sequence[float], met: set[frozenset[int | None]],
    tries: Iterator[int],
) -> list[tuple[int, int]] | None:  # fmt: skip
    """Pairs the best entrant, and then the remaining entrants in the same way. The best entrant's
    opponent has the same points if possible, and preferably comes from the lower half of the
    entrants with these points. Returns None if two entrants would have to meet again, or if
    `MOST_TRIES` tries have found no pairing.
    """
    if not order:
        return []
    best, *others = order
    equals = [one for one in others if points[one] == points[best]]
    middle = len(equals) // 2
    wanted = [*equals[middle:], *reversed(equals[:middle]), *others[len(equals) :]]
    for other in wanted:
        if frozenset((best, other)) in met or (met and next(tries) > MOST_TRIES):
            continue
        rest = [one for one in others if one != other]
        if (below := _paired(rest, points, met, tries)) is not None:
            return [(best, other), *below]
    return None


# --- double elimination


def _double_elimination(entrants: int, results: Results) -> list[Encounter]:
    """Returns the encounters of a bracket. An entrant that loses twice is out. Byes go to the first
    seeds.

    Losers of the winners' bracket drop into the losers' bracket. The winners of both brackets meet
    in the final. If the winner of the losers' bracket wins the final, both finalists have lost
    once, and they meet a second time. A drawn encounter counts for the better seed, and in the
    final for the winner of the winners' bracket.
    """
    found: list[Encounter] = []
    stages = itertools.count()

    def play(
        title: str, pairs: Iterable[Sequence[int | None]]
    ) -> tuple[list[int | None], list[int | None]]:
        stage, winners, losers = next(stages), list[int | None](), list[int | None]()
        for first, second in pairs:
            won, lost = (second, first) if first is None else (first, second)
            if UNKNOWN in (first, second) and None not in (first, second):
                won = lost = UNKNOWN
            elif first is not None and second is not None:
                one = Encounter(stage, title, first, second)
                found.append(one)
                won = lost = UNKNOWN
                if one.key in results:
                    won, lost = (first, second) if results[one.key] >= 0.5 else (second, first)
            winners.append(won)
            losers.append(lost)
        return winners, losers

    def seeded(entrants: Sequence[int | None]) -> list[list[int | None]]:
        return [sorted(pair, key=_seed) for pair in zip(entrants[::2], entrants[1::2], strict=True)]

    order = [0]
    while len(order) < entrants:  # the two first seeds can meet only in the last round, and so on
        order = [seed for one in order for seed in (one, 2 * len(order) - 1 - one)]
    alive: list[int | None] = [seed if seed < entrants else None for seed in order]
    below: list[int | None] = []
    losers_rounds = itertools.count(1)
    for number in itertools.count(1):
        if len(alive) == 1:
            break
        alive, fallen = play(f"Winners, round {number}", seeded(alive))
        if number == 1:
            below = fallen
        else:
            met = zip(below, fallen[::-1], strict=True)
            pairs = [sorted(pair, key=_seed) for pair in met]
            below, _ = play(f"Losers, round {next(losers_rounds)}", pairs)
        if len(below) > 1:
            below, _ = play(f"Losers, round {next(losers_rounds)}", seeded(below))
    champion, _ = play("Final", [(alive[0], below[0])])
    if champion == below and champion != [UNKNOWN]:
        play("Final, second part", [(alive[0], below[0])])
    return found


def _seed(entrant: int | None) -> int:
    return UNKNOWN if entrant is None else entrant


def places(played: Sequence[Encounter], results: Results) -> dict[int, tuple[int, int]]:
    """Returns for each entrant its last stage in a bracket, and 1 if the entrant won its encounter
    in this stage, else 0. Larger values are better.
    """
    found: dict[int, tuple[int, int]] = {}
    for one in played:
        if one.second is not None and one.key in results:
            is_won = results[one.key] >= 0.5
            found[one.first], found[one.second] = (one.stage, is_won), (one.stage, not is_won)
    return found
