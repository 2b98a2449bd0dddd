-- SPDX-License-Identifier: Apache-2.0
-- A program for tests/bench/host.py: rows of many sizes, an index, grouping, a join, updates, JSON.
CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT, c REAL, d BLOB);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000)
INSERT INTO t SELECT i, 'k' || ((i * 7919) % 10007) || hex(i), i * 0.37, zeroblob(i % 300) FROM n;
CREATE INDEX tb ON t(b);
SELECT count(*), max(x) FROM (SELECT b, sum(c) x, group_concat(a, ',') g FROM t GROUP BY substr(b, 1, 4));
SELECT count(*) FROM t x JOIN t y ON x.a = y.a + 1 WHERE x.b < y.b;
UPDATE t SET b = b || 'z' WHERE a % 3 = 0;
DELETE FROM t WHERE a % 5 = 0;
SELECT length(json_group_array(json_object('a', a, 'b', b))) FROM t;
