"""Implements ``bin/league mix``, which shows a learner's opponents and its expected scores."""

from __future__ import annotations

import heapq
import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from itertools import compress, pairwise
from statistics import fmean
from typing import Any

from league.errors import NotFound
from league.exploiters import EXPLOITING
from league.players import Event, Player, PlayerKind
from matchmaker.sampling.candidates import Pool, candidates_of
from matchmaker.settings import MatchmakerSettings
from matchmaker.state.books import RATING_EVENTS, Books
from matchmaker.state.quarantine import EVENTS as QUARANTINES
from matchmaker.state.quarantine import Quarantines
from matchmaker.state.steering import EVENTS as STEERING
from matchmaker.state.steering import Steering
from matchmaker.store.rows import AssignmentRow, ResultRow
from matchmaker.store.transaction import Reader

EVEN, WON = ".2_to_.8", "above_.9"
KINDS = ("self", "snapshots", "exploiters", "bots", "rivals")
BANDS = {
    "below_.2": (0.0, 0.2),
    EVEN: (0.2, 0.8),
    "above_.8": (0.8, math.inf),
    WON: (0.9, math.inf),
}
"""Bands of a learner's expected scores. The band `above_.8` includes `above_.9`."""


COLUMNS = ("steps", "matches#", *(f"{name}#" for name in (*KINDS, *BANDS, "expected", "score")))


@dataclass(frozen=True)
class Met:
    """Describes a rated match of a learner.

    Attributes:
        step: the learner's step when the match began.
        expected: score that was expected when the opponent was drawn.
        score: the actual score.
        mix: the mix by which the opponent was drawn.
        drawn_at: log position of the newest event when the opponent was drawn.
    """

    kind: str
    step: int
    expected: float
    score: float
    mix: str = field(default="", compare=False)
    drawn_at: int = field(default=0, compare=False)


def matches_of(reader: Reader, learner: str) -> Iterator[Met]:
    """Yields a learner's drawn matches that have a result, in the order of the results. Raises
    `NotFound` if there is no such learner.
    """
    players = {player.name: player for player in reader.players()}
    if learner not in players or players[learner].kind is not PlayerKind.LIVE:
        raise NotFound(f"there is no learner {learner[:80]!r}: bin/league players lists them")
    incarnations = {row.number for row in reader.incarnations() if row.player == learner}
    drawn: dict[int | None, list[AssignmentRow]] = defaultdict(list)
    for row in reader.all_assignments():
        if row.incarnation in incarnations and row.mix:
            drawn[row.draw].append(row)
    books = Books(Quarantines(reader.events_of(*QUARANTINES)).without)
    pool = Pool(MatchmakerSettings(), players[learner], players, books.tables)
    expected: dict[int, tuple[str, float, AssignmentRow, int]] = {}
    log: Iterator[tuple[int, Any]] = heapq.merge(
        ((row.event_position, row) for row in reader.results()),
        ((event.position, event) for event in reader.events_of(*RATING_EVENTS)),
        ((at, number) for at, number in reader.draw_positions() if number in drawn),
        key=lambda item: item[0],
    )
    for position, entry in log:
        if isinstance(entry, Event):
            books.apply(entry)
        elif isinstance(entry, ResultRow):
            if entry.rated and entry.ordinal in expected:
                kind, chance, row, drawn_at = expected.pop(entry.ordinal)
                score, step = (
                    (1.0 - entry.outcome, entry.step1)
                    if row.learner_seat
                    else (entry.outcome, entry.step0)
                )
                yield Met(kind, step, chance, score, row.mix, drawn_at)
            books.add_results([entry])
        else:
            names = [row.seat0 if row.learner_seat else row.seat1 for row in drawn[entry]]
            rivals = [players[name] for name in names]
            chances = candidates_of(rivals, pool).chances().tolist()
            for row, rival, chance in zip(drawn[entry], rivals, chances, strict=True):
                kind = _kind(rival, learner)
                expected[row.ordinal] = kind, 0.5 if kind == "self" else chance, row, position


def _kind(opponent: Player, learner: str) -> str:
    if opponent.name == learner:
        return "self"
    if opponent.kind is PlayerKind.BOT:
        return "bots"
    if opponent.kind is PlayerKind.RIVAL:
        return "rivals"
    return "exploiters" if opponent.role in EXPLOITING else "snapshots"


def parts_of(matches: Sequence[Met], last: float | None = None) -> list[dict[str, Any]]:
    """Summarises a learner's matches by quarter of its steps.

    Args:
        matches: the learner's matches.
        last: a share of the steps. If it is given, only matches from this last part of the steps
            are summarised.

    Returns:
        The summary of each part. Shares are relative to the part's matches, and empty groups are
        left out.
    """
    steps = 1 + max((match.step for match in matches), default=0)
    bounds = [round(quarter * steps / 4) for quarter in range(5)]
    if last is not None:
        bounds = [round((1.0 - last) * steps), steps]
    spans = (
        ([match for match in matches if since <= match.step < until], since, until)
        for since, until in pairwise(bounds)
    )
    return [_part(span, since, until) for span, since, until in spans if span]


def changes_of(reader: Reader, matches: Sequence[Met]) -> list[dict[str, Any]]:
    """Describes the newest change of each mix by an operator, with a summary of the learner's
    matches that were drawn since the change. Without such matches the summary is None.
    """
    described = []
    for change in Steering(reader.events_of(*STEERING)).changes.values():
        is_since = (
            match.mix == change.mix and match.drawn_at >= change.number for match in matches
        )
        span = list(compress(matches, is_since))
        steps = [match.step for match in span]
        part = _part(span, min(steps), max(steps) + 1) if span else None
        described.append(asdict(change) | {"words": change.words, "part": part})
    return described


def _part(span: Sequence[Met], since: int, until: int) -> dict[str, Any]:
    kinds = {kind: [match for match in span if match.kind == kind] for kind in KINDS}
    bands = {
        band: [match for match in span if low <= match.expected < high]
        for band, (low, high) in BANDS.items()
    }
    return (
        {"since_step": since, "until_step": until}
        | _summary(span, len(span))
        | {"kinds": {name: _summary(met, len(span)) for name, met in kinds.items() if met}}
        | {"bands": {name: _summary(met, len(span)) for name, met in bands.items() if met}}
    )


def _summary(matches: Sequence[Met], total: int) -> dict[str, float]:
    return {
        "matches": len(matches),
        "share": len(matches) / total,
        "expected": fmean(match.expected for match in matches),
        "score": fmean(match.score for match in matches),
    }


def sentence(player: str, span: dict[str, Any]) -> str:
    kinds = ", ".join(f"{name} {figures['share']:.0%}" for name, figures in span["kinds"].items())
    even, won = (span["bands"].get(band, {"share": 0.0})["share"] for band in (EVEN, WON))
    return (
        f"{player} since step {span['since_step']:,} met {kinds}; of its matches {even:.0%} were "
        f"even (expected score .2 to .8) and {won:.0%} as good as won (above .9)"
    )


def row_of(span: dict[str, Any]) -> list[str]:
    none = {"share": 0.0}
    shares = [span["kinds"].get(kind, none)["share"] for kind in KINDS]
    shares += [span["bands"].get(band, none)["share"] for band in BANDS]
    shares += [span["expected"], span["score"]]
    steps = f"{span['since_step']:,}-{span['until_step']:,}"
    return [steps, f"{span['matches']:,}", *(f"{share:.1%}" for share in shares)]
