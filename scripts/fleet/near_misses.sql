-- SPDX-License-Identifier: Apache-2.0
-- Which models nearly ran out of memory, and which did? A near miss is a request that failed, and
-- whose program went on.
SELECT p.model,
       count(DISTINCT p.process) AS processes,
       count(DISTINCT CASE WHEN i.outcome IN ('recovered', 'handled') THEN p.process END)
         AS near_misses,
       count(DISTINCT CASE WHEN i.outcome = 'fatal' THEN p.process END) AS failures
FROM processes p
LEFT JOIN incidents i ON i.process = p.process
GROUP BY p.model
ORDER BY near_misses DESC, failures DESC, p.model
