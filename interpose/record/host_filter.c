/* SPDX-License-Identifier: Apache-2.0 */
#include "interpose/record/host_filter.h"

#include "interpose/platform/laws.h"

enum { SMALL_ENTRIES = 1 << CUF_HOST_FILTER_SMALL_BITS,
      LARGE_ENTRIES = 1 << CUF_HOST_FILTER_LARGE_BITS, EIGHT = 8 };

_Alignas(64) uint8_t cuf_host_filter_small[SMALL_ENTRIES] = { [0 ... SMALL_ENTRIES - 1] = 1 };
uint8_t cuf_host_filter_large[LARGE_ENTRIES];
static bool skipping;

/* Never below 0 and never away from 255. */
static void add_to(uint8_t *entry, int by)
{
	uint8_t seen = __atomic_load_n(entry, __ATOMIC_RELAXED);
	while (seen != UINT8_MAX && (by > 0 || seen))
		if (__atomic_compare_exchange_n(entry, &seen, (uint8_t)(seen + by), true,
						__ATOMIC_RELAXED, __ATOMIC_RELAXED))
			break;
}

static uint8_t *large_at(uint64_t addr)
{
	return &cuf_host_filter_large[cuf_host_filter_place(addr, CUF_HOST_FILTER_LARGE_BITS)];
}

static uint8_t *small_at(uint64_t addr)
{
	return cuf_host_filter_at((const void *)(uintptr_t)addr);
}

void cuf_host_filter_add(uint64_t addr)
{
	add_to(large_at(addr), 1);
	add_to(small_at(addr), 1);
}

void cuf_host_filter_remove(uint64_t addr)
{
	add_to(small_at(addr), -1);
	add_to(large_at(addr), -1);
}

/* Eight at a time where nothing was added yet: every program pays this at its start. */
void cuf_host_filter_begin_skipping(void)
{
	if (skipping)
		return;
	skipping = true;
	for (unsigned i = 0; i < SMALL_ENTRIES; i += EIGHT) {
		uint64_t ones = 0x0101010101010101u, *eight = (void *)&cuf_host_filter_small[i];
		if (__atomic_compare_exchange_n(eight, &ones, 0, false, __ATOMIC_RELAXED,
						__ATOMIC_RELAXED))
			continue;
		for (unsigned j = 0; j < EIGHT; j++)
			add_to(&cuf_host_filter_small[i + j], -1);
	}
}

void cuf_host_filter_clear(void)
{
	for (unsigned i = 0; i < SMALL_ENTRIES; i++)
		if (cuf_host_filter_small[i] != UINT8_MAX)
			cuf_host_filter_small[i] = !skipping;
	/* pages that were never touched stay so */
	for (unsigned i = 0; i < LARGE_ENTRIES; i++)
		if (cuf_host_filter_large[i])
			cuf_host_filter_large[i] = 0;
}
