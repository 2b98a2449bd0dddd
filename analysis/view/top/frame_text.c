/* SPDX-License-Identifier: Apache-2.0 */
/* A frame for people: GPUs, then each process with its verdict and its call sites. */
#include "analysis/view/top/frame.h"

#include <math.h>
#include "analysis/base/units.h"
#include "analysis/watch/devices.h"

static void put_device(FILE *out, const struct watch *watch, const struct watch_device *device)
{
	fprintf(out, "GPU %u  %s", device->gpu, units_bytes(device->total_bytes).s);
	for (unsigned owner = 0; device->has_pass && owner < WATCH_OWNER_MAX; owner++) {
		uint64_t bytes = device->rest[owner];

		for (size_t i = 0; owner < WATCH_OWN_MAX && i < watch->count; i++) {
			const struct pass_device *own =
				watch_device_of(watch->processes[i], device->uuid, device->gpu);
			if (own && watch_runs(watch->processes[i]))
				bytes += own->owners[owner];
		}
		if (bytes)
			fprintf(out, "  %s %s", watch_owner_names[owner], units_bytes(bytes).s);
	}
	fputc('\n', out);
}

static struct unit_text seconds(double seconds)
{
	return units_duration((uint64_t)(seconds * 1e9));
}

static void put_verdict(FILE *out, const struct watch_process *process)
{
	const struct pass *pass = process->pass;
	const struct live_resource *first;

	if (*process->pass_error) {
		fprintf(out, "levels only: %s\n", process->pass_error);
	} else if (!pass) {
		fputs("not analysed yet\n", out);
	} else if (!watch_runs(process)) {
		fprintf(out, "ended: %s%s%s\n", pass->end, *pass->cause ? ", " : "", pass->cause);
	} else if (pass->is_too_early) {
		fprintf(out, "too early: %s of %s\n", seconds(pass->observed_s).s,
			seconds(pass->needed_s).s);
	} else if ((first = live_first_to_end(pass->resources, pass->resource_count))) {
		fprintf(out, "growing: %s %s/s, %s full in %s\n",
			*pass->cause_site ? pass->cause_site : "?",
			units_bytes_signed(first->bytes_per_s[LIVE_EXPECTED]).s,
			live_resource_words[first->kind], seconds(first->oom_s[LIVE_EXPECTED]).s);
	} else {
		fputs("steady\n", out);
	}
}

static void put_site(FILE *out, const struct pass_site *site)
{
	fprintf(out, "  %10s  %-9s  %-8s  %s\n", units_bytes(site->bytes).s,
		watch_memory_names[site->memory],
		site->is_judged ? live_state_names[site->state] : "", site->name);
}

void top_text(FILE *out, const struct watch *watch, unsigned rows)
{
	struct watch_device devices[WATCH_DEVICES];
	size_t count = watch_devices(watch, devices);

	for (size_t i = 0; i < count; i++)
		put_device(out, watch, &devices[i]);
	if (!watch->count)
		fputs("nothing is recorded now\n", out);
	for (size_t i = watch->count; i-- > 0; ) {
		const struct watch_process *process = watch->processes[i];
		const struct pass *pass = process->pass;

		if (process->is_succeeded)
			continue;
		fprintf(out, "\n%s (pid %u)  ", process->name, process->identity.pid);
		put_verdict(out, process);
		for (size_t s = 0; pass && s < pass->site_count && s < rows; s++)
			put_site(out, &pass->sites[s]);
	}
}
