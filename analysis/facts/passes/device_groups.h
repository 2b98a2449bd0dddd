/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The devices of a run: every process numbers them by its own driver, so one device may have
 * several ordinals. Contract: build_groups comes before whatever takes an index into
 * facts.devices; the groups belong to struct build.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct build;

/* One process's use of a device. */
struct device_member {
	uint32_t process, ordinal;
};

struct device_group {
	struct device_member *members;
	size_t count, room;
};

/* Fills build->groups: one for each device, by the ordinal of its first member. */
void build_groups(struct build *build);
/* Index into facts.devices; FACT_NONE: the process did not use it. */
uint32_t group_of(const struct build *build, uint32_t process, unsigned ordinal);
/* The ordinal of a device in a process; CUF_DEVICE_NONE: the process did not use it. */
unsigned ordinal_in(const struct build *build, uint32_t device, uint32_t process);
