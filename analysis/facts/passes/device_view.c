/* SPDX-License-Identifier: Apache-2.0 */
/* Replays a moment and measures what each process held of one device then. */
#include "analysis/facts/passes/device_view.h"

#include <stdlib.h>
#include <string.h>
#include "analysis/base/parallel.h"
#include "analysis/base/paths.h"
#include "analysis/base/xalloc.h"
#include "analysis/facts/passes/framework_facts.h"
#include "analysis/facts/passes/gpu_processes.h"

/* Rows that the recorder counted at the incident are right even when the replay is not. */
static void correct_counts(struct usage *held, const struct cuf_incident *incident)
{
	static const struct {
		enum fact_owner owner;
		enum cuf_kind kind;
	} rows[] = {
		{ OWNER_DEVICE, CUF_KIND_DEVICE },     { OWNER_ARRAY, CUF_KIND_ARRAY },
		{ OWNER_ASYNC, CUF_KIND_ASYNC },       { OWNER_VMM, CUF_KIND_VMM },
		{ OWNER_IMPORTED, CUF_KIND_IMPORTED }, { OWNER_CONTEXT, CUF_KIND_CONTEXT },
		{ OWNER_MANAGED, CUF_KIND_MANAGED },
	};
	for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
		if (incident->live_bytes[rows[r].kind] < (uint64_t)1 << CUF_KEY_SHIFT) {
			held->bytes[rows[r].owner] = incident->live_bytes[rows[r].kind];
			held->count[rows[r].owner] = incident->live_count[rows[r].kind];
		}
	if (incident->page_free_bytes != CUF_UNKNOWN) {
		held->bytes[OWNER_PAGE_ROUNDING] = incident->page_free_bytes;
		held->fragmentation.page_free_bytes = incident->page_free_bytes;
	}
}

/*
 * What a segment should have held. PyTorch asks the driver for 2 MiB at a time on behalf of
 * requests of up to 1 MiB, so a driver's failure of that size shows no more of them; its own report
 * has the true size.
 */
static uint64_t requested_bytes(const struct cuf_incident *incident)
{
	if (!incident || !incident->is_request)
		return CUF_UNKNOWN;
	if (incident->kind != CUF_KIND_FRAMEWORK && incident->requested_bytes == CUF_PAGE_BYTES)
		return CUF_PAGE_BYTES / 2;
	return incident->requested_bytes;
}

struct member_view {
	struct usage usage;
	struct driver_state levels;
	uint64_t rounded_bytes;
	bool exact;
	bool existed; /* at the moment */
};

/* The members of a device, measured at the same time. */
struct members {
	const struct facts *facts;
	struct block_memory *memory;
	const struct fact_device *device;
	const struct fact_moment *moment;
	const struct cuf_incident *incident; /* of the moment; NULL */
	size_t itemised; /* index of the one that is shown in detail */
	struct member_view *views;
};

/* Replays one process to the moment and measures what it held. False: it did not exist then. Roles
 * cost a look at each stack, so only the itemised process has them. */
static bool measure_member(const struct members *members, const struct device_member *member,
			   bool with_roles, struct member_view *out)
{
	const struct facts *facts = members->facts;
	const struct fact_moment *moment = members->moment;
	struct run_process *process = &facts->run->processes[member->process];
	const struct cuf_header *header = &process->reader->header;
	const struct cuf_incident *incident = NULL;
	struct device_blocks blocks = {
		.reader = process->reader,
		.device = member->ordinal,
		.process = member->process,
	};
	enum driver_word word = DRIVER_NEAREST;
	uint64_t seq;
	if (!process_at(facts, member->process, moment, &seq))
		return false;
	if (moment->process == member->process)
		incident = members->incident;
	blocks.live = run_live(process, seq, &out->exact);
	if (header->end_kind && seq == header->end_seq)
		word = DRIVER_AT_END;
	else if (incident)
		word = DRIVER_BEFORE;
	driver_state_at(process->driver, member->ordinal, seq, word, &out->levels);
	if (incident)
		driver_state_overlay(incident, &out->levels);
	usage_measure(&blocks, facts->processes[member->process].pid, &out->levels,
		      facts->arena, &out->usage);
	if (with_roles && incident)
		out->rounded_bytes = holes_rounded(blocks.live, member->ordinal);
	if (!out->exact && incident)
		correct_counts(&out->usage, incident);
	framework_facts(facts, members->memory,
			&(struct framework_question){ member->process, member->ordinal, seq,
						      requested_bytes(members->incident),
						      incident,
						      process->live_exact, with_roles },
			blocks.live, &out->usage);
	return true;
}

/* The largest free block of each layer, with the word for how exact it is. What the recorder
 * measured at the failure replaces what an incomplete replay would give. */
