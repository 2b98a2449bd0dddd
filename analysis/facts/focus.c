/* SPDX-License-Identifier: Apache-2.0 */
/* Choosing the incident, the process and the device to show first. */
#include "analysis/facts/focus.h"

#include <string.h>

const struct fact_incident *focus_incident(const struct facts *facts)
{
	for (size_t i = 0; facts->fatal_incident && i < facts->incident_count; i++)
		if (facts->incidents[i].id == facts->fatal_incident)
			return &facts->incidents[i];
	return NULL;
}

const struct fact_process *focus_process(const struct facts *facts)
{
	const struct fact_incident *incident = focus_incident(facts);
	if (incident)
		return &facts->processes[incident->process];
	return &facts->processes[facts->focus];
}

/*
 * How much of the device was in use at the peak. Without its size, the bytes still order
 * devices.
 */
static double fullness(const struct fact_device *device)
{
	double total = 1e18;
	if (device->peak_bytes == CUF_UNKNOWN)
		return -1;
	if (device->total_bytes && device->total_bytes != CUF_UNKNOWN)
		total = (double)device->total_bytes;
	return (double)device->peak_bytes / total;
}

const struct fact_device *focus_device(const struct facts *facts)
{
	const struct fact_incident *incident = focus_incident(facts);
	const struct fact_device *best = NULL;
	if (incident && incident->device < facts->device_count)
		return &facts->devices[incident->device];
	for (size_t i = 0; i < facts->device_count; i++)
		if (!best || fullness(&facts->devices[i]) > fullness(best))
			best = &facts->devices[i];
	return best;
}

bool focus_is_locked(const struct facts *facts)
{
	const struct fact_incident *incident = focus_incident(facts);
	if (facts->cause && facts->cause->is_page_lock)
		return true;
	return incident &&
	       (incident->kind == CUF_KIND_PINNED || incident->kind == CUF_KIND_REGISTERED);
}

bool focus_is_host(const struct facts *facts)
{
	const struct fact_incident *incident = focus_incident(facts);
	if (incident)
		return incident->device == FACT_NONE || focus_is_locked(facts);
	if (focus_process(facts)->end == END_OOM_KILLED || !facts->device_count)
		return true;
	return facts->cause && facts->cause->device == FACT_NONE;
}
