/* SPDX-License-Identifier: Apache-2.0 */
/* Sums over the host ledger. */
#include "analysis/measure/heap.h"

#include <math.h>
#include <stdlib.h>
#include "analysis/base/hash_index.h"
#include "analysis/base/numbers.h"
#include "analysis/base/xalloc.h"
#include "analysis/measure/host_ledger.h"
#include "analysis/recording/host_weight.h"

static bool next_block(const struct reader *reader, uint64_t *at, struct heap_block *block)
{
	struct cuf_host_block entry;
	uint64_t addr, bytes;
	uint32_t birth;

	if (!host_ledger_next(reader, at, &entry))
		return false;
	addr = cuf_host_addr(entry.word0);
	bytes = cuf_host_bytes(entry.word1);
	birth = (uint32_t)(entry.word0 & 0x7ffff);
	*block = (struct heap_block){ reader_call_site(reader, cuf_host_stack(entry.word1)), birth,
				      bytes,
				      reader->header.start_ns + cuf_birth_ms(birth) * 1000000u,
				      cuf_address_is_python(addr, bytes) };
	return true;
}

bool heap_row(const struct reader *reader, uint64_t *at, struct sites *sites, struct heap_row *row)
{
	struct site_key keys[SITES_ROW];
	row->count = 0;
	while (row->count < SITES_ROW && next_block(reader, at, &row->blocks[row->count])) {
		keys[row->count] = (struct site_key){ row->blocks[row->count].stack, CUF_KIND_HOST,
						      CUF_DEVICE_NONE };
		row->count++;
	}
	sites_get_row(sites, keys, row->count, row->sites);
	return row->count;
}

void host_estimate_add(struct host_estimate *estimate, double weight, double chance, double sign)
{
	double variance = (1 - chance) * weight * weight;
	estimate->value += sign * weight;
	estimate->variance += sign * variance;
	estimate->third += sign * variance * (1 - 2 * chance) * weight;
}

/* Events that were subtracted without having been added leave no meaningful moments. */
static void estimate_clamp(struct host_estimate *estimate)
{
	double value = estimate->value;
	if (!(value < 0 || estimate->variance < 0))
		return;
	*estimate = (struct host_estimate){ 0 };
	if (value > 0)
		estimate->value = value;
}

/* The quantile of a gamma distribution of scale 1 at z standard deviations, after Wilson and
 * Hilferty. */
static double gamma_quantile(double shape, double z)
{
	double root;
	if (!(shape > 0))
		return 0;
	root = 1 - 1 / (9 * shape) + z / (3 * sqrt(shape));
	if (!(root > 0))
		return 0;
	return shape * root * root * root;
}

struct host_interval host_estimate_interval(const struct host_estimate *estimate, double unseen)
{
	const double z = 1.959964;
	double scale = unseen, samples, certain;
	if (estimate->variance > 0)
		scale = estimate->third / estimate->variance;
	if (isinf(scale))
		return (struct host_interval){ estimate->value, INFINITY };
	if (scale <= 0) { /* nearly all blocks were recorded: no rare ones */
		double half = z * sqrt(estimate->variance);
		return (struct host_interval){ fmax(0, estimate->value - half),
					       estimate->value + half };
	}
	samples = estimate->variance / (scale * scale);
	certain = estimate->value - scale * samples;
	return (struct host_interval){ fmax(0, certain + scale * gamma_quantile(samples, -z)),
				       certain + scale * gamma_quantile(samples + 1, z) };
}

/* A recorded block. */
struct weighed {
	uint64_t bytes, mean_bytes;
	bool is_python;
};

/* Adds it to its site and to all, weighted by its chance; sign -1 subtracts it. */
static void add_weighed(struct site *site, struct heap_totals *all, const struct weighed *block,
			double sign)
{
	double chance = host_weight_chance(block->bytes, block->mean_bytes),
	       weight = (double)block->bytes / chance,
	       variance = (1 - chance) * weight * weight;
	host_estimate_add(block->is_python ? &all->python_bytes : &all->bytes, weight, chance,
			  sign);
	host_estimate_add(block->is_python ? &all->python_count : &all->count, 1 / chance, chance,
			  sign);
	/* per site: integers, with the weights that its events have */
	site->live_bytes += (uint64_t)(int64_t)sign *
			    host_weight_bytes(block->bytes, block->mean_bytes);
	site->live_count += (uint64_t)(int64_t)sign *
			    host_weight_count(block->bytes, block->mean_bytes);
	site->live_variance += sign * variance;
	site->live_third += sign * variance * (1 - 2 * chance) * weight;
}

