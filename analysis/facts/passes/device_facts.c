/* SPDX-License-Identifier: Apache-2.0 */
/* Devices of the run, merged by UUID, each at its moment. */
#include "analysis/facts/passes/device_view.h"

#include <stdlib.h>
#include <string.h>
#include "analysis/base/xalloc.h"
#include "analysis/facts/history/device_levels.h"

/* Rows of the measuring rooms have stacks of id and process only; these are copies with frames. */
static const struct fact_pin *pins_with_stacks(const struct facts *facts,
					       const struct fact_pin *from, size_t count,
					       uint64_t time_ns)
{
	struct fact_pin *pins = arena_copy(facts->arena, from, count, sizeof *pins);

	for (size_t i = 0; i < count; i++)
		stack_fill(facts, &pins[i].stack, time_ns);
	return pins;
}

/* The stack is resolved at the time of birth: an address may belong to another module later. */
static const struct fact_segment *segments_with_stacks(const struct facts *facts,
						       const struct fact_segment *from,
						       size_t count)
{
	struct fact_segment *segments = arena_copy(facts->arena, from, count, sizeof *segments);

	for (size_t i = 0; i < count; i++) {
		struct fact_segment *segment = &segments[i];
		const struct reader *reader = facts->run->processes[segment->process].reader;
		stack_fill(facts, &segment->stack, segment->born_ns);
		segment->born_ns = reader_realtime(reader, segment->born_ns);
	}
	return segments;
}

static const struct fact_vmm *vmm_with_stacks(const struct facts *facts,
					      const struct fact_vmm *from, size_t count,
					      uint64_t time_ns)
{
	struct fact_vmm *reservations = arena_copy(facts->arena, from, count, sizeof *reservations);

	for (size_t i = 0; i < count; i++)
		stack_fill(facts, &reservations[i].stack, time_ns);
	return reservations;
}

static struct fact_fragmentation with_stacks(const struct facts *facts,
					     const struct fact_fragmentation *from,
					     uint64_t time_ns)
{
	struct fact_fragmentation out = *from;
	struct fact_framework *frameworks = arena_copy(facts->arena, from->frameworks,
						       from->framework_count, sizeof *frameworks);

	for (size_t i = 0; i < from->framework_count; i++) {
		struct fact_framework *framework = &frameworks[i];
		framework->pins = pins_with_stacks(facts, framework->pins, framework->pin_count,
						   time_ns);
		framework->segments = segments_with_stacks(facts, framework->segments,
							   framework->segment_count);
	}
	out.frameworks = frameworks;
	out.pins = pins_with_stacks(facts, from->pins, from->pin_count, time_ns);
	out.vmm = vmm_with_stacks(facts, from->vmm, from->vmm_count, time_ns);
	return out;
}

/* ---- the highest that each held: one process counts its own, of several the events tell ---- */

static bool is_shared(const struct facts *facts, uint32_t device)
{
	return facts->devices[device].member_count > 1;
}

/* The highest of a member's own, and no device held less than one of its processes. */
static void take_own(const struct facts *facts, struct fact_device *device)
{
	for (size_t i = 0; i < device->member_count; i++) {
		const struct device_member *member = &device->members[i];
		const struct reader *reader = facts->run->processes[member->process].reader;
		const struct cuf_device *own = reader_at(reader, CUF_SEC_DEVICES, member->ordinal);

		if (own->peak_bytes <= device->peak_bytes)
			continue;
		device->peak_bytes = own->peak_bytes;
		device->peak_ns = reader_realtime(reader, own->peak_ns);
		device->peak_process = member->process;
	}
}

struct finding {
	struct facts *facts;
	int64_t *levels; /* by device */
};