static void fill_layers(struct device_view *view, const struct cuf_incident *incident)
{
	holes_layers(&view->focus.fragmentation, &view->focus.pages, view->layers);
	for (size_t i = 0; i < view->focus.fragmentation.framework_count &&
			   view->layers[LAYER_SEGMENT].bytes == CUF_UNKNOWN;
	     i++)
		view->layers[LAYER_SEGMENT] = view->focus.fragmentation.frameworks[i].largest_hole;
	if (view->levels.free_bytes != CUF_UNKNOWN)
		view->layers[LAYER_DEVICE] = (struct fact_layer){
			view->levels.free_bytes,
			view->levels.free_basis == BASIS_OBSERVED ? "upper bound" : "estimated"
		};
	if (!incident)
		return;
	if (incident->probed_bytes != CUF_UNKNOWN && incident->probed_bytes)
		view->layers[LAYER_MEASURED] = (struct fact_layer){ incident->probed_bytes,
								    "measured" };
	if (view->exact)
		return;
	/* the replay has gaps, the recorder's own look at that moment has none */
	view->layers[LAYER_PAGE] = (struct fact_layer){ CUF_UNKNOWN, "" };
	if (incident->page_hole_bytes != CUF_UNKNOWN && incident->live_count[CUF_KIND_DEVICE])
		view->layers[LAYER_PAGE] = (struct fact_layer){ incident->page_hole_bytes,
								"exact" };
	if (incident->vmm_hole_bytes != CUF_UNKNOWN &&
	    (incident->vmm_hole_bytes || incident->vmm_mapped_bytes))
		view->layers[LAYER_VMM] = (struct fact_layer){ incident->vmm_hole_bytes, "exact" };
}

static void measure_one(const struct members *members, size_t i)
{
	const struct device_member *member = &members->device->members[i];

	members->views[i].existed = measure_member(members, member, i == members->itemised,
						   &members->views[i]);
	run_rest(members->facts->run, &members->facts->run->processes[member->process]);
}

static void measure_other(void *context, size_t i)
{
	const struct members *members = context;

	if (i != members->itemised)
		measure_one(members, i);
}

/* A damaged recording may name one device twice, and a process belongs to one thread. */
static bool has_twins(const struct fact_device *device)
{
	for (size_t i = 1; i < device->member_count; i++)
		for (size_t before = 0; before < i; before++)
			if (device->members[i].process == device->members[before].process)
				return true;
	return false;
}

/* The itemised one comes last: it names functions, which must not depend on who was first. */
static void measure_members(struct members *members)
{
	unsigned threads = members->facts->run->threads;

	if (has_twins(members->device))
		threads = 1;
	parallel_each(members->device->member_count, threads, measure_other, members);
	measure_one(members, members->itemised);
}

/* The focus, if it existed at the moment, else the last member. */
static size_t itemised_member(const struct facts *facts, const struct fact_device *device,
			      const struct fact_moment *moment, uint32_t focus)
{
	uint64_t seq;

	for (size_t i = 0; i < device->member_count; i++)
		if (device->members[i].process == focus && process_at(facts, focus, moment, &seq))
			return i;
	return device->member_count - 1;
}

static const char *program_of(const struct facts *facts, uint32_t process)
{
	const struct fact_process *fact = &facts->processes[process];
	char name[128];

	program_name(fact->exe, fact->cmdline, name, sizeof name);
	return *name ? arena_format(facts->arena, "%s", name) : NULL;
}

/* If the focus did not exist at the moment, the last member is itemised in its place, so that the
 * view is never empty. */
void device_view_at(const struct facts *facts, struct block_memory *memory, uint32_t device,
		    const struct fact_moment *moment, const struct cuf_incident *incident,
		    struct device_view *view)
{
	const struct fact_device *used = &facts->devices[device];
	struct usage *others = xalloc_zeroed(used->member_count, sizeof *others);
	struct owners_question question = { .focus = &view->focus, .others = others };
	struct members members = { facts, memory, used, moment, incident, 0,
				   xalloc_zeroed(used->member_count, sizeof *members.views) };
	uint32_t focus = moment->process;
	*view = (struct device_view){ .process = focus,
				      .levels = { .free_bytes = CUF_UNKNOWN,
						  .total_bytes = CUF_UNKNOWN,
						  .free_ns = CUF_UNKNOWN },
				      .exact = true };
	if (fact_ordinal_of(&facts->processes[focus], device) == CUF_DEVICE_NONE)
		focus = used->members[0].process;
	members.itemised = itemised_member(facts, used, moment, focus);
	measure_members(&members);
	for (size_t i = 0; i < used->member_count; i++) {
		const struct member_view *member = &members.views[i];
		if (!member->existed)
			continue;
		view->exact &= member->exact;
		if (i != members.itemised) {
			others[question.other_count] = member->usage;
			others[question.other_count++].name =
				program_of(facts, used->members[i].process);
			continue;
		}
		view->process = used->members[i].process;
		view->focus = member->usage;
		view->levels = member->levels;
		view->rounded_bytes = member->rounded_bytes;
	}
	free(members.views);
	gpu_processes_share(facts, device, moment, incident, &view->focus, others, &question);
	question.total_bytes = view->levels.total_bytes;
	question.free_bytes = view->levels.free_bytes;
	question.free_basis = view->levels.free_basis;
	question.basis = basis_if_exact(view->exact);
	view->owners = owners_rows(&question, facts->arena, &view->owner_count, &view->total_bytes);
	view->focus.fragmentation.basis = question.basis;
	fill_layers(view, incident);
	free(others);
}

/* The record of an incident, with what later attempts and roll-backs corrected. */
bool incident_at(const struct facts *facts, const struct fact_incident *incident,
		 struct cuf_incident *out)
{
	if (!reader_incident(facts->run->processes[incident->process].reader, incident->number,
			     out))
		return false;
	out->free_bytes = incident->free_bytes;
	out->total_bytes = incident->total_bytes;
	return true;
}
