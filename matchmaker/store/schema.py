"""The schema as an append-only list of migrations. Never edit one that was released: add
another.
"""

from __future__ import annotations

import json

from sqlite_utils import Database, Migrations

from matchmaker.store.seat_stats import StatNames

APPLICATION_ID = 0x4B756D69
"""Marks a SQLite file as a Kumite league's ("Kumi")."""

migrations = Migrations("kumite-matchmaker")

TABLES = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);

CREATE TABLE players (
  ordinal INTEGER PRIMARY KEY,        -- order of registration
  name TEXT NOT NULL UNIQUE,
  game TEXT NOT NULL,
  kind TEXT NOT NULL,
  role TEXT NOT NULL,
  state TEXT NOT NULL,
  parent TEXT NOT NULL,
  digest TEXT NOT NULL,
  step INTEGER NOT NULL,
  creator TEXT NOT NULL,
  card_json TEXT NOT NULL,
  held_out INTEGER NOT NULL,
  milestone INTEGER NOT NULL,
  created_at REAL NOT NULL
);

CREATE TABLE incarnations (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  worker TEXT NOT NULL,
  player TEXT NOT NULL,               -- "" for an evaluator
  checkpoint_step INTEGER NOT NULL,
  checkpoint_log_position INTEGER NOT NULL,
  opened_at REAL NOT NULL,
  event_position INTEGER NOT NULL,    -- of its incarnation_opened event
  fenced_by INTEGER                   -- the incarnation that took its place
);
CREATE INDEX incarnations_of_worker ON incarnations (worker, number);

CREATE TABLE heartbeats (             -- the newest beat of each incarnation
  incarnation INTEGER PRIMARY KEY REFERENCES incarnations (number),
  at REAL NOT NULL,
  progress INTEGER NOT NULL,
  step INTEGER NOT NULL,
  mix TEXT NOT NULL,
  activity TEXT NOT NULL,
  metrics_json TEXT NOT NULL
);

CREATE TABLE policies (               -- sampling settings by hash
  hash TEXT PRIMARY KEY,
  body_json TEXT NOT NULL,
  at REAL NOT NULL
);

CREATE TABLE epochs (                 -- draw probability of the results behind a log position
  number INTEGER PRIMARY KEY,         -- of two behind the same position the later one holds
  after_position INTEGER NOT NULL,
  draw_probability REAL NOT NULL,
  at REAL NOT NULL
);

CREATE TABLE draws (                  -- what the assignments of one call were drawn from
  number INTEGER PRIMARY KEY,
  policy_hash TEXT NOT NULL REFERENCES policies (hash),
  log_position INTEGER NOT NULL,      -- newest result then
  event_position INTEGER NOT NULL,    -- newest event then
  body_json TEXT NOT NULL             -- rule, shares, candidates with weights; zlib's bytes where shorter
);

CREATE TABLE assignments (
  ordinal INTEGER PRIMARY KEY,        -- order of assignment
  match_id TEXT NOT NULL UNIQUE,
  lease_token TEXT NOT NULL,
  incarnation INTEGER NOT NULL REFERENCES incarnations (number),
  lease_state TEXT NOT NULL CHECK (lease_state IN ('open', 'reported', 'expired', 'abandoned', 'released')),
  lease_deadline REAL NOT NULL,
  assigned_at REAL NOT NULL,
  closed_at REAL,
  close_reason TEXT NOT NULL DEFAULT '',
  seat0 TEXT NOT NULL REFERENCES players (name),
  seat1 TEXT NOT NULL REFERENCES players (name),
  learner_seat INTEGER NOT NULL,
  book TEXT NOT NULL,
  seed INTEGER NOT NULL,
  category TEXT NOT NULL,
  mix TEXT NOT NULL,                  -- "" when paired by name
  replaces TEXT NOT NULL,
  draw INTEGER REFERENCES draws (number),
  draw_seed INTEGER NOT NULL,
  probability REAL NOT NULL
);
CREATE INDEX open_leases ON assignments (incarnation) WHERE lease_state = 'open';
CREATE INDEX replacements ON assignments (replaces) WHERE replaces != '';

CREATE TABLE results (
  position INTEGER PRIMARY KEY AUTOINCREMENT,
  ordinal INTEGER NOT NULL UNIQUE REFERENCES assignments (ordinal),
  incarnation INTEGER NOT NULL REFERENCES incarnations (number),
  outcome REAL NOT NULL CHECK (outcome IN (0.0, 0.5, 1.0)),
  frames INTEGER NOT NULL,
  failed INTEGER NOT NULL,
  failure TEXT NOT NULL,
  finished_at REAL NOT NULL,
  received_at REAL NOT NULL,
  late INTEGER NOT NULL,              -- its lease had expired
  seats_json TEXT NOT NULL
);

CREATE TABLE lost_results (           -- of a branch that a learner's restart left behind
  position INTEGER PRIMARY KEY REFERENCES results (position),
  incarnation INTEGER NOT NULL REFERENCES incarnations (number)
);

