/* SPDX-License-Identifier: Apache-2.0 */
/*
 * framework_points RECORDING < TRUTH: rebuilds a framework's memory at every point for which the
 * program printed its statistics ("point N ..." and "oom ...", tests/victims/README.md), and
 * compares to the byte. Prints each disagreement, then how many points were compared. Exits 1 when
 * one disagrees or there is none. Points are processed newest first, so that all of them together
 * cost one walk through the recording.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "analysis/measure/framework_segments.h"
#include "analysis/replay/driver_state.h"

struct point {
	char name[32];
	uint64_t monotonic_ns, allocated, reserved, hole_small, hole_large, live_count;
};

static uint64_t number_after(const char *line, const char *word)
{
	char key[32];
	const char *at;
	snprintf(key, sizeof key, " %s ", word);
	at = strstr(line, key);
	return at ? strtoull(at + strlen(key), NULL, 10) : CUF_UNKNOWN;
}

static struct point *read_points(size_t *count)
{
	struct point *points = NULL;
	size_t room = 0;
	char line[1024];
	*count = 0;
	while (fgets(line, sizeof line, stdin)) {
		struct point p = {
			.monotonic_ns = number_after(line, "monotonic_ns"),
			.allocated = number_after(line, "allocated"),
			.reserved = number_after(line, "reserved"),
			.hole_small = number_after(line, "hole_small"),
			.hole_large = number_after(line, "hole_large"),
		};
		if ((strncmp(line, "point ", 6) && strncmp(line, "oom ", 4) &&
		     strncmp(line, "retried ", 8)) ||
		    p.monotonic_ns == CUF_UNKNOWN)
			continue;
		snprintf(p.name, sizeof p.name, "%.*s",
		         (int)(strstr(line, " time_ns") ? strstr(line, " time_ns") - line : 8),
		         line);
		xalloc_grow(&points, *count, &room, sizeof *points);
		points[(*count)++] = p;
	}
	return points;
}

static unsigned wrong;

static void same(const struct point *p, const char *what, uint64_t said, uint64_t found)
{
	if (said == found)
		return;
	wrong++;
	printf("%s: %s: the program has %llu, the recording %llu\n", p->name, what,
	       (unsigned long long)said, (unsigned long long)found);
}

static uint64_t largest_hole(const struct framework_map *map, uint64_t requested_bytes,
                             struct arena *arena, struct fact_framework *f, uint64_t *reserved)
{
	*f = (struct fact_framework){ 0 };
	*reserved = framework_segments_measure(map, 0, requested_bytes, arena, f);
	return f->largest_hole.bytes;
}

static void compare(struct run_process *process, struct framework_marks **marks,
                    const struct point *p)
{
	struct arena *arena = arena_new();
	struct fact_framework f;
	struct framework_map map;
	uint64_t reserved, allocated = 0;
	bool exact;
	const struct liveset *live =
		run_live(process, seq_at_time(process->events, p->monotonic_ns), &exact);
	same(p, "exact", 1, exact && process->live_exact.framework);
	framework_map_make(&(struct device_blocks){ process->reader, live, 0, 0 }, &map);
	framework_marks_set(marks, process, &map);
	for (size_t i = 0; i < map.block_count; i++)
		allocated += map.blocks[i].bytes;
	same(p, "hole_small", p->hole_small, largest_hole(&map, 1, arena, &f, &reserved));
	same(p, "hole_large", p->hole_large,
	     largest_hole(&map, CUF_UNKNOWN - 1, arena, &f, &reserved));
	same(p, "allocated", p->allocated, allocated);
	same(p, "placed", p->allocated, f.placed_bytes);
	same(p, "reserved", p->reserved, reserved);
	framework_map_fini(&map);
	arena_free(arena);
}

int main(int argc, char **argv)
{
	struct framework_marks *marks = NULL;
	struct reader_error error;
	struct run run;
	size_t count;
	struct point *points = read_points(&count);
	if (argc != 2 || run_open(&run, argv[1], &error)) {
		fprintf(stderr,
		        "usage: framework_points RECORDING < TRUTH; a recording that can be read\n");
		return 2;
	}
	for (size_t i = count; i--;)
		compare(&run.processes[0], &marks, &points[i]);
	printf("%zu points, %u disagreements\n", count, wrong);
	framework_marks_free(marks);
	run_fini(&run);
	free(points);
	return wrong || !count;
}
