/* SPDX-License-Identifier: Apache-2.0 */
/* Four-point rainflow counting over a stack of turning points. */
#include "analysis/growth/cycles.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include "analysis/base/numbers.h"
#include "analysis/base/xalloc.h"

enum {
	LEVELS = 64,           /* one for each power of two of a range */
	LEVEL_MARKS = 1 << 16, /* kept for each level before they are thinned */
	STACK = 4096,          /* turning points */
	NEAR_LEVELS = 2,       /* how far below the scale finer work is considered */
	PROPORTION = 512       /* see is_out_of_proportion */
};

struct point {
	int64_t value;
	struct cycle_mark at;
};

/* Pairs whose range is in [2^i, 2^(i+1)) bytes. */
struct level {
	struct cycle_mark *marks; /* of every stride-th pair */
	size_t count, room;
	uint64_t seen, stride;
	struct point first, last; /* low points */
};

struct cycles {
	struct point stack[STACK];
	size_t depth;
	struct point last;        /* not a turning point yet */
	int direction;            /* of the last change: 1, -1; 0 before the first */
	struct level levels[LEVELS];
	struct cycle_mark *marks;
};

struct cycles *cycles_new(void) { return xalloc_zeroed(1, sizeof(struct cycles)); }

/* Computed without sign: the difference of two levels may exceed int64_t in a hostile file. */
static uint64_t range_of(const struct point *left, const struct point *right)
{
	uint64_t difference = (uint64_t)left->value - (uint64_t)right->value;
	if ((int64_t)difference < 0)
		return -difference;
	return difference;
}

/* Counts a pair at its scale and keeps its low point. */
static void count_pair(struct cycles *cycles, uint64_t range, const struct point *low)
{
	struct level *level = cycles->levels;
	if (range)
		level += 63 - __builtin_clzll(range);
	if (!level->stride)
		level->stride = 1;
	if (low != cycles->stack) { /* the start of the recording is no low point */
		if (!level->last.at.position || low->at.position < level->first.at.position)
			level->first = *low;
		if (low->at.position > level->last.at.position)
			level->last = *low;
	}
	if (level->seen++ % level->stride)
		return;
	if (level->count == LEVEL_MARKS) { /* thin out: keep every second mark from here on */
		for (size_t i = 0; i < LEVEL_MARKS / 2; i++)
			level->marks[i] = level->marks[2 * i];
		level->count = LEVEL_MARKS / 2;
		level->stride *= 2;
	}
	xalloc_grow(&level->marks, level->count, &level->room, sizeof *level->marks);
	level->marks[level->count++] = low->at;
}

/* Pushes a turning point, then removes every pair that the outer points enclose. */
static void push(struct cycles *cycles, const struct point *point)
{
	struct point *stack = cycles->stack;
	/* drop the oldest, widest ranges: they are not repeated work */
	if (cycles->depth == STACK) {
		memmove(stack, stack + STACK / 2, (STACK / 2) * sizeof *stack);
		cycles->depth = STACK / 2;
	}
	stack[cycles->depth++] = *point;
	while (cycles->depth >= 4) {
		struct point *top = stack + cycles->depth - 4;
		uint64_t inner = range_of(&top[1], &top[2]);
		if (inner > range_of(&top[0], &top[1]) || inner > range_of(&top[2], &top[3]))
			break;
		if (top[1].value < top[2].value)
			count_pair(cycles, inner, &top[1]);
		else
			count_pair(cycles, inner, &top[2]);
		top[1] = top[3];
		cycles->depth -= 2;
	}
}

void cycles_feed(struct cycles *cycles, int64_t delta_bytes, uint64_t position, uint64_t time_ns)
{
	int direction = delta_bytes > 0 ? 1 : -1;
	if (!delta_bytes)
		return;
	if (direction != cycles->direction) {
		if (!cycles->direction) /* the state before the first event */
			cycles->last.at =
				(struct cycle_mark){ subtract_to_zero(position, 1), time_ns };
		push(cycles, &cycles->last);
		cycles->direction = direction;
	}
	cycles->last =
		(struct point){ (int64_t)((uint64_t)cycles->last.value + (uint64_t)delta_bytes),
				{ position, time_ns } };
}

