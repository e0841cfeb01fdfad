-- A league's file as the first version made it, of which no byte may change; with a few rows in it.
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

-- As SQLite keeps them, the triggers of results, lost_results, events, policies, epochs and draws:
CREATE TRIGGER results_never_update BEFORE UPDATE ON results BEGIN SELECT RAISE(ABORT, 'results is append-only'); END;
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

CREATE TABLE _sqlite_migrations (id INTEGER PRIMARY KEY, migration_set TEXT, name TEXT, applied_at TEXT);
INSERT INTO _sqlite_migrations VALUES (1, 'kumite-matchmaker', 'm001_league', '2025-01-01');
PRAGMA application_id = 1265986921;

INSERT INTO meta VALUES ('game', 'brawl'), ('seed', '7');
INSERT INTO players VALUES
  (1, 'main', 'brawl', 'live', 'main', 'active', '', '', 0, 'learner-main', '', 0, 0, 1.0),
  (2, 'based', 'brawl', 'bot', 'none', 'active', '', '', 0, '', '', 0, 0, 1.0),
  (3, 'main@1000', 'brawl', 'snapshot', 'main', 'active', 'main',
   'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa', 1000, 'learner-main', '', 0, 0, 1.0);
INSERT INTO incarnations VALUES (1, 'learner-main', 'main', 0, 0, 1.0, 1, NULL);
INSERT INTO epochs VALUES (1, 0, 0.1, 1.0);
INSERT INTO assignments
  (ordinal, match_id, lease_token, incarnation, lease_state, lease_deadline, assigned_at, closed_at, seat0, seat1,
   learner_seat, book, seed, category, mix, replaces, draw, draw_seed, probability) VALUES
  (1, 'm1', 't1', 1, 'reported', 9.0, 1.0, 2.0, 'main', 'main@1000', 0, 'train', 5, 'self', '', '', NULL, 0, 1.0),
  (2, 'm2', 't2', 1, 'reported', 9.0, 1.0, 2.0, 'based', 'main', 1, 'train', 5, 'based', '', '', NULL, 0, 1.0),
  (3, 'm3', 't3', 1, 'open', 4e9, 1.0, NULL, 'main', 'based', 0, 'train', 5, 'based', '', '', NULL, 0, 1.0);
INSERT INTO results VALUES
  (1, 1, 1, 1.0, 300, 0, '', 2.0, 2.0, 0,
   '[{"player":"main","digest":"","step_start":10,"step_end":20,"stats":{"falls":2.0,"damage":0.1}},'
   || '{"player":"main@1000","digest":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",'
   || '"step_start":1000,"step_end":1000,"stats":{"damage":1e-300}}]'),
  (2, 2, 1, 0.5, 400, 0, '', 2.0, 2.0, 0,
   '[{"player":"based","digest":"","step_start":0,"step_end":0,"stats":{}},'
   || '{"player":"main","digest":"","step_start":11,"step_end":21,"stats":{}}]');
INSERT INTO events VALUES
  (1, 1.0, 'incarnation_opened', 'learner-main starts', '{"worker":"learner-main","player":"main","step":0}'),
  (2, 2.0, 'result', 'main beats main@1000', '{"match_id":"m1","position":1,"book":"train","outcome":1.0}'),
  (3, 2.0, 'result', 'based draws with main', '{"match_id":"m2","position":2,"book":"train","outcome":0.5}');
