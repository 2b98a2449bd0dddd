/* SPDX-License-Identifier: Apache-2.0 */
/*
 * heaptrack's interpreted trace (file version 3), as heaptrack_print and heaptrack_gui read it:
 * lines of hexadecimal numbers. Blocks of every kind are allocations; the kind is the frame of
 * those without a stack. A sampled block is one allocation of the bytes that it stands for. Blocks
 * whose allocation was overwritten are allocated at the start.
 */
#include "analysis/view/export/formats.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "analysis/base/hash_index.h"
#include "analysis/base/numbers.h"
#include "analysis/base/xalloc.h"
#include "analysis/facts/totals.h"
#include "analysis/view/export/names.h"

struct heaptrack {
	FILE *out;
	struct rows *rows;
	struct hash_index strings, instructions, traces, allocations;
	uint32_t string_count, instruction_count, trace_count, allocation_count;
	uint64_t start_ns, shown_ms;
};

static uint32_t string_of(struct heaptrack *heaptrack, const char *text)
{
	char clean[NAME_BYTES];
	uint32_t *place;

	name_text(text, clean, sizeof clean);
	place = hash_index_place(&heaptrack->strings, hash_index_text(&heaptrack->strings, clean));
	if (!*place) {
		*place = ++heaptrack->string_count;
		fprintf(heaptrack->out, "s %zx %s\n", strlen(clean), clean);
	}
	return *place;
}

/* An instruction pointer; frames of one address that are inlined have pointers of their own. */
static uint32_t instruction_of(struct heaptrack *heaptrack, const char *function,
			       const struct frame *frame)
{
	uint32_t name = string_of(heaptrack, function), module, file = 0;
	uint32_t *place;

	module = string_of(heaptrack, frame->module ? frame->module : frame->language);
	if (frame->file && frame->line)
		file = string_of(heaptrack, frame->file);
	place = hash_index_place(&heaptrack->instructions,
				 ((uint64_t)name << 40 ^ (uint64_t)file << 20 ^ frame->line) *
						 0x9E3779B97F4A7C15ull ^ frame->addr);
	if (*place)
		return *place;
	*place = ++heaptrack->instruction_count;
	fprintf(heaptrack->out, "i %" PRIx64 " %x %x", frame->addr, module, name);
	if (file)
		fprintf(heaptrack->out, " %x %x", file, frame->line);
	fputc('\n', heaptrack->out);
	return *place;
}

static uint32_t trace_below(struct heaptrack *heaptrack, uint32_t parent, const char *function,
			    const struct frame *frame)
{
	uint32_t instruction = instruction_of(heaptrack, function, frame);
	uint32_t *place = hash_index_place(&heaptrack->traces,
					   (uint64_t)parent << 32 | instruction);

	if (!*place) {
		*place = ++heaptrack->trace_count;
		fprintf(heaptrack->out, "t %x %x\n", instruction, parent);
	}
	return *place;
}

static uint32_t trace_of(struct heaptrack *heaptrack, uint32_t site, uint32_t kind, uint32_t device)
{
	const struct frame memory = { .language = "cuflight" };
	const struct frame *frames;
	size_t count = rows_site_frames(heaptrack->rows, site, &frames);
	char name[NAME_BYTES];
	uint32_t trace = 0;

	for (size_t i = count; i--;) {
		name_function(&frames[i], name, sizeof name);
		trace = trace_below(heaptrack, trace, name, &frames[i]);
	}
	if (count)
		return trace;
	name_memory(rows_facts(heaptrack->rows), kind, device, name, sizeof name);
	return trace_below(heaptrack, 0, name, &memory);
}

/* All blocks of one size and call site share a number. */
static uint32_t allocation_of(struct heaptrack *heaptrack, uint64_t bytes, uint32_t site,
			      uint32_t kind, uint32_t device)
{
	uint64_t where = (uint64_t)site << 32 | kind << 16 | (device & 0xffff);
	uint32_t *place = hash_index_place(&heaptrack->allocations,
					   where * 0x9E3779B97F4A7C15ull ^ bytes);
	uint32_t trace;

	if (*place)
		return *place - 1;
	*place = ++heaptrack->allocation_count;
	trace = trace_of(heaptrack, site, kind, device);
	fprintf(heaptrack->out, "a %" PRIx64 " %x\n", bytes, trace);
	return heaptrack->allocation_count - 1;
}

static void put_older(void *context, const struct block_row *block)
{
	struct heaptrack *heaptrack = context;

	if (!block->born_seen)
		fprintf(heaptrack->out, "+ %x\n",
			allocation_of(heaptrack, block->weight_bytes, block->site, block->kind,
				      block->device));
}

static void put_event(void *context, const struct event_row *event)
{
	struct heaptrack *heaptrack = context;
	uint64_t ms = subtract_to_zero(event->time_ns, heaptrack->start_ns) / 1000000u;
	uint32_t allocation;

	if (event->op == EVENT_FAIL)
		return;
	if (ms > heaptrack->shown_ms) {
		heaptrack->shown_ms = ms;
		fprintf(heaptrack->out, "c %" PRIx64 "\n", ms);
	}
	allocation = allocation_of(heaptrack, event->weight_bytes, event->site, event->kind,
				   event->device);
	fprintf(heaptrack->out, "%c %x\n", event->op == EVENT_FREE ? '-' : '+', allocation);
}

static void put_heaptrack_head(struct heaptrack *heaptrack, const struct fact_process *process)
{
	char command[NAME_BYTES];

	name_text(process->cmdline, command, sizeof command);
	fprintf(heaptrack->out, "v 10400 3\nX %s\nI %x %" PRIx64 "\n", command, 4096,
		known_or_zero(process->host.memory_total_bytes) / 4096);
}

static int write_heaptrack(struct export_target *target, struct rows *rows)
{
	const struct facts *facts = rows_facts(rows);
	struct heaptrack heaptrack = { .out = target->file, .rows = rows };
	uint32_t process = 0;

	while (process + 1 < facts->process_count && !rows_want_process(rows, process))
		process++;
	heaptrack.start_ns = facts->processes[process].start_ns;
	hash_index_init(&heaptrack.strings, 1024);
	hash_index_init(&heaptrack.instructions, 1024);
	hash_index_init(&heaptrack.traces, 1024);
	hash_index_init(&heaptrack.allocations, 1024);
	put_heaptrack_head(&heaptrack, &facts->processes[process]);
	rows_blocks(rows, put_older, &heaptrack);
	rows_events(rows, put_event, &heaptrack);
	fprintf(target->file, "c %" PRIx64 "\n", facts_duration_ns(facts) / 1000000u);
	hash_index_fini(&heaptrack.strings);
	hash_index_fini(&heaptrack.instructions);
	hash_index_fini(&heaptrack.traces);
	hash_index_fini(&heaptrack.allocations);
	return 0;
}

const struct export_format export_heaptrack = {
	.name = "heaptrack",
	.ending = ".heaptrack",
	.about = "the history of allocations of one process, for heaptrack_print and heaptrack_gui",
	.sums = true,
	.one_process = true,
	.write = write_heaptrack,
};
