/* SPDX-License-Identifier: Apache-2.0 */
/* Devices of the run, merged by UUID, each at its moment. */
#include "analysis/facts/build.h"

#include <stdlib.h>
#include <string.h>
#include "analysis/facts/framework_facts.h"
#include "analysis/facts/tenants.h"

static bool is_used(const struct cuf_device *device)
{
	return device &&
	       (device->present || device->alloc_count || device->fail_count || device->peak_bytes);
}

/* Without a UUID: the same ordinal of the same host. */
static bool same_device(const struct build *build, uint32_t p, const struct cuf_device *device,
			unsigned ordinal, const struct device_group *group)
{
	static const uint8_t unknown[16];
	uint32_t q = group->members[0].process, other = group->members[0].ordinal;
	const struct cuf_device *first = reader_at(build->run->processes[q].reader, CUF_SEC_DEVICES,
						   other);
	if (p == q)
		return false;
	if (memcmp(device->uuid, unknown, sizeof unknown) ||
	    memcmp(first->uuid, unknown, sizeof unknown))
		return !memcmp(device->uuid, first->uuid, sizeof device->uuid);
	return ordinal == other &&
	       !strcmp(build->facts->processes[p].hostname, build->facts->processes[q].hostname);
}

static int by_first_ordinal(const void *a, const void *b)
{
	const struct device_member *left = ((const struct device_group *)a)->members,
				   *right = ((const struct device_group *)b)->members;
	if (left->ordinal != right->ordinal)
		return left->ordinal < right->ordinal ? -1 : 1;
	return left->process < right->process ? -1 : left->process > right->process;
}

static void join(struct build *build, uint32_t process, unsigned ordinal, size_t *room)
{
	const struct cuf_device *device = reader_at(build->run->processes[process].reader,
						    CUF_SEC_DEVICES, ordinal);
	struct device_group *group = NULL;
	for (size_t i = 0; i < build->group_count && !group; i++)
		if (same_device(build, process, device, ordinal, &build->groups[i]))
			group = &build->groups[i];
	if (!group) {
		xalloc_grow(&build->groups, build->group_count, room, sizeof *build->groups);
		group = &build->groups[build->group_count++];
		*group = (struct device_group){ 0 };
	}
	xalloc_grow(&group->members, group->count, &group->room, sizeof *group->members);
	group->members[group->count++] = (struct device_member){ process, ordinal };
}

void build_groups(struct build *build)
{
	size_t room = 0;
	for (uint32_t p = 0; p < build->run->count; p++)
		for (unsigned d = 0; d < CUF_DEVICES_MAX; d++)
			if (is_used(reader_at(build->run->processes[p].reader, CUF_SEC_DEVICES, d)))
				join(build, p, d, &room);
	if (build->group_count)
		qsort(build->groups, build->group_count, sizeof *build->groups, by_first_ordinal);
}

uint32_t group_of(const struct build *build, uint32_t process, unsigned ordinal)
{
	for (uint32_t i = 0; i < build->group_count; i++)
		for (size_t m = 0; m < build->groups[i].count; m++)
			if (build->groups[i].members[m].process == process &&
			    build->groups[i].members[m].ordinal == ordinal)
				return i;
	return FACT_NONE;
}

unsigned ordinal_in(const struct build *build, uint32_t device, uint32_t process)
{
	const struct device_group *group = &build->groups[device];
	for (size_t m = 0; m < group->count; m++)
		if (group->members[m].process == process)
			return group->members[m].ordinal;
	return CUF_DEVICE_NONE;
}

/* Rows that the recorder counted at the incident are right even when the replay is not. */
static void correct_counts(struct holding *held, const struct cuf_incident *incident)
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
 * What a segment should have held. PyTorch asks the driver for 2 MiB at a time on behalf of requests of up to 1 MiB, so a
 * driver's failure of that size says no more of them; its own report has the true size.
 */
static uint64_t requested_bytes(const struct cuf_incident *incident)
{
	if (!incident || !incident->is_request)
		return CUF_UNKNOWN;
	return incident->kind != CUF_KIND_FRAMEWORK && incident->requested_bytes == CUF_PAGE_BYTES
		       ? CUF_PAGE_BYTES / 2
		       : incident->requested_bytes;
}

struct member_view {
	struct holding holding;
	struct levels levels;
	bool exact;
};

