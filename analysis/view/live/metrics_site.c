/* SPDX-License-Identifier: Apache-2.0 */
/* Metrics of call sites and of the cause that was found. */
#include <string.h>
#include "analysis/view/live/exposition.h"
#include "analysis/view/live/metrics_groups.h"
#include "analysis/view/text/text.h"

static const struct cuf_device *device_at(const struct watch_process *process, unsigned ordinal)
{
	for (size_t i = 0; i < process->levels.device_count; i++)
		if (process->levels.devices[i].ordinal == ordinal)
			return &process->levels.devices[i];
	return NULL;
}

/* A site that holds nothing any more has 0, not no sample: its series goes on. */
static void put_site(struct exposition *out, const struct watch_process *process,
		     const struct shown_site *site, bool leaks)
{
	const struct pass_site *now = watch_site_now(process, site);
	const struct cuf_device *device = device_at(process, site->device);
	struct gpu_label label;
	uint64_t bytes = 0;

	if (now)
		bytes = leaks ? now->leak_bytes : now->bytes;
	if (device)
		label = gpu_label(device->ordinal, device->uuid);
	put_bytes(out, bytes, process->name, device ? label.gpu : NULL,
		  device ? label.uuid : NULL, site->name, watch_memory_names[site->memory]);
}

static void put_sites(struct exposition *out, bool leaks)
{
	const struct watch_process *process;

	for (size_t at = 0; (process = next_process(out, &at)); )
		for (size_t i = 0; !out->options->no_sites && watch_runs(process) &&
				   i < process->site_count; i++)
			put_site(out, process, &process->sites[i], leaks);
}

static void put_bytes_of_sites(struct exposition *out) { put_sites(out, false); }
const struct exposed metric_site = {
	"cuflight_site_bytes", METRIC_GAUGE,
	"process,gpu,UUID,site,memory=device|framework|host|pinned",
	"Live bytes of a call site: the largest, and those that leak; at most 8 a process.",
	"last pass", put_bytes_of_sites,
};

static void put_leaks(struct exposition *out) { put_sites(out, true); }
const struct exposed metric_leak = {
	"cuflight_leak_bytes", METRIC_GAUGE,
	"process,gpu,UUID,site,memory=device|framework|host|pinned",
	"The same, as far as the site is proven to leak.", "last pass", put_leaks,
};

static void put_cause(struct exposition *out)
{
	const struct watch_process *process;

	for (size_t at = 0; (process = next_process(out, &at)); ) {
		const struct pass *pass = process->pass;

		if (pass && *pass->cause)
			put_bytes(out, 1, process->name, pass->cause,
				  text_confidence(pass->confidence),
				  *pass->cause_site && !out->options->no_sites ? pass->cause_site :
										 NULL);
	}
}
const struct exposed metric_cause = {
	"cuflight_cause", METRIC_GAUGE, "process,cause,confidence,site",
	"What the report names as the cause, by the names of cuflight-causes(7); 1.", "last pass",
	put_cause,
};
