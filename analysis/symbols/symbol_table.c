/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One sorted array of functions per module. libdwfl finds and reads the tables, mini debug
 * information included. Its own search, dwfl_module_addrinfo, is linear: it takes over a
 * millisecond in a library of the size of LLVM.
 */
#include "analysis/symbols/symbol_table.h"

#include <libiberty/libiberty.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include "analysis/base/numbers.h"

/* Real nesting is shallow. In a hostile file every range could be inside every other, which would
 * make each look-up linear. */
#define NESTING_MAX 64

void address_ranges_add(struct address_ranges *ranges, uint64_t start, uint64_t end, uint64_t value)
{
	if (start >= end || ranges->count >= UINT32_MAX - 1)
		return;
	if (ranges->count == ranges->capacity) {
		ranges->capacity = 2 * ranges->capacity + 64;
		ranges->list = xrealloc(ranges->list, ranges->capacity * sizeof *ranges->list);
	}
	ranges->list[ranges->count++] =
		(struct address_range){ .start = start, .end = end, .value = value };
}

/* Compares the value last: qsort is not stable, and results must be reproducible. */
static int compare(const void *a, const void *b)
{
	const struct address_range *left = a, *right = b;

	if (left->start != right->start)
		return compare_numbers(left->start, right->start);
	if (left->end != right->end)
		return compare_numbers(right->end, left->end);
	return compare_numbers(left->value, right->value);
}

/* Links each range to the nearest earlier one that it starts in. All candidates for that are on the
 * chain of the range before it, so the links cost amortised constant time. */
void address_ranges_sort(struct address_ranges *ranges)
{
	struct address_range *list = ranges->list;

	if (!ranges->count)
		return;
	qsort(list, ranges->count, sizeof *list, compare);
	list[0].around = 0;
	for (size_t i = 1; i < ranges->count; i++) {
		uint32_t around = (uint32_t)i; /* index + 1 of the one before */
		while (around && list[around - 1].end <= list[i].start)
			around = list[around - 1].around;
		list[i].around = around;
	}
}

