"""Evaluations on request: which clean matches are wanted, and what the log has of them.

An evaluation is done when the log has its matches, at any time and by any worker: matches of frozen
players can be repeated, so none is played for it that is there already.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from league.errors import InvalidInput, NotFound
from league.ids import NASH, averaged_lineage
from league.metrics import Measured, wilson_interval
from league.players import Book, PayoffCell, Player, later_half

Who = str | Mapping[str, float]
"""A player's name, or a mixture of players with its weights."""
LEAST_SHARE = 1e-9
"""Of a mixture's member: a smaller one is a mistake, and products of two would vanish."""
FILES = "file"
"""The run that weights files come from, in their names: ``file:0a1b2c3d4e5f@2000``."""
PAIRED = "matches come in pairs, one at least for each member of a mixture"
"""Why there may be more matches than are asked for."""
LONGEST = 160
"""Characters of a wrong mixture that a message repeats."""


class EvaluationState(Enum):
    OPEN = "open"
    DONE = "done"
    CANCELLED = "cancelled"


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """A request for `matches` clean matches of `player` against each of `opponents` in `book`.

    All of them are names of frozen players, or mixtures such as "based=3,random=1". `number` is the
    request's position in the log, `by` who asked, `at` a Unix time, and `reason` why it was
    cancelled.
    """

    number: int
    player: str
    opponents: tuple[str, ...]
    matches: int
    book: Book
    by: str
    at: float = 0.0
    state: EvaluationState = EvaluationState.OPEN
    reason: str = ""


class Target(NamedTuple):
    """Two players whose matches in a book are to become `until`, an even number."""

    player: str
    opponent: str
    book: Book
    until: int


@dataclass(frozen=True, kw_only=True)
class OpponentScore:
    """What an evaluation's player did against `opponent` in all clean matches of the log.

    Attributes:
        matches, wins, draws, losses: of a mixture without its weights.
        win_rate: wins / matches, a draw is no win; Wilson's interval. 0, from 0 to 1, before the
            first match.
        means: the player's numbers a match.
    """

    opponent: str
    matches: int
    wins: int
    draws: int
    losses: int
    win_rate: Measured
    means: Mapping[str, float]


@dataclass(frozen=True, kw_only=True)
class Report:
    """An evaluation, its scores in the order of its opponents, and how many of the matches that it
    wants the log has.
    """

    evaluation: Evaluation
    scores: tuple[OpponentScore, ...]
    matches_done: int
    matches_total: int

    @property
    def is_open(self) -> bool:
        return self.evaluation.state is EvaluationState.OPEN


def mixture_of(who: Who) -> Mapping[str, float]:
    """The weights of members: of a mapping, of "based=3,random=1", or of one name alone, which may
    be a path of a weights file.

    Raises:
        InvalidInput: a weight is no positive number.
    """
    mixture = {who: 1.0} if isinstance(who, str) else dict(who)
    if isinstance(who, str) and "=" in who and not who.endswith(".safetensors"):
        parts = (part.rpartition("=") for part in who.split(","))
        try:
            mixture = {name.strip(): float(weight) for name, _, weight in parts}
        except ValueError:
            mixture = {}
    total = sum(mixture.values())
    if not mixture or not all(
        name and 0.0 < weight < math.inf and weight / total >= LEAST_SHARE
        for name, weight in mixture.items()
    ):
        raise InvalidInput(
            "a mixture needs members with positive weights, as based=3,random=1, not "
            f"{str(who)[:LONGEST]!r}"
        )
    return {name: weight / total for name, weight in mixture.items()}


def members_of(
    who: Who,
    players: Callable[[], Iterable[Player]],
    nash: Callable[[], Mapping[str, float]],
) -> dict[str, float]:
    """The weights of members, as `mixture_of`, with members in the place of mixtures that have a
    name.

    ``main@average`` is every snapshot of the later half of main's with the same weight, and
    ``league@nash`` the mixture of active snapshots that none of them beats.

    Args:
        players: returns those of the league.
        nash: returns the league's Nash mixture, {} before the first clean match.

    Raises:
        InvalidInput: a weight is no positive number.
        NotFound: a mixture has no members yet.
    """
    shares: dict[str, float] = defaultdict(float)
    for name, share in mixture_of(who).items():
        parts: Mapping[str, float] = {name: 1.0}
        if lineage := averaged_lineage(name):
            half = later_half(lineage, players())
            parts = {player.name: 1.0 / len(half) for player in half}
        elif name == NASH:
            parts = nash()
            if not parts:
                raise NotFound(f"there is no {NASH} before the first clean matches: wait for them")
        for member, part in parts.items():
            shares[member] += share * part
    return dict(shares)


def text_of(mixture: Mapping[str, float]) -> str:
    """The text that `mixture_of` reads: one name alone, or each with its weight."""
    if len(mixture) == 1:
        return next(iter(mixture))
    return ",".join(f"{name}={weight:g}" for name, weight in mixture.items())


def pairs_of(share: float, pairs: int) -> int:
    """How many of `pairs` pairs of matches a share of a mixture has: one at least."""
    return max(1, round(share * pairs))


def targets(evaluation: Evaluation) -> list[Target]:
    """The matches that an evaluation wants, by pair of members.

    A pair that two opponents have in common has the larger of their numbers.
    """
    until: dict[tuple[str, str], int] = defaultdict(int)
    for opponent in evaluation.opponents:
        for one, other, share in _meetings(evaluation.player, opponent):
            wanted = 2 * pairs_of(share, evaluation.matches // 2)
            until[one, other] = max(until[one, other], wanted)
    return [Target(*pair, evaluation.book, count) for pair, count in until.items()]


def score_of(player: str, opponent: str, cell: Callable[[str, str], PayoffCell]) -> OpponentScore:
    """What `player` did against `opponent`, each a name or a mixture, by the counts of `cell`.

    Members that have not met yet are left out, and the others share their weight. The interval is
    Wilson's for the number of independent matches that unequal weights are worth: 1 / Σ w² (Kish).
    """
    met = [(share, cell(one, other)) for one, other, share in _meetings(player, opponent)]
    met = [(share, counts) for share, counts in met if counts.games]
    total = math.fsum(share for share, _ in met)
    won, squares, means = 0.0, 0.0, defaultdict[str, float](float)
    for share, counts in met:
        weight = share / total
        won += weight * counts.wins / counts.games
        squares += weight**2 / counts.games
        for name, mean in counts.means.items():
            means[name] += weight * mean
    won, worth = min(won, 1.0), 1.0 / squares if squares else 0.0
    interval = wilson_interval(won * worth, worth)
    return OpponentScore(
        opponent=opponent,
        matches=sum(counts.games for _, counts in met),
        wins=sum(counts.wins for _, counts in met),
        draws=sum(counts.draws for _, counts in met),
        losses=sum(counts.losses for _, counts in met),
        win_rate=Measured(won, interval.low, interval.high),
        means=dict(means),
    )


def _meetings(player: str, opponent: str) -> Iterator[tuple[str, str, float]]:
    """Each pair of members with its share of the matches."""
    for one, weight in mixture_of(player).items():
        for other, its_weight in mixture_of(opponent).items():
            yield one, other, weight * its_weight
