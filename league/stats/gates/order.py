"""Which results a gate may count: in assignment order, none behind a match that is still being
played.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from league.errors import InvalidInput
from league.stats.gates.gate import Result


@dataclass(frozen=True, kw_only=True)
class Assigned:
    """A match that was handed out for a gate.

    `ordinal`: its place among all assignments; `is_open`: its lease can still bring a result;
    `score`: the candidate's 1, ½ or 0, None while there is none or when the match failed or its
    lease ended without one; `pair`: what it has in common with the match from the other seat, such
    as their seed.
    """

    ordinal: int
    is_open: bool
    score: float | None
    pair: int = 0


def settled(assigned: Iterable[Assigned]) -> list[Result]:
    """Results before the oldest open lease, in assignment order. Matches that bring none are
    passed over.
    """
    found = []
    for match in _ordered(assigned):
        if match.is_open:
            break
        if match.score is not None:
            found.append(Result(match.ordinal, match.score))
    return found


def settled_pairs(assigned: Iterable[Assigned]) -> list[Result]:
    """Mean scores of whole pairs, by the first match of each, before the first pair that is not
    settled.

    A pair one of whose matches brings no result is left out: half of it would favour a seat. Raises
    `InvalidInput` when a pair has more than two matches with a result.
    """
    pairs: dict[int, list[Assigned]] = defaultdict(list)
    for match in _ordered(assigned):
        pairs[match.pair].append(match)
    found = []
    for pair, matches in pairs.items():
        scores = [match.score for match in matches if match.score is not None]
        if len(scores) > 2:
            raise InvalidInput(
                f"pair {pair} has {len(scores)} results: a pair is one match from each seat"
            )
        if any(match.is_open for match in matches):
            break
        if len(scores) == 2:
            found.append(Result(matches[0].ordinal, sum(scores) / 2))
    return found


def _ordered(assigned: Iterable[Assigned]) -> list[Assigned]:
    return sorted(assigned, key=lambda match: match.ordinal)
