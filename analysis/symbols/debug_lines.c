/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DWARF through libdw. Units are found by their ranges, since clang and rustc do not write
 * .debug_aranges. Functions are found by an index of the unit, since dwarf_getscopes walks the
 * whole unit for every address.
 */
#include "analysis/symbols/debug_lines.h"

#include <dwarf.h>
#include <libiberty/libiberty.h>
#include <stdbool.h>
#include <stdlib.h>

/* Limits that no compiler reaches. In a hostile file sibling links can lead through the same
 * entries again and again. */
#define TREE_DEPTH_MAX 128
#define UNIT_ENTRIES_MAX (32u << 20)
#define CHAIN_ENTRIES_MAX (1u << 20)
#define RANGES_MAX (1u << 20)

struct debug_unit {
	Dwarf_Die lines; /* root of the unit: has the line table */
	Dwarf_Die tree;  /* root of the functions: the same, or that of the .dwo */
	bool indexed;
	struct address_ranges functions; /* value: offset of the subprogram's entry */
};

static void ranges_collect(Dwarf_Die *die, struct address_ranges *into, uint64_t value)
{
	Dwarf_Addr base, start, end;
	ptrdiff_t next = 0;

	/* linkers leave 0 or 1 for functions that they dropped */
	for (unsigned i = 0;
	     i < RANGES_MAX && (next = dwarf_ranges(die, next, &base, &start, &end)) > 0; i++)
		if (start > 1)
			address_ranges_add(into, start, end, value);
}

/* A unit without ranges has no code, so it is not kept. */
static void unit_add(struct debug_lines *lines, Dwarf_Die *root, Dwarf_Die *split)
{
	struct debug_unit *unit;
	size_t ranges_before = lines->ranges.count;

	ranges_collect(root, &lines->ranges, lines->unit_count);
	if (lines->ranges.count == ranges_before)
		return;
	if (lines->unit_count == lines->unit_capacity) {
		lines->unit_capacity = 2 * lines->unit_capacity + 64;
		lines->units = xrealloc(lines->units, lines->unit_capacity * sizeof *lines->units);
	}
	unit = &lines->units[lines->unit_count++];
	*unit = (struct debug_unit){ .lines = *root, .tree = *root };
	if (split->addr)
		unit->tree = *split;
}

void debug_lines_open(struct debug_lines *lines, Dwfl_Module *module)
{
	Dwarf *dwarf = dwfl_module_getdwarf(module, &lines->bias);
	Dwarf_CU *unit = NULL;
	const char *file = NULL;
	Dwarf_Die root;
	uint8_t type;

	dwfl_module_info(module, NULL, NULL, NULL, NULL, NULL, &file, NULL);
	while (dwarf && dwarf_get_units(dwarf, unit, &unit, NULL, &type, &root, NULL) == 0) {
		Dwarf_Die split = { 0 };
		if (type != DW_UT_compile && type != DW_UT_skeleton)
			continue;
		if (debug_split_is_safe(&root, file))
			dwarf_cu_info(unit, NULL, NULL, NULL, &split, NULL, NULL, NULL);
		unit_add(lines, &root, &split);
	}
	address_ranges_sort(&lines->ranges);
}

static bool may_hold_functions(int tag)
{
	switch (tag) {
	case DW_TAG_namespace:
	case DW_TAG_module:
	case DW_TAG_class_type:
	case DW_TAG_structure_type:
	case DW_TAG_union_type:
	case DW_TAG_subprogram: case DW_TAG_lexical_block:
		return true;
	default:
		return false;
	}
}

/* Functions can be nested in namespaces, classes and functions; a budget bounds the walk. */
static void functions_collect(struct debug_unit *unit, Dwarf_Die *parent, unsigned depth,
			      unsigned *budget)
{
	Dwarf_Die die;

	if (depth > TREE_DEPTH_MAX || dwarf_child(parent, &die) != 0)
		return;
	do {
		int tag = dwarf_tag(&die);
		if (!*budget)
			return;
		--*budget;
		if (tag == DW_TAG_subprogram)
			ranges_collect(&die, &unit->functions, dwarf_dieoffset(&die));
		if (may_hold_functions(tag))
			functions_collect(unit, &die, depth + 1, budget);
	} while (dwarf_siblingof(&die, &die) == 0);
}

static void unit_index(struct debug_unit *unit)
{
	unsigned budget = UNIT_ENTRIES_MAX;

	unit->indexed = true;
	functions_collect(unit, &unit->tree, 0, &budget);
	address_ranges_sort(&unit->functions);
}

/* The inlined function at this address directly inside parent. Lexical blocks in between are
 * entered. */
