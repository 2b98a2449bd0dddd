/* SPDX-License-Identifier: Apache-2.0 */
/* mimalloc's books: what it took from the system. It counts no more than that unless it was built to, and says nothing then. */
#include "interpose/hooks/malloc/allocator_books.h"

typedef void (*process_info_fn)(size_t *elapsed_ms, size_t *user_ms, size_t *system_ms, size_t *rss_bytes, size_t *rss_peak_bytes,
				size_t *commit_bytes, size_t *commit_peak_bytes, size_t *faults);

bool cuf_books_mimalloc(const struct cuf_allocator *allocator, enum cuf_moment moment, struct cuf_text *text)
{
	process_info_fn info = cuf_allocator_function(allocator, "mi_process_info");
	size_t commit_bytes = 0;
	if (info)
		info(NULL, NULL, NULL, NULL, NULL, &commit_bytes, NULL, NULL);
	if (commit_bytes)
		cuf_books_add(text, "system_bytes", commit_bytes);
	return commit_bytes != 0;
}

void cuf_version_mimalloc(const struct cuf_allocator *allocator, struct cuf_text *text)
{
	int (*version)(void) = cuf_allocator_function(allocator, "mi_version");
	int number = version ? version() : 0; /* 212 is 2.1.2 */
	cuf_text_number(text, (uint64_t)number / 100);
	cuf_text_add(text, ".");
	cuf_text_number(text, (uint64_t)number / 10 % 10);
	cuf_text_add(text, ".");
	cuf_text_number(text, (uint64_t)number % 10);
}
