"""Defines the league's domain types: frozen values that services, learners and readers share.

A live player is a learner's current weights. A snapshot is a frozen copy of them, and a rival is
another person's agent. Each match belongs to a book: train (training matches), eval (clean matches
with sampled actions) or greedy (clean matches with the likeliest actions). Each book has its own
counts and ratings.

Only the gRPC code uses protobuf messages. `league.rpc.convert` converts them to these values and
back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from typing import Final

from league.errors import InvalidInput, NotFound, nearest
from league.ids import average_of, lineage_of

CATEGORIES: Final = ("snapshots", "self", "exploiters", "victims", "clone", "reference", "rivals")
"""Categories that a mix of opponents may name. A mix may also name a bot or a rival."""


class PlayerKind(StrEnum):
    LIVE = "live"
    SNAPSHOT = "snapshot"
    BOT = "bot"
    REFERENCE = "reference"
    HUMAN = "human"
    RIVAL = "rival"


class Role(StrEnum):
    NONE = "none"
    MAIN = "main"
    MAIN_EXPLOITER = "main_exploiter"
    LEAGUE_EXPLOITER = "league_exploiter"
    CLONE = "clone"


class PlayerState(StrEnum):
    ACTIVE = "active"
    RETIRED = "retired"
    QUARANTINED = "quarantined"
    CANDIDATE = "candidate"


class Book(StrEnum):
    TRAIN = "train"
    EVAL = "eval"
    GREEDY = "greedy"


class Refusal(Enum):
    """Names the reason why a result was refused, for programs. `Verdict.reason` is for people."""

    NONE = ""
    UNKNOWN_MATCH = "unknown_match"
    LEASE_TOKEN = "lease_token"
    OTHER_INCARNATION = "other_incarnation"
    FENCED = "fenced"
    RELEASED = "released"
    WRONG_PLAYER = "wrong_player"
    WRONG_DIGEST = "wrong_digest"
    MALFORMED = "malformed"
    CONTRADICTION = "contradiction"
    QUARANTINED = "quarantined"


@dataclass(frozen=True, kw_only=True)
class Player:
    """Describes a member of the league.

    `digest` is the sha256 of a player's weights, or of the bundle with a rival's files. It is ""
    for bots and live players.
    """

    name: str
    game: str
    kind: PlayerKind
    role: Role = Role.NONE
    state: PlayerState = PlayerState.ACTIVE
    parent: str = ""
    digest: str = ""
    step: int = 0
    creator: str = ""
    card_json: str = ""
    held_out: bool = False
    milestone: bool = False
    created_at: float = 0.0


def newest_snapshot(
    lineage: str, players: Iterable[Player], rated: Iterable[Rating] = ()
) -> Player:
    """Finds the newest snapshot of a live player.

    Args:
        lineage: name of the live player.
        players: the league's players.
        rated: a book's ratings. Snapshots that have played a rated game are preferred.

    Raises:
        NotFound: the player has no snapshot yet.
    """
    played = {rating.player.name for rating in rated if rating.games}
    own = [player for player in players if player.digest and lineage_of(player.name) == lineage]
    if not own:
        raise NotFound(f"{lineage} has no snapshot yet: wait for its first")
    return max(own, key=lambda player: (player.name in played, player.step))


def name_in_book(
    name: str, book: Book, players: Mapping[str, Player], rated: Iterable[Rating]
) -> str:
    """Returns the name under which a player has matches in a book.

    In the clean books (eval and greedy), a live player stands for its newest snapshot.

    Args:
        name: the player.
        book: the book.
        players: the league's players by name.
        rated: the book's ratings.

    Raises:
        InvalidInput: there is no such player.
    """
    if name not in players:
        hint = nearest(name, players) or "bin/league players lists them"
        raise InvalidInput(f"there is no player {name!r}: {hint}")
    if book is Book.TRAIN or players[name].kind is not PlayerKind.LIVE:
        return name
    return newest_snapshot(name, players.values(), rated).name


def later_half(lineage: str, players: Iterable[Player]) -> list[Player]:
    """Returns the later half of a learner's active snapshots, ordered by step. Of an odd number of
    snapshots, it includes the middle snapshot.

    Raises:
        NotFound: the learner has no active snapshot.
    """
    own = [
        player
        for player in players
        if player.kind is PlayerKind.SNAPSHOT
        and player.state is PlayerState.ACTIVE
        and lineage_of(player.name) == lineage
    ]
    if not own:
        raise NotFound(f"{lineage} has no active snapshot: there is nothing to average")
    return sorted(own, key=lambda player: player.step)[len(own) // 2 :]


def averages(players: Iterable[Player]) -> list[str]:
    """Returns names such as ``main@average``, for each main that has active snapshots."""
    lineages = {
        lineage_of(player.name): None
        for player in players
        if player.kind is PlayerKind.SNAPSHOT
        and player.state is PlayerState.ACTIVE
        and player.role is Role.MAIN
    }
    return [average_of(lineage) for lineage in lineages]


@dataclass(frozen=True, kw_only=True)
class Assignment:
    """Assigns a match under a lease. proto/league/v1/types.proto documents the fields."""

    match_id: str
    ordinal: int
    lease_token: str
    lease_deadline: float
    seats: tuple[Player, Player]
    learner_seat: int
    book: Book
    seed: int
    category: str
    replaces: str = ""

    @property
    def opponent(self) -> Player:
        """Returns the learner's opponent."""
        return self.seats[1 - self.learner_seat]


