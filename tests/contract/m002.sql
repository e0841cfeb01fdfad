-- A league's file as the second version made it, of which no byte may change: results in few bytes.
-- It holds the rows of m001.sql.
CREATE TABLE _sqlite_migrations (id INTEGER PRIMARY KEY, migration_set TEXT, name TEXT, applied_at TEXT);
INSERT INTO "_sqlite_migrations" VALUES(1,'kumite-matchmaker','m001_league','2025-01-01');
INSERT INTO "_sqlite_migrations" VALUES(2,'kumite-matchmaker','m002_lighter_results','2025-01-01');
CREATE TABLE aggregates (             -- what memory held up to a result, see matchmaker/aggregates.py
  log_position INTEGER PRIMARY KEY,   -- of that result
  event_position INTEGER NOT NULL,    -- of the newest event then
  at REAL NOT NULL,
  digest TEXT NOT NULL,               -- sha256 of what it is of and what it holds
  body BLOB NOT NULL
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
INSERT INTO "assignments" VALUES(1,'m1','t1',1,'reported',9.0,1.0,2.0,'','main','main@1000',0,'train',5,'self','','',NULL,0,1.0);
INSERT INTO "assignments" VALUES(2,'m2','t2',1,'reported',9.0,1.0,2.0,'','based','main',1,'train',5,'based','','',NULL,0,1.0);
INSERT INTO "assignments" VALUES(3,'m3','t3',1,'open',4000000000.0,1.0,NULL,'','main','based',0,'train',5,'based','','',NULL,0,1.0);
CREATE TABLE draws (                  -- what the assignments of one call were drawn from
  number INTEGER PRIMARY KEY,
  policy_hash TEXT NOT NULL REFERENCES policies (hash),
  log_position INTEGER NOT NULL,      -- newest result then
  event_position INTEGER NOT NULL,    -- newest event then
  body_json TEXT NOT NULL             -- rule, shares, candidates with weights; zlib's bytes where shorter
, stream INTEGER /* seed of the stream that its matches are drawn from, each from
  the words of its ordinal; NULL: each from a generator of its own */);
CREATE TABLE epochs (                 -- draw probability of the results behind a log position
  number INTEGER PRIMARY KEY,         -- of two behind the same position the later one holds
  after_position INTEGER NOT NULL,
  draw_probability REAL NOT NULL,
  at REAL NOT NULL
);
INSERT INTO "epochs" VALUES(1,0,0.1,1.0);
CREATE TABLE events (
  position INTEGER PRIMARY KEY AUTOINCREMENT,
  at REAL NOT NULL,
  kind TEXT NOT NULL,
  text TEXT NOT NULL,
  data_json TEXT NOT NULL
);
INSERT INTO "events" VALUES(1,1.0,'incarnation_opened','learner-main starts','{"worker":"learner-main","player":"main","step":0}');
INSERT INTO "events" VALUES(2,2.0,'result','main beats main@1000','{"match_id":"m1","position":1,"book":"train","outcome":1.0}');
INSERT INTO "events" VALUES(3,2.0,'result','based draws with main','{"match_id":"m2","position":2,"book":"train","outcome":0.5}');
CREATE TABLE heartbeats (             -- the newest beat of each incarnation
  incarnation INTEGER PRIMARY KEY REFERENCES incarnations (number),
  at REAL NOT NULL,
  progress INTEGER NOT NULL,
  step INTEGER NOT NULL,
  mix TEXT NOT NULL,
  activity TEXT NOT NULL,
  metrics_json TEXT NOT NULL
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
INSERT INTO "incarnations" VALUES(1,'learner-main','main',0,0,1.0,1,NULL);
CREATE TABLE lost_results (           -- of a branch that a learner's restart left behind
  position INTEGER PRIMARY KEY REFERENCES results (position),
  incarnation INTEGER NOT NULL REFERENCES incarnations (number)
);
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
INSERT INTO "meta" VALUES('game','brawl');
INSERT INTO "meta" VALUES('seed','7');
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
INSERT INTO "players" VALUES(1,'main','brawl','live','main','active','','',0,'learner-main','',0,0,1.0);
INSERT INTO "players" VALUES(2,'based','brawl','bot','none','active','','',0,'','',0,0,1.0);
INSERT INTO "players" VALUES(3,'main@1000','brawl','snapshot','main','active','main','aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa',1000,'learner-main','',0,0,1.0);
CREATE TABLE policies (               -- sampling settings by hash
  hash TEXT PRIMARY KEY,
  body_json TEXT NOT NULL,
  at REAL NOT NULL
);
CREATE TABLE requests (               -- replies by request id, so that a mutation is safe to repeat
  request_id TEXT PRIMARY KEY,
  method TEXT NOT NULL,
  fingerprint TEXT NOT NULL,
  reply BLOB NOT NULL,
  at REAL NOT NULL
);
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
  step0 INTEGER NOT NULL DEFAULT 0 /* learner steps of seat 0 at the start */, step1 INTEGER NOT NULL DEFAULT 0, end_step0 INTEGER NOT NULL DEFAULT 0 /* and at the match's end */, end_step1 INTEGER NOT NULL DEFAULT 0, stats BLOB NOT NULL DEFAULT x'');
INSERT INTO "results" VALUES(1,1,1,1.0,300,0,'',2.0,2.0,0,10,1000,20,1000,X'01000000020000009A9999999999B93F000000000000004059F3F8C21F6EA501');
INSERT INTO "results" VALUES(2,2,1,0.5,400,0,'',2.0,2.0,0,0,11,0,21,X'');
CREATE TABLE stat_names (             -- names of the statistics in results.stats, see store/seat_stats.py
  number INTEGER PRIMARY KEY,
  names_json TEXT NOT NULL UNIQUE     -- in alphabetical order
);
INSERT INTO "stat_names" VALUES(1,'["damage","falls"]');
INSERT INTO "stat_names" VALUES(2,'["damage"]');
CREATE INDEX incarnations_of_worker ON incarnations (worker, number);
CREATE INDEX open_leases ON assignments (incarnation) WHERE lease_state = 'open';
CREATE INDEX replacements ON assignments (replaces) WHERE replaces != '';
CREATE INDEX requests_by_age ON requests (at);
CREATE TRIGGER results_never_delete BEFORE DELETE ON results BEGIN SELECT RAISE(ABORT, 'results is append-only'); END;
CREATE TRIGGER lost_results_never_update BEFORE UPDATE ON lost_results BEGIN SELECT RAISE(ABORT, 'lost_results is append-only'); END;
CREATE TRIGGER lost_results_never_delete BEFORE DELETE ON lost_results BEGIN SELECT RAISE(ABORT, 'lost_results is append-only'); END;
CREATE TRIGGER events_never_update BEFORE UPDATE ON events BEGIN SELECT RAISE(ABORT, 'events is append-only'); END;
CREATE TRIGGER events_never_delete BEFORE DELETE ON events BEGIN SELECT RAISE(ABORT, 'events is append-only'); END;
CREATE TRIGGER policies_never_update BEFORE UPDATE ON policies BEGIN SELECT RAISE(ABORT, 'policies is append-only'); END;
CREATE TRIGGER policies_never_delete BEFORE DELETE ON policies BEGIN SELECT RAISE(ABORT, 'policies is append-only'); END;
CREATE TRIGGER epochs_never_update BEFORE UPDATE ON epochs BEGIN SELECT RAISE(ABORT, 'epochs is append-only'); END;
CREATE TRIGGER epochs_never_delete BEFORE DELETE ON epochs BEGIN SELECT RAISE(ABORT, 'epochs is append-only'); END;
CREATE TRIGGER draws_never_update BEFORE UPDATE ON draws BEGIN SELECT RAISE(ABORT, 'draws is append-only'); END;
CREATE TRIGGER draws_never_delete BEFORE DELETE ON draws BEGIN SELECT RAISE(ABORT, 'draws is append-only'); END;
CREATE INDEX events_by_kind ON events (kind);
CREATE TRIGGER results_never_update BEFORE UPDATE ON results BEGIN SELECT RAISE(ABORT, 'results is append-only'); END;
CREATE TRIGGER stat_names_never_update BEFORE UPDATE ON stat_names BEGIN SELECT RAISE(ABORT, 'stat_names is append-only'); END;
CREATE TRIGGER stat_names_never_delete BEFORE DELETE ON stat_names BEGIN SELECT RAISE(ABORT, 'stat_names is append-only'); END;
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('incarnations',1);
INSERT INTO "sqlite_sequence" VALUES('results',2);
INSERT INTO "sqlite_sequence" VALUES('events',3);
PRAGMA application_id = 1265986921;
