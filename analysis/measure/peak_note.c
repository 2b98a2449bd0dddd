/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/measure/peak_note.h"

#include <string.h>
#include "analysis/base/numbers.h"

static bool is_sane_site(const struct cuf_host_peak_site *site)
{
	return site->exact_bytes <= BYTES_SANE && site->weight_bytes <= BYTES_SANE &&
	       site->sampled_bytes <= site->weight_bytes &&
	       !site->sampled_count == !site->sampled_bytes && site->is_python <= 1;
}

static bool is_whole_note(const struct cuf_host_peak *note)
{
	if (!note->number || !note->time_ns || note->live_bytes > BYTES_SANE ||
	    note->site_count > CUF_PEAK_SITES)
		return false;
	for (uint64_t i = 0; i < note->site_count; i++)
		if (!is_sane_site(&note->sites[i]))
			return false;
	return is_sane_site(&note->rest[0]) && is_sane_site(&note->rest[1]);
}

bool peak_note_read(const struct reader *reader, struct cuf_host_peak *note)
{
	bool any = false;
	for (uint64_t i = 0; i < reader_count(reader, CUF_SEC_HOST_PEAK); i++) {
		struct cuf_host_peak other;
		memcpy(&other, reader_at(reader, CUF_SEC_HOST_PEAK, i), sizeof other);
		if (!is_whole_note(&other) || (any && other.number < note->number))
			continue;
		*note = other;
		any = true;
	}
	return any;
}

/* Blocks of one call site are taken to be of their mean size. */
static void add_noted_site(struct site *site, const struct cuf_host_peak_site *noted,
			   struct host_estimate *bytes, struct host_estimate *count)
{
	struct host_estimate sampled = { 0, 0, 0 };

	host_estimate_add(bytes, (double)noted->exact_bytes, 1, 1);
	host_estimate_add(count, noted->exact_count, 1, 1);
	site->live_bytes += noted->exact_bytes + noted->weight_bytes;
	site->live_count += noted->exact_count;
	if (!noted->sampled_count)
		return;
	double chance = (double)noted->sampled_bytes / (double)noted->weight_bytes;
	host_estimate_add(&sampled, (double)noted->weight_bytes / noted->sampled_count, chance, 1);
	bytes->value += (double)noted->weight_bytes;
	bytes->variance += sampled.variance * noted->sampled_count;
	bytes->third += sampled.third * noted->sampled_count;
	count->value += noted->sampled_count / chance;
	count->variance += noted->sampled_count * (1 - chance) / (chance * chance);
	site->live_count += host_whole(noted->sampled_count / chance);
	site->live_variance += sampled.variance * noted->sampled_count;
	site->live_third += sampled.third * noted->sampled_count;
}

void peak_note_add(const struct reader *reader, const struct cuf_host_peak *note,
		   struct sites *sites, struct heap_totals *out)
{
	for (uint64_t i = 0; i < note->site_count + 2; i++) {
		const struct cuf_host_peak_site *noted = &note->sites[i];
		if (i >= note->site_count)
			noted = &note->rest[i - note->site_count];
		if (!noted->exact_bytes && !noted->weight_bytes)
			continue;
		add_noted_site(sites_get(sites, CUF_KIND_HOST, CUF_DEVICE_NONE,
					 reader_call_site(reader, noted->stack)),
			       noted, noted->is_python ? &out->python_bytes : &out->bytes,
			       noted->is_python ? &out->python_count : &out->count);
	}
}

bool peak_note_or_events(const struct reader *reader, const struct host_means *means,
			 struct cuf_host_peak *note, struct heap_moment *peak)
{
	double above_end = 0;
	bool any = heap_peak(reader, peak, &above_end);

	if (!reader->header.host_overwritten || !peak_note_read(reader, note))
		return any;
	if (any && (double)note->live_bytes <= heap_live_bytes(reader, means) + above_end)
		return true;
	*peak = (struct heap_moment){ .time_ns = note->time_ns,
				      .events = CUF_UNKNOWN,
				      .note = note };
	return true;
}