/* The number of pairs at this scale or a larger one. */
static uint64_t seen_from(const struct cycles *cycles, unsigned level)
{
	uint64_t seen = 0;
	for (unsigned i = level; i < LEVELS; i++)
		seen += cycles->levels[i].seen;
	return seen;
}

/* What is left on the stack are ranges that no wider one answered. Their low points count, too. */
static void count_residue(struct cycles *cycles)
{
	for (size_t i = 0; i < cycles->depth; i++) {
		bool low = (i + 1 < cycles->depth &&
			    cycles->stack[i].value < cycles->stack[i + 1].value) ||
			   (i && cycles->stack[i].value < cycles->stack[i - 1].value);
		uint64_t before = UINT64_MAX, after = UINT64_MAX;

		if (i)
			before = range_of(&cycles->stack[i - 1], &cycles->stack[i]);
		if (i + 1 < cycles->depth)
			after = range_of(&cycles->stack[i], &cycles->stack[i + 1]);
		if (low && cycles->depth > 1)
			count_pair(cycles, least_of(before, after), &cycles->stack[i]);
	}
}

/* Requests of one kind differ in size, so their pairs may be on both sides of a power of two. If
 * the next finer scale adds a sixteenth or more, that is the same work. Further down is other work,
 * which must be twice as frequent. */
static unsigned scale_of(const struct cycles *cycles)
{
	unsigned level = LEVELS - 1, best;
	while (level && seen_from(cycles, level) < CYCLES_MIN + 1)
		level--;
	best = level;
	for (unsigned i = 1; i <= NEAR_LEVELS && i <= level; i++)
		if (seen_from(cycles, level - i) >= 2 * seen_from(cycles, best) ||
		    (i == 1 && seen_from(cycles, level - i) * 16 >= seen_from(cycles, best) * 17))
			best = level - i;
	return best;
}

/* While weights load, small blocks of another thread may come and go. What is gained between such
 * cycles is out of proportion to them, so they are not the work of the program. What was there
 * before the first and came after the last does not count. */
static bool is_out_of_proportion(const struct cycles *cycles, unsigned scale, uint64_t seen)
{
	const struct point *first = NULL, *last = NULL;
	for (unsigned i = scale; i < LEVELS; i++) {
		const struct level *level = &cycles->levels[i];
		if (!level->last.at.position)
			continue;
		if (!first || first->at.position >= level->first.at.position)
			first = &level->first;
		if (!last || last->at.position <= level->last.at.position)
			last = &level->last;
	}
	return first && last->value > first->value &&
	       range_of(first, last) / seen / PROPORTION >= 2ull << scale;
}

static int by_position(const void *a, const void *b)
{
	const struct cycle_mark *left = a, *right = b;
	return compare_numbers(left->position, right->position);
}

uint64_t cycles_finish(struct cycles *cycles, const struct cycle_mark **marks, size_t *count)
{
	uint64_t seen;
	unsigned scale;
	size_t room = 0;
	*marks = NULL;
	*count = 0;
	if (cycles->direction)
		push(cycles, &cycles->last);
	count_residue(cycles);
	scale = scale_of(cycles);
	seen = seen_from(cycles, scale);
	if (seen < CYCLES_MIN + 1 || is_out_of_proportion(cycles, scale, seen))
		return 0;
	for (unsigned i = scale; i < LEVELS; i++)
		for (size_t m = 0; m < cycles->levels[i].count; m++) {
			xalloc_grow(&cycles->marks, *count, &room, sizeof *cycles->marks);
			cycles->marks[(*count)++] = cycles->levels[i].marks[m];
		}
	qsort(cycles->marks, *count, sizeof *cycles->marks, by_position);
	*marks = cycles->marks;
	return seen - 1;
}

void cycles_free(struct cycles *cycles)
{
	if (!cycles)
		return;
	for (unsigned i = 0; i < LEVELS; i++)
		free(cycles->levels[i].marks);
	free(cycles->marks);
	free(cycles);
}
