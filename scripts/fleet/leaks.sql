-- SPDX-License-Identifier: Apache-2.0
-- Which call site leaks across the fleet?
SELECT s.function, s.callers, s.kind,
       count(DISTINCT p.host) AS hosts,
       count(DISTINCT s.process) AS processes,
       sum(s.bytes) AS leaked_bytes,
       max(s.per_request_bytes) AS per_request_bytes
FROM sites s
JOIN processes p ON p.process = s.process
WHERE s.class = 'leak'
GROUP BY s.function, s.callers, s.kind
ORDER BY leaked_bytes DESC, s.function, s.callers
