-- SPDX-License-Identifier: Apache-2.0
-- How fast does memory grow in each version? Only call sites whose growth is a leak, or goes on.
SELECT p.program, p.framework, p.framework_version,
       count(DISTINCT p.process) AS processes,
       count(DISTINCT s.process) AS growing,
       sum(s.slope_bytes_per_s) / count(DISTINCT s.process) AS bytes_per_s_each,
       max(s.per_request_bytes) AS most_per_request_bytes
FROM processes p
LEFT JOIN sites s ON s.process = p.process AND s.class IN ('leak', 'growing')
GROUP BY p.program, p.framework, p.framework_version
ORDER BY bytes_per_s_each DESC, p.framework_version
