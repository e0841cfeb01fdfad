"""What readers ask for: one match with its why, and the league's status."""

from __future__ import annotations

import json
from typing import Any

from league import __version__
from league.errors import DataCorrupt, InvalidInput, NotFound
from league.players import Book, MatchLine, MatchRecord, MatchResult, Role, SeatResult
from league.status import (
    ENDED,
    SILENT_SECONDS,
    STALLED,
    LeagueStatus,
    RatingEpoch,
    Share,
    WorkerStatus,
    at_rest,
)
from matchmaker.acts import checks
from matchmaker.acts.assign import assignments_of
from matchmaker.sampling.candidates import Pool, configured_shares, expected_shares
from matchmaker.state.league import League
from matchmaker.store.rows import AssignmentRow, IncarnationRow, ResultRow
from matchmaker.store.transaction import Reader

MATCHES = 200
"""The most of a page."""
LOOKED_AT = 50_000
"""Results that a page looks at, at the most: 0.1 s."""


def match_record(league: League, reader: Reader, match_id: str) -> MatchRecord:
    """Everything the log knows of a match, by its id or the beginning of it."""
    checks.identifier(match_id, "match_id")
    rows = [*reader.assignments([match_id]).values()] or reader.matches_with_prefix(match_id, 2)
    if len(rows) > 1:
        raise InvalidInput(f"several matches begin with {match_id}: give more of the match id")
    if not rows:
        raise NotFound(f"there is no match {match_id}: check the id (they are in `league watch`)")
    row = rows[0]._replace(lease_token="")  # it is the holder's alone
    result = reader.result(row.ordinal)
    (assignment,) = assignments_of(league, [row])
    return MatchRecord(
        assignment=assignment,
        worker=league.incarnation(reader, row.incarnation).worker,
        lease_state=row.lease_state,
        result=None if result is None else _reported(league, row, result),
        log_position=0 if result is None else result.position,
        lost_branch=result is not None and result.lost_by is not None,
        why_json=json.dumps(why(reader, row)),
    )


def _reported(league: League, lease: AssignmentRow, row: ResultRow) -> MatchResult:
    """The reported result; names and digests are those of the lease."""

    def seat(name: str, start: int, end: int, stats: dict[str, float]) -> SeatResult:
        digest = league.view.players[name].digest
        return SeatResult(player=name, digest=digest, step_start=start, step_end=end, stats=stats)

    stats0, stats1 = row.stats
    return MatchResult(
        match_id=row.match_id,
        lease_token=lease.lease_token,
        outcome=row.outcome,
        frames=row.frames,
        seats=(
            seat(lease.seat0, row.step0, row.end_step0, stats0),
            seat(lease.seat1, row.step1, row.end_step1, stats1),
        ),
        failed=bool(row.failed),
        failure=row.failure,
        finished_at=row.finished_at,
    )


def why(reader: Reader, row: AssignmentRow) -> dict[str, Any]:
    """How the match came about; `sampling.draw.draw_table_of` draws it again."""
    found = None if row.draw is None else reader.draw(row.draw)
    if found is None and row.draw is not None:
        raise DataCorrupt(f"draw {row.draw} of match {row.match_id} is missing: restore a backup")
    if found is None:
        return {}
    first = row
    while first.replaces:  # of a match that was carried over restarts, the one that was drawn
        first = reader.assignments([first.replaces])[first.replaces]
    return {
        **json.loads(found.body_json),
        "policy_hash": found.policy_hash,
        "log_position": found.log_position,
        "event_position": found.event_position,
        "draw_seed": row.draw_seed,
        "draw_ordinal": first.ordinal,
        "category": row.category,
        "probability": row.probability,
    }


def matches(
    reader: Reader,
    player: str,
    opponent: str,
    book: Book | None,
    category: str,
    before: int,
    limit: int,
) -> tuple[list[MatchLine], int]:
    """Results before a position, the newest first, and where older ones begin, 0 for none.

    It looks at `LOOKED_AT` results at the most, so that a filter that nothing passes takes no
    longer than others.
    """
    newest, _, _ = reader.positions()
    until = min(before or newest + 1, newest + 1)
    since = max(1, until - LOOKED_AT)
    found = reader.match_lines(player, opponent, book, category, since, until, limit)
    last = found[-1].position if len(found) == limit else since
    return found, last if last > 1 else 0


def status(league: League, reader: Reader) -> LeagueStatus:
    """Workers, open leases, and configured and realised shares of every learner's mix."""
    open_leases = reader.open_counts()
    workers = [
        _worker(league, reader, incarnation, open_leases.get(incarnation.number, 0))
        for incarnation in reader.newest_incarnations()
    ]
    return LeagueStatus(
        game=league.settings.game,
        payoff_unit=league.settings.payoff_unit,
        log_position=league.view.log_position,
        open_leases=sum(open_leases.values()),
        workers=tuple(workers),
        shares=tuple(_shares(league, workers)),
        version=__version__,
        vitals=league.vitals(),
        epochs=tuple(
            RatingEpoch(
                book=book,
                after_position=table.epoch.after_position,
                games=table.epoch.games,
                draw_probability=table.epoch.draw_probability,
            )
            for book, table in league.view.tables.items()
        ),
    )


def _worker(
    league: League, reader: Reader, incarnation: IncarnationRow, open_leases: int
) -> WorkerStatus:
    name, quarantines = incarnation.worker, league.view.quarantines
    beat = reader.beat(incarnation.number)
    metrics = json.loads(beat.metrics_json) if beat else {}
    if beat and beat.activity not in ENDED and league.clock.now() - beat.at > SILENT_SECONDS:
        metrics = at_rest(metrics)
    still = f", no progress for {metrics[STALLED]:.0f} s" if STALLED in metrics else ""
    return WorkerStatus(
        worker=name,
        incarnation=incarnation.number,
        player=incarnation.player,
        step=beat.step if beat else reader.last_step(incarnation),
        mix=beat.mix if beat else reader.last_mix(incarnation.number),
        activity=beat.activity + still if beat else "",
        last_beat_at=beat.at if beat else incarnation.opened_at,
        metrics=metrics,
        open_leases=open_leases,
        trouble=quarantines.sentence(name) or quarantines.torn.get(name, ""),
        is_quarantined=name in quarantines.out,
    )


def _shares(league: League, workers: list[WorkerStatus]) -> list[Share]:
    """Of the mix that each learner is in, mains first.

    Expected ones are those of its next draw, realised ones are over all its draws.
    """
    view = league.view
    mixes: dict[str, str] = {}
    for worker in sorted(workers, key=lambda one: one.last_beat_at):
        if worker.player and worker.mix:
            mixes[worker.player] = worker.mix
    shares = []
    learners = [view.players[name] for name in mixes]
    for learner in sorted(learners, key=lambda one: (one.role is not Role.MAIN, one.name)):
        name, mix = learner.name, mixes[learner.name]
        pool = Pool(league.settings, learner, view.players, view.tables, view.exploiters)
        configured, expected = configured_shares(pool, mix), expected_shares(pool, mix)
        drawn = {key[2]: count for key, count in view.drawn.items() if key[:2] == (name, mix)}
        matches = sum(drawn.values()) or 1
        shares += [
            Share(
                player=name,
                mix=mix,
                category=category,
                configured=configured.get(category, 0.0),
                expected=expected.get(category, 0.0),
                realised=drawn.get(category, 0) / matches,
                matches=drawn.get(category, 0),
            )
            for category in dict.fromkeys([*configured, *expected, *drawn])
        ]
    return shares