static bool measure_member(struct build *build, const struct device_member *member,
			   const struct moment *moment, bool with_roles, struct member_view *out)
{
	struct run_process *process = &build->run->processes[member->process];
	const struct cuf_header *header = &process->reader->header;
	const struct cuf_incident *incident = moment->process == member->process ? moment->incident
										 : NULL;
	const struct liveset *live;
	uint64_t seq;
	if (!process_at(build, member->process, moment, &seq))
		return false;
	live = run_live(process, seq, &out->exact);
	levels_at(process->reader, process->events, member->ordinal, seq,
		  header->end_kind && seq == header->end_seq, &out->levels);
	if (incident)
		levels_overlay(incident, &out->levels);
	holding_measure(live, member->ordinal, member->process,
			build->facts->processes[member->process].pid, &out->levels, build->arena,
			&out->holding);
	if (!out->exact && incident)
		correct_counts(&out->holding, incident);
	framework_facts(build,
			&(struct framework_question){ member->process, member->ordinal, seq,
						      requested_bytes(moment->incident), incident,
						      process->live_exact, with_roles },
			live, &out->holding);
	return true;
}

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

void device_view_at(struct build *build, uint32_t device, const struct moment *moment,
		    struct device_view *view)
{
	const struct device_group *group = &build->groups[device];
	struct holding *others = xalloc_zeroed(group->count, sizeof *others);
	struct owners_question question = { .focus = &view->focus, .others = others };
	bool have_focus = false;
	uint32_t focus = moment->process;
	*view = (struct device_view){ .process = focus,
				      .levels = { .free_bytes = CUF_UNKNOWN,
						  .total_bytes = CUF_UNKNOWN },
				      .exact = true };
	if (ordinal_in(build, device, focus) == CUF_DEVICE_NONE)
		focus = group->members[0].process;
	for (size_t i = 0; i < group->count; i++) {
		bool itemised = group->members[i].process == focus ||
				(!have_focus && i + 1 == group->count);
		struct member_view member;
		if (!measure_member(build, &group->members[i], moment, itemised, &member))
			continue;
		view->exact &= member.exact;
		if (!itemised) {
			others[question.other_count++] = member.holding;
			continue;
		}
		have_focus = true;
		view->process = group->members[i].process;
		view->focus = member.holding;
		view->levels = member.levels;
	}
	tenants_share(build, device, moment, &view->focus, others, &question);
	question.total_bytes = view->levels.total_bytes;
	question.free_bytes = view->levels.free_bytes;
	question.free_basis = view->levels.free_basis;
	question.basis = view->exact ? BASIS_OBSERVED : BASIS_ESTIMATED;
	view->owners = owners_rows(&question, build->arena, &view->owner_count, &view->total_bytes);
	view->focus.fragmentation.basis = question.basis;
	fill_layers(view, moment->incident);
	free(others);
}

static void fill_framework_stacks(struct build *build, const struct fact_framework *framework,
				  uint64_t time_ns)
{
	const struct reader *reader = build->run->processes[framework->process].reader;
	for (size_t i = 0; i < framework->pin_count; i++)
		stack_fill(build, &((struct fact_pin *)(uintptr_t)framework->pins)[i].stack,
			   time_ns);
	for (size_t i = 0; i < framework->segment_count; i++) {
		struct fact_segment *segment =
			&((struct fact_segment *)(uintptr_t)framework->segments)[i];
		stack_fill(build, &segment->stack, segment->born_ns);
		segment->born_ns = reader_realtime(reader, segment->born_ns);
	}
}

static void fill_stacks(struct build *build, struct fact_fragmentation *fragmentation,
			uint64_t time_ns)
{
	for (size_t i = 0; i < fragmentation->pin_count; i++)
		stack_fill(build, &((struct fact_pin *)(uintptr_t)fragmentation->pins)[i].stack,
			   time_ns);
	for (size_t i = 0; i < fragmentation->vmm_count; i++)
		stack_fill(build, &((struct fact_vmm *)(uintptr_t)fragmentation->vmm)[i].stack,
			   time_ns);
	for (size_t i = 0; i < fragmentation->framework_count; i++)
		fill_framework_stacks(build, &fragmentation->frameworks[i], time_ns);
}

static uint64_t live_at(const struct fact_process *process, unsigned ordinal, uint64_t time_ns,
			size_t *at)
{
	while (*at < process->timeline_count && process->timeline[*at].time_ns <= time_ns)
		++*at;
	if (!*at || (process->timeline[*at - 1].time_ns > process->end_ns) ||
	    (time_ns > process->end_ns && process->end != END_RUNNING))
		return 0;
	return process->timeline[*at - 1].device_live_bytes[ordinal];
}

