"""Describes requested evaluations: the clean matches that they need, and their results so far.

Clean matches are matches between frozen players. They are played in pairs: both matches of a pair
have the same seed, and the players swap seats. Clean matches with sampled actions belong to the
book `eval`, and clean matches with the likeliest actions belong to the book `greedy`.

An evaluation is done as soon as the log contains its matches. Matches from before the request count
too, because frozen players don't change. So an evaluation never repeats a match.
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
"""A player's name, or a mixture: names of players with weights."""
LEAST_SHARE = 1e-9
"""Smallest share that a member of a mixture may have. A smaller share is probably a mistake, and
the product of two tiny shares could underflow.
"""
FILES = "file"
"""Prefix in the name of a player that was loaded from a weights file: ``file:0a1b2c3d4e5f@2000``.
A snapshot that was imported from another run has the run's name as its prefix.
"""
PAIRED = "matches come in pairs, one at least for each member of a mixture"
"""Explains why an evaluation may play more matches than its user requested."""
MAX_PAIRS = 256
"""Largest number of pairs of players in an evaluation. Each member of a mixture makes pairs of its
own.
"""
LONGEST = 160
"""Maximum number of characters that an error message quotes from an invalid mixture."""


class EvaluationState(Enum):
    OPEN = "open"
    DONE = "done"
    CANCELLED = "cancelled"


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """Describes a request for clean matches of a player against some opponents.

    Attributes:
        number: the request's position in the log, which identifies the evaluation.
        player, opponents: names of frozen players, or mixtures such as "based=3,random=1".
        matches: number of matches against each opponent.
        by: the user who requested the evaluation.
        at: time of the request, in Unix seconds.
        reason: why the evaluation was cancelled.
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
    """Names two players of an evaluation, and the number of matches that they need.

    The two players play until `book` contains `until` matches between them. `until` is even,
    because matches are played in pairs.
    """

    player: str
    opponent: str
    book: Book
    until: int


@dataclass(frozen=True, kw_only=True)
class OpponentScore:
    """Summarises all clean matches in the log between an evaluation's player and `opponent`.

    Attributes:
        matches, wins, draws, losses: plain counts, in which every match of a mixture's members
            counts once.
        win_rate: the share of matches that the player won, with Wilson's interval. For a mixture,
            it is the weighted mean over the members. A draw is not a win. Without matches the share
            is 0, with the interval from 0 to 1.
        means: the player's statistics per match, weighted like `win_rate`.
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
    """Reports the progress of an evaluation. `scores` has an entry for each of the evaluation's
    opponents, in the same order.

    Attributes:
        matches_done: number of matches that the evaluation needs and the log already contains.
        matches_total: number of matches that the evaluation needs.
    """

    evaluation: Evaluation
    scores: tuple[OpponentScore, ...]
    matches_done: int
    matches_total: int

    @property
    def is_open(self) -> bool:
        return self.evaluation.state is EvaluationState.OPEN


def mixture_of(who: Who) -> Mapping[str, float]:
    """Reads the weights of a mixture's members.

    Args:
        who: a mapping, a text such as "based=3,random=1", or a single name, which may be the path
            of a weights file.

    Returns:
        The share of each member. The shares sum to 1.

    Raises:
        InvalidInput: a weight is not a positive number.
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
    """Reads a mixture like `mixture_of`, and replaces each named mixture by its members.

    ``main@average`` is the later half of main's active snapshots, all with the same weight.
    ``league@nash`` is the Nash mixture of the active snapshots. According to the clean matches so
    far, no active snapshot beats it.

    Args:
        who: as for `mixture_of`.
        players: returns the league's players.
        nash: returns the league's Nash mixture, {} before the first clean match.

    Raises:
        InvalidInput: a weight is not a positive number.
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
    """Returns a mixture in the format of `mixture_of`: a single name, or names with weights."""
    if len(mixture) == 1:
        return next(iter(mixture))
    return ",".join(f"{name}={weight:g}" for name, weight in mixture.items())


def pairs_of(share: float, pairs: int) -> int:
    """Returns the number of pairs of matches that a member of a mixture plays, at least 1.

    Args:
        share: the member's share of the mixture.
        pairs: the number of pairs for the whole mixture.
    """
    return max(1, round(share * pairs))


def targets(evaluation: Evaluation) -> list[Target]:
    """Lists the matches that an evaluation needs.

    Each member of the player's mixture meets each member of the opponents' mixtures. A single
    player counts as a mixture with one member. If two opponents (such as a bot and a mixture with
    this bot) need matches between the same two members, the larger number of matches is played.
    """
    until: dict[tuple[str, str], int] = defaultdict(int)
    for opponent in evaluation.opponents:
        for one, other, share in _meetings(evaluation.player, opponent):
            wanted = 2 * pairs_of(share, evaluation.matches // 2)
            until[one, other] = max(until[one, other], wanted)
    return [Target(*pair, evaluation.book, count) for pair, count in until.items()]


def score_of(player: str, opponent: str, cell: Callable[[str, str], PayoffCell]) -> OpponentScore:
    """Scores a player's matches against an opponent.

    If a mixture plays, the score is the weighted mean over the pairs of members. Pairs without a
    match are left out, and the weights of the other pairs are scaled up to sum to 1.

    The interval is Wilson's. Its number of matches is Kish's effective sample size 1 / Σ w², where
    w is the weight of a match, and the weights sum to 1.

    Args:
        player, opponent: names or mixtures.
        cell: returns the match counts of the first player against the second.
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
    """Yields each pair of a member of `player` and a member of `opponent`, with the pair's share of
    all matches.
    """
    for one, weight in mixture_of(player).items():
        for other, its_weight in mixture_of(opponent).items():
            yield one, other, weight * its_weight