void heap_undo(const struct reader *reader, const struct host_event *event, struct sites *sites,
	       struct heap_totals *out)
{
	int sign = host_event_sign(event->op);

	if (sign && event->bytes)
		add_weighed(sites_get(sites, CUF_KIND_HOST, CUF_DEVICE_NONE,
				      reader_call_site(reader, event->stack)),
			    out,
			    &(struct weighed){ event->bytes, event->sample_mean_bytes,
					       cuf_address_is_python(event->addr, event->bytes) },
			    -sign);
}

void heap_settle(struct sites *sites, struct heap_totals *out)
{
	/* events lost from the ring can make a sum negative */
	for (size_t i = 0; i < sites->count; i++) {
		struct site *site = &sites->items[i];
		if ((int64_t)site->live_bytes < 0 || (int64_t)site->live_count <= 0)
			site->live_bytes = site->live_count = 0;
	}
	estimate_clamp(&out->bytes);
	estimate_clamp(&out->count);
	estimate_clamp(&out->python_bytes);
	estimate_clamp(&out->python_count);
}

/* A block of the ledger, with its birth. */
static void count_live(struct site *site, struct heap_totals *out, const struct heap_block *block,
		       uint64_t mean_bytes)
{
	add_weighed(site, out, &(struct weighed){ block->bytes, mean_bytes, block->is_python }, 1);
	if (block->birth_ns < site->first_ns)
		site->first_ns = block->birth_ns;
	if (site->last_ns == CUF_UNKNOWN || block->birth_ns > site->last_ns)
		site->last_ns = block->birth_ns;
}

struct heap_totals heap_totals_of(const struct reader *reader, const struct host_means *means)
{
	const struct reader_section *ledger = &reader->sections[CUF_SEC_HOST_LEDGER];
	uint64_t mean_bytes = host_means_most(means);
	return (struct heap_totals){
		.known = reader->header.options_host_mode != CUF_HOST_OFF && ledger->count &&
			 ledger->count == ledger->planned,
		.estimated = mean_bytes != 0,
		.mean_bytes = mean_bytes,
		.peak_bytes = CUF_UNKNOWN,
		.peak_ns = CUF_UNKNOWN,
	};
}

void heap_read_end(const struct reader *reader, const struct host_means *means,
		   struct sites *sites, struct heap_totals *out)
{
	uint64_t at = 0;
	struct heap_row row;

	*out = heap_totals_of(reader, means);
	while (heap_row(reader, &at, sites, &row))
		for (size_t i = 0; i < row.count; i++)
			count_live(&sites->items[row.sites[i]], out, &row.blocks[i],
				   host_means_at(means, row.blocks[i].birth));
}

void heap_bytes_since(const struct reader *reader, const struct host_means *means,
		      struct heap_since *asked, size_t count)
{
	uint64_t at = 0;
	struct heap_block block;

	while (next_block(reader, &at, &block))
		for (struct heap_since *one = asked; one < asked + count; one++)
			if (block.birth_ns >= one->time_ns && block.bytes >= one->bytes_least)
				one->sum += (double)host_weight_bytes(
					block.bytes, host_means_at(means, block.birth));
}

double heap_live_bytes(const struct reader *reader, const struct host_means *means)
{
	struct heap_since all = { 0 };

	heap_bytes_since(reader, means, &all, 1);
	return all.sum;
}

bool heap_peak(const struct reader *reader, struct heap_moment *peak, double *above_end)
{
	struct host_stream *stream = host_stream_new(reader);
	struct host_event event;
	double live = 0, most = 0;
	uint64_t place = 0;
	bool any = false;
	*peak = (struct heap_moment){ .time_ns = reader->header.start_ns };
	for (; host_stream_next(stream, &event); place++) {
		live += host_event_sign(event.op) *
			(double)host_weight_bytes(event.bytes, event.sample_mean_bytes);
		any = true;
		if (live <= most)
			continue;
		most = live;
		*peak = (struct heap_moment){ .time_ns = event.time_ns, .events = place + 1 };
	}
	host_stream_free(stream);
	*above_end = most - live;
	return any;
}

