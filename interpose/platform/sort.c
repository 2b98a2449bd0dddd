/* SPDX-License-Identifier: Apache-2.0 */
/* Heapsort. */
#include "interpose/platform/sort.h"

#include "interpose/platform/laws.h"

static void sift(struct cuf_pair *p, uint64_t root, uint64_t count)
{
	struct cuf_pair moving = p[root];
	for (uint64_t child; (child = 2 * root + 1) < count; root = child) {
		if (child + 1 < count && p[child + 1].key > p[child].key)
			child++;
		if (p[child].key <= moving.key)
			break;
		p[root] = p[child];
	}
	p[root] = moving;
}

void cuf_sort_pairs(struct cuf_pair *p, uint64_t count)
{
	for (uint64_t i = count / 2; i-- > 0;)
		sift(p, i, count);
	for (uint64_t end = count; end-- > 1;) {
		struct cuf_pair top = p[0];
		p[0] = p[end];
		p[end] = top;
		sift(p, 0, end);
	}
}
