"""Between domain types and protobuf messages. Only this file and its `wire_*` siblings touch both.

`to_*` makes a message, `from_*` a domain value; `from_*` raises `InvalidInput` for what no domain
value can hold. Bounds and cross-checks are the receiving service's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Any, TypeVar

from league import players as d
from league.errors import InvalidInput
from league.v1 import matchmaker_pb2 as m
from league.v1 import types_pb2 as t

E = TypeVar("E", bound=Enum)

_KINDS = {
    d.PlayerKind.LIVE: t.PLAYER_KIND_LIVE,
    d.PlayerKind.SNAPSHOT: t.PLAYER_KIND_SNAPSHOT,
    d.PlayerKind.BOT: t.PLAYER_KIND_BOT,
    d.PlayerKind.REFERENCE: t.PLAYER_KIND_REFERENCE,
    d.PlayerKind.HUMAN: t.PLAYER_KIND_HUMAN,
}
_ROLES = {
    d.Role.NONE: t.ROLE_UNSPECIFIED,
    d.Role.MAIN: t.ROLE_MAIN,
    d.Role.MAIN_EXPLOITER: t.ROLE_MAIN_EXPLOITER,
    d.Role.LEAGUE_EXPLOITER: t.ROLE_LEAGUE_EXPLOITER,
    d.Role.CLONE: t.ROLE_CLONE,
}
_STATES = {
    d.PlayerState.ACTIVE: t.PLAYER_STATE_ACTIVE,
    d.PlayerState.RETIRED: t.PLAYER_STATE_RETIRED,
    d.PlayerState.QUARANTINED: t.PLAYER_STATE_QUARANTINED,
    d.PlayerState.CANDIDATE: t.PLAYER_STATE_CANDIDATE,
}
_BOOKS = {
    d.Book.TRAIN: t.BOOK_TRAIN,
    d.Book.EVAL: t.BOOK_EVAL,
    d.Book.GREEDY: t.BOOK_GREEDY,
}
_REFUSALS = {
    d.Refusal.NONE: t.REFUSAL_UNSPECIFIED,
    d.Refusal.UNKNOWN_MATCH: t.REFUSAL_UNKNOWN_MATCH,
    d.Refusal.LEASE_TOKEN: t.REFUSAL_LEASE_TOKEN,
    d.Refusal.OTHER_INCARNATION: t.REFUSAL_OTHER_INCARNATION,
    d.Refusal.FENCED: t.REFUSAL_FENCED,
    d.Refusal.RELEASED: t.REFUSAL_RELEASED,
    d.Refusal.WRONG_PLAYER: t.REFUSAL_WRONG_PLAYER,
    d.Refusal.WRONG_DIGEST: t.REFUSAL_WRONG_DIGEST,
    d.Refusal.MALFORMED: t.REFUSAL_MALFORMED,
    d.Refusal.CONTRADICTION: t.REFUSAL_CONTRADICTION,
}


def _back(table: Mapping[E, int], number: int, what: str) -> E:
    for value, wire in table.items():
        if wire == number:
            return value
    raise InvalidInput(f"{number} is no {what}: known are {', '.join(str(v.value) for v in table)}")


def to_kind(kind: d.PlayerKind) -> t.PlayerKind:
    return _KINDS[kind]


def from_kind(number: int) -> d.PlayerKind:
    return _back(_KINDS, number, "player kind")


def to_role(role: d.Role) -> t.Role:
    return _ROLES[role]


def from_role(number: int) -> d.Role:
    return _back(_ROLES, number, "role")


def to_state(state: d.PlayerState) -> t.PlayerState:
    return _STATES[state]


def from_state(number: int) -> d.PlayerState:
    return _back(_STATES, number, "player state")


def to_book(book: d.Book) -> t.Book:
    return _BOOKS[book]


def from_book(number: int, unspecified: d.Book | None = None) -> d.Book:
    """Book of a message's field; `unspecified` is what 0 means, an error without it."""
    if number == t.BOOK_UNSPECIFIED and unspecified is not None:
        return unspecified
    return _back(_BOOKS, number, "book")


