"""Answers queries about matches, about the reasons why matches were made, and about the league's
status.
"""

from __future__ import annotations

import json
from importlib.metadata import version
from typing import Any

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
"""Largest number of matches on a page."""
LOOKED_AT = 50_000
"""Largest number of results that are read for a page. Reading this many takes 0.1 s."""


def match_record(league: League, reader: Reader, match_id: str) -> MatchRecord:
    """Collects everything that the log holds about a match. `match_id` may also be the beginning of
    an id.

    Raises:
        InvalidInput: several matches begin with `match_id`.
        NotFound: there is no such match.
    """
    checks.identifier(match_id, "match_id")
    rows = [*reader.assignments([match_id]).values()] or reader.matches_with_prefix(match_id, 2)
    if len(rows) > 1:
        raise InvalidInput(f"several matches begin with {match_id}: give more of the match id")
    if not rows:
        raise NotFound(f"there is no match {match_id}: check the id (they are in `league watch`)")
    row = rows[0]._replace(lease_token="")  # only the holder may know it
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
    """Returns a match's result as its worker reported it. The players' names come from the
    assignment, and the digests of their weights from the players' registration.
    """

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
    """Explains why a match was made, by the record of its draw. The record has the probabilities of
    the opponents, or the reason why both players were named. With
    `sampling.draw.draw_table_of`, the draw of an opponent can be repeated.

    Raises:
        DataCorrupt: the draw is missing in the log.
    """
    draw = None if row.draw is None else reader.draw(row.draw)
    if draw is None and row.draw is not None:
        raise DataCorrupt(f"draw {row.draw} of match {row.match_id} is missing: restore a backup")
    if draw is None:
        return {}
    first = row
    while first.replaces:  # a carried match: find the match that was drawn
        first = reader.assignments([first.replaces])[first.replaces]
    return {
        **json.loads(draw.body_json),
        "policy_hash": draw.policy_hash,
        "log_position": draw.log_position,
        "event_position": draw.event_position,
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
    """Reads a page of results, newest first.

    A page reads at most `LOOKED_AT` results, so even a filter that matches nothing takes little
    time.

    Args:
        reader: reads the log.
        player, opponent, category: filters, "" for any.
        book: filter by kind of match, None for any.
        before: log position before which the page begins, 0 for the newest.
        limit: largest number of matches on the page.

    Returns:
        The matches, and the value of `before` that gets the next page (0 after the last page).
    """
    newest, _, _ = reader.positions()
    until = min(before or newest + 1, newest + 1)
    since = max(1, until - LOOKED_AT)
    lines = reader.match_lines(player, opponent, book, category, since, until, limit)
    last = lines[-1].position if len(lines) == limit else since
    return lines, last if last > 1 else 0


def status(league: League, reader: Reader) -> LeagueStatus:
    """Returns the league's status: workers, open leases, and for each learner the configured and
    the realised shares of its mix.
    """
    open_leases, waiting = reader.open_counts(), dict(league.waiting())
    workers = [
        _worker(
            league,
            reader,
            incarnation,
            open_leases.get(incarnation.number, 0),
            waiting.pop(incarnation.worker, ("", 0.0)),
        )
        for incarnation in reader.newest_incarnations()
    ]
    workers += [_beginner(name, text, league.clock.now()) for name, (text, _) in waiting.items()]
    return LeagueStatus(
        game=league.settings.game,
        payoff_unit=league.settings.payoff_unit,
        log_position=league.view.log_position,
        open_leases=sum(open_leases.values()),
        workers=tuple(workers),
        shares=tuple(_shares(league, workers)),
        changes=tuple(league.view.steering.changes.values()),
        pause=league.view.steering.pause,
        version=version("kumite"),
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


def _beginner(name: str, activity: str, now: float) -> WorkerStatus:
    """Returns the status of a worker that waits for its first start."""
    return WorkerStatus(
        worker=name,
        incarnation=0,
        player="",
        step=0,
        mix="",
        activity=activity,
        last_beat_at=now,
        metrics={},
        open_leases=0,
    )


def _worker(
    league: League,
    reader: Reader,
    incarnation: IncarnationRow,
    open_leases: int,
    waiting: tuple[str, float],
) -> WorkerStatus:
    """Returns a worker's status. `waiting` is why the supervisor waits for it, and since when."""
    name, quarantines = incarnation.worker, league.view.quarantines
    beat = reader.beat(incarnation.number)
    metrics = json.loads(beat.metrics_json) if beat else {}
    heard_at, (waits, since) = beat.at if beat else incarnation.opened_at, waiting
    waits = waits if heard_at <= since else ""
    is_silent = league.clock.now() - heard_at > SILENT_SECONDS
    if waits or (beat and beat.activity not in ENDED and is_silent):
        metrics = at_rest(metrics)
    still = f", no progress for {metrics[STALLED]:.0f} s" if STALLED in metrics else ""
    return WorkerStatus(
        worker=name,
        incarnation=incarnation.number,
        player=incarnation.player,
        step=beat.step if beat else reader.last_step(incarnation),
        mix=beat.mix if beat else reader.last_mix(incarnation.number),
        activity=waits or (beat.activity + still if beat else ""),
        last_beat_at=heard_at,
        metrics=metrics,
        open_leases=open_leases,
        trouble=quarantines.sentence(name) or quarantines.torn.get(name, ""),
        is_quarantined=name in quarantines.out,
        node="" if waits else league.nodes.get(name, ""),
    )


def _shares(league: League, workers: list[WorkerStatus]) -> list[Share]:
    """Returns the shares of each learner's current mix, mains first.

    Expected shares are for the next draw. They come from the learner's newest draw table, because
    computing them again takes milliseconds for each thousand players. Realised shares are given for
    all draws, and also for the draws since an operator last changed the mix.
    """
    view = league.view
    mixes: dict[str, str] = {}
    for worker in sorted(workers, key=lambda worker: worker.last_beat_at):
        if worker.player and worker.mix:
            mixes[worker.player] = worker.mix
    shares = []
    learners = [view.players[name] for name in mixes]
    for learner in sorted(learners, key=lambda player: (player.role is not Role.MAIN, player.name)):
        name, mix = learner.name, mixes[learner.name]
        pool = Pool(league.sampling, learner, view.players, view.tables, view.exploiters)
        draw = view.last_draw(name, mix)
        expected = expected_shares(pool, mix) if draw is None else draw.table.shares.as_dict()
        configured = configured_shares(pool, mix)
        drawn = {key[2]: count for key, count in view.drawn.items() if key[:2] == (name, mix)}
        matches = sum(drawn.values()) or 1
        before = view.steering.drawn.get(mix)
        since = {
            category: 0 if before is None else count - before[name, category]
            for category, count in drawn.items()
        }
        matches_since = sum(since.values()) or 1
        shares += [
            Share(
                player=name,
                mix=mix,
                category=category,
                configured=configured.get(category, 0.0),
                expected=expected.get(category, 0.0),
                realised=drawn.get(category, 0) / matches,
                matches=drawn.get(category, 0),
                realised_since=since.get(category, 0) / matches_since,
                matches_since=since.get(category, 0),
            )
            for category in dict.fromkeys([*configured, *expected, *drawn])
        ]
    return shares
