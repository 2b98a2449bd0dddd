-- SPDX-License-Identifier: Apache-2.0
-- Where is most memory free and out of reach: inside pages, pools and segments that are in use?
SELECT p.host AS host, p.pid AS pid, p.model AS model, r.device AS device, r.layer AS layer,
       sum(r.free_bytes) AS free_bytes,
       sum(r.bytes) AS bytes,
       max(r.largest_hole_bytes) AS largest_hole_bytes
FROM regions r
JOIN processes p ON p.process = r.process
WHERE r.layer <> 'reservation' AND r.free_bytes > 0
GROUP BY p.host, p.pid, p.model, r.device, r.layer
ORDER BY free_bytes DESC, p.host, p.pid