/* On the way back: what was there since this change. */
static void take_change(void *state, const struct device_change *change)
{
	struct finding *finding = state;
	struct fact_device *device = &finding->facts->devices[change->device];
	int64_t *level = &finding->levels[change->device];

	if (!is_shared(finding->facts, change->device))
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
static void find_common(struct facts *facts)
{
	size_t processes = facts->run->count;
	struct finding finding = { facts, xalloc_zeroed(facts->device_count + 1,
							sizeof *finding.levels) };
	bool *whose = xalloc_zeroed(processes, sizeof *whose), any = false;

	for (uint32_t i = 0; i < facts->device_count; i++) {
		if (!is_shared(facts, i))
			continue;
		facts->devices[i].peak_basis = BASIS_ESTIMATED; /* unless events tell it */
		for (size_t m = 0; m < facts->devices[i].member_count; m++)
			any = whose[facts->devices[i].members[m].process] = true;
	}
	if (any)
		device_levels_walk(facts, facts->run, whose,
				   &(struct device_levels_visitor){ .change = take_change,
								    .is_of_driver = true,
								    .state = &finding });
	free(whose);
	free(finding.levels);
}

/* A peak is the same at whatever moment the devices are described. */
void build_peaks(struct facts *facts)
{
	for (uint32_t i = 0; i < facts->device_count; i++)
		take_own(facts, &facts->devices[i]);
	find_common(facts);
}

/* ---- one device ---- */

/* Name, identity and counts of the device. */
static void sum_members(const struct facts *facts, struct fact_device *device)
{
	for (size_t i = 0; i < device->member_count; i++) {
		const struct reader *reader =
			facts->run->processes[device->members[i].process].reader;
		const struct cuf_device *stored = reader_at(reader, CUF_SEC_DEVICES,
							    device->members[i].ordinal);
		const struct cuf_device from = *stored;

		if (from.present && !*device->name) {
			device->name = arena_text(facts->arena, from.name,
						  strnlen(from.name, sizeof from.name));
			device->pci = arena_text(facts->arena, from.pci,
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
static void fill_device(const struct facts *facts, struct block_memory *memory, uint32_t index,
			const struct fact_moment *moment, struct fact_device *device)
{
	const struct fact_incident *failure = NULL;
	struct cuf_incident incident;
	struct device_view view;
	uint64_t host_ns, stacks_ns; /* which modules and functions were loaded */

	sum_members(facts, device);
	if (moment->incident)
		failure = &facts->incidents[moment->incident - 1];
	if (failure && (failure->device != index || !incident_at(facts, failure, &incident)))
		failure = NULL;
	device_view_at(facts, memory, index, moment, failure ? &incident : NULL, &view);
	device->focus = view.process;
	if (fact_ordinal_of(&facts->processes[view.process], index) == CUF_DEVICE_NONE)
		device->focus = device->members[0].process;
	host_ns = reader_realtime(facts->run->processes[device->focus].reader,
				  facts->processes[device->focus].live.host_ns);
	device->ordinal = fact_ordinal_of(&facts->processes[device->focus], index);
	device->total_bytes = view.total_bytes;
	device->free_bytes = view.levels.free_bytes;
	device->free_ns = CUF_UNKNOWN;
	if (view.levels.free_ns != CUF_UNKNOWN)
		device->free_ns = reader_realtime(
			facts->run->processes[device->focus].reader, view.levels.free_ns);
	device->moment = *moment;
	device->moment.basis = basis_if_exact(view.exact);
	device->owners = view.owners;
	device->owner_count = view.owner_count;
	memcpy(device->largest_free, view.layers, sizeof device->largest_free);
	device->largest_free[LAYER_HOST] = host_layer_at(facts, device->focus, host_ns);
	stacks_ns = facts->run->processes[device->focus].reader->header.start_ns;
	if (failure)
		stacks_ns = incident.time_ns;
	device->fragmentation = with_stacks(facts, &view.focus.fragmentation, stacks_ns);
}

/* Members and peaks are known already. */
void build_devices(struct facts *facts, const struct fact_moment *of_device,
		   struct block_memory *memory)
{
	for (uint32_t i = 0; i < facts->device_count; i++) {
		const struct fact_device known = facts->devices[i];
		struct fact_device *device = &facts->devices[i];

		*device = (struct fact_device){ .members = known.members,
						.member_count = known.member_count,
						.name = "",
						.pci = "",
						.peak_bytes = known.peak_bytes,
						.peak_ns = known.peak_ns,
						.peak_process = known.peak_process,
						.peak_basis = known.peak_basis,
						.granularity_bytes = CUF_UNKNOWN };
		fill_device(facts, memory, i, &of_device[i], device);
	}
}
