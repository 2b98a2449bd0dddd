/* SPDX-License-Identifier: Apache-2.0 */
/* Means of the host sampler, from the header and from META_SAMPLE. */
#include "analysis/recording/host_means.h"

#include <stdlib.h>
#include "analysis/base/numbers.h"

/* A change is a text META_SAMPLE: its number is the new mean, its text the birth from which it
 * holds. */
struct host_means host_means_of(const struct reader *reader, const struct meta *meta)
{
	struct host_means means = { 0 };

	if (reader->header.options_host_mode == CUF_HOST_SAMPLED)
		means.first_bytes = reader->header.sample_mean_bytes;
	for (size_t i = 0;
	     means.first_bytes && i < meta->text_count && means.count < HOST_MEANS_MAX; i++) {
		const struct fact_meta_text *text = &meta->texts[i];
		if (text->type != CUF_META_SAMPLE || !text->number)
			continue;
		means.changes[means.count].birth = (uint32_t)strtoul(text->text, NULL, 10);
		means.changes[means.count++].mean_bytes = text->number;
	}
	return means;
}

/* The last change that is not later than the birth decides. Changes are in the order of time. */
uint64_t host_means_at(const struct host_means *means, uint32_t birth)
{
	uint64_t mean_bytes = means->first_bytes;
	for (unsigned i = 0; i < means->count && means->changes[i].birth <= birth; i++)
		mean_bytes = means->changes[i].mean_bytes;
	return mean_bytes;
}

uint64_t host_means_most(const struct host_means *means)
{
	uint64_t most = means->first_bytes;
	for (unsigned i = 0; i < means->count; i++)
		most = most_of(means->changes[i].mean_bytes, most);
	return most;
}