def to_player(player: d.Player, *, card: bool = True) -> t.Player:
    return t.Player(
        name=player.name,
        game=player.game,
        kind=_KINDS[player.kind],
        role=_ROLES[player.role],
        state=_STATES[player.state],
        parent=player.parent,
        digest=player.digest,
        step=player.step,
        creator=player.creator,
        card_json=player.card_json if card else "",
        held_out=player.held_out,
        milestone=player.milestone,
        created_at=player.created_at,
    )


def from_player(message: t.Player) -> d.Player:
    """A state left unspecified means active."""
    return d.Player(
        name=message.name,
        game=message.game,
        kind=from_kind(message.kind),
        role=_back(_ROLES, message.role, "role"),
        state=from_state(message.state or t.PLAYER_STATE_ACTIVE),
        parent=message.parent,
        digest=message.digest,
        step=message.step,
        creator=message.creator,
        card_json=message.card_json,
        held_out=message.held_out,
        milestone=message.milestone,
        created_at=message.created_at,
    )


def to_seat_player(player: d.Player) -> t.Player:
    """Without its card: that stands in the weights file, and `ListPlayers` has it."""
    return to_player(player, card=False)


def to_assignment(assignment: d.Assignment) -> t.Assignment:
    return t.Assignment(**_assignment_fields(assignment, to_seat_player))


def add_assignment(
    messages: Any, assignment: d.Assignment, seat: Callable[[d.Player], t.Player] = to_seat_player
) -> None:
    """Adds it to a message's assignments; `seat` makes the message of a player in it, or has it
    ready.
    """
    messages.add(**_assignment_fields(assignment, seat))


def _assignment_fields(
    assignment: d.Assignment, seat: Callable[[d.Player], t.Player]
) -> dict[str, Any]:
    first, second = assignment.seats
    return {
        "match_id": assignment.match_id,
        "ordinal": assignment.ordinal,
        "lease_token": assignment.lease_token,
        "lease_deadline": assignment.lease_deadline,
        "seats": (seat(first), seat(second)),
        "learner_seat": assignment.learner_seat,
        "book": _BOOKS[assignment.book],
        "seed": assignment.seed,
        "category": assignment.category,
        "replaces": assignment.replaces,
    }


def from_assignment(message: t.Assignment) -> d.Assignment:
    if len(message.seats) != 2:
        raise InvalidInput(
            f"match {message.match_id!r} has {len(message.seats)} seats: two are wanted"
        )
    return d.Assignment(
        match_id=message.match_id,
        ordinal=message.ordinal,
        lease_token=message.lease_token,
        lease_deadline=message.lease_deadline,
        seats=(from_player(message.seats[0]), from_player(message.seats[1])),
        learner_seat=message.learner_seat,
        book=from_book(message.book),
        seed=message.seed,
        category=message.category,
        replaces=message.replaces,
    )


def stat_names_of(results: Sequence[d.MatchResult]) -> tuple[str, ...]:
    """Names of the statistics that all seats have, in their order; none where they differ."""
    names = tuple(results[0].seats[0].stats) if results else ()
    alike = all(tuple(seat.stats) == names for result in results for seat in result.seats)
    return names if alike else ()


def to_seat(seat: d.SeatResult, stat_names: tuple[str, ...] = ()) -> t.SeatResult:
    """With `stat_names`, those of the call, statistics go as values in their order."""
    return t.SeatResult(
        player=seat.player,
        digest=seat.digest,
        step_start=seat.step_start,
        step_end=seat.step_end,
        stats=None if stat_names else dict(seat.stats),
        stat_values=seat.stats.values() if stat_names else None,
    )


def from_seat(message: t.SeatResult, stat_names: Sequence[str] = ()) -> d.SeatResult:
    values, stats = message.stat_values[:], message.stats
    if values and len(values) != len(stat_names):
        raise InvalidInput(
            f"{message.player[:80]} has {len(values)} stat_values for {len(stat_names)} stat_names"
        )
    found = dict(zip(stat_names, values, strict=False))  # none where there are no values
    if stats:
        found |= {name: stats[name] for name in stats}  # `dict` asks a message's map by slower ways
    return d.SeatResult(
        player=message.player,
        digest=message.digest,
        step_start=message.step_start,
        step_end=message.step_end,
        stats=found,
    )


