/* SPDX-License-Identifier: Apache-2.0 */
/* Pairs call sites of two builds. */
#include "analysis/gate/judge/match.h"

#include <stdlib.h>
#include <string.h>
#include "analysis/base/numbers.h"
#include "analysis/base/xalloc.h"
#include "analysis/gate/take/site_name.h"

/* A site with its place in the caller's array. */
struct item { const struct match_side *side; size_t index; };

static int by_identity(const void *a, const void *b)
{
	const struct item *left = a, *right = b;

	if (left->side->group != right->side->group)
		return left->side->group < right->side->group ? -1 : 1;
	return strcmp(left->side->identity, right->side->identity);
}

static int by_bytes(const void *a, const void *b)
{
	const struct item *left = a, *right = b;

	if (left->side->bytes != right->side->bytes)
		return compare_numbers(right->side->bytes, left->side->bytes);
	return by_identity(a, b);
}

static struct item *items_of(const struct match_side *sides, size_t count)
{
	struct item *items = xalloc_zeroed(count, sizeof *items);

	for (size_t i = 0; i < count; i++)
		items[i] = (struct item){ &sides[i], i };
	return items;
}

static void sort(struct item *items, size_t count,
		 int (*order)(const void *, const void *))
{
	if (count)
		qsort(items, count, sizeof *items, order);
}

/* The rest, largest first; a taken site of `before` is not taken again. */
static void match_alike(size_t *found, const struct item *now, size_t now_count,
			const struct item *before, size_t before_count, bool *taken)
{
	for (size_t i = 0; i < now_count; i++) {
		const struct match_side *side = now[i].side;
		for (size_t j = 0; j < before_count && found[now[i].index] == MATCH_NONE; j++) {
			const struct match_side *other = before[j].side;
			if (taken[before[j].index] || other->group != side->group ||
			    !site_name_is_like(side->identity, other->identity))
				continue;
			found[now[i].index] = before[j].index;
			taken[before[j].index] = true;
		}
	}
}

size_t *match_sites(const struct match_side *now, size_t now_count,
		    const struct match_side *before, size_t before_count)
{
	size_t *found = xalloc_zeroed(now_count, sizeof *found);
	bool *taken = xalloc_zeroed(before_count, sizeof *taken);
	struct item *left = items_of(now, now_count), *right = items_of(before, before_count);
	size_t j = 0;

	for (size_t i = 0; i < now_count; i++)
		found[i] = MATCH_NONE;
	sort(left, now_count, by_identity);
	sort(right, before_count, by_identity);
	for (size_t i = 0; i < now_count; i++) {
		while (j < before_count && by_identity(&right[j], &left[i]) < 0)
			j++;
		if (j == before_count || by_identity(&right[j], &left[i]) != 0)
			continue;
		found[left[i].index] = right[j].index;
		taken[right[j++].index] = true;
	}
	sort(left, now_count, by_bytes);
	sort(right, before_count, by_bytes);
	match_alike(found, left, now_count, right, before_count, taken);
	free(left);
	free(right);
	free(taken);
	return found;
}
