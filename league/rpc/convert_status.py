"""Between a matchmaker's status and events and protobuf messages; as `league.rpc.convert` for
all others.
"""

from __future__ import annotations

from league import players as d
from league.rpc.convert import from_book, to_book
from league.v1 import matchmaker_pb2 as m
from league.v1 import types_pb2 as t


def to_status(status: d.LeagueStatus) -> m.GetStatusResponse:
    return m.GetStatusResponse(
        game=status.game,
        log_position=status.log_position,
        open_leases=status.open_leases,
        workers=[_to_worker(worker) for worker in status.workers],
        shares=[_to_share(share) for share in status.shares],
        version=status.version,
        vitals=_to_vitals(status.vitals),
        epochs=[_to_epoch(epoch) for epoch in status.epochs],
    )


def _to_vitals(vitals: d.Vitals) -> m.Vitals:
    return m.Vitals(
        trouble=vitals.trouble,
        now=vitals.now,
        started_at=vitals.started_at,
        store_bytes=vitals.store_bytes,
        disk_free_bytes=vitals.disk_free_bytes,
        event_position=vitals.event_position,
        assignments=vitals.assignments,
    )


def _to_epoch(epoch: d.RatingEpoch) -> m.RatingEpoch:
    return m.RatingEpoch(
        book=to_book(epoch.book),
        after_position=epoch.after_position,
        games=epoch.games,
        draw_probability=epoch.draw_probability,
    )


def _to_worker(worker: d.WorkerStatus) -> m.WorkerStatus:
    return m.WorkerStatus(
        worker=worker.worker,
        incarnation=worker.incarnation,
        player=worker.player,
        step=worker.step,
        mix=worker.mix,
        activity=worker.activity,
        last_beat_at=worker.last_beat_at,
        metrics=dict(worker.metrics),
        open_leases=worker.open_leases,
    )


def _to_share(share: d.Share) -> t.Share:
    return t.Share(
        player=share.player,
        mix=share.mix,
        category=share.category,
        configured=share.configured,
        realised=share.realised,
        matches=share.matches,
    )


def from_status(message: m.GetStatusResponse) -> d.LeagueStatus:
    return d.LeagueStatus(
        game=message.game,
        log_position=message.log_position,
        open_leases=message.open_leases,
        workers=tuple(_from_worker(worker) for worker in message.workers),
        shares=tuple(_from_share(share) for share in message.shares),
        version=message.version,
        vitals=_from_vitals(message.vitals),
        epochs=tuple(_from_epoch(epoch) for epoch in message.epochs),
    )


def _from_vitals(message: m.Vitals) -> d.Vitals:
    return d.Vitals(
        trouble=message.trouble,
        now=message.now,
        started_at=message.started_at,
        store_bytes=message.store_bytes,
        disk_free_bytes=message.disk_free_bytes,
        event_position=message.event_position,
        assignments=message.assignments,
    )


def _from_epoch(message: m.RatingEpoch) -> d.RatingEpoch:
    return d.RatingEpoch(
        book=from_book(message.book),
        after_position=message.after_position,
        games=message.games,
        draw_probability=message.draw_probability,
    )


def _from_worker(message: m.WorkerStatus) -> d.WorkerStatus:
    return d.WorkerStatus(
        worker=message.worker,
        incarnation=message.incarnation,
        player=message.player,
        step=message.step,
        mix=message.mix,
        activity=message.activity,
        last_beat_at=message.last_beat_at,
        metrics=dict(message.metrics),
        open_leases=message.open_leases,
    )


def _from_share(message: t.Share) -> d.Share:
    return d.Share(
        player=message.player,
        mix=message.mix,
        category=message.category,
        configured=message.configured,
        realised=message.realised,
        matches=message.matches,
    )


def to_event(event: d.Event) -> m.Event:
    return m.Event(
        position=event.position,
        at=event.at,
        kind=event.kind,
        text=event.text,
        data_json=event.data_json,
    )


def from_event(message: m.Event) -> d.Event:
    return d.Event(
        position=message.position,
        at=message.at,
        kind=message.kind,
        text=message.text,
        data_json=message.data_json,
    )
