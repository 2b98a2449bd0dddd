/* SPDX-License-Identifier: Apache-2.0 */
/* Which devices of which processes are the same one: by UUID, else by ordinal on one host. */
#include "analysis/facts/passes/passes.h"

#include <stdlib.h>
#include <string.h>
#include "analysis/base/numbers.h"
#include "analysis/facts/passes/passes.h"

static bool is_used(const struct cuf_device *device)
{
	return device &&
	       (device->present || device->alloc_count || device->fail_count || device->peak_bytes);
}

/* Without a UUID: the same ordinal of the same host. */
static bool same_device(const struct facts *facts, uint32_t p, const struct cuf_device *device,
			unsigned ordinal, const struct fact_device *group)
{
	static const uint8_t unknown[16];
	uint32_t q = group->members[0].process, other = group->members[0].ordinal;
	const struct cuf_device *first = reader_at(facts->run->processes[q].reader, CUF_SEC_DEVICES,
						   other);
	if (p == q)
		return false;
	if (memcmp(device->uuid, unknown, sizeof unknown) ||
	    memcmp(first->uuid, unknown, sizeof unknown))
		return !memcmp(device->uuid, first->uuid, sizeof device->uuid);
	return ordinal == other &&
	       !strcmp(facts->processes[p].hostname, facts->processes[q].hostname);
}

/* The order of the report. The members of a device are sorted already. */
static int by_first_ordinal(const void *a, const void *b)
{
	const struct device_member *left = ((const struct fact_device *)a)->members,
				   *right = ((const struct fact_device *)b)->members;
	if (left->ordinal != right->ordinal)
		return compare_numbers(left->ordinal, right->ordinal);
	return compare_numbers(left->process, right->process);
}

static struct fact_device *new_device(struct facts *facts, size_t *room)
{
	struct fact_device *device;

	xalloc_grow(&facts->devices, facts->device_count, room, sizeof *facts->devices);
	device = &facts->devices[facts->device_count++];
	*device = (struct fact_device){
		.members = arena_zeroed(facts->arena, facts->process_count * CUF_DEVICES_MAX,
					sizeof *device->members),
		.peak_ns = CUF_UNKNOWN,
		.peak_basis = BASIS_OBSERVED,
	};
	return device;
}

static void join(struct facts *facts, uint32_t process, unsigned ordinal, size_t *room)
{
	const struct cuf_device *used = reader_at(facts->run->processes[process].reader,
						  CUF_SEC_DEVICES, ordinal);
	struct fact_device *device = NULL;
	for (size_t i = 0; i < facts->device_count && !device; i++)
		if (same_device(facts, process, used, ordinal, &facts->devices[i]))
			device = &facts->devices[i];
	if (!device)
		device = new_device(facts, room);
	device->members[device->member_count++] = (struct device_member){ process, ordinal };
}

/* For each process, which device each of its ordinals is. */
static void fill_ordinals(struct facts *facts)
{
	for (uint32_t p = 0; p < facts->process_count; p++)
		for (unsigned d = 0; d < CUF_DEVICES_MAX; d++)
			facts->processes[p].device_of[d] = FACT_NONE;
	for (uint32_t i = 0; i < facts->device_count; i++)
		for (size_t m = 0; m < facts->devices[i].member_count; m++) {
			const struct device_member *member = &facts->devices[i].members[m];
			facts->processes[member->process].device_of[member->ordinal] = i;
		}
}

void build_groups(struct facts *facts)
{
	struct fact_device *found;
	size_t room = 0;
	for (uint32_t p = 0; p < facts->process_count; p++)
		for (unsigned d = 0; d < CUF_DEVICES_MAX; d++)
			if (is_used(reader_at(facts->run->processes[p].reader, CUF_SEC_DEVICES, d)))
				join(facts, p, d, &room);
	found = facts->devices;
	if (facts->device_count)
		qsort(found, facts->device_count, sizeof *found, by_first_ordinal);
	facts->devices = arena_copy(facts->arena, found, facts->device_count, sizeof *found);
	free(found);
	fill_ordinals(facts);
}