uint64_t host_whole(double value)
{
	if (!(value > 0 && value < 0x1p62)) /* NaN, too */
		return 0;
	return (uint64_t)llround(value);
}

enum { GONE_MAX = 4 << 20 };

/* A block that was freed after the moment, or one allocated and freed after it. */
struct gone {
	uint64_t bytes, birth_ns; /* birth_ns CUF_UNKNOWN: not found */
	uint64_t mean_bytes;
	uint32_t stack;
	bool was_live; /* at the moment */
};

struct heap_births {
	const struct reader *reader;
	const struct host_means *means;
	struct sites sites; /* which heap_row looks up; not used here */
	struct hash_index index; /* address to a place in gone, plus one */
	struct gone *gone;
	size_t count, room, at;
	uint64_t until_ns; /* the moment; CUF_UNKNOWN: the end */
	uint64_t ledger_at;
	bool ledger_is_read, are_too_many;
};

/* The first event of an address after the moment shows whether a block was live there. */
void heap_births_later(struct heap_births *births, const struct host_event *event)
{
	int sign = host_event_sign(event->op);
	uint32_t *place;

	if (!sign || !event->bytes || births->are_too_many)
		return;
	place = hash_index_place(&births->index, event->addr);
	if (*place)
		return;
	if (births->count == GONE_MAX) {
		births->are_too_many = true;
		births->count = 0;
		return;
	}
	xalloc_grow(&births->gone, births->count, &births->room, sizeof *births->gone);
	births->gone[births->count] =
		(struct gone){ .bytes = event->bytes,
			       .birth_ns = CUF_UNKNOWN,
			       .mean_bytes = event->sample_mean_bytes,
			       .stack = reader_call_site(births->reader, event->stack),
			       .was_live = sign < 0 };
	*place = (uint32_t)++births->count;
}

/* The last allocation at an address before the moment is the block's birth. */
void heap_births_before(struct heap_births *births, const struct host_event *event)
{
	uint32_t found;

	if (!births->count || !event->bytes || host_event_sign(event->op) <= 0)
		return;
	found = hash_index_find(&births->index, event->addr);
	if (found)
		births->gone[found - 1].birth_ns = event->time_ns;
}

struct heap_births *heap_births_new(const struct reader *reader, const struct host_means *means,
				    uint64_t until_ns)
{
	struct heap_births *births = xalloc_zeroed(1, sizeof *births);
	births->reader = reader;
	births->means = means;
	births->until_ns = until_ns;
	sites_init(&births->sites);
	hash_index_init(&births->index, 1024);
	return births;
}

static struct heap_birth birth_of(uint32_t stack, uint64_t birth_ns, uint64_t bytes,
				  uint64_t mean_bytes)
{
	double chance = host_weight_chance(bytes, mean_bytes), weight = (double)bytes / chance;
	return (struct heap_birth){ stack, birth_ns, host_weight_bytes(bytes, mean_bytes),
				    (1 - chance) * weight * weight };
}

/* Blocks of the ledger that were born after the moment are left out. */
static size_t next_of_ledger(struct heap_births *births, struct heap_birth *out)
{
	struct heap_row row;
	size_t count = 0;
	while (!count && heap_row(births->reader, &births->ledger_at, &births->sites, &row))
		for (size_t i = 0; i < row.count; i++) {
			const struct heap_block *block = &row.blocks[i];
			if (block->birth_ns > births->until_ns)
				continue;
			out[count++] = birth_of(block->stack, block->birth_ns, block->bytes,
						host_means_at(births->means, block->birth));
		}
	return count;
}

size_t heap_births_next(struct heap_births *births, struct heap_birth *out)
{
	size_t count = 0;
	if (!births->ledger_is_read) {
		count = next_of_ledger(births, out);
		if (count)
			return count;
		births->ledger_is_read = true;
	}
	while (count < SITES_ROW && births->at < births->count) {
		const struct gone *gone = &births->gone[births->at++];
		if (gone->was_live && is_known(gone->birth_ns))
			out[count++] = birth_of(gone->stack, gone->birth_ns, gone->bytes,
						gone->mean_bytes);
	}
	return count;
}

void heap_births_free(struct heap_births *births)
{
	if (!births)
		return;
	sites_fini(&births->sites);
	hash_index_fini(&births->index);
	free(births->gone);
	free(births);
}