const struct address_range *address_ranges_find(const struct address_ranges *ranges,
						uint64_t address)
{
	size_t low = 0, high = ranges->count;
	uint32_t at;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (ranges->list[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	at = (uint32_t)low; /* index + 1 of the last range that starts at or before the address */
	for (unsigned steps = 0; at && steps < NESTING_MAX; steps++) {
		if (address < ranges->list[at - 1].end)
			return &ranges->list[at - 1];
		at = ranges->list[at - 1].around;
	}
	return NULL;
}

void address_ranges_fini(struct address_ranges *ranges)
{
	free(ranges->list);
	*ranges = (struct address_ranges){ 0 };
}

struct symbol {
	uint64_t start, end; /* end 0: the table gives no size */
	uint64_t limit;      /* where the section ends: as far as an unsized function can go */
	const char *name;
	unsigned rank;       /* among names of one address the lowest is shown */
};

/* Prefers malloc to __libc_malloc, exported names to local ones, functions to labels. */
static unsigned name_rank(const GElf_Sym *symbol, const char *name)
{
	unsigned type = GELF_ST_TYPE(symbol->st_info), binding = GELF_ST_BIND(symbol->st_info);
	unsigned underscores = (unsigned)strspn(name, "_");

	if (strncmp(name, "_Z", 2) == 0 || strncmp(name, "_R", 2) == 0)
		underscores = 0;
	return (type == STT_NOTYPE) << 16 | (binding == STB_LOCAL) << 15 |
	       (least_of(underscores, 255)) << 4 | (binding == STB_WEAK) << 1;
}

/* $x and $d mark code and data for disassemblers; .L are labels that a compiler left. */
static bool is_function_name(const char *name)
{
	return name && *name && *name != '$' && strncmp(name, ".L", 2) != 0;
}

/* Reads one symbol; false: it is no function. */
static bool symbol_read(Dwfl_Module *module, int index, struct symbol *out)
{
	GElf_Sym symbol;
	GElf_Addr address;
	GElf_Word section_index;
	Elf *elf;
	Dwarf_Addr bias;
	GElf_Shdr shdr;
	const char *name = dwfl_module_getsym_info(module, index, &symbol, &address, &section_index,
						   &elf, &bias);
	unsigned type;

	if (!is_function_name(name) || section_index == SHN_UNDEF)
		return false;
	type = GELF_ST_TYPE(symbol.st_info);
	if (type != STT_FUNC && type != STT_GNU_IFUNC && type != STT_NOTYPE)
		return false;
	*out = (struct symbol){
		.start = address, .name = name, .rank = name_rank(&symbol, name), .limit = address
	};
	if (type != STT_NOTYPE && symbol.st_size) {
		out->end =
			address + least_of(symbol.st_size, UINT64_MAX - address);
		return true;
	}
	if (!elf || section_index >= SHN_LORESERVE ||
	    !gelf_getshdr(elf_getscn(elf, section_index), &shdr))
		return false;
	if (!(shdr.sh_flags & SHF_EXECINSTR))
		return false;
	if (symbol.st_size)
		out->end = address + symbol.st_size;
	if (shdr.sh_addr + shdr.sh_size + bias > address)
		out->limit = shdr.sh_addr + shdr.sh_size + bias;
	return true;
}

/* A total order, so that the same name is displayed on every machine. */
static int compare_symbols(const void *a, const void *b)
{
	const struct symbol *left = a, *right = b;
	size_t a_bytes, b_bytes;

	if (left->start != right->start)
		return compare_numbers(left->start, right->start);
	if (left->rank != right->rank)
		return compare_numbers(left->rank, right->rank);
	a_bytes = strlen(left->name);
	b_bytes = strlen(right->name);
	if (a_bytes != b_bytes)
		return compare_numbers(a_bytes, b_bytes);
	return strcmp(left->name, right->name);
}

/* Keeps one entry for each address: the best name with the largest size. Returns the number of
 * entries. */
static size_t drop_aliases(struct symbol *list, size_t count)
{
	size_t kept = 0;

	for (size_t i = 0; i < count; i++) {
		if (kept && list[kept - 1].start == list[i].start) {
			if (list[kept - 1].end < list[i].end)
				list[kept - 1].end = list[i].end;
			continue;
		}
		list[kept++] = list[i];
	}
	return kept;
}

/* A function without a size (assembly) ends at the next symbol. Inside a sized function such a
 * symbol is only a label. */
static void collect_symbols(struct symbol_table *table, const struct symbol *list, size_t count)
{
	uint64_t sized_until = 0;

	for (size_t i = 0; i < count; i++) {
		uint64_t end = list[i].end;
		if (end) {
			if (end > sized_until)
				sized_until = end;
		} else {
			if (list[i].start < sized_until)
				continue;
			end = list[i].limit;
			if (i + 1 < count && list[i + 1].start < end)
				end = list[i + 1].start;
		}
		address_ranges_add(&table->functions, list[i].start, end, (uintptr_t)list[i].name);
	}
	address_ranges_sort(&table->functions);
}

void symbol_table_load(struct symbol_table *table, Dwfl_Module *module)
{
	int total = dwfl_module_getsymtab(module);
	struct symbol *list;
	size_t count = 0;

	if (total <= 0)
		return;
	list = xmalloc((size_t)total * sizeof *list);
	for (int i = 1; i < total; i++)
		if (symbol_read(module, i, &list[count]))
			count++;
	qsort(list, count, sizeof *list, compare_symbols);
	count = drop_aliases(list, count);
	collect_symbols(table, list, count);
	free(list);
}

const char *symbol_table_find(const struct symbol_table *table, uint64_t elf_address)
{
	const struct address_range *range = address_ranges_find(&table->functions, elf_address);

	if (!range)
		return NULL;
	return (const char *)(uintptr_t)range->value;
}

void symbol_table_fini(struct symbol_table *table) { address_ranges_fini(&table->functions); }