static bool inlined_child(Dwarf_Die *parent, Dwarf_Addr address, unsigned depth, unsigned *budget,
			  Dwarf_Die *found)
{
	Dwarf_Die die;

	if (depth > TREE_DEPTH_MAX || dwarf_child(parent, &die) != 0)
		return false;
	do {
		int tag = dwarf_tag(&die);
		if (!*budget)
			return false;
		--*budget;
		if ((tag != DW_TAG_inlined_subroutine && tag != DW_TAG_lexical_block) ||
		    dwarf_haspc(&die, address) != 1)
			continue;
		if (tag == DW_TAG_lexical_block)
			return inlined_child(&die, address, depth + 1, budget, found);
		*found = die;
		return true;
	} while (dwarf_siblingof(&die, &die) == 0);
	return false;
}

/* The attribute of the entry or of the abstract entry that it refers to. */
static const char *die_text(Dwarf_Die *die, unsigned name)
{
	Dwarf_Attribute attribute;

	return dwarf_formstring(dwarf_attr_integrate(die, name, &attribute));
}

static void name_frame(Dwarf_Die *die, struct debug_frame *frame)
{
	frame->linkage_name = die_text(die, DW_AT_linkage_name);
	if (!frame->linkage_name)
		frame->linkage_name = die_text(die, DW_AT_MIPS_linkage_name);
	frame->name = die_text(die, DW_AT_name);
}

/* The call site of an inlined function is the line of the frame around it. */
static void place_caller(struct debug_unit *unit, Dwarf_Die *inlined, struct debug_frame *caller)
{
	Dwarf_Attribute attribute;
	Dwarf_Word number;
	Dwarf_Files *files;
	size_t count;

	if (dwarf_formudata(dwarf_attr(inlined, DW_AT_call_line, &attribute), &number) == 0 &&
	    number <= UINT32_MAX)
		caller->line = (unsigned)number;
	if (dwarf_formudata(dwarf_attr(inlined, DW_AT_call_file, &attribute), &number) != 0)
		return;
	if (dwarf_getsrcfiles(&unit->tree, &files, &count) == 0 && number < count)
		caller->file = dwarf_filesrc(files, number, NULL, NULL);
}

/* The innermost frame has the line that the line table gives for the address. */
static void place_innermost(struct debug_unit *unit, Dwarf_Addr address, struct debug_frame *frame)
{
	Dwarf_Line *line = dwarf_getsrc_die(&unit->lines, address);
	int number;

	if (!line)
		return;
	frame->file = dwarf_linesrc(line, NULL, NULL);
	if (dwarf_lineno(line, &number) == 0 && number > 0)
		frame->line = (unsigned)number;
}

/* Fills path with the functions at an address, outermost first, and returns their number. */
static size_t path_to(struct debug_unit *unit, Dwarf_Addr address, Dwarf_Die path[DEBUG_CHAIN_MAX])
{
	const struct address_range *range = address_ranges_find(&unit->functions, address);
	unsigned budget = CHAIN_ENTRIES_MAX;
	size_t count = 1;

	if (!range || !dwarf_offdie(dwarf_cu_getdwarf(unit->tree.cu), range->value, &path[0]))
		return 0;
	while (count < DEBUG_CHAIN_MAX &&
	       inlined_child(&path[count - 1], address, 0, &budget, &path[count]))
		count++;
	return count;
}

size_t debug_lines_find(struct debug_lines *lines, uint64_t elf_address,
			struct debug_frame chain[DEBUG_CHAIN_MAX])
{
	Dwarf_Addr address = elf_address - lines->bias;
	const struct address_range *range = address_ranges_find(&lines->ranges, address);
	Dwarf_Die path[DEBUG_CHAIN_MAX];
	struct debug_unit *unit;
	size_t count;

	if (!range)
		return 0;
	unit = &lines->units[range->value];
	if (!unit->indexed)
		unit_index(unit);
	count = path_to(unit, address, path);
	chain[0] = (struct debug_frame){ 0 };
	place_innermost(unit, address, &chain[0]);
	if (!count) /* assembly: lines, but no functions */
		return chain[0].file != NULL;
	for (size_t i = 0; i < count; i++) {
		Dwarf_Die *die = &path[count - 1 - i];
		name_frame(die, &chain[i]);
		if (i + 1 == count)
			break;
		chain[i + 1] = (struct debug_frame){ 0 };
		place_caller(unit, die, &chain[i + 1]);
	}
	return count;
}

void debug_lines_fini(struct debug_lines *lines)
{
	for (size_t i = 0; i < lines->unit_count; i++)
		address_ranges_fini(&lines->units[i].functions);
	free(lines->units);
	address_ranges_fini(&lines->ranges);
	*lines = (struct debug_lines){ 0 };
}
