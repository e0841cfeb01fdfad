"""What readers ask for: one match with its why, and the league's status."""

from __future__ import annotations

import json
from typing import Any

from league import __version__
from league.errors import InvalidInput, NotFound
from league.players import (
    Book,
    LeagueStatus,
    MatchRecord,
    MatchResult,
    Player,
    RatingEpoch,
    Role,
    SeatResult,
    Share,
    WorkerStatus,
)
from league.stats.ratings import RatingTable
from matchmaker.acts import checks
from matchmaker.acts.assign import assignments_of
from matchmaker.sampling.candidates import Pool, configured_shares
from matchmaker.state.league import League
from matchmaker.store.rows import AssignmentRow, IncarnationRow, ResultRow
from matchmaker.store.transaction import Reader


def match_record(league: League, reader: Reader, match_id: str) -> MatchRecord:
    """Everything the log knows of a match, by its id or the beginning of it.

    Raises:
        NotFound: no match begins so.
        InvalidInput: several do.
    """
    row = _named_match(reader, checks.identifier(match_id, "match_id"))
    row = row._replace(lease_token="")  # it is the holder's alone
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


def _named_match(reader: Reader, match_id: str) -> AssignmentRow:
    exact = reader.assignment(match_id)
    if exact is not None:
        return exact
    rows = reader.matches_with_prefix(match_id, 2)
    if len(rows) > 1:
        raise InvalidInput(f"several matches begin with {match_id}: give more of the match id")
    if not rows:
        raise NotFound(f"there is no match {match_id}: check the id (they are in `league watch`)")
    return rows[0]


def _reported(league: League, lease: AssignmentRow, row: ResultRow) -> MatchResult:
    """The reported result; names and digests are those of the lease."""
    seats = (
        SeatResult(
            player=name,
            digest=league.view.players[name].digest,
            step_start=start,
            step_end=end,
            stats=stats,
        )
        for name, start, end, stats in zip(
            (lease.seat0, lease.seat1),
            (row.step0, row.step1),
            (row.end_step0, row.end_step1),
            row.stats,
            strict=True,
        )
    )
    return MatchResult(
        match_id=row.match_id,
        lease_token=lease.lease_token,
        outcome=row.outcome,
        frames=row.frames,
        seats=(next(seats), next(seats)),
        failed=bool(row.failed),
        failure=row.failure,
        finished_at=row.finished_at,
    )


def why(reader: Reader, row: AssignmentRow) -> dict[str, Any]:
    """How the match came about, complete enough to draw it again (`candidates.draw_table_of`)."""
    found = None if row.draw is None else reader.draw(row.draw)
    if found is None:
        return {}
    return {
        **json.loads(found.body_json),
        "policy_hash": found.policy_hash,
        "log_position": found.log_position,
        "event_position": found.event_position,
        "draw_seed": row.draw_seed,
        "draw_ordinal": _first(reader, row).ordinal,
        "category": row.category,
        "probability": row.probability,
    }


def _first(reader: Reader, row: AssignmentRow) -> AssignmentRow:
    """Of a match that was carried over restarts, the one that was drawn."""
    while row.replaces:
        before = reader.assignment(row.replaces)
        assert before is not None  # a match is carried only where it is known
        row = before
    return row


def status(league: League, reader: Reader) -> LeagueStatus:
    """Workers, open leases, and configured and realised shares of every learner's mix."""
    open_leases = reader.open_counts()
    workers = [
        _worker(reader, incarnation, open_leases.get(incarnation.number, 0))
        for incarnation in reader.newest_incarnations()
    ]
    return LeagueStatus(
        game=league.settings.game,
        log_position=league.view.log_position,
        open_leases=sum(open_leases.values()),
        workers=tuple(workers),
        shares=tuple(_shares(league, workers)),
        version=__version__,
        vitals=league.vitals(),
        epochs=tuple(_epoch(book, table) for book, table in league.view.tables.items()),
    )


def _epoch(book: Book, table: RatingTable) -> RatingEpoch:
    epoch = table.epoch
    return RatingEpoch(
        book=book,
        after_position=epoch.after_position,
        games=epoch.games,
        draw_probability=epoch.draw_probability,
    )


def _worker(reader: Reader, incarnation: IncarnationRow, open_leases: int) -> WorkerStatus:
    beat = reader.beat(incarnation.number)
    return WorkerStatus(
        worker=incarnation.worker,
        incarnation=incarnation.number,
        player=incarnation.player,
        step=beat.step if beat else incarnation.checkpoint_step,
        mix=beat.mix if beat else reader.last_mix(incarnation.number),
        activity=beat.activity if beat else "",
        last_beat_at=beat.at if beat else incarnation.opened_at,
        metrics=json.loads(beat.metrics_json) if beat else {},
        open_leases=open_leases,
    )


def _shares(league: League, workers: list[WorkerStatus]) -> list[Share]:
    """Of the mix that each learner is in, mains first; the realised ones are over all its draws."""
    newest: dict[str, WorkerStatus] = {}
    for worker in sorted(workers, key=lambda one: one.last_beat_at):
        if worker.player and worker.mix:
            newest[worker.player] = worker
    learners = [league.view.players[name] for name in newest]
    in_order = sorted(learners, key=lambda one: (one.role is not Role.MAIN, one.name))
    return [share for one in in_order for share in _shares_of(league, one, newest[one.name].mix)]


def _shares_of(league: League, learner: Player, mix: str) -> list[Share]:
    view = league.view
    configured = configured_shares(Pool(league.settings, learner, view.players, view.tables), mix)
    drawn = {
        category: count
        for (player, name, category), count in view.drawn.items()
        if player == learner.name and name == mix
    }
    matches = sum(drawn.values()) or 1
    categories = [*configured, *(category for category in drawn if category not in configured)]
    return [
        Share(
            player=learner.name,
            mix=mix,
            category=category,
            configured=configured.get(category, 0.0),
            realised=drawn.get(category, 0) / matches,
            matches=drawn.get(category, 0),
        )
        for category in categories
    ]
