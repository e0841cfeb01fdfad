"""The tables of a league's log, as migrations of sqlite-utils.

Never edit a migration that was released: add another one.
"""

from __future__ import annotations

from typing import Any

from sqlite_utils import Database, Migrations

APPLICATION_ID = 0x4B756D69
"""Marks a SQLite file as a Kumite league's ("Kumi")."""
APPEND_ONLY = ("results", "lost_results", "events", "policies", "draws")

migrations = Migrations("kumite-matchmaker")


@migrations()
def m001_league(db: Database) -> None:
    """Creates everything."""
    _create(db, "meta", {"key": str, "value": str}, pk="key")
    _create(
        db,
        "players",
        {
            "ordinal": int,  # order of registration
            "name": str,
            "game": str,
            "kind": str,
            "role": str,
            "state": str,
            "parent": str,
            "digest": str,
            "step": int,
            "creator": str,
            "card_json": str,
            "held_out": int,
            "milestone": int,
            "created_at": float,
        },
        pk="ordinal",
    )
    db.table("players").create_index(["name"], unique=True)
    _create(
        db,
        "incarnations",
        {
            "number": int,
            "worker": str,
            "player": str,  # "" for an evaluator
            "checkpoint_step": int,
            "checkpoint_log_position": int,
            "opened_at": float,
            "event_position": int,  # of its incarnation_opened event
            "fenced_by": int,  # the incarnation that replaced it
        },
        pk="number",
        nullable=["fenced_by"],
    )
    db.table("incarnations").create_index(["worker", "number"])
    _create(
        db,
        "heartbeats",  # the newest one of each incarnation
        {
            "incarnation": int,
            "at": float,
            "progress": int,
            "step": int,
            "mix": str,
            "activity": str,
            "metrics_json": str,
        },
        pk="incarnation",
        foreign_keys=[("incarnation", "incarnations", "number")],
    )
    # sampling settings by hash
    _create(db, "policies", {"hash": str, "body_json": str, "at": float}, pk="hash")
    _create(
        db,
        "draws",  # what the assignments of one call were drawn from
        {
            "number": int,
            "policy_hash": str,
            "log_position": int,  # the newest result at that time
            "event_position": int,  # the newest event at that time
            "stream": int,
            "body": bytes,  # rule, shares, candidates with weights: JSON, compressed with zlib
        },
        pk="number",
        nullable=["stream"],
        foreign_keys=[("policy_hash", "policies", "hash")],
    )
    _create(
        db,
        "assignments",
        {
            "ordinal": int,  # order of assignment
            "match_id": str,
            "lease_token": str,
            "incarnation": int,
            "lease_state": str,  # open, reported, expired, abandoned or released
            "lease_deadline": float,
            "lease_limit": float,  # the latest deadline that progress may move it to
            "assigned_at": float,
            "seat0": str,
            "seat1": str,
            "learner_seat": int,
            "book": str,
            "seed": int,
            "category": str,
            "mix": str,  # "" when the match was paired by name
            "replaces": str,
            "draw": int,
            "draw_seed": int,
            "probability": float,
            "closed_at": float,
            "close_reason": str,
        },
        pk="ordinal",
        nullable=["draw", "closed_at"],
        foreign_keys=[
            ("incarnation", "incarnations", "number"),
            ("seat0", "players", "name"),
            ("seat1", "players", "name"),
            ("draw", "draws", "number"),
        ],
    )
    db.table("assignments").create_index(["match_id"], unique=True)
    # sqlite-utils makes no partial indexes.
    for index in (
        "open_leases ON assignments (incarnation) WHERE lease_state = 'open'",
        "replacements ON assignments (replaces) WHERE replaces != ''",
        "gate_matches ON assignments (ordinal) WHERE category = 'gate'",
    ):
        db.execute(f"CREATE INDEX {index}")
    _create(
        db,
        "results",
        {
            "position": int,
            "ordinal": int,
            "event_position": int,  # of its result event
            "incarnation": int,
            "outcome": float,
            "frames": int,
            "failed": int,
            "failure": str,
            "finished_at": float,
            "received_at": float,
            "late": int,  # its lease had expired
            "step0": int,  # learner steps of seat 0 when the match began
            "step1": int,
            "end_step0": int,  # and when it ended
            "end_step1": int,
            "stats_json": str,  # a list of two objects, one for each seat
        },
        pk="position",
        foreign_keys=[
            ("ordinal", "assignments", "ordinal"),
            ("incarnation", "incarnations", "number"),
        ],
    )
    db.table("results").create_index(["ordinal"], unique=True)
    _create(
        db,
        "lost_results",  # a learner's results after the checkpoint that it returned to
        {"position": int, "incarnation": int},
        pk="position",
        foreign_keys=[
            ("position", "results", "position"),
            ("incarnation", "incarnations", "number"),
        ],
    )
    _create(
        db,
        "events",
        {"position": int, "at": float, "kind": str, "text": str, "data_json": str},
        pk="position",
    )
    # Nearly all events are results, which have their own table.
    db.execute("CREATE INDEX events_by_kind ON events (kind) WHERE kind != 'result'")
    _create(
        db,
        "requests",  # replies by request id, so that a mutation is safe to repeat
        {"request_id": str, "method": str, "fingerprint": str, "reply": bytes, "at": float},
        pk="request_id",
    )
    db.table("requests").create_index(["at"])
    _create(
        db,
        "folds",  # what memory held after a result (matchmaker/state/folding.py)
        {"log_position": int, "event_position": int, "version": int, "at": float, "body": bytes},
        pk="log_position",
    )
    for name in APPEND_ONLY:
        for change in ("UPDATE", "DELETE"):
            db.execute(
                f"CREATE TRIGGER {name}_never_{change.lower()} BEFORE {change} ON {name} "
                f"BEGIN SELECT RAISE(ABORT, '{name} is append-only'); END"
            )


def _create(
    db: Database,
    name: str,
    columns: dict[str, Any],
    *,
    pk: str,
    nullable: list[str] | None = None,
    foreign_keys: list[tuple[str, str, str]] | None = None,
) -> None:
    required = set(columns) - {pk} - set(nullable or ())
    db.table(name).create(
        columns, pk=pk, not_null=required, foreign_keys=foreign_keys or [], strict=True
    )
