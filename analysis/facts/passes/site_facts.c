/* SPDX-License-Identifier: Apache-2.0 */
/* leaks[] and growth[]: the rows of call sites, as their growth was judged. */
#include "analysis/facts/passes/passes.h"

#include <stdlib.h>
#include "analysis/facts/passes/roles.h"
#include "analysis/base/numbers.h"
#include "analysis/base/xalloc.h"
#include "analysis/measure/heap.h"

enum { ROWS_DEFAULT = 1000 };

struct rows {
	struct fact_site *items;
	size_t count, room, most;
	int (*order)(const void *, const void *);
};

static unsigned rank_of(const struct fact_site *site)
{
	return (unsigned)least_of(site->class, CLASS_GROWING + 1);
}

/* Leaks first, then what grows, then the others, each by size. Ties are broken, so that reports are
 * the same every time. */
static int by_bytes(const void *a, const void *b)
{
	const struct fact_site *left = a, *right = b;
	if (rank_of(left) != rank_of(right))
		return compare_numbers(rank_of(left), rank_of(right));
	if (left->bytes != right->bytes)
		return compare_numbers(right->bytes, left->bytes);
	if (left->process != right->process)
		return compare_numbers(left->process, right->process);
	return compare_numbers(left->stack.id, right->stack.id);
}

/* What grew most comes first. */
static int by_growth(const void *a, const void *b)
{
	const struct fact_site *left = a, *right = b;
	if (left->grown_bytes != right->grown_bytes)
		return compare_numbers(right->grown_bytes, left->grown_bytes);
	return by_bytes(a, b);
}

/* Only the first `most` rows are kept; sorting them out now and then keeps millions of sites from
 * piling up. */
static void cut(struct rows *rows)
{
	if (rows->count)
		qsort(rows->items, rows->count, sizeof *rows->items, rows->order);
	rows->count = least_of(rows->count, rows->most);
}

/* The list is cut when it is four times too long, so a call costs constant time on average. */
static void add_row(struct rows *rows, const struct fact_site *row)
{
	if (rows->count >= 4 * rows->most)
		cut(rows);
	xalloc_grow(&rows->items, rows->count, &rows->room, sizeof *row);
	rows->items[rows->count++] = *row;
}

/* Only sampled host sites have a variance. The others are exact. */
static void fill_interval(const struct site *site, struct fact_site *row)
{
	struct host_estimate estimate = { (double)site->live_bytes, site->live_variance,
					  site->live_third };
	struct host_interval interval = host_estimate_interval(&estimate, 0);
	
	row->low_bytes = row->high_bytes = row->bytes;
	if (site->live_variance > 0) {
		row->low_bytes = host_whole(interval.low);
		row->high_bytes = host_whole(interval.high);
	}
}

struct site_rows { struct rows live, grown; };

struct site_rows *site_rows_new(size_t most)
{
	struct site_rows *rows = xalloc_zeroed(1, sizeof *rows);

	rows->live = (struct rows){ .most = most ? most : ROWS_DEFAULT, .order = by_bytes };
	rows->grown = (struct rows){ .most = rows->live.most, .order = by_growth };
	return rows;
}

/* Call sites with live memory go to `live`, those that hold more than at the first event to
 * `grown`; many are in both. */
void site_rows_add(struct site_rows *rows, const struct facts *facts, struct block_memory *memory,
		   uint32_t process, const struct growth *growth)
{
	const struct reader *reader = facts->run->processes[process].reader;
	const struct fact_process *whose = &facts->processes[process];
	for (size_t i = 0; i < growth->sites.count; i++) {
		const struct site *site = &growth->sites.items[i];
		struct fact_site row;
		uint64_t last_ns;

		if ((!site->live_count && site->net_bytes <= 0) || site->live_bytes > BYTES_SANE)
			continue;
		growth_judge(growth, site, &row);
		fill_interval(site, &row);
		row.stack.process = row.process = process;
		row.pid = reader->header.pid;
		row.device = fact_device_of(whose, site->device);
		row.api = fact_hook_name(whose, site->label ? site->label : site->hook);
		last_ns = site->last_ns;
		if (last_ns == CUF_UNKNOWN)
			last_ns = reader->header.start_ns;
		stack_fill(facts, &row.stack, last_ns);
		if (row.kind == CUF_KIND_HOST)
			managed_owner(facts, &row);
		if (row.device != FACT_NONE) {
			struct role role = role_of_site(roles_of(memory, facts, process),
							site->role, site->stack, site->first_ns);
			row.role = role.name;
			row.role_basis = role.basis;
		}
		row.first_ns = reader_realtime(reader, site->first_ns);
		row.last_ns = reader_realtime(reader, site->last_ns);
		if (site->live_count)
			add_row(&rows->live, &row);
		if (site->net_bytes > 0)
			add_row(&rows->grown, &row);
	}
}

/* Moves the rows from the heap into the arena. */
static struct fact_site *settle_rows(const struct facts *facts, struct rows *rows, size_t *count)
{
	struct fact_site *kept;
	cut(rows);
	*count = rows->count;
	kept = arena_copy(facts->arena, rows->items, *count, sizeof *kept);
	free(rows->items);
	return kept;
}

void site_rows_end(struct site_rows *rows, struct facts *facts)
{
	facts->leaks = settle_rows(facts, &rows->live, &facts->leak_count);
	facts->growth = settle_rows(facts, &rows->grown, &facts->growth_count);
	free(rows);
}
