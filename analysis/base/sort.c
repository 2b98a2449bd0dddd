/* SPDX-License-Identifier: Apache-2.0 */
/* Radix sort of keys and places, byte by byte from the lowest; then the items follow once. */
#include "analysis/base/sort.h"

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

/* Puts the items into the order of their keys. */
static void follow(char *items, const struct keyed *keys, size_t count, size_t item_bytes)
{
	char *sorted = xalloc_bytes(count * item_bytes);

	for (size_t i = 0; i < count; i++)
		memcpy(sorted + i * item_bytes, items + keys[i].place * item_bytes, item_bytes);
	memcpy(items, sorted, count * item_bytes);
	free(sorted);
}

void sort_by_number(void *items, size_t count, size_t item_bytes, size_t key)
{
	struct keyed *keys, *spare, *ordered;

	if (count < 2)
		return;
	keys = xalloc_zeroed(count, sizeof *keys);
	for (size_t i = 0; i < count; i++) {
		memcpy(&keys[i].key, (char *)items + i * item_bytes + key, sizeof keys[i].key);
		keys[i].place = i;
	}
	spare = NULL;
	ordered = keys;
	if (is_sorted(keys, count))
		goto done;
	if (count <= FEW) {
		insert_all(keys, count);
	} else {
		spare = xalloc_zeroed(count, sizeof *spare);
		ordered = radix_sort(keys, spare, count);
	}
	follow(items, ordered, count, item_bytes);
done:
	free(spare);
	free(keys);
}
