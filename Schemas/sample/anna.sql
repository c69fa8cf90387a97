-- What Anna did in her copy, with the next version of the app, since she and Ben had the same rows.

-- The new version brings a column and a table.
ALTER TABLE recordings ADD COLUMN transcript TEXT;
CREATE TABLE albums(
  id INTEGER PRIMARY KEY,
  title TEXT NOT NULL,
  thing_id INTEGER REFERENCES things(id) ON DELETE SET NULL
);

BEGIN;
INSERT INTO albums(title, thing_id)
WITH RECURSIVE numbers(n) AS (VALUES(1) UNION ALL SELECT n + 1 FROM numbers WHERE n < 12)
SELECT 'Album ' || n, n * 37 FROM numbers;

-- She renamed things, Ben's and hers.
UPDATE things SET name = 'ship''s bell', place = 'harbour' WHERE id = 17;
UPDATE things SET note = 'heard on ' || date(1760000000 + id * 60, 'unixepoch') WHERE id % 20 = 3;

-- She recorded, transcribed, and threw away.
INSERT INTO recordings(id, thing_id, started_at, seconds, file, bytes, transcript)
WITH RECURSIVE numbers(n) AS (VALUES(1) UNION ALL SELECT n + 1 FROM numbers WHERE n < 1200)
SELECT printf('anna-%04d', n), 1 + n * 7919 % 8000, 1760000000 + n * 60, 5 + n % 50, printf('originals/anna/%04d.m4a', n),
  50000 + n, CASE WHEN n % 5 = 0 THEN 'one, two, three, testing' END
FROM numbers;
UPDATE recordings SET transcript = 'rain on the roof' WHERE id LIKE 'r000%';
UPDATE recordings SET seconds = seconds - 0.5, bytes = bytes - 4000 WHERE id LIKE 'r12%' AND seconds > 2;
DELETE FROM recordings WHERE id LIKE 'r35_0%';
INSERT INTO recording_tags(recording_id, tag) SELECT id, 'field' FROM recordings WHERE id LIKE 'anna-%';

-- She answered requests.
UPDATE requests SET state = 'granted' WHERE state = 'asked' AND id % 8 = 5;
INSERT INTO plays(recording_id, at) SELECT id, started_at + 3600 FROM recordings WHERE id LIKE 'anna-00%';
COMMIT;
