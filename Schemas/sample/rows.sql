-- Fills the sample database with some 100,000 rows, the same ones each time: numbers come from multiplying with
-- primes, not from chance.

BEGIN;

INSERT INTO accounts(id, email, name, plan, joined_at)
WITH RECURSIVE
  numbers(n) AS (VALUES(1) UNION ALL SELECT n + 1 FROM numbers WHERE n < 300),
  names(i, name) AS (
    VALUES(0, 'Anna'), (1, 'Ben'), (2, 'Chiara'), (3, 'Đorđe'), (4, 'Émile'), (5, 'Fatma'), (6, 'Göran'),
      (7, 'Hannah'), (8, 'Ирина'), (9, 'Jun 準')
  )
SELECT n, lower(printf('person%d@example.org', n)), name || ' ' || n,
  CASE WHEN n * 7 % 10 < 6 THEN 'free' WHEN n * 7 % 10 < 9 THEN 'plus' ELSE 'studio' END,
  1700000000 + n * 7919 % 5000000
FROM numbers JOIN names ON i = (n - 1) % 10
ORDER BY n;

INSERT INTO things(id, account_id, name, place, price, note)
WITH RECURSIVE
  numbers(n) AS (VALUES(1) UNION ALL SELECT n + 1 FROM numbers WHERE n < 8000),
  makes(i, make) AS (VALUES(0, 'brass'), (1, 'wooden'), (2, 'old'), (3, 'quiet'), (4, 'red'), (5, 'broken'), (6, 'tiny')),
  kinds(j, kind) AS (
    VALUES(0, 'bell'), (1, 'door'), (2, 'kettle'), (3, 'bicycle'), (4, 'piano'), (5, 'clock'), (6, 'stairs'),
      (7, 'radio'), (8, 'gate'), (9, 'harp'), (10, 'engine')
  ),
  places(k, place) AS (VALUES(0, 'attic'), (1, 'kitchen'), (2, 'harbour'), (3, 'garden'), (4, NULL))
SELECT n, 1 + n * 7919 % 300, make || ' ' || kind, place, round((n * 104729 % 50000) / 100.0, 2), ''
FROM numbers JOIN makes ON i = n % 7 JOIN kinds ON j = n * 3 % 11 JOIN places ON k = n * 13 % 5
ORDER BY n;

INSERT INTO recordings(id, thing_id, started_at, seconds, file, bytes, waveform)
WITH RECURSIVE numbers(n) AS (VALUES(1) UNION ALL SELECT n + 1 FROM numbers WHERE n < 36000)
SELECT printf('r%05d-%06x', n, n * 2654435761 % 16777216), 1 + n * 7919 % 8000, 1710000000 + n * 613,
  round(1 + (n * 15485863 % 90000) / 100.0, 2), printf('originals/%d/%05d.m4a', n % 100, n),
  20000 + n * 32452843 % 9000000,
  CASE WHEN n % 3 = 0 THEN NULL ELSE CAST(printf('%016x%016x', n * 2654435761, n * 40503) AS BLOB) END
FROM numbers;

INSERT INTO recording_tags(recording_id, tag)
WITH tags(i, tag) AS (
  VALUES(0, 'night'), (1, 'rain'), (2, 'voice'), (3, 'metal'), (4, 'slow'), (5, 'loud'), (6, 'far away')
)
SELECT id, tag FROM recordings JOIN tags ON i = rowid * 31 % 7 OR (rowid % 4 = 0 AND i = (rowid * 31 + 3) % 7);

INSERT INTO requests(thing_id, from_account, state, asked_at, message)
WITH RECURSIVE numbers(n) AS (VALUES(1) UNION ALL SELECT n + 1 FROM numbers WHERE n < 6000)
SELECT 1 + n * 1237 % 8000, 1 + n % 300, CASE n % 5 WHEN 0 THEN 'granted' WHEN 1 THEN 'refused' ELSE 'asked' END,
  1720000000 + n * 977, CASE WHEN n % 4 = 0 THEN NULL ELSE 'May I use it in piece ' || n || '?' END
FROM numbers;

INSERT INTO plays(recording_id, at, speed)
SELECT id, started_at + 86400, CASE WHEN rowid % 9 = 0 THEN 0.5 ELSE 1.0 END FROM recordings WHERE rowid % 3 = 1;

COMMIT;