def to_result(result: d.MatchResult, stat_names: tuple[str, ...] = ()) -> t.Result:
    return t.Result(
        match_id=result.match_id,
        lease_token=result.lease_token,
        outcome=result.outcome,
        frames=result.frames,
        seats=[to_seat(seat, stat_names) for seat in result.seats],
        failed=result.failed,
        failure=result.failure,
        finished_at=result.finished_at,
    )


def from_result(message: t.Result, stat_names: Sequence[str] = ()) -> d.MatchResult:
    seats = message.seats
    if len(seats) != 2:
        raise InvalidInput(f"the result has {len(seats)} seats: two are wanted")
    return d.MatchResult(
        match_id=message.match_id,
        lease_token=message.lease_token,
        outcome=message.outcome,
        frames=message.frames,
        seats=(from_seat(seats[0], stat_names), from_seat(seats[1], stat_names)),
        failed=message.failed,
        failure=message.failure,
        finished_at=message.finished_at,
    )


def to_verdict(verdict: d.Verdict) -> t.ResultVerdict:
    is_plain = verdict.accepted and not (verdict.duplicate or verdict.reason)
    if is_plain and verdict.refusal is d.Refusal.NONE:  # thousands a second are so
        return t.ResultVerdict(
            match_id=verdict.match_id, accepted=True, log_position=verdict.log_position
        )
    return t.ResultVerdict(
        match_id=verdict.match_id,
        accepted=verdict.accepted,
        duplicate=verdict.duplicate,
        reason=verdict.reason,
        refusal=_REFUSALS[verdict.refusal],
        log_position=verdict.log_position,
    )


def from_verdict(message: t.ResultVerdict) -> d.Verdict:
    return d.Verdict(
        match_id=message.match_id,
        accepted=message.accepted,
        duplicate=message.duplicate,
        reason=message.reason,
        refusal=_back(_REFUSALS, message.refusal, "refusal"),
        log_position=message.log_position,
    )


def to_pairing(pairing: d.Pairing) -> m.Pairing:
    return m.Pairing(
        player=pairing.player,
        opponent=pairing.opponent,
        pairs=pairing.pairs,
        book=_BOOKS[pairing.book],
        seed=pairing.seed,
    )


def from_pairing(message: m.Pairing) -> d.Pairing:
    return d.Pairing(
        player=message.player,
        opponent=message.opponent,
        pairs=message.pairs,
        book=from_book(message.book),
        seed=message.seed,
    )


def to_rating(
    rating: d.Rating, player: Callable[[d.Player], t.Player] = to_seat_player
) -> t.Rating:
    """`player` makes its player's message, or has it ready."""
    return t.Rating(
        player=player(rating.player),
        mu=rating.mu,
        sigma=rating.sigma,
        score=rating.score,
        wins=rating.wins,
        draws=rating.draws,
        losses=rating.losses,
        rank=rating.rank,
        pinned=rating.pinned,
    )


def from_rating(message: t.Rating) -> d.Rating:
    return d.Rating(
        player=from_player(message.player),
        mu=message.mu,
        sigma=message.sigma,
        score=message.score,
        wins=message.wins,
        draws=message.draws,
        losses=message.losses,
        rank=message.rank,
        pinned=message.pinned,
    )


def to_cell(cell: d.PayoffCell) -> t.PayoffCell:
    return t.PayoffCell(
        row=cell.row, column=cell.column, wins=cell.wins, draws=cell.draws, losses=cell.losses
    )


def from_cell(message: t.PayoffCell) -> d.PayoffCell:
    return d.PayoffCell(
        row=message.row,
        column=message.column,
        wins=message.wins,
        draws=message.draws,
        losses=message.losses,
    )


def to_match(record: d.MatchRecord) -> m.GetMatchResponse:
    return m.GetMatchResponse(
        assignment=to_assignment(record.assignment),
        worker=record.worker,
        lease_state=record.lease_state,
        has_result=record.result is not None,
        result=None if record.result is None else to_result(record.result),
        log_position=record.log_position,
        lost_branch=record.lost_branch,
        why_json=record.why_json,
    )


def from_match(message: m.GetMatchResponse) -> d.MatchRecord:
    return d.MatchRecord(
        assignment=from_assignment(message.assignment),
        worker=message.worker,
        lease_state=message.lease_state,
        result=from_result(message.result) if message.has_result else None,
        log_position=message.log_position,
        lost_branch=message.lost_branch,
        why_json=message.why_json,
    )
