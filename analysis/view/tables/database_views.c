/* SPDX-License-Identifier: Apache-2.0 */
/* Indexes, and views for common questions. */
#include "analysis/view/tables/database.h"

#include <stddef.h>

const struct database_view database_views[] = {
	{ NULL, NULL, "CREATE INDEX frames_by_stack ON frames (process, stack)", { "frames" } },
	{ NULL, NULL, "CREATE INDEX blocks_by_stack ON blocks (process, stack)", { "blocks" } },
	{ "live_at_oom", "blocks that were live when the fatal request failed, largest first",
	  /* device blocks have an exact order; host blocks have times */
	  "CREATE VIEW live_at_oom AS "
	  "SELECT b.*, s.function, s.file, s.line, s.callers "
	  "FROM incidents i "
	  "JOIN blocks b ON b.process = i.process "
	  "LEFT JOIN (SELECT process, stack, kind, device, min(function) AS function, "
	  "min(file) AS file, min(line) AS line, min(callers) AS callers FROM sites "
	  "GROUP BY process, stack, kind, device) s "
	  "ON s.process = b.process AND s.stack = b.stack AND s.kind = b.kind "
	  "AND s.device IS b.device "
	  "WHERE i.outcome = 'fatal' "
	  "AND i.incident = (SELECT max(incident) FROM incidents "
	  "WHERE process = i.process AND outcome = 'fatal') "
	  "AND CASE WHEN b.kind = 'host' "
	  "THEN ifnull(b.born_ns, 0) <= i.time_ns AND ifnull(b.died_ns > i.time_ns, 1) "
	  "ELSE ifnull(b.born_seq, 0) <= i.seq AND ifnull(b.died_seq > i.seq, 1) END "
	  "ORDER BY b.bytes DESC",
	  { "blocks", "incidents", "sites" } },
	{ "by_kind", "live bytes and blocks at the end, by kind and device",
	  "CREATE VIEW by_kind AS "
	  "SELECT process, kind, device, sum(weight_bytes) AS bytes, sum(weight_count) AS count "
	  "FROM blocks WHERE died_ns IS NULL GROUP BY process, kind, device",
	  { "blocks" } },
	{ "growth_by_site", "call sites that grew, what grew most first",
	  "CREATE VIEW growth_by_site AS "
	  "SELECT process, kind, device, class, grown_bytes, slope_bytes_per_s, "
	  "per_request_bytes, bytes, function, file, line, callers, stack "
	  "FROM sites WHERE grown_bytes > 0 ORDER BY grown_bytes DESC",
	  { "sites" } },
	{ "holes", "regions that are free in part, the largest hole first",
	  "CREATE VIEW holes AS "
	  "SELECT process, device, layer, framework, address, bytes, live_bytes, free_bytes, "
	  "largest_hole_bytes, hole_count, stack "
	  "FROM regions WHERE free_bytes > 0 ORDER BY largest_hole_bytes DESC",
	  { "regions" } },
	{ .sql = NULL },
};
