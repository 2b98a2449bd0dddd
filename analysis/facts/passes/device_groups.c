/* SPDX-License-Identifier: Apache-2.0 */
/* Which devices of which processes are the same one: by UUID, else by ordinal on one host. */
#include "analysis/facts/passes/device_groups.h"

#include <stdlib.h>
#include <string.h>
#include "analysis/base/numbers.h"
#include "analysis/facts/passes/build.h"

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

/* The order of the report. The members of a group are sorted already. */
static int by_first_ordinal(const void *a, const void *b)
{
	const struct device_member *left = ((const struct device_group *)a)->members,
				   *right = ((const struct device_group *)b)->members;
	if (left->ordinal != right->ordinal)
		return compare_numbers(left->ordinal, right->ordinal);
	return compare_numbers(left->process, right->process);
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
