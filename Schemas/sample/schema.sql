-- The sample database: an app in which people record the sounds of things and lend them to each other.
-- It has one of each kind of table that replication meets.

CREATE TABLE accounts(
  id INTEGER PRIMARY KEY,
  email TEXT NOT NULL COLLATE NOCASE UNIQUE,
  name TEXT NOT NULL,
  plan TEXT NOT NULL DEFAULT 'free' CHECK(plan IN ('free', 'plus', 'studio')),
  joined_at INTEGER NOT NULL
);

CREATE TABLE things(
  id INTEGER PRIMARY KEY,
  account_id INTEGER NOT NULL REFERENCES accounts(id),
  name TEXT NOT NULL,
  place TEXT,
  price REAL,
  note TEXT NOT NULL DEFAULT ''
);
CREATE INDEX things_by_account ON things(account_id, name);

CREATE TABLE recordings(
  id TEXT PRIMARY KEY NOT NULL,
  thing_id INTEGER NOT NULL REFERENCES things(id) ON DELETE CASCADE,
  started_at INTEGER NOT NULL,
  seconds REAL NOT NULL CHECK(seconds > 0),
  file TEXT NOT NULL,
  bytes INTEGER NOT NULL,
  -- The loudness over time, one byte a step.
  waveform BLOB
);
CREATE INDEX recordings_by_thing ON recordings(thing_id, started_at);

-- The key is the table.
CREATE TABLE recording_tags(
  recording_id TEXT NOT NULL REFERENCES recordings(id) ON DELETE CASCADE,
  tag TEXT NOT NULL,
  PRIMARY KEY(tag, recording_id)
) WITHOUT ROWID;

CREATE TABLE requests(
  id INTEGER PRIMARY KEY,
  thing_id INTEGER NOT NULL REFERENCES things(id) ON DELETE CASCADE,
  from_account INTEGER NOT NULL REFERENCES accounts(id),
  state TEXT NOT NULL CHECK(state IN ('asked', 'granted', 'refused')),
  asked_at INTEGER NOT NULL,
  message TEXT,
  UNIQUE(thing_id, from_account)
);

-- Who may use what. The triggers keep it: its rows reach others with the changes that made them, not by their triggers.
CREATE TABLE permissions(
  thing_id INTEGER NOT NULL REFERENCES things(id) ON DELETE CASCADE,
  account_id INTEGER NOT NULL REFERENCES accounts(id),
  PRIMARY KEY(thing_id, account_id)
) WITHOUT ROWID;

CREATE TRIGGER request_made AFTER INSERT ON requests WHEN new.state = 'granted' BEGIN
  INSERT OR IGNORE INTO permissions(thing_id, account_id) VALUES(new.thing_id, new.from_account);
END;
CREATE TRIGGER request_granted AFTER UPDATE OF state ON requests WHEN new.state = 'granted' BEGIN
  INSERT OR IGNORE INTO permissions(thing_id, account_id) VALUES(new.thing_id, new.from_account);
END;

-- A journal: no key, rows may repeat.
CREATE TABLE plays(
  recording_id TEXT NOT NULL,
  at INTEGER NOT NULL,
  speed REAL NOT NULL DEFAULT 1.0
);

CREATE VIEW long_recordings AS SELECT * FROM recordings WHERE seconds > 600;
