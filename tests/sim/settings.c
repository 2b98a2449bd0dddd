/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The settings of a simulated device, for the driver and NVML, read from the environment when a
 * library is loaded.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/driver.h"

struct settings settings;

static bool size_read(const char *text, uint64_t *bytes, const char **rest)
{
	static const struct { const char *suffix; unsigned shift; } units[] = {{"KiB", 10}, {"MiB", 20}, {"GiB", 30}, {"TiB", 40}};
	char *end;
	*bytes = strtoull(text, &end, 10);
	for (unsigned i = 0; i < sizeof units / sizeof *units; i++)
		if (!strncmp(end, units[i].suffix, 3)) {
			*bytes <<= units[i].shift;
			end += 3;
			break;
		}
	*rest = end;
	return end != text;
}

static uint64_t size_from(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name), *rest;
	uint64_t bytes;
	if (!text || !*text)
		return otherwise;
	if (size_read(text, &bytes, &rest) && !*rest)
		return bytes;
	fprintf(stderr, "simcuda: %s=%s: not a size (bytes, KiB, MiB, GiB, TiB)\n", name, text);
	return otherwise;
}

/* "PID:BYTES", comma-separated; a question mark behind it: NVML cannot tell how many. */
static void tenants_read(const char *text)
{
	while (text && *text && settings.tenant_count < TENANTS_MAX) {
		struct gpu_process *t = &settings.tenants[settings.tenant_count];
		const char *rest = text;
		char *end;
		t->pid = (uint32_t)strtoul(text, &end, 10);
		if (end == text || *end != ':' || !size_read(end + 1, &t->bytes, &rest)) {
			fprintf(stderr, "simcuda: SIMCUDA_TENANTS: cannot read \"%s\"\n", text);
			return;
		}
		t->untold = *rest == '?';
		settings.tenant_bytes += t->bytes;
		settings.tenant_count++;
		text = strchr(rest, ',');
		text += text != NULL;
	}
}

__attribute__((constructor)) static void settings_read(void)
{
	const char *state = getenv("SIMCUDA_STATE");
	settings.devices = (int)size_from("SIMCUDA_DEVICES", 1);
	if (settings.devices > DEVICES_MAX)
		settings.devices = DEVICES_MAX;
	settings.version = (int)size_from("SIMCUDA_DRIVER_VERSION", 13000);
	settings.total_bytes = size_from("SIMCUDA_TOTAL", 16ull << 30);
	settings.other_bytes = size_from("SIMCUDA_OTHER", 0);
	settings.context_bytes = round_up(size_from("SIMCUDA_CONTEXT", 64ull << 20), PAGE_BYTES);
	settings.module_bytes = round_up(size_from("SIMCUDA_MODULE", 0), PAGE_BYTES);
	settings.granularity_bytes = size_from("SIMCUDA_GRANULARITY", PAGE_BYTES);
	settings.delay_us = (unsigned)size_from("SIMCUDA_DELAY_US", 0);
	settings.lookups_only = size_from("SIMCUDA_LOOKUPS_ONLY", 0) != 0;
	settings.no_vmm = size_from("SIMCUDA_NO_VMM", 0) != 0;
	settings.log = getenv("SIMCUDA_LOG");
	settings.state = state && *state ? state : NULL;
	tenants_read(getenv("SIMCUDA_TENANTS"));
}
