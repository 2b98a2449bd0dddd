/* SPDX-License-Identifier: Apache-2.0 */
/* Radix sort of keys and places, byte by byte from the lowest; then the items follow once. What is
 * nearly in order is not sorted anew. */
#include "analysis/base/sort.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "analysis/base/xalloc.h"

enum { DIGITS = sizeof(uint64_t), VALUES = 256, FEW = 64 };

struct keyed { uint64_t key; size_t place; };

/* For few items the tables of the radix sort would cost more than they save. */
static void insert_all(struct keyed *keys, size_t count)
{
	for (size_t i = 1; i < count; i++) {
		struct keyed item = keys[i];
		size_t at = i;

		for (; at && keys[at - 1].key > item.key; at--)
			keys[at] = keys[at - 1];
		keys[at] = item;
	}
}

static unsigned digit_of(uint64_t key, unsigned digit)
{
	return (unsigned)(key >> 8 * digit) & (VALUES - 1);
}

/* Moves the keys from one array to the other, in the order of one digit. */
static void distribute(const struct keyed *from, struct keyed *to, size_t count, unsigned digit,
		       const size_t *counts)
{
	size_t next[VALUES], sum = 0;

	for (unsigned value = 0; value < VALUES; value++) {
		next[value] = sum;
		sum += counts[value];
	}
	for (size_t i = 0; i < count; i++)
		to[next[digit_of(from[i].key, digit)]++] = from[i];
}

/* Returns the array that has the result: keys or spare. A digit that all keys share is skipped. */
static struct keyed *radix_sort(struct keyed *keys, struct keyed *spare, size_t count)
{
	size_t (*counts)[VALUES] = xalloc_zeroed(DIGITS, sizeof *counts);

	for (size_t i = 0; i < count; i++)
		for (unsigned digit = 0; digit < DIGITS; digit++)
			counts[digit][digit_of(keys[i].key, digit)]++;
	for (unsigned digit = 0; digit < DIGITS; digit++) {
		struct keyed *swapped = spare;

		if (counts[digit][digit_of(keys[0].key, digit)] == count)
			continue;
		distribute(keys, spare, count, digit, counts[digit]);
		spare = keys;
		keys = swapped;
	}
	free(counts);
	return keys;
}

static int is_sorted(const struct keyed *keys, size_t count)
{
	size_t i = 1;

	while (i < count && keys[i - 1].key <= keys[i].key)
		i++;
	return i >= count;
}

/* Whether a belongs before b; of equal keys, what came first. */
static bool is_before(const struct keyed *a, const struct keyed *b)
{
	return a->key < b->key || (a->key == b->key && a->place < b->place);
}

/*
 * Moves items that break the ascending order to `strays`, where `most` have room, and closes the
 * gaps. An item that is too large for its place is a stray, too: it is recognised when the next one
 * is smaller, but not smaller than the one before it. Returns the number of strays; SIZE_MAX: too
 * many, and keys is damaged.
 */
static size_t set_strays_apart(struct keyed *keys, size_t count, struct keyed *strays, size_t most)
{
	size_t kept = 0, stray = 0;

	for (size_t i = 0; i < count; i++) {
		if (kept && is_before(&keys[i], &keys[kept - 1])) {
			struct keyed item = keys[i];

			if (stray == most)
				return SIZE_MAX;
			if (kept < 2 || is_before(&keys[kept - 2], &item)) {
				strays[stray++] = keys[kept - 1];
				keys[kept - 1] = item;
			} else {
				strays[stray++] = item;
			}
			continue;
		}
		keys[kept++] = keys[i];
	}
	return stray;
}

static int compare_keyed(const void *a, const void *b)
{
	if (is_before(a, b))
		return -1;
	return is_before(b, a);
}

/* Sorts what is nearly sorted: first the strays, then both are merged from behind. False: too many
 * strays, and keys is damaged. */
static bool sort_strays(struct keyed *keys, size_t count)
{
	size_t most = count / 16, at = count, stray;
	struct keyed *strays = xalloc_zeroed(most, sizeof *strays);

	stray = set_strays_apart(keys, count, strays, most);
	if (stray == SIZE_MAX) {
		free(strays);
		return false;
	}
	qsort(strays, stray, sizeof *strays, compare_keyed);
	for (size_t kept = count - stray; stray;) {
		bool last = !kept || is_before(&keys[kept - 1], &strays[stray - 1]);
		keys[--at] = last ? strays[--stray] : keys[--kept];
	}
	free(strays);
	return true;
}

/* Puts the items into the order of their keys, along the cycles of the permutation. A place that is
 * done points to itself. */
static void follow_cycles(char *items, struct keyed *keys, size_t count, size_t item_bytes)
{
	char *first = xalloc_bytes(item_bytes);

	for (size_t start = 0; start < count; start++) {
		size_t at = start, from;

		if (keys[start].place == start)
			continue;
		memcpy(first, items + start * item_bytes, item_bytes);
		for (; (from = keys[at].place) != start; at = from) {
			memcpy(items + at * item_bytes, items + from * item_bytes, item_bytes);
			keys[at].place = at;
		}
		memcpy(items + at * item_bytes, first, item_bytes);
		keys[at].place = at;
	}
	free(first);
}

static void read_keys(const char *items, struct keyed *keys, size_t count, size_t item_bytes)
{
	for (size_t i = 0; i < count; i++) {
		memcpy(&keys[i].key, items + i * item_bytes, sizeof keys[i].key);
		keys[i].place = i;
	}
}

void sort_by_number(void *items, size_t count, size_t item_bytes, size_t key)
{
	struct keyed *keys, *spare = NULL, *ordered;

	if (count < 2)
		return;
	keys = ordered = xalloc_bytes(count * sizeof *keys);
	read_keys((char *)items + key, keys, count, item_bytes);
	if (is_sorted(keys, count))
		goto done;
	if (count <= FEW) {
		insert_all(keys, count);
	} else if (!sort_strays(keys, count)) {
		read_keys((char *)items + key, keys, count, item_bytes);
		spare = xalloc_bytes(count * sizeof *spare);
		ordered = radix_sort(keys, spare, count);
	}
	follow_cycles(items, ordered, count, item_bytes);
done:
	free(spare);
	free(keys);
}
