/* SPDX-License-Identifier: Apache-2.0 */
/*
 * what_if_model SETTINGS VERSION < TRUTH: plays what real PyTorch was asked (tests/frameworks/pytorch/
 * what_if_trace.py) on the model of its allocator, and compares every outcome and, at every point,
 * all segments and blocks. Prints the first disagreements of each trace, and how much was compared.
 * Exits 1 when anything disagrees or nothing was compared. WHAT_IF_TEXTS=SEED prints that trace's
 * segments as the model has them.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include "analysis/base/numbers.h"
#include "analysis/what_if/pytorch.h"
#include "analysis/what_if/pytorch_pool.h"

enum { BLOCKS_MAX = 1 << 16, WRONG_MAX = 3 };

struct game {
	const char *settings, *version;
	struct arena *arena;
	struct driver_pages *driver;
	void *state;
	uint64_t seed, points, outcomes, refused, traces, wrong, wrong_traces;
	unsigned wrong_here;
	bool texts;
};

static void open_trace(struct game *game, const char *line)
{
	struct model_ground ground = { .block_count = BLOCKS_MAX, .version = game->version };
	struct model_values values;
	const char *why = NULL, *shown = getenv("WHAT_IF_TEXTS");
	uint64_t free_bytes;
	sscanf(line, "T %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64, &game->seed, &free_bytes,
	       &ground.total_bytes, &ground.limit_bytes);
	if (game->state)
		pytorch_model.close(game->state);
	driver_pages_free(game->driver);
	game->driver = ground.driver = driver_pages_new(free_bytes, CUF_PAGE_BYTES);
	if (!model_values_parse(&pytorch_model, game->settings, &values, game->arena, &why) ||
	    !(game->state = pytorch_model.open(&values, &ground, &why))) {
		fprintf(stderr, "%s: %s\n", game->settings, why);
		exit(2);
	}
	game->traces++;
	game->wrong_here = 0;
	game->texts = shown && strtoull(shown, NULL, 10) == game->seed;
}

static bool is_wrong(struct game *game)
{
	game->wrong++;
	game->wrong_traces += !game->wrong_here;
	return game->wrong_here++ < WRONG_MAX;
}

static void play_alloc(struct game *game, const char *line)
{
	unsigned block, group, is_private, served;
	uint64_t bytes;
	bool had;
	sscanf(line, "A %u %" SCNu64 " %u %u %u", &block, &bytes, &group, &is_private, &served);
	had = pytorch_model.alloc(game->state,
				  &(struct model_request){ .bytes = bytes,
							   .block = block % BLOCKS_MAX,
							   .group = group,
							   .is_private = is_private });
	game->outcomes++;
	game->refused += !had;
	if (had != served && is_wrong(game))
		printf("trace %" PRIu64 ", block %u of %" PRIu64 " bytes: %s, the model %s\n",
		       game->seed, block, bytes, served ? "served" : "refused",
		       had ? "serves it" : "refuses it");
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The mapped blocks from this one to the end of its segment, as the script prints them. */
static char *segment_text(const struct caching_block *first, size_t *blocks)
{
	char *text = NULL;
	size_t bytes = 0;
	FILE *out = open_memstream(&text, &bytes);
	uint64_t total = 0;
	for (const struct caching_block *b = first; b && b->mapped; b = b->after)
		total += b->bytes;
	fprintf(out, "%u %s %" PRIu64 ":", first->group, first->pool->is_small ? "small" : "large",
		total);
	for (const struct caching_block *b = first; b && b->mapped; b = b->after, ++*blocks)
		fprintf(out, "%s%" PRIu64 "%c", b == first ? "" : ",", b->bytes,
			b->allocated ? 'a' : 'i');
	fclose(out);
	return text;
}

static void compare_point(struct game *game, const char *line)
{
	const struct caching *caching = pytorch_caching(game->state);
	const struct model_figures *figures = &caching->figures;
	char **texts = NULL, *whole = NULL, mine[256];
	size_t count = 0, room = 0, blocks = 0, bytes;
	FILE *out = open_memstream(&whole, &bytes);
	for (const struct caching_block *b = caching->blocks; b; b = b->listed_after)
		if (b->mapped && (!b->before || !b->before->mapped)) {
			xalloc_grow(&texts, count, &room, sizeof *texts);
			texts[count++] = segment_text(b, &blocks);
		}
	if (count)
		qsort(texts, count, sizeof *texts, by_text);
	for (size_t i = 0; i < count; i++) {
		fprintf(out, "%s%s", i ? "\n" : "", texts[i]);
		free(texts[i]);
	}
	fclose(out);
	snprintf(mine, sizeof mine, "P %lu %zu %zu %" PRIu64 " %" PRIu64 " %" PRIu64 "\n",
		 crc32(0, (const Bytef *)whole, (uInt)bytes), count, blocks,
		 figures->allocated_bytes, figures->reserved_bytes, figures->peak_reserved_bytes);
	game->points++;
	if (strcmp(mine, line) && is_wrong(game))
		printf("trace %" PRIu64 ": PyTorch %strace %" PRIu64 ": model   %s", game->seed,
		       line, game->seed, mine);
	if (game->texts)
		printf("model %s%s\n", mine, whole);
	free(whole);
	free(texts);
}

int main(int argc, char **argv)
{
	struct game game = { .settings = argc > 1 ? argv[1] : "",
			     .version = argc > 2 ? argv[2] : "",
			     .arena = arena_new() };
	char line[512];
	while (fgets(line, sizeof line, stdin)) {
		if (*line == 'T')
			open_trace(&game, line);
		else if (*line == 'A')
			play_alloc(&game, line);
		else if (*line == 'F')
			pytorch_model.free(game.state, (uint32_t)strtoul(line + 2, NULL, 10));
		else if (*line == 'E')
			pytorch_model.empty_cache(game.state);
		else if (*line == 'P')
			compare_point(&game, line);
	}
	if (game.state)
		pytorch_model.close(game.state);
	driver_pages_free(game.driver);
	arena_free(game.arena);
	printf("%" PRIu64 " traces, %" PRIu64 " requests, %" PRIu64 " of them refused, %" PRIu64
	       " points; %" PRIu64 " traces differ, %" PRIu64 " comparisons\n",
	       game.traces, game.outcomes, game.refused, game.points, game.wrong_traces, game.wrong);
	return game.wrong || !game.points;
}