@dataclass(frozen=True, kw_only=True)
class SeatResult:
    player: str
    digest: str = ""
    step_start: int = 0
    step_end: int = 0
    stats: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class MatchResult:
    """Says how an assigned match ended. `outcome` is the result for the player in seat 0: 1 for a
    win, 0.5 for a draw, 0 for a loss.
    """

    match_id: str
    lease_token: str
    outcome: float
    frames: int
    seats: tuple[SeatResult, SeatResult]
    failed: bool = False
    failure: str = ""
    finished_at: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """Says whether the matchmaker accepted a result, and why not."""

    match_id: str
    accepted: bool
    duplicate: bool = False
    reason: str = ""
    refusal: Refusal = Refusal.NONE
    log_position: int = 0


@dataclass(frozen=True, kw_only=True)
class Pairing:
    """Requests pairs of matches between two players. In the second match of a pair, the players
    swap seats and play with the same seed.

    If `until` is not 0, it limits the number of matches. The matchmaker leases a pair only while
    the two players have fewer than `until` matches in the book. Matches that are still leased to
    any worker count too.

    The seed of a pair is derived from `seed` and from the pair's number. The first pair of a
    request has number 0. If `until` is not 0, the numbers instead continue from earlier requests
    for these two players, so that no seed is played twice.
    """

    player: str
    opponent: str
    pairs: int
    book: Book
    seed: int
    until: int = 0


@dataclass(frozen=True, kw_only=True)
class Rating:
    player: Player
    mu: float
    sigma: float
    score: float
    wins: int
    draws: int
    losses: int
    rank: int
    pinned: bool = False
    """Whether an operator has fixed the rating, so that the player serves as an anchor."""
    trend: tuple[float, ...] = ()
    """The score's history: its values after evenly spaced matches, oldest first."""

    @property
    def games(self) -> int:
        return self.wins + self.draws + self.losses


@dataclass(frozen=True, kw_only=True)
class PayoffCell:
    """Counts the matches of `row` against `column`, from the row's point of view.

    On request, a cell also has the row's matches and wins in seat 0, the total number of frames,
    and the means of the row's statistics per match. If a match lacks a statistic, the mean counts
    it as 0.

    In games with payoffs, the payment of a match is half of the difference between the two payoffs:
    (row's payoff - column's payoff) / 2. `paid` is the sum of the payments, `staked` the sum of
    their absolute values, and `squares` the sum of their squares.
    """

    row: str
    column: str
    wins: int
    draws: int
    losses: int
    paid: float = 0.0
    staked: float = 0.0
    squares: float = 0.0
    seat0_games: int = 0
    seat0_wins: int = 0
    frames: int = 0
    means: Mapping[str, float] = field(default_factory=dict)

    @property
    def games(self) -> int:
        return self.wins + self.draws + self.losses


@dataclass(frozen=True, kw_only=True)
class Incarnation:
    number: int
    carried: tuple[Assignment, ...]
    lost_results: int


@dataclass(frozen=True, kw_only=True)
class MatchRecord:
    """Collects everything that the log has about a match. `why_json` explains how the matchmaker
    chose the opponent.
    """

    assignment: Assignment
    worker: str
    lease_state: str
    result: MatchResult | None
    log_position: int
    lost_branch: bool
    why_json: str


@dataclass(frozen=True, kw_only=True)
class MatchLine:
    """Summarises a match with a result. `position` is the result's position in the log."""

    position: int
    match_id: str
    seats: tuple[str, str]
    book: Book
    category: str
    outcome: float
    frames: int
    failed: bool
    received_at: float


EVENT_KINDS = (
    "configuration",
    "evaluation_cancelled",
    "evaluation_requested",
    "exploiter_patched",
    "exploiter_returned",
    "gate_decided",
    "gate_opened",
    "generation",
    "incarnation_opened",
    "learners_paused",
    "learners_resumed",
    "leases_abandoned",
    "leases_expired",
    "leases_released",
    "member_compared",
    "member_copied",
    "milestone",
    "mix_changed",
    "mix_reset",
    "analysis",
    "operator_action",
    "operator_refused",
    "player_quarantined",
    "player_registered",
    "player_released",
    "player_retired",
    "player_returned",
    "rating_epoch",
    "rating_pinned",
    "rating_unpinned",
    "result",
    "results_lost",
    "rules_changed",
    "stage",
    "stage_asked",
    "worker_quarantined",
    "worker_released",
    "workers_disagree",
)
"""Allowed values of `Event.kind`."""


@dataclass(frozen=True, kw_only=True)
class Event:
    position: int
    at: float
    kind: str
    text: str
    data_json: str
