"""Checks the bounds of every field of a request. A check that fails raises `InvalidInput`."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Mapping

from league.errors import InvalidInput
from league.ids import SnapshotName, checked_digest, checked_player_name, lineage_of
from league.players import MatchResult, Pairing, Player, PlayerKind

MAX_BATCH = 4096
MAX_CARD_BYTES = 64 * 1024
MAX_FRAMES = 100_000_000
MAX_STEP = 10**15
MAX_STATS = 64
MAX_METRICS = 256
MAX_TEXT = 500
MAX_NAME = 80
MAX_PLAYER_NAME = 160  # the longest are names of snapshots from other runs
MAX_KINDS = 16
MAX_MEASURED = 1e15
"""Largest accepted metric or statistic of a match. The bound keeps sums finite."""
MAX_TIME = 253_402_300_799.0
"""Largest accepted time in Unix seconds: the last second of the year 9999, the last year that a
`datetime` can hold."""
_ID = re.compile(r"[A-Za-z0-9_.:-]{1,80}")
_WORKER = re.compile(r"[a-z0-9][a-z0-9_.-]{0,63}")
_WITH_DIGEST = (PlayerKind.SNAPSHOT, PlayerKind.REFERENCE, PlayerKind.RIVAL)


def identifier(value: str, label: str) -> str:
    """Checks an id that the caller has chosen.

    Args:
        value: the id.
        label: the name of the field, for the message.

    Returns:
        The id.

    Raises:
        InvalidInput: `value` is not an id.
    """
    if not _ID.fullmatch(value):
        raise InvalidInput(
            f"{label} {value[:MAX_NAME]!r} is no id: 1 to 80 letters, digits, _ . : -"
        )
    return value


def worker_name(value: str) -> str:
    """Returns `value` if it can name a worker."""
    if not _WORKER.fullmatch(value):
        raise InvalidInput(
            f"{value[:MAX_NAME]!r} can't name a worker: up to 64 of a-z 0-9 _ . -, as learner-main"
        )
    return value


def text(value: str, label: str, limit: int = MAX_TEXT) -> str:
    """Returns `value` if it has at most `limit` characters."""
    if len(value) > limit:
        raise InvalidInput(f"{label} has {len(value)} characters: {limit} are the most")
    return value


def names(values: Collection[str], label: str) -> None:
    """Checks the number and the lengths of players' names. The players need not exist."""
    number(len(values), label, 0, MAX_BATCH)
    for value in values:
        text(value, "a name", MAX_PLAYER_NAME)


def number(value: int, label: str, low: int, high: int) -> int:
    """Returns `value` if it is at least `low` and at most `high`."""
    if not low <= value <= high:
        raise InvalidInput(f"{label} = {value} is out of range: from {low} to {high}")
    return value


def time(value: float, label: str) -> None:
    """Checks that `value` is a time in Unix seconds."""
    if not 0.0 <= value <= MAX_TIME:
        raise InvalidInput(f"{label} = {value} is no time: Unix seconds are wanted")


def player(player: Player, game: str) -> None:
    """Checks the fields of a player that can be checked without other players."""
    checked_player_name(player.name)
    if player.game != game:
        raise InvalidInput(f"{player.name} plays {player.game[:MAX_NAME]!r}, this league {game!r}")
    if player.parent:
        checked_player_name(player.parent)
    if player.kind in _WITH_DIGEST:
        checked_digest(player.digest)
    elif player.digest:
        raise InvalidInput(f"{player.name} is a {player.kind.value}: leave its digest empty")
    number(player.step, f"{player.name}: step", 0, MAX_STEP)
    text(player.creator, f"{player.name}: creator", MAX_NAME)
    time(player.created_at, f"{player.name}: created_at")
    if player.kind is PlayerKind.SNAPSHOT:
        if SnapshotName.parse(player.name).step != player.step:
            raise InvalidInput(f"{player.name} has step {player.step}: name and step must agree")
    elif lineage_of(player.name):
        raise InvalidInput(f"{player.name} has @STEP, as only a snapshot's name may")
    if len(player.card_json.encode()) > MAX_CARD_BYTES:
        raise InvalidInput(f"{player.name}: the card has over {MAX_CARD_BYTES} bytes")
    try:
        json.loads(player.card_json or "{}")
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"{player.name}: the card is no JSON: {error}") from None


def pairing(pairing: Pairing) -> None:
    """Checks the fields of a pairing that can be checked without its players."""
    checked_player_name(pairing.player)
    checked_player_name(pairing.opponent)
    if pairing.player == pairing.opponent:
        raise InvalidInput(f"{pairing.player} can't be paired with itself: it would never be rated")
    number(
        pairing.pairs, f"pairs of {pairing.player} against {pairing.opponent}", 1, MAX_BATCH // 2
    )
    number(pairing.until, f"until of {pairing.player} against {pairing.opponent}", 0, MAX_FRAMES)
    if pairing.book.value == "train":
        raise InvalidInput("pairings are for eval and greedy: a learner's matches come by its mix")


def result(result: MatchResult) -> None:
    """Checks the fields of a result that can be checked without its lease."""
    identifier(result.match_id, "match_id")
    if result.outcome not in (0.0, 0.5, 1.0):
        raise InvalidInput(f"outcome = {result.outcome} is none: 1 win, 0.5 draw, 0 loss of seat 0")
    number(result.frames, "frames", 0, MAX_FRAMES)
    text(result.failure, "failure")
    time(result.finished_at, "finished_at")
    for seat in result.seats:
        name = seat.player[:MAX_NAME]
        number(seat.step_start, f"{name}: step_start", 0, MAX_STEP)
        number(seat.step_end, f"{name}: step_end", seat.step_start, MAX_STEP)
        if len(seat.stats) > MAX_STATS:
            raise InvalidInput(f"{name}: {len(seat.stats)} stats, {MAX_STATS} are the most")
        for stat, value in seat.stats.items():
            if not (0 < len(stat) <= MAX_NAME and abs(value) <= MAX_MEASURED):
                raise InvalidInput(
                    f"{name}: stat {stat[:MAX_NAME]!r} = {value} can't be kept: give it a name of "
                    f"up to {MAX_NAME} characters and at most {MAX_MEASURED:g}"
                )


def metrics(values: Mapping[str, float]) -> dict[str, float]:
    """Returns the finite metrics, bounded by `MAX_MEASURED`. A mean of no values is NaN and is left
    out.
    """
    if len(values) > MAX_METRICS:
        raise InvalidInput(f"a heartbeat carries {len(values)} metrics: {MAX_METRICS} are the most")
    for name in values:
        text(name, "a metric's name", MAX_NAME)
    return {
        name: min(max(value, -MAX_MEASURED), MAX_MEASURED)
        for name, value in values.items()
        if math.isfinite(value)
    }
