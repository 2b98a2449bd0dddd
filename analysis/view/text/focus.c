/* SPDX-License-Identifier: Apache-2.0 */
/* Choosing the incident and the device to show first. */
#include "analysis/view/text/focus.h"

const struct fact_incident *focus_incident(const struct facts *facts)
{
	for (size_t i = 0; facts->fatal_incident && i < facts->incident_count; i++)
		if (facts->incidents[i].id == facts->fatal_incident)
			return &facts->incidents[i];
	return NULL;
}

static double fullness(const struct fact_device *device)
{
	if (device->peak_bytes == CUF_UNKNOWN)
		return -1;
	return (double)device->peak_bytes / (device->total_bytes && device->total_bytes != CUF_UNKNOWN ? (double)device->total_bytes : 1e18);
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
