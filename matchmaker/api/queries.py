"""What readers ask for: one match with its why, and the league's status."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from league import __version__
from league.errors import InvalidInput, NotFound
from league.players import (
    Book,
    LeagueStatus,
    MatchRecord,
    Player,
    RatingEpoch,
    Role,
    Share,
    WorkerStatus,
)
from league.stats.ratings import RatingTable
from matchmaker.acts import checks
from matchmaker.acts.assign import assignments_of
from matchmaker.sampling.candidates import Pool, configured_shares
from matchmaker.state import bygone, history
from matchmaker.state.history import Moment
from matchmaker.state.league import League
from matchmaker.store.base import Reader
from matchmaker.store.converting import reported
from matchmaker.store.rows import AssignmentRow, IncarnationRow


def match_record(league: League, reader: Reader, match_id: str) -> MatchRecord:
    """Everything the log knows of a match, by its id or the beginning of it.

    Raises `NotFound`, and `InvalidInput` when several begin so.
    """
    moment = league.view.moment
    row = _named_match(reader, checks.identifier(match_id, "match_id"), moment)
    row, result = bygone.match_at(moment, row, reader.result(row.ordinal))
    row = row._replace(lease_token="")  # which is its holder's alone
    (assignment,) = assignments_of(league, [row])
    return MatchRecord(
        assignment=assignment,
        worker=league.incarnation(reader, row.incarnation).worker,
        lease_state=row.lease_state,
        result=None
        if result is None
        else reported(result, row, _digests(league, row), reader.stats(result)),
        log_position=0 if result is None else result.position,
        lost_branch=result is not None and history.is_lost(reader, result, moment),
        why_json=json.dumps(why(reader, row)),
    )


def _named_match(reader: Reader, match_id: str, moment: Moment | None) -> AssignmentRow:
    """By its id or the beginning of it, among those that had been handed out."""
    rows = [row for row in [reader.assignment(match_id)] if row is not None]
    if not rows:  # ids begin with their ordinal, so the first two tell whether there are several
        named = map(reader.assignment, reader.matches_beginning(match_id, 2))
        rows = [row for row in named if row is not None]
    rows = [row for row in rows if moment is None or row.assigned_at <= moment.at]
    if len(rows) > 1:
        raise InvalidInput(f"several matches begin with {match_id}: give more of the match id")
    if not rows:
        raise NotFound(f"there is no match {match_id}: check the id (they are in `league watch`)")
    return rows[0]


def _digests(league: League, row: AssignmentRow) -> tuple[str, str]:
    return league.view.players[row.seat0].digest, league.view.players[row.seat1].digest


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
    """Workers, open leases, and configured beside realised shares of every learner's mix."""
    moment = league.view.moment
    if moment is None:
        open_by_incarnation = Counter(row.incarnation for row in reader.open_assignments())
    else:
        open_by_incarnation = league.view.open_count
    workers = [
        _worker(reader, incarnation, open_by_incarnation[incarnation.number], moment)
        for incarnation in bygone.workers_at(reader, moment)
    ]
    return LeagueStatus(
        game=league.settings.game,
        log_position=league.view.log_position,
        open_leases=sum(open_by_incarnation.values()),
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


def _worker(
    reader: Reader, incarnation: IncarnationRow, open_leases: int, moment: Moment | None
) -> WorkerStatus:
    beat = bygone.beat_at(reader, incarnation.number, moment)
    return WorkerStatus(
        worker=incarnation.worker,
        incarnation=incarnation.number,
        player=incarnation.player,
        step=beat.step if beat else incarnation.checkpoint_step,
        mix=beat.mix if beat else bygone.mix_at(reader, incarnation.number, moment),
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
