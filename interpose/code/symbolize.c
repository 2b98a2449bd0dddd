/* SPDX-License-Identifier: Apache-2.0 */
/* Collects addresses, sorts them, and passes once over the symbol table of each object that holds some. */
#include "interpose/code/symbolize.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include "interpose/platform/elf_symbol.h"
#include "interpose/store/meta.h"
#include "interpose/platform/sort.h"
#include "interpose/store/recording.h"
#include "interpose/platform/sys.h"
#include "interpose/platform/laws.h"

enum { ADDRESSES_MAX = 8192, KNOWN_SLOTS = 16384, SYMBOLS_MAX = 2000000 };

/* key: return address; value: address of its name in the object's string table, 0 not found */
static struct table {
	struct cuf_pair found[ADDRESSES_MAX];
	uint64_t known[KNOWN_SLOTS]; /* addresses already written or looked for */
} *table;
static unsigned found_count, known_count;
static uint64_t symbols_left;
static uint32_t taken;

#if defined __GLIBC__
extern int _dl_find_object(void *address, struct dl_find_object *result) __attribute__((weak));
#endif

void cuf_symbolize_atfork_child(void)
{
	taken = known_count = 0;
	if (table)
		memset(table->known, 0, sizeof table->known);
}

static bool remember(uint64_t address)
{
	uint64_t at = address * 0x9E3779B97F4A7C15ull >> 50;
	for (unsigned i = 0; i < KNOWN_SLOTS; i++, at++) {
		uint64_t *slot = &table->known[at % KNOWN_SLOTS];
		if (*slot == address || known_count > KNOWN_SLOTS / 2)
			return false;
		if (!*slot) {
			*slot = address;
			known_count++;
			return true;
		}
	}
	return false;
}

static void collect(uint64_t first, uint64_t count)
{
	for (uint64_t i = first; i < first + count && found_count < ADDRESSES_MAX; i++) {
		uint64_t address = cuf_recording.frames[i];
		if (!cuf_frame_is_python(address) && remember(address))
			table->found[found_count++] = (struct cuf_pair){ address, 0 };
	}
}

static void collect_stack(uint32_t id)
{
	const struct cuf_stack *stack;
	unsigned depth;
	if (!id || id - 1 > cuf_recording.stack_mask)
		return;
	stack = &cuf_recording.stacks[id - 1];
	depth = __atomic_load_n(&stack->depth, __ATOMIC_ACQUIRE);
	collect(stack->first, depth);
}

static unsigned first_at_or_after(uint64_t address, unsigned from, unsigned to)
{
	while (from < to) {
		unsigned middle = from + (to - from) / 2;
		if (table->found[middle].key < address)
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}

/* Names the addresses [from, to), which all lie in this object. A return address belongs to the call before it. */
static void name_in_object(const struct link_map *map, unsigned from, unsigned to)
{
	const struct cuf_elf_symbols s = cuf_elf_symbols_all(map->l_addr, map->l_ld);
	for (uint64_t i = 0; s.at && i < s.count && symbols_left; i++, symbols_left--) {
		const ElfW(Sym) *symbol = &s.at[i];
		uintptr_t start = map->l_addr + symbol->st_value;
		if ((symbol->st_info & 15) != STT_FUNC || !symbol->st_shndx || !symbol->st_size)
			continue;
		for (unsigned n = first_at_or_after(start + 1, from, to); n < to && table->found[n].key - 1 < start + symbol->st_size; n++)
			table->found[n].value = (uintptr_t)(s.names + symbol->st_name);
	}
}

static void name_all(void)
{
	struct dl_find_object object;
	if (!_dl_find_object)
		return;
	cuf_sort_pairs(table->found, found_count);
	for (unsigned from = 0, to; from < found_count; from = to) {
		to = from + 1;
		if (_dl_find_object((void *)(table->found[from].key - 1), &object))
			continue;
		while (to < found_count && table->found[to].key - 1 < (uintptr_t)object.dlfo_map_end)
			to++;
		if (object.dlfo_link_map && object.dlfo_link_map->l_ld)
			name_in_object(object.dlfo_link_map, from, to);
	}
	for (unsigned n = 0; n < found_count; n++) {
		const char *name = (const char *)table->found[n].value;
		if (name && *name)
			cuf_meta_text(CUF_META_FUNCTION, table->found[n].key, name, strnlen(name, 1024));
	}
}

static bool begin(void)
{
	if (__atomic_exchange_n(&taken, 1, __ATOMIC_ACQUIRE))
		return false;
	if (!table) {
		long at = cuf_sys_mmap(NULL, sizeof *table, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (cuf_sys_failed(at))
			return false; /* stays taken: not asked again */
		table = (struct table *)at;
	}
	found_count = 0;
	symbols_left = SYMBOLS_MAX;
	return true;
}

void cuf_symbolize_stacks(const uint32_t *stacks, unsigned count)
{
	if (!begin())
		return;
	for (unsigned i = 0; i < count; i++)
		collect_stack(stacks[i]);
	name_all();
	__atomic_store_n(&taken, 0, __ATOMIC_RELEASE);
}

/* Not by way of the index: most of its pages were never touched, and to look at them all would cost the program's end milliseconds. */
void cuf_symbolize_all_stacks(void)
{
	uint64_t used = __atomic_load_n(&cuf_recording.header->frames_used, __ATOMIC_ACQUIRE);
	if (!begin())
		return;
	collect(0, used < cuf_recording.frame_count ? used : cuf_recording.frame_count);
	name_all();
	__atomic_store_n(&taken, 0, __ATOMIC_RELEASE);
}
