/* SPDX-License-Identifier: Apache-2.0 */
/* Heapsort. */
#include "interpose/platform/sort.h"

#include "interpose/platform/laws.h"

/* Restores the heap below root, whose children are heaps already. */
static void sift_down(struct cuf_pair *pairs, uint64_t root, uint64_t count)
{
	struct cuf_pair moving = pairs[root];

	for (uint64_t child; (child = 2 * root + 1) < count; root = child) {
		if (child + 1 < count && pairs[child + 1].key > pairs[child].key)
			child++;
		if (pairs[child].key <= moving.key)
			break;
		pairs[root] = pairs[child];
	}
	pairs[root] = moving;
}

void cuf_sort_pairs(struct cuf_pair *pairs, uint64_t count)
{
	for (uint64_t i = count / 2; i-- > 0;)
		sift_down(pairs, i, count);
	for (uint64_t end = count; end-- > 1;) {
		struct cuf_pair top = pairs[0];

		pairs[0] = pairs[end];
		pairs[end] = top;
		sift_down(pairs, 0, end);
	}
}
