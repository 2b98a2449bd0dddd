/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A set of hashes. A name's number is the place of its hash, and whoever put the hash there writes
 * the name.
 */
#include "interpose/incident/phase_names.h"

#include <stdbool.h>
#include <string.h>
#include "interpose/platform/at_fork_child.h"
#include "interpose/process/redact.h"
#include "interpose/store/dropped.h"
#include "interpose/store/meta.h"
#include "interpose/platform/say.h"
#include "interpose/platform/laws.h"

enum { SLOTS = 2048, NAMES_MAX = 1024,
      META_SHARE = 8 /* of META: modules and functions need more */ };

static uint64_t hashes[SLOTS]; /* 0: free */
static uint32_t names;
static uint64_t name_bytes;    /* of META */

/* How full the table is, or its share of META, in 1/NAMES_MAX. */
static uint64_t fullness(void)
{
	uint64_t count = __atomic_load_n(&names, __ATOMIC_RELAXED);
	uint64_t bytes = __atomic_load_n(&name_bytes, __ATOMIC_RELAXED) * META_SHARE;
	uint64_t share = bytes * NAMES_MAX / (cuf_recording.meta_bytes + 1);
	return count > share ? count : share;
}

static void forget_names(void)
{
	memset(hashes, 0, sizeof hashes);
	names = 0;
	name_bytes = 0;
}
CUF_AT_FORK_CHILD(forget_names);

/* The builtin, because a call of memcpy for eight bytes costs more than the rest of the round. */
static uint64_t mix(uint64_t hash, const char *s, size_t bytes)
{
	uint64_t word, left = 0;
	for (; bytes >= sizeof word; s += sizeof word, bytes -= sizeof word) {
		__builtin_memcpy(&word, s, sizeof word);
		hash = (hash ^ word) * 0x9E3779B97F4A7C15ull;
		hash ^= hash >> 29;
	}
	while (bytes)
		left = left << 8 | (uint8_t)s[--bytes];
	hash = (hash ^ left) * 0xBF58476D1CE4E5B9ull;
	return hash ^ hash >> 31;
}

/* Copies a name with "#" for each run of digits. Returns its length. */
static size_t fold_digits(char *to, const char *s, size_t bytes)
{
	size_t used = 0;
	for (size_t i = 0; i < bytes; i++) {
		bool digit = s[i] >= '0' && s[i] <= '9';
		if (!digit)
			to[used++] = s[i];
		else if (!used || to[used - 1] != '#')
			to[used++] = '#';
	}
	return used;
}

/* Into META, as "domain: text". */
static void write_name(uint32_t id, const char *domain, size_t domain_bytes, const char *text,
		       size_t bytes)
{
	CUF_TEXT(name, 2 * CUF_PHASE_NAME_BYTES + 4);
	if (domain_bytes) {
		cuf_text_bytes(&name, domain, domain_bytes);
		cuf_text_add(&name, ": ");
	}
	cuf_redact_text(&name, SECRETS_WORDS, text, bytes);
	cuf_meta_text(CUF_META_PHASE, id, name.at, name.used);
	__atomic_fetch_add(&names, 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&name_bytes, sizeof(struct cuf_meta) + name.used, __ATOMIC_RELAXED);
}

void cuf_phase_name_add(struct cuf_text *text, uint32_t id)
{
	enum { SHOWN = 64 };
	uint64_t end = cuf_recording.header->meta_used;
	if (end > cuf_recording.meta_bytes)
		end = cuf_recording.meta_bytes;
	for (uint64_t at = 0; id && at + sizeof(struct cuf_meta) <= end;) {
		const struct cuf_meta *meta = (const void *)(cuf_recording.meta + at);
		if (!meta->bytes)
			return;
		if (__atomic_load_n(&meta->type, __ATOMIC_ACQUIRE) == CUF_META_PHASE &&
		    meta->number == id) {
			cuf_text_printable(text, (const char *)(meta + 1),
					   meta->text_bytes < SHOWN ? meta->text_bytes : SHOWN);
			return;
		}
		at += meta->bytes;
	}
}

/* The number of this hash; 0: it has none. *is_new: it got one now. */
static uint32_t find_number(uint64_t hash, bool may_add, bool *is_new)
{
	for (uint32_t i = 0, at = (uint32_t)(hash >> 32); i < SLOTS; i++, at++) {
		uint64_t *slot = &hashes[at % SLOTS],
			seen = __atomic_load_n(slot, __ATOMIC_RELAXED);
		if (!seen) {
			if (!may_add)
				return 0;
			*is_new = __atomic_compare_exchange_n(slot, &seen, hash, false,
							      __ATOMIC_RELAXED,
							      __ATOMIC_RELAXED);
		}
		if (*is_new || seen == hash)
			return at % SLOTS + 1;
	}
	return 0;
}

uint32_t cuf_phase_name(const char *domain, size_t domain_bytes, const char *text, size_t bytes)
{
	char folded[CUF_PHASE_NAME_BYTES];
	uint64_t seed, hash;
	uint32_t id;
	bool is_new = false;
	if (bytes > CUF_PHASE_NAME_BYTES)
		bytes = CUF_PHASE_NAME_BYTES;
	if (domain_bytes > CUF_PHASE_NAME_BYTES)
		domain_bytes = CUF_PHASE_NAME_BYTES;
	seed = mix(domain_bytes, domain, domain_bytes);
	hash = mix(seed + bytes, text, bytes) | 1;
	id = find_number(hash, fullness() < NAMES_MAX / 2, &is_new);
	if (!id) {
		bytes = fold_digits(folded, text, bytes);
		text = folded;
		hash = mix(seed + bytes, text, bytes) | 1;
		id = find_number(hash, fullness() < NAMES_MAX, &is_new);
	}
	if (is_new)
		write_name(id, domain, domain_bytes, text, bytes);
	else if (!id)
		cuf_count_dropped(CUF_LOST_CODES);
	return id;
}
