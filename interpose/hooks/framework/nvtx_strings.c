/* SPDX-License-Identifier: Apache-2.0 */
/* A fixed table of handles by their hash. */
#include "interpose/hooks/framework/nvtx_strings.h"

#include <string.h>

enum { SLOTS = 4096, BUSY = 1, OWN_HANDLE_STEP = 16 };

static struct cuf_nvtx_string strings[SLOTS];
static uint64_t own_handles;

static struct cuf_nvtx_string *slot_for(uint64_t handle, int may_add)
{
	uint64_t home = handle * 0x9E3779B97F4A7C15ull >> 52;
	for (uint32_t i = 0; i < SLOTS; i++) {
		struct cuf_nvtx_string *s = &strings[(home + i) % SLOTS];
		uint64_t seen = __atomic_load_n(&s->handle, __ATOMIC_ACQUIRE);
		if (seen == handle)
			return s;
		if (!seen && !may_add)
			return NULL;
		if (!seen && __atomic_compare_exchange_n(&s->handle, &seen, BUSY, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			return s;
	}
	return NULL;
}

void *cuf_nvtx_string_keep(void *handle, const char *text, size_t bytes)
{
	uint64_t key = handle ? (uintptr_t)handle : __atomic_add_fetch(&own_handles, 1, __ATOMIC_RELAXED) * OWN_HANDLE_STEP;
	struct cuf_nvtx_string *s = slot_for(key, 1);
	if (!s)
		return handle;
	s->bytes = (uint32_t)(bytes < CUF_PHASE_NAME_BYTES ? bytes : CUF_PHASE_NAME_BYTES);
	memcpy(s->text, text, s->bytes);
	s->number = (uint32_t)(s - strings) + 1;
	__atomic_store_n(&s->handle, key, __ATOMIC_RELEASE);
	return (void *)(uintptr_t)key;
}

const struct cuf_nvtx_string *cuf_nvtx_string_of(const void *handle) { return handle ? slot_for((uintptr_t)handle, 0) : NULL; }

size_t cuf_nvtx_narrow(const wchar_t *wide, char *out, size_t room)
{
	size_t used = 0;
	for (; wide && *wide; wide++) {
		uint32_t c = (uint32_t)*wide;
		unsigned more = c < 0x80 ? 0 : c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
		if (used + 1 + more > room)
			break;
		out[used++] = (char)(more ? (0xff << (7 - more) & 0xff) | c >> 6 * more : c);
		while (more--)
			out[used++] = (char)(0x80 | (c >> 6 * more & 0x3f));
	}
	return used;
}
