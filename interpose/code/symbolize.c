/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collects addresses, sorts them, and passes once over the symbol table of each object that holds
 * some of them. The objects of stacks of the past are not in use by this thread, so others may
 * close them during the pass.
 */
#include "interpose/code/symbolize.h"

#include <elf.h>
#include <link.h>
#include <stdbool.h>
#include <string.h>
#include "interpose/code/module_symbols.h"
#include "interpose/code/modules.h"
#include "interpose/objects/loaded.h"
#include "interpose/platform/at_fork_child.h"
#include "interpose/platform/guarded_copy.h"
#include "interpose/platform/side_stack.h"
#include "interpose/platform/sort.h"
#include "interpose/store/meta.h"
#include "interpose/store/recording.h"
#include "interpose/platform/laws.h"

enum {
	ADDRESSES_MAX = 8192,
	OBJECTS_MAX = 1024,
	SEEN_SLOTS = 16384,
	SYMBOLS_MAX = 2000000,
	NAME_BYTES_MAX = 1024
};

static struct table {
	/*
	 * key: return address; value: address of its name in the object's string table, 0: not
	 * found
	 */
	struct cuf_pair found[ADDRESSES_MAX];
	/* addresses that were looked up before, so each is written once a recording */
	uint64_t seen[SEEN_SLOTS];
	/* key: bytes of its names; value: the first of the sorted addresses that are in it */
	struct cuf_pair objects[OBJECTS_MAX];
	struct cuf_symbol_pieces pieces;
	char name[NAME_BYTES_MAX];
} table; /* no map is made at an exit */
static unsigned found_count, seen_count;
/* how many more symbols this request may read */
static uint64_t symbols_left;
static uint32_t in_use;

/* The child's recording gets the names again. */
static void forget_seen(void)
{
	if (seen_count) /* else its pages were never touched */
		memset(table.seen, 0, sizeof table.seen);
	in_use = seen_count = 0;
}
CUF_AT_FORK_CHILD(forget_seen);

/* ---- collecting addresses ---- */

/*
 * false: seen before, or the table is half full. Once another object is loaded there, an address is
 * another one.
 */
static bool mark_seen(uint64_t address)
{
	address ^= cuf_modules_epoch_going(address - 1) << 1;
	uint64_t at = address * 0x9E3779B97F4A7C15ull >> 50;

	for (unsigned i = 0; i < SEEN_SLOTS; i++, at++) {
		uint64_t *slot = &table.seen[at % SEEN_SLOTS];

		if (*slot == address || seen_count > SEEN_SLOTS / 2)
			return false;
		if (!*slot) {
			*slot = address;
			seen_count++;
			return true;
		}
	}
	return false;
}

static void collect_address(uint64_t address)
{
	if (found_count < ADDRESSES_MAX && !cuf_frame_is_python(address) &&
	    !cuf_frame_is_creator(address) && mark_seen(address))
		table.found[found_count++] = (struct cuf_pair){ address, 0 };
}

static void collect_frames(uint64_t first, uint64_t count)
{
	for (uint64_t i = first; i < first + count; i++)
		collect_address(cuf_recording.frames[i]);
}

static void collect_stack(uint32_t id)
{
	const struct cuf_stack *stack;

	if (!id || id - 1 > cuf_recording.stack_mask)
		return;
	stack = &cuf_recording.stacks[id - 1];
	/* depth is the commit: load it before what it publishes */
	unsigned depth = __atomic_load_n(&stack->depth, __ATOMIC_ACQUIRE);
	collect_frames(stack->first, depth);
}

/* ---- finding names ---- */

/* The first of the sorted addresses [from, to) that is not below this one. */
static unsigned lower_bound(uint64_t address, unsigned from, unsigned to)
{
	while (from < to) {
		unsigned middle = from + (to - from) / 2;

		if (table.found[middle].key < address)
			from = middle + 1;
		else
			to = middle;
	}
	return from;
}

/* The part of the sorted addresses that lies in one object. */
struct search {
	uintptr_t bias;
	unsigned from, to;
};

/* A return address belongs to the call before it. */
static void match_symbol(const ElfW(Sym) *symbol, uintptr_t names, void *context)
{
	const struct search *search = context;
	uintptr_t start = search->bias + symbol->st_value, end = start + symbol->st_size;
	unsigned n;

	if ((symbol->st_info & 15) != STT_FUNC || !symbol->st_shndx || !symbol->st_size)
		return;
	n = lower_bound(start + 1, search->from, search->to);
	for (; n < search->to && table.found[n].key - 1 < end; n++)
		table.found[n].value = names + symbol->st_name;
}

/* Another thread may close the object meanwhile, and then its link map is gone too. */
static bool is_unchanged(uint64_t address, const struct cuf_loaded *before, uint64_t generation)
{
	struct cuf_loaded now;

	return cuf_loaded_at(address - 1, &now) && now.map == before->map &&
	       now.start == before->start && cuf_modules_generation() == generation;
}

