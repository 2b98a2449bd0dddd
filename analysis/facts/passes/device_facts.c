/* SPDX-License-Identifier: Apache-2.0 */
/* Devices of the run, merged by UUID, each at its moment. */
#include "analysis/facts/passes/device_view.h"

#include <stdlib.h>
#include <string.h>
#include "analysis/base/xalloc.h"
#include "analysis/facts/timeline/device_levels.h"

/* Rows of the measuring rooms have stacks of id and process only; these are copies with frames. */
static const struct fact_pin *pins_with_stacks(struct build *build, const struct fact_pin *from,
					       size_t count, uint64_t time_ns)
{
	struct fact_pin *pins = arena_copy(build->arena, from, count, sizeof *pins);

	for (size_t i = 0; i < count; i++)
		stack_fill(build, &pins[i].stack, time_ns);
	return pins;
}

/* The stack is resolved at the time of birth: an address may belong to another module later. */
static const struct fact_segment *segments_with_stacks(struct build *build,
						       const struct fact_segment *from,
						       size_t count)
{
	struct fact_segment *segments = arena_copy(build->arena, from, count, sizeof *segments);

	for (size_t i = 0; i < count; i++) {
		struct fact_segment *segment = &segments[i];
		const struct reader *reader = build->run->processes[segment->process].reader;
		stack_fill(build, &segment->stack, segment->born_ns);
		segment->born_ns = reader_realtime(reader, segment->born_ns);
	}
	return segments;
}

static const struct fact_vmm *vmm_with_stacks(struct build *build, const struct fact_vmm *from,
					      size_t count, uint64_t time_ns)
{
	struct fact_vmm *reservations = arena_copy(build->arena, from, count, sizeof *reservations);

	for (size_t i = 0; i < count; i++)
		stack_fill(build, &reservations[i].stack, time_ns);
	return reservations;
}

static struct fact_fragmentation with_stacks(struct build *build,
					     const struct fact_fragmentation *from,
					     uint64_t time_ns)
{
	struct fact_fragmentation out = *from;
	struct fact_framework *frameworks = arena_copy(build->arena, from->frameworks,
						       from->framework_count, sizeof *frameworks);

	for (size_t i = 0; i < from->framework_count; i++) {
		struct fact_framework *framework = &frameworks[i];
		framework->pins = pins_with_stacks(build, framework->pins, framework->pin_count,
						   time_ns);
		framework->segments = segments_with_stacks(build, framework->segments,
							   framework->segment_count);
	}
	out.frameworks = frameworks;
	out.pins = pins_with_stacks(build, from->pins, from->pin_count, time_ns);
	out.vmm = vmm_with_stacks(build, from->vmm, from->vmm_count, time_ns);
	return out;
}

/* ---- the highest that each held: one process counts its own, of several the events tell ---- */

static bool is_shared(const struct build *build, uint32_t device)
{
	return build->groups[device].count > 1;
}

/* The highest of a member's own, and no device held less than one of its processes. */
static void take_own(const struct build *build, const struct device_group *group,
		     struct fact_device *device)
{
	for (size_t i = 0; i < group->count; i++) {
		const struct device_member *member = &group->members[i];
		const struct reader *reader = build->run->processes[member->process].reader;
		const struct cuf_device *own = reader_at(reader, CUF_SEC_DEVICES, member->ordinal);

		if (own->peak_bytes <= device->peak_bytes)
			continue;
		device->peak_bytes = own->peak_bytes;
		device->peak_ns = reader_realtime(reader, own->peak_ns);
		device->peak_process = member->process;
	}
}

struct finding {
	struct build *build;
	int64_t *levels; /* by device */
};

/* On the way back: what was there since this change. */
static void take_change(void *state, const struct device_change *change)
{
	struct finding *finding = state;
	struct fact_device *device = &finding->build->facts->devices[change->device];
	int64_t *level = &finding->levels[change->device];

	if (!is_shared(finding->build, change->device))
		return;
	if (*level > 0 && (uint64_t)*level >= device->peak_bytes) {
		device->peak_bytes = (uint64_t)*level;
		device->peak_ns = change->time_ns;
		device->peak_process = change->process;
		device->peak_basis = change->is_sampled ? BASIS_ESTIMATED : BASIS_OBSERVED;
	}
	*level += change->delta;
}

