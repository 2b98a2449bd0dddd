/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mimalloc's statistics: what it allocated from the system. It counts no more unless it was built
 * to, and then it reports nothing through this interface.
 */
#include "interpose/hooks/malloc/allocator_stats.h"

typedef void (*process_info_fn)(size_t *elapsed_ms, size_t *user_ms, size_t *system_ms,
				size_t *rss_bytes, size_t *rss_peak_bytes, size_t *commit_bytes,
				size_t *commit_peak_bytes, size_t *faults);

/* commit_bytes is what mimalloc has made accessible. NULL skips the other figures. */
bool cuf_stats_mimalloc(const struct cuf_allocator *allocator, struct cuf_text *text)
{
	process_info_fn process_info = cuf_allocator_function(allocator, "mi_process_info");
	size_t commit_bytes = 0;
	if (process_info)
		process_info(NULL, NULL, NULL, NULL, NULL, &commit_bytes, NULL, NULL);
	if (commit_bytes)
		cuf_stats_add(text, "system_bytes", commit_bytes);
	return commit_bytes != 0;
}

/* One decimal digit each for the minor and the patch number. */
void cuf_version_mimalloc(const struct cuf_allocator *allocator, struct cuf_text *text)
{
	int (*version)(void) = cuf_allocator_function(allocator, "mi_version");
	uint64_t number = 0; /* 212 is 2.1.2 */
	if (version)
		number = (uint64_t)version();
	cuf_text_number(text, number / 100);
	cuf_text_add(text, ".");
	cuf_text_number(text, number / 10 % 10);
	cuf_text_add(text, ".");
	cuf_text_number(text, number % 10);
}
