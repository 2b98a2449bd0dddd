/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sorts by a number: of a million blocks by address, for example. Its time is
 * proportional to the count, whatever the numbers are. It is several times as fast as qsort,
 * and faster still where few items are out of order.
 *
 * Contract: any number of items, of any size; the key is a uint64_t at `key` bytes into each item,
 * ascending. Stable: a sort by a second key, then by the first, orders by both. Needs up to 32
 * bytes an item while it runs. One thread.
 */
#pragma once

#include <stddef.h>

void sort_by_number(void *items, size_t count, size_t item_bytes, size_t key);