/* One walk for all devices that several processes use. */
static void find_common(struct build *build)
{
	size_t processes = build->run->count;
	struct finding finding = { build, xalloc_zeroed(build->group_count + 1,
							sizeof *finding.levels) };
	bool *whose = xalloc_zeroed(processes, sizeof *whose), any = false;

	for (uint32_t i = 0; i < build->group_count; i++) {
		if (!is_shared(build, i))
			continue;
		build->facts->devices[i].peak_basis = BASIS_ESTIMATED; /* unless events tell it */
		for (size_t m = 0; m < build->groups[i].count; m++)
			any = whose[build->groups[i].members[m].process] = true;
	}
	if (any)
		device_levels_walk(build->facts, build->run, whose,
				   &(struct device_levels_visitor){ .change = take_change,
								    .is_of_driver = true,
								    .state = &finding });
	free(whose);
	free(finding.levels);
}

/* A peak is the same at whatever moment the devices are described. */
void build_peaks(struct build *build)
{
	const struct fact_device *known = build->facts->devices;

	build->facts->device_count = build->group_count;
	build->facts->devices = arena_zeroed(build->arena, build->group_count,
					     sizeof *build->facts->devices);
	for (uint32_t i = 0; i < build->group_count; i++) {
		struct fact_device *device = &build->facts->devices[i];

		*device = (struct fact_device){ .name = "", .pci = "",
						.granularity_bytes = CUF_UNKNOWN,
						.peak_ns = CUF_UNKNOWN,
						.peak_basis = BASIS_OBSERVED };
		if (known) {
			device->peak_bytes = known[i].peak_bytes;
			device->peak_ns = known[i].peak_ns;
			device->peak_process = known[i].peak_process;
			device->peak_basis = known[i].peak_basis;
		} else {
			take_own(build, &build->groups[i], device);
		}
	}
	if (!known)
		find_common(build);
}

/* ---- one device ---- */

/* Name, identity and counts of the device. */
static void sum_members(struct build *build, const struct device_group *group,
			struct fact_device *device)
{
	for (size_t i = 0; i < group->count; i++) {
		const struct reader *reader =
			build->run->processes[group->members[i].process].reader;
		const struct cuf_device *stored = reader_at(reader, CUF_SEC_DEVICES,
							    group->members[i].ordinal);
		const struct cuf_device from = *stored;

		if (from.present && !*device->name) {
			device->name = arena_text(build->arena, from.name,
						  strnlen(from.name, sizeof from.name));
			device->pci = arena_text(build->arena, from.pci,
						 strnlen(from.pci, sizeof from.pci));
			memcpy(device->uuid, from.uuid, sizeof device->uuid);
			device->granularity_bytes = from.granularity_bytes;
		}
		device->alloc_count += from.alloc_count;
		device->free_count += from.free_count;
		device->fail_count += from.fail_count;
	}
}

/* The focus is the process whose moment it is, if it uses this device. */
static void fill_device(struct build *build, uint32_t index, struct fact_device *device)
{
	const struct device_group *group = &build->groups[index];
	struct moment moment = moment_of_device(build, index);
	struct cuf_incident incident;
	struct device_view view;
	uint64_t stacks_ns; /* which modules and functions were loaded */

	sum_members(build, group, device);
	if (moment.incident_id) {
		const struct fact_incident *failure =
			&build->facts->incidents[moment.incident_id - 1];
		if (failure->device == index && incident_at(build, failure, &incident))
			moment.incident = &incident;
	}
	device_view_at(build, index, &moment, &view);
	device->focus = view.process;
	if (ordinal_in(build, index, view.process) == CUF_DEVICE_NONE)
		device->focus = group->members[0].process;
	device->ordinal = ordinal_in(build, index, device->focus);
	device->total_bytes = view.total_bytes;
	device->free_bytes = view.levels.free_bytes;
	device->free_ns = CUF_UNKNOWN;
	if (view.levels.free_ns != CUF_UNKNOWN)
		device->free_ns = reader_realtime(
			build->run->processes[device->focus].reader, view.levels.free_ns);
	device->moment = (struct fact_moment){
		moment.kind, moment.time_ns,	 moment.process,
		moment.seq,  moment.incident_id, basis_if_exact(view.exact)
	};
	device->owners = view.owners;
	device->owner_count = view.owner_count;
	memcpy(device->largest_free, view.layers, sizeof device->largest_free);
	device->largest_free[LAYER_HOST] = host_layer_at(build, device->focus,
							 host_report_time(build, device->focus));
	stacks_ns = build->run->processes[device->focus].reader->header.start_ns;
	if (moment.incident)
		stacks_ns = moment.incident->time_ns;
	device->fragmentation = with_stacks(build, &view.focus.fragmentation, stacks_ns);
}

void build_devices(struct build *build)
{
	for (uint32_t i = 0; i < build->group_count; i++)
		fill_device(build, i, &build->facts->devices[i]);
}
