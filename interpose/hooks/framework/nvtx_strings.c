/* SPDX-License-Identifier: Apache-2.0 */
/* A fixed hash table of handles, mapped at the first one: few programs have any. A slot is claimed
 * by its handle and published by storing it last. */
#include "interpose/hooks/framework/nvtx_strings.h"

#include <string.h>
#include <sys/mman.h>
#include "interpose/platform/sys.h"

enum { SLOTS = 4096, BUSY = 1, OWN_HANDLE_STEP = 16 };

static struct cuf_nvtx_string *table;
static uint64_t own_handles;

/* NULL: there is none. */
static struct cuf_nvtx_string *get_table(int may_map)
{
	struct cuf_nvtx_string *seen = __atomic_load_n(&table, __ATOMIC_ACQUIRE), *mapped;
	long at;
	if (seen || !may_map)
		return seen;
	at = cuf_sys_mmap(NULL, SLOTS * sizeof *table, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (cuf_sys_failed(at))
		return NULL;
	mapped = (struct cuf_nvtx_string *)at;
	if (__atomic_compare_exchange_n(&table, &seen, mapped, 0, __ATOMIC_ACQ_REL,
					__ATOMIC_ACQUIRE))
		return mapped;
	cuf_sys_munmap(mapped, SLOTS * sizeof *table);
	return seen;
}

/* The slot of this handle. With may_add, a free one is claimed for it. NULL: unknown, or full.
 * Fibonacci hashing: the upper 12 bits of the product select one of 4096 slots. */
static struct cuf_nvtx_string *slot_for(uint64_t handle, int may_add)
{
	uint64_t home = handle * 0x9E3779B97F4A7C15ull >> 52;
	struct cuf_nvtx_string *strings = get_table(may_add);
	for (uint32_t i = 0; strings && i < SLOTS; i++) {
		struct cuf_nvtx_string *string = &strings[(home + i) % SLOTS];
		uint64_t seen = __atomic_load_n(&string->handle, __ATOMIC_ACQUIRE);
		if (seen == handle)
			return string;
		if (seen)
			continue;
		if (!may_add)
			return NULL;
		if (__atomic_compare_exchange_n(&string->handle, &seen, BUSY, 0, __ATOMIC_ACQ_REL,
						__ATOMIC_RELAXED))
			return string;
	}
	return NULL;
}

/* Without another tool the handle is ours: a number that no pointer has. Returns the tool's handle
 * unchanged when the table is full; its strings are empty then, and counted. */
void *cuf_nvtx_string_keep(void *handle, const char *text, size_t bytes)
{
	uint64_t key = (uintptr_t)handle;
	struct cuf_nvtx_string *string;
	if (!handle)
		key = __atomic_add_fetch(&own_handles, 1, __ATOMIC_RELAXED) * OWN_HANDLE_STEP;
	string = slot_for(key, 1);
	if (!string) {
		cuf_note_dropped(CUF_LOST_CODES);
		return handle;
	}
	if (bytes > CUF_PHASE_NAME_BYTES)
		bytes = CUF_PHASE_NAME_BYTES;
	string->bytes = (uint32_t)bytes;
	memcpy(string->text, text, bytes);
	string->number = (uint32_t)(string - table) + 1;
	__atomic_store_n(&string->handle, key, __ATOMIC_RELEASE);
	return (void *)(uintptr_t)key;
}

/* The text is valid as long as the library is: slots are never reused. */
const struct cuf_nvtx_string *cuf_nvtx_string_of(const void *handle)
{
	if (!handle)
		return NULL;
	return slot_for((uintptr_t)handle, 0);
}

/* ---- UTF-8 ---- */

/* How many bytes follow the first one of a UTF-8 sequence. */
static unsigned bytes_after_first(uint32_t code_point)
{
	if (code_point < 0x80)
		return 0;
	if (code_point < 0x800)
		return 1;
	if (code_point < 0x10000)
		return 2;
	return 3;
}

/* Returns the bytes written. A character that does not fit whole ends the text. */
size_t cuf_nvtx_narrow(const wchar_t *wide, char *out, size_t room)
{
	size_t used = 0;
	for (; wide && *wide; wide++) {
		uint32_t code_point = (uint32_t)*wide;
		unsigned more = bytes_after_first(code_point);
		if (used + 1 + more > room)
			break;
		if (more)
			out[used++] = (char)((0xff << (7 - more) & 0xff) | code_point >> 6 * more);
		else
			out[used++] = (char)code_point;
		while (more--)
			out[used++] = (char)(0x80 | (code_point >> 6 * more & 0x3f));
	}
	return used;
}
