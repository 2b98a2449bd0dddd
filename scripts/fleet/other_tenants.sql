-- SPDX-License-Identifier: Apache-2.0
-- Which nodes see another tenant on their GPUs? Processes of the fleet itself do not count.
SELECT p.host AS host, o.device AS device, o.name AS name,
       count(DISTINCT o.pid) AS tenants,
       max(o.bytes) AS most_bytes
FROM owners o
JOIN processes p ON p.process = o.process
LEFT JOIN processes q ON q.host = p.host AND q.pid = o.pid
                     AND q.start_ns <= p.end_ns AND q.end_ns >= p.start_ns
WHERE o.kind = 'other_processes' AND o.pid IS NOT NULL AND q.process IS NULL
GROUP BY p.host, o.device, o.name
ORDER BY most_bytes DESC, p.host
