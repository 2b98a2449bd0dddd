-- SPDX-License-Identifier: Apache-2.0
-- How long until a GPU is full, if memory goes on growing as it did?
SELECT p.host AS host, p.pid AS pid, p.model AS model, d.device AS device, d.free_bytes AS free_bytes,
       g.bytes_per_s AS bytes_per_s,
       d.free_bytes / g.bytes_per_s AS seconds_left
FROM (SELECT process, device, sum(slope_bytes_per_s) AS bytes_per_s
      FROM sites
      WHERE class IN ('leak', 'growing') AND device IS NOT NULL AND kind <> 'framework'
      GROUP BY process, device) g
JOIN devices d ON d.process = g.process AND d.device = g.device
JOIN processes p ON p.process = g.process
WHERE g.bytes_per_s > 0
ORDER BY seconds_left, p.host, p.pid