CREATE TABLE events (
  position INTEGER PRIMARY KEY AUTOINCREMENT,
  at REAL NOT NULL,
  kind TEXT NOT NULL,
  text TEXT NOT NULL,
  data_json TEXT NOT NULL
);

CREATE TABLE requests (               -- replies by request id, so that a mutation is safe to repeat
  request_id TEXT PRIMARY KEY,
  method TEXT NOT NULL,
  fingerprint TEXT NOT NULL,
  reply BLOB NOT NULL,
  at REAL NOT NULL
);
CREATE INDEX requests_by_age ON requests (at);
"""

APPEND_ONLY = ("results", "lost_results", "events", "policies", "epochs", "draws")


@migrations()
def m001_league(db: Database) -> None:
    """Everything of the first version."""
    _run(db, TABLES)
    for table in APPEND_ONLY:
        for change in ("UPDATE", "DELETE"):
            _forbid(db, table, change)


def _run(db: Database, statements: str) -> None:
    """One by one: `executescript` would commit the migration's transaction."""
    for statement in statements.split(";\n"):
        if statement.strip():
            db.execute(statement)


def _forbid(db: Database, table: str, change: str) -> None:
    db.execute(
        f"CREATE TRIGGER {table}_never_{change.lower()} BEFORE {change} ON {table} "
        f"BEGIN SELECT RAISE(ABORT, '{table} is append-only'); END"
    )


LIGHTER_RESULTS = """
CREATE TABLE stat_names (             -- names of the statistics in results.stats, see store/seat_stats.py
  number INTEGER PRIMARY KEY,
  names_json TEXT NOT NULL UNIQUE     -- in alphabetical order
);

ALTER TABLE results ADD COLUMN step0 INTEGER NOT NULL DEFAULT 0 /* learner steps of seat 0 at the start */;
ALTER TABLE results ADD COLUMN step1 INTEGER NOT NULL DEFAULT 0;
ALTER TABLE results ADD COLUMN end_step0 INTEGER NOT NULL DEFAULT 0 /* and at the match's end */;
ALTER TABLE results ADD COLUMN end_step1 INTEGER NOT NULL DEFAULT 0;
ALTER TABLE results ADD COLUMN stats BLOB NOT NULL DEFAULT x'';

ALTER TABLE draws ADD COLUMN stream INTEGER /* seed of the stream that its matches are drawn from, each from
  the words of its ordinal; NULL: each from a generator of its own */;

CREATE INDEX events_by_kind ON events (kind);

CREATE TABLE aggregates (             -- what memory held up to a result, see matchmaker/state/aggregates.py
  log_position INTEGER PRIMARY KEY,   -- of that result
  event_position INTEGER NOT NULL,    -- of the newest event then
  at REAL NOT NULL,
  digest TEXT NOT NULL,               -- sha256 of what it is of and what it holds
  body BLOB NOT NULL
);
"""


@migrations()
def m002_lighter_results(db: Database) -> None:
    """Results in few bytes: steps as columns, statistics as numbers; names and digests stand
    elsewhere.
    """
    _run(db, LIGHTER_RESULTS)
    names = StatNames(db.conn)
    db.conn.create_function("packed_seats", 1, lambda text: _packed(names, text))
    db.execute("DROP TRIGGER results_never_update")
    db.execute(
        "UPDATE results SET step0 = json_extract(seats_json, '$[0].step_start'), "
        "step1 = json_extract(seats_json, '$[1].step_start'), "
        "end_step0 = json_extract(seats_json, '$[0].step_end'), "
        "end_step1 = json_extract(seats_json, '$[1].step_end'), stats = packed_seats(seats_json)"
    )
    db.execute("ALTER TABLE results DROP COLUMN seats_json")
    _forbid(db, "results", "UPDATE")
    for change in ("UPDATE", "DELETE"):
        _forbid(db, "stat_names", change)


LEASE_EXTENSIONS = """
CREATE TABLE lease_extensions (       -- until when progress told last lets an incarnation's open leases live
  incarnation INTEGER PRIMARY KEY REFERENCES incarnations (number),
  deadline REAL NOT NULL              -- an open lease's own deadline holds where it is later
);
"""


@migrations()
def m003_lease_extensions(db: Database) -> None:
    """A heartbeat moves one row, however many leases its worker holds."""
    _run(db, LEASE_EXTENSIONS)


def _packed(names: StatNames, seats_json: str) -> bytes:
    first, second = json.loads(seats_json)
    return names.packed(first["stats"], second["stats"])


@migrations()
def m004_gate_matches(db: Database) -> None:
    """Finds a gate's matches among millions: there are few, so the index is small."""
    db.execute("CREATE INDEX gate_matches ON assignments (ordinal) WHERE category = 'gate'")


def known_migrations() -> list[str]:
    """Names of the migrations of this version, in order."""
    return [migration.name for migration in migrations._migrations]