/* Several processes: the highest sum at the samples of any of them, and no less than any one's own peak. */
static void common_peak(struct build *build, const struct device_group *group,
			struct fact_device *device)
{
	size_t *at = xalloc_zeroed(group->count, sizeof *at);
	for (size_t i = 0; i < group->count; i++) {
		const struct fact_process *process =
			&build->facts->processes[group->members[i].process];
		memset(at, 0, group->count * sizeof *at);
		for (size_t s = 0; s < process->timeline_count; s++) {
			uint64_t sum = 0, time_ns = process->timeline[s].time_ns;
			for (size_t m = 0; m < group->count; m++)
				sum += live_at(&build->facts->processes[group->members[m].process],
					       group->members[m].ordinal, time_ns, &at[m]);
			if (sum > device->peak_bytes && sum < (uint64_t)1 << CUF_KEY_SHIFT) {
				device->peak_bytes = sum;
				device->peak_ns = time_ns;
				device->peak_basis = BASIS_ESTIMATED;
			}
		}
	}
	free(at);
}

static void sum_members(struct build *build, const struct device_group *group,
			struct fact_device *device)
{
	device->peak_ns = CUF_UNKNOWN;
	device->peak_basis = BASIS_OBSERVED;
	for (size_t i = 0; i < group->count; i++) {
		const struct reader *reader =
			build->run->processes[group->members[i].process].reader;
		const struct cuf_device from = *(const struct cuf_device *)reader_at(
			reader, CUF_SEC_DEVICES, group->members[i].ordinal);
		if (from.present && !*device->name) {
			device->name = arena_text(build->arena, from.name,
						  strnlen(from.name, sizeof from.name));
			device->pci = arena_text(build->arena, from.pci,
						 strnlen(from.pci, sizeof from.pci));
			memcpy(device->uuid, from.uuid, sizeof device->uuid);
			device->granularity_bytes = from.granularity_bytes;
		}
		if (from.peak_bytes > device->peak_bytes) {
			device->peak_bytes = from.peak_bytes;
			device->peak_ns = reader_realtime(reader, from.peak_ns);
		}
		device->alloc_count += from.alloc_count;
		device->free_count += from.free_count;
		device->fail_count += from.fail_count;
	}
	if (group->count > 1)
		common_peak(build, group, device);
}

static void fill_device(struct build *build, uint32_t index, struct fact_device *device)
{
	const struct device_group *group = &build->groups[index];
	struct moment moment = moment_of_device(build, index);
	struct cuf_incident incident;
	struct device_view view;
	*device = (struct fact_device){ .name = "", .pci = "", .granularity_bytes = CUF_UNKNOWN };
	sum_members(build, group, device);
	if (moment.incident_id) {
		const struct fact_incident *failure =
			&build->facts->incidents[moment.incident_id - 1];
		if (failure->device == index && incident_at(build, failure, &incident))
			moment.incident = &incident;
	}
	device_view_at(build, index, &moment, &view);
	device->focus = ordinal_in(build, index, view.process) == CUF_DEVICE_NONE
				? group->members[0].process
				: view.process;
	device->ordinal = ordinal_in(build, index, device->focus);
	device->total_bytes = view.total_bytes;
	device->free_bytes = view.levels.free_bytes;
	device->moment = (struct fact_moment){
		moment.kind, moment.time_ns,	 moment.process,
		moment.seq,  moment.incident_id, view.exact ? BASIS_OBSERVED : BASIS_ESTIMATED
	};
	device->owners = view.owners;
	device->owner_count = view.owner_count;
	memcpy(device->largest_free, view.layers, sizeof device->largest_free);
	device->fragmentation = view.focus.fragmentation;
	fill_stacks(build, &device->fragmentation,
		    moment.incident ? moment.incident->time_ns
				    : build->run->processes[device->focus].reader->header.start_ns);
}

void build_devices(struct build *build)
{
	build->facts->device_count = build->group_count;
	build->facts->devices = arena_zeroed(build->arena, build->group_count,
					     sizeof *build->facts->devices);
	for (uint32_t i = 0; i < build->group_count; i++)
		fill_device(build, i, &build->facts->devices[i]);
}
