/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the host ledger once, from its first entry to its last. A large one does not stay in
 * memory: pages that were passed are released.
 *
 * Contract: start with *at = 0. False: at the end; then no page of the ledger is held. Entries that
 * are empty are skipped, and those that a thread was writing when the program ended.
 */
#pragma once

#include <string.h>
#include "analysis/recording/reader.h"

/* Entries after which pages are released. */
enum { HOST_LEDGER_PART = 1 << 17 };

static inline bool host_ledger_next(const struct reader *reader, uint64_t *at,
				    struct cuf_host_block *entry)
{
	const struct reader_section *ledger = &reader->sections[CUF_SEC_HOST_LEDGER];
	uint64_t part = HOST_LEDGER_PART * (uint64_t)ledger->stride; /* bytes */

	while (*at < ledger->count) {
		const uint8_t *from = ledger->at + *at * ledger->stride;
		uint64_t addr;

		if (*at && *at % HOST_LEDGER_PART == 0)
			reader_drop_range(reader, from - part, part);
		++*at;
		memcpy(entry, from, sizeof *entry);
		addr = cuf_host_addr(entry->word0);
		if (addr && addr != CUF_KEY_BUSY && entry->word0 != CUF_KEY_BUSY)
			return true;
	}
	reader_drop(reader, CUF_SEC_HOST_LEDGER);
	return false;
}
