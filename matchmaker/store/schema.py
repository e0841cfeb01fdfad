"""Defines the tables of a league's log.

Never edit a released migration: add a new migration instead.
"""

from __future__ import annotations

from sqlite_utils import Database, Migrations

APPLICATION_ID = 0x4B756D69
"""Marks a SQLite file as the log of a Kumite league. The bytes spell "Kumi"."""
APPEND_ONLY = ("results", "lost_results", "events", "policies", "draws")

migrations = Migrations("kumite-matchmaker")

_TABLES = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL, crc INTEGER NOT NULL) STRICT;

CREATE TABLE players (
  ordinal INTEGER PRIMARY KEY,  -- order of registration
  name TEXT NOT NULL UNIQUE, game TEXT NOT NULL, kind TEXT NOT NULL, role TEXT NOT NULL,
  state TEXT NOT NULL, parent TEXT NOT NULL, digest TEXT NOT NULL, step INTEGER NOT NULL,
  creator TEXT NOT NULL, card_json TEXT NOT NULL, held_out INTEGER NOT NULL,
  milestone INTEGER NOT NULL, created_at REAL NOT NULL, crc INTEGER NOT NULL
) STRICT;

CREATE TABLE incarnations (
  number INTEGER PRIMARY KEY,
  worker TEXT NOT NULL,
  player TEXT NOT NULL,             -- '' for an evaluator
  checkpoint_step INTEGER NOT NULL, checkpoint_log_position INTEGER NOT NULL,
  opened_at REAL NOT NULL,
  event_position INTEGER NOT NULL,  -- of its incarnation_opened event
  fenced_by INTEGER,                -- the incarnation that replaced it
  crc INTEGER NOT NULL
) STRICT;
CREATE INDEX incarnations_by_worker ON incarnations (worker, number);

CREATE TABLE heartbeats (  -- the newest one of each incarnation
  incarnation INTEGER PRIMARY KEY REFERENCES incarnations,
  at REAL NOT NULL, progress INTEGER NOT NULL, step INTEGER NOT NULL, mix TEXT NOT NULL,
  activity TEXT NOT NULL, metrics_json TEXT NOT NULL, crc INTEGER NOT NULL
) STRICT;

CREATE TABLE policies (  -- sampling settings by hash
  hash TEXT PRIMARY KEY, body_json TEXT NOT NULL, at REAL NOT NULL, crc INTEGER NOT NULL
) STRICT;

CREATE TABLE draws (  -- what assignments were drawn from
  number INTEGER PRIMARY KEY,
  policy_hash TEXT NOT NULL REFERENCES policies,
  log_position INTEGER NOT NULL,    -- the newest result at that time
  event_position INTEGER NOT NULL,  -- the newest event at that time
  stream INTEGER,
  body BLOB NOT NULL,               -- rule, shares, candidates with weights: JSON, by zlib
  crc INTEGER NOT NULL
) STRICT;

CREATE TABLE assignments (
  ordinal INTEGER PRIMARY KEY,      -- order of assignment
  match_id TEXT NOT NULL UNIQUE, lease_token TEXT NOT NULL,
  incarnation INTEGER NOT NULL REFERENCES incarnations,
  assigned_at REAL NOT NULL,
  seat0 TEXT NOT NULL REFERENCES players (name), seat1 TEXT NOT NULL REFERENCES players (name),
  learner_seat INTEGER NOT NULL, book TEXT NOT NULL, seed INTEGER NOT NULL,
  category TEXT NOT NULL,
  mix TEXT NOT NULL,                -- '' when the match was paired by name
  replaces TEXT NOT NULL,
  draw INTEGER REFERENCES draws,
  draw_seed INTEGER NOT NULL, probability REAL NOT NULL,
  lease_state TEXT NOT NULL,        -- open, reported, expired, abandoned or released
  lease_deadline REAL NOT NULL,
  lease_limit REAL NOT NULL,        -- the latest deadline that progress may move it to
  closed_at REAL, close_reason TEXT NOT NULL,
  crc INTEGER NOT NULL              -- of the columns above lease_state, which never change
) STRICT;
CREATE INDEX open_leases ON assignments (incarnation, lease_deadline) WHERE lease_state = 'open';
CREATE INDEX replacements ON assignments (replaces) WHERE replaces != '';
CREATE INDEX gate_matches ON assignments (ordinal) WHERE category = 'gate';

CREATE TABLE results (
  position INTEGER PRIMARY KEY,
  ordinal INTEGER NOT NULL UNIQUE REFERENCES assignments,
  event_position INTEGER NOT NULL UNIQUE,  -- its place among the events
  incarnation INTEGER NOT NULL REFERENCES incarnations,
  outcome REAL NOT NULL, frames INTEGER NOT NULL, failed INTEGER NOT NULL, failure TEXT NOT NULL,
  finished_at REAL NOT NULL, received_at REAL NOT NULL,
  late INTEGER NOT NULL,                   -- its lease had expired
  step0 INTEGER NOT NULL, step1 INTEGER NOT NULL,  -- learner steps when the match began
  end_step0 INTEGER NOT NULL, end_step1 INTEGER NOT NULL,  -- and when it ended
  stats_json TEXT NOT NULL,                -- a list of two objects, one for each seat
  crc INTEGER NOT NULL                     -- also of its match: match_id, seats, book, category
) STRICT;

CREATE TABLE lost_results (  -- a learner's results after the checkpoint that it returned to
  position INTEGER PRIMARY KEY REFERENCES results,
  incarnation INTEGER NOT NULL REFERENCES incarnations,
  crc INTEGER NOT NULL
) STRICT;

CREATE TABLE events (  -- all but results, which share their numbers
  position INTEGER PRIMARY KEY, at REAL NOT NULL, kind TEXT NOT NULL, text TEXT NOT NULL,
  data_json TEXT NOT NULL, crc INTEGER NOT NULL
) STRICT;

CREATE TABLE requests (  -- replies by request id, so that a mutation is safe to repeat
  request_id TEXT PRIMARY KEY, method TEXT NOT NULL, fingerprint TEXT NOT NULL,
  reply BLOB NOT NULL, at REAL NOT NULL, crc INTEGER NOT NULL
) STRICT;
CREATE INDEX requests_by_time ON requests (at);

CREATE TABLE folds (  -- what memory held after a result (matchmaker/state/folding.py)
  log_position INTEGER PRIMARY KEY, event_position INTEGER NOT NULL, version INTEGER NOT NULL,
  at REAL NOT NULL, body BLOB NOT NULL, crc INTEGER NOT NULL
) STRICT;
"""
"""A row's `crc` is the checksum of the columns before it (`matchmaker/store/rows.py`)."""


@migrations()
def m001_league(db: Database) -> None:
    """Creates all tables."""
    triggers = [
        f"CREATE TRIGGER {name}_never_{change} BEFORE {change} ON {name} "
        f"BEGIN SELECT RAISE(ABORT, '{name} is append-only'); END;"
        for name in APPEND_ONLY
        for change in ("update", "delete")
    ]
    for statement in [*_TABLES.split(";\n"), *triggers]:  # `executescript` would commit first
        db.execute(statement)
