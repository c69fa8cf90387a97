-- What Ben did in his copy meanwhile.

BEGIN;
-- Anna gave thing 17 another name: a conflict.
UPDATE things SET name = 'bell of the school' WHERE id = 17;
-- Anna shortened this recording, and he threw it away: another.
DELETE FROM recordings WHERE id LIKE 'r12000-%';

-- These meet nothing of Anna's.
UPDATE accounts SET plan = 'studio' WHERE id = 2;
UPDATE things SET price = 12.5 WHERE id IN (40, 41, 42);
INSERT INTO recordings(id, thing_id, started_at, seconds, file, bytes)
WITH RECURSIVE numbers(n) AS (VALUES(1) UNION ALL SELECT n + 1 FROM numbers WHERE n < 40)
SELECT printf('ben-%04d', n), 2000 + n, 1761000000 + n * 60, 30 + n, printf('originals/ben/%04d.m4a', n), 70000 + n
FROM numbers;
COMMIT;