/* The object that holds this address, with the public part of its link map. */
static bool find_object(uint64_t address, struct cuf_loaded *object, struct link_map *map)
{
	return cuf_loaded_at(address - 1, object) &&
	       cuf_guarded_copy(map, (uintptr_t)object->map, sizeof *map) && map->l_ld;
}

/* The first of the sorted addresses from here on that is not in this object. */
static unsigned end_of(const struct cuf_loaded *object, unsigned from)
{
	while (from < found_count && table.found[from].key - 1 < object->end)
		from++;
	return from;
}

/* Names the addresses from here on that are in one object. */
static void name_in_object(unsigned from)
{
	uint64_t generation = cuf_modules_generation();
	struct search search = { .from = from };
	struct cuf_loaded object;
	struct link_map map;

	if (!symbols_left || !find_object(table.found[from].key, &object, &map))
		return;
	/* the names belong to the object that META has there */
	cuf_modules_note_going(table.found[from].key - 1);
	search.to = end_of(&object, from);
	search.bias = map.l_addr;
	symbols_left -= cuf_module_symbols(&table.pieces, map.l_addr, (uintptr_t)map.l_ld,
					   symbols_left, match_symbol, &search);
	for (unsigned n = from; n < search.to; n++) {
		uint64_t address = table.found[n].key;
		size_t bytes = 0;

		if (table.found[n].value)
			bytes = cuf_guarded_copy_part(table.name, table.found[n].value,
						      NAME_BYTES_MAX);
		bytes = strnlen(table.name, bytes);
		if (bytes && is_unchanged(address, &object, generation))
			cuf_meta_text(CUF_META_FUNCTION, address, table.name, bytes);
	}
}

/* Small tables first: one of a hundred thousand names would use up what the others need. */
static void name_all(void *unused)
{
	unsigned objects = 0;

	cuf_sort_pairs(table.found, found_count);
	for (unsigned from = 0, to; from < found_count && objects < OBJECTS_MAX; from = to) {
		struct cuf_loaded object;
		struct link_map map;

		to = from + 1;
		if (!find_object(table.found[from].key, &object, &map))
			continue;
		to = end_of(&object, to);
		table.objects[objects++] = (struct cuf_pair){
			cuf_module_name_bytes(&table.pieces, map.l_addr, (uintptr_t)map.l_ld), from
		};
	}
	cuf_sort_pairs(table.objects, objects);
	for (unsigned i = 0; i < objects; i++)
		name_in_object((unsigned)table.objects[i].value);
}

/* ---- requests ---- */

/* false: another request is being served. */
static bool begin_request(uint64_t symbols_max)
{
	if (__atomic_exchange_n(&in_use, 1, __ATOMIC_ACQUIRE))
		return false;
	found_count = 0;
	symbols_left = symbols_max;
	return true;
}

static void end_request(void)
{
	cuf_on_side_stack(name_all, NULL);
	__atomic_store_n(&in_use, 0, __ATOMIC_RELEASE);
}

void cuf_symbolize_stacks(const uint32_t *stacks, unsigned count)
{
	if (!begin_request(SYMBOLS_MAX))
		return;
	for (unsigned i = 0; i < count; i++)
		collect_stack(stacks[i]);
	end_request();
}

static uint64_t frames_used(void)
{
	uint64_t used = __atomic_load_n(&cuf_recording.header->frames_used, __ATOMIC_ACQUIRE);

	return used < cuf_recording.frame_count ? used : cuf_recording.frame_count;
}

/*
 * Reads the frames, not the index: most pages of the index were never touched, and a look at all
 * of them takes milliseconds.
 */
void cuf_symbolize_all_stacks(uint64_t most)
{
	uint64_t used = frames_used();

	if (!begin_request(most < SYMBOLS_MAX ? most : SYMBOLS_MAX))
		return;
	collect_frames(0, used < most ? used : most);
	end_request();
}

/* A handle of dlopen is the object's link map. false: this is none, or it is not loaded. */
static bool object_of_handle(void *handle, struct cuf_object *object)
{
	struct cuf_loaded found;
	struct link_map map;

	return cuf_guarded_copy(&map, (uintptr_t)handle, sizeof map) && map.l_ld &&
	       cuf_loaded_at((uintptr_t)map.l_ld, &found) && found.map == handle &&
	       cuf_object_find((uintptr_t)map.l_ld, object);
}

/* Only frames that came since the last time are looked at: programs may close a handle often. */
void cuf_symbolize_before_close(void *handle)
{
	uint64_t used = frames_used(), from;
	struct cuf_object object;

	if (!object_of_handle(handle, &object) || !cuf_modules_searched(&object, used, &from) ||
	    from >= used || !begin_request(SYMBOLS_MAX))
		return;
	for (; from < used; from++)
		if (cuf_recording.frames[from] - 1 - object.start < object.end - object.start)
			collect_address(cuf_recording.frames[from]);
	end_request();
}
