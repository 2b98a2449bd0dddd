/* SPDX-License-Identifier: Apache-2.0 */
/* Measures the usage of a process and builds the table of owners. */
#include "analysis/measure/owners.h"

#include <stdlib.h>
#include <string.h>
#include "analysis/base/numbers.h"
#include "analysis/replay/replay.h"

/* The row of a kind of block; OWNER_MAX: none (host memory, address ranges, pools). */
static enum fact_owner owner_of(unsigned kind)
{
	static const unsigned char owners[CUF_KIND_MAX] = {
		[CUF_KIND_DEVICE] = OWNER_DEVICE + 1,	[CUF_KIND_ARRAY] = OWNER_ARRAY + 1,
		[CUF_KIND_ASYNC] = OWNER_ASYNC + 1,	[CUF_KIND_GRAPH] = OWNER_GRAPH + 1,
		[CUF_KIND_VMM] = OWNER_VMM + 1,		[CUF_KIND_IMPORTED] = OWNER_IMPORTED + 1,
		[CUF_KIND_CONTEXT] = OWNER_CONTEXT + 1, [CUF_KIND_MANAGED] = OWNER_MANAGED + 1,
	};
	if (kind >= CUF_KIND_MAX || !owners[kind])
		return OWNER_MAX;
	return (enum fact_owner)(owners[kind] - 1);
}

enum fact_owner owner_of_block(unsigned kind)
{
	enum fact_owner owner = owner_of(kind);

	if (kind == CUF_KIND_MAPPING)
		return OWNER_VMM;
	if (owner == OWNER_GRAPH || owner == OWNER_CONTEXT || owner == OWNER_MANAGED)
		return OWNER_MAX;
	return owner;
}

/* A petabyte. No device has that much, so a larger row is damage, and thousands of rows can still
 * be summed. */
#define ROW_BYTES_MAX ((uint64_t)1 << 50)

/* Saturates far below CUF_UNKNOWN, so that a sum of damaged rows is never read as unknown. */
static uint64_t plus(uint64_t a, uint64_t b)
{
	uint64_t sum;
	if (__builtin_add_overflow(a, b, &sum))
		return UINT64_MAX / 4;
	return sum;
}

static void count_block(struct usage *usage, const struct cuf_block *block)
{
	enum fact_owner owner = owner_of(block->kind);
	uint64_t bytes = least_of(block->bytes, (uint64_t)1 << CUF_KEY_SHIFT);
	if (owner == OWNER_MAX)
		return;
	/* aux is the used part of what the graph pool reserved */
	if (owner == OWNER_GRAPH && block->aux < bytes) {
		usage->bytes[OWNER_POOL_SLACK] =
			plus(usage->bytes[OWNER_POOL_SLACK], bytes - block->aux);
		bytes = block->aux;
	}
	usage->bytes[owner] = plus(usage->bytes[owner], bytes);
	usage->count[owner]++;
	usage->estimated |= (block->flags & CUF_EVENT_ESTIMATED) != 0;
	if (block->flags & CUF_EVENT_EXPORTED)
		usage->exported_bytes = plus(usage->exported_bytes, bytes);
}

/* What pools reserve from the driver and do not use. One pool without a report of the driver makes
 * the sum a lower bound. */
static void measure_pools(struct usage *usage)
{
	usage->pool_slack_known = true;
	for (size_t i = 0; i < usage->fragmentation.pool_count; i++) {
		const struct fact_pool *pool = &usage->fragmentation.pools[i];
		if (pool->reserved_bytes == CUF_UNKNOWN || pool->used_bytes == CUF_UNKNOWN)
			usage->pool_slack_known = false;
		else
			usage->bytes[OWNER_POOL_SLACK] =
				plus(usage->bytes[OWNER_POOL_SLACK],
				     subtract_to_zero(pool->reserved_bytes, pool->used_bytes));
	}
}

void usage_measure(const struct device_blocks *blocks, uint32_t pid,
		   const struct driver_state *levels, struct arena *arena, struct usage *out)
{
	size_t at = 0;
	*out = (struct usage){ .pid = pid, .nvml_bytes = CUF_UNKNOWN };
	for (const struct cuf_block *block; (block = liveset_next(blocks->live, &at));)
		if (block->device == blocks->device && !(block->flags & CUF_EVENT_HOST_LOCATION))
			count_block(out, block);
	out->pages = holes_pages(blocks, arena, &out->fragmentation);
	holes_pools(blocks, levels->pools, levels->pool_count, arena, &out->fragmentation);
	holes_vmm(blocks, arena, &out->fragmentation);
	out->bytes[OWNER_PAGE_ROUNDING] =
		subtract_to_zero(out->pages.touched_bytes, out->pages.block_bytes);
	measure_pools(out);
}

uint64_t usage_bytes(const struct usage *usage)
{
	static const enum fact_owner rows[] = { OWNER_DEVICE,	  OWNER_ARRAY,	OWNER_ASYNC,
						OWNER_GRAPH,	  OWNER_VMM,	OWNER_PAGE_ROUNDING,
						OWNER_POOL_SLACK, OWNER_CONTEXT };
	uint64_t sum = 0;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		sum = plus(sum, usage->bytes[rows[i]]);
	return sum;
}

uint64_t packed_bytes(const struct usage *usage, uint64_t free_bytes)
{
	if (free_bytes == CUF_UNKNOWN)
		return CUF_UNKNOWN;
	return plus(
		free_bytes / CUF_PAGE_BYTES * CUF_PAGE_BYTES,
		plus(usage->fragmentation.page_free_bytes,
		     plus(usage->bytes[OWNER_POOL_SLACK], usage->bytes[OWNER_FRAMEWORK_SLACK])));
}

/* The table as it is built. sum: bytes of the rows that are in_sum. */
struct owner_list {
	struct fact_owner_row *items;
	size_t count;
	uint64_t sum;
};

/* Appends a row that counts in the sum. owners_rows() allocates room for the largest table. */
static struct fact_owner_row *add_owner(struct owner_list *rows, enum fact_owner kind,
					uint64_t bytes, uint64_t count, enum fact_basis basis,
					uint32_t pid)
{
	struct fact_owner_row *row = &rows->items[rows->count++];
	if (bytes == CUF_UNKNOWN)
		basis = BASIS_NONE;
	else
		bytes = least_of(bytes, ROW_BYTES_MAX);
	*row = (struct fact_owner_row){ .kind = kind,
					.bytes = bytes,
					.count = count,
					.basis = basis,
					.pid = pid,
					.in_sum = true };
	if (bytes != CUF_UNKNOWN)
		rows->sum = plus(rows->sum, bytes);
	return row;
}

static int by_role_bytes(const void *a, const void *b)
{
	const struct role_sum *left = a, *right = b;
	if (left->bytes != right->bytes)
		return compare_numbers(right->bytes, left->bytes);
	if (left->role && right->role)
		return strcmp(left->role, right->role);
	return !left->role - !right->role; /* rows without a role come last */
}

/*
 * A kind of block: one row for each role, then one for blocks without a role and for bytes that
 * the roles do not account for. What is free inside segments has a row of its own.
 */
static void add_blocks(struct owner_list *rows, const struct usage *usage, enum fact_owner kind,
		       enum fact_basis basis)
{
	uint64_t left = subtract_to_zero(usage->bytes[kind], usage->slack_bytes[kind]), count = 0;
	bool any = false, named = false; /* any: the roles of this kind were counted */
	for (size_t i = 0; i < usage->role_count; i++) {
		const struct role_sum *sum = &usage->roles[i];
		uint64_t bytes = least_of(sum->bytes, left);
		struct fact_owner_row *row;
		if (sum->owner != kind)
			continue;
		any = true;
		if (!sum->role) {
			count = sum->count;
			continue;
		}
		row = add_owner(rows, kind, bytes, sum->count, basis, usage->pid);
		row->role = sum->role;
		row->role_basis = sum->basis;
		left -= bytes;
		named = true;
	}
	if (!any)
		count = usage->count[kind];
	if (!named || left || count)
		add_owner(rows, kind, left, count, basis, usage->pid);
}

/* What is reserved and unused: the remainder of pages, of pools, and of a framework's segments. */
static void add_slack(struct owner_list *rows, const struct owners_question *question)
{
	const struct usage *usage = question->focus;
	uint64_t pools = usage->bytes[OWNER_POOL_SLACK];
	uint64_t framework = usage->bytes[OWNER_FRAMEWORK_SLACK];
	enum fact_basis pools_basis = question->basis;
	if (!usage->pool_slack_known) {
		pools_basis = BASIS_ESTIMATED;
		if (!pools)
			pools = CUF_UNKNOWN;
	}
	if (!usage->framework_known)
		framework = CUF_UNKNOWN;
	add_owner(rows, OWNER_PAGE_ROUNDING, usage->bytes[OWNER_PAGE_ROUNDING], CUF_UNKNOWN,
		  BASIS_INFERRED, usage->pid);
	add_owner(rows, OWNER_POOL_SLACK, pools, CUF_UNKNOWN, pools_basis, usage->pid);
	add_owner(rows, OWNER_FRAMEWORK_SLACK, framework, CUF_UNKNOWN, usage->framework_basis,
		  usage->pid);
}

/* The rows of the process that the table is about. exported_bytes: of the other recorded
 * processes. */
static void add_focus(struct owner_list *rows, const struct owners_question *question,
		      uint64_t exported_bytes)
{
	const struct usage *usage = question->focus;
	if (usage->role_count)
		qsort(usage->roles, usage->role_count, sizeof *usage->roles, by_role_bytes);
	for (enum fact_owner kind = OWNER_DEVICE; kind <= OWNER_IMPORTED; kind++) {
		enum fact_basis basis = question->basis;
		size_t first = rows->count;
		if (kind == OWNER_ARRAY && usage->estimated)
			basis = BASIS_ESTIMATED;
		add_blocks(rows, usage, kind, basis);
		/* memory imported from a process of this run is in its row already */
		for (size_t i = first; i < rows->count && kind == OWNER_IMPORTED; i++)
			if (rows->items[i].bytes &&
			    exported_bytes >= usage->bytes[OWNER_IMPORTED]) {
				rows->items[i].in_sum = false;
				rows->sum -= rows->items[i].bytes;
			}
	}
	add_slack(rows, question);
}

/*
 * Inferred rows are cut when the rows exceed the total of the driver, in the order of this list.
 * Rows of blocks that the program allocated are never cut.
 */
static void cut_to(struct owner_list *rows, uint64_t total_bytes)
{
	static const enum fact_owner softest[] = {
		OWNER_FREE,    OWNER_PAGE_ROUNDING,   OWNER_POOL_SLACK,
		OWNER_CONTEXT, OWNER_OTHER_PROCESSES, OWNER_IMPORTED
	};
	for (size_t s = 0; s < sizeof softest / sizeof *softest; s++)
		for (size_t i = 0; i < rows->count && rows->sum > total_bytes; i++) {
			struct fact_owner_row *row = &rows->items[i];
			uint64_t over = rows->sum - total_bytes;
			if (row->kind != softest[s] || !row->in_sum || row->bytes == CUF_UNKNOWN ||
			    !row->bytes)
				continue;
			over = least_of(over, row->bytes);
			row->bytes -= over;
			row->basis = BASIS_ESTIMATED;
			rows->sum -= over;
		}
}

/* Other processes: what was recorded, or the figure of NVML, which includes their contexts. */
static void add_others(struct owner_list *rows, const struct owners_question *question)
{
	for (size_t i = 0; i < question->other_count; i++) {
		const struct usage *usage = &question->others[i];
		uint64_t bytes = usage_bytes(usage);
		enum fact_basis basis = question->basis;
		bool more = usage->nvml_bytes != CUF_UNKNOWN && usage->nvml_bytes > bytes;
		struct fact_owner_row *row;
		if (more) {
			bytes = usage->nvml_bytes;
			basis = question->gpu_processes_basis;
		}
		row = add_owner(rows, OWNER_OTHER_PROCESSES, bytes, CUF_UNKNOWN, basis, usage->pid);
		row->recorded = true;
		row->by_nvml = more;
		row->name = usage->name;
	}
	for (size_t i = 0; i < question->gpu_process_count; i++) {
		const struct gpu_process *tenant = &question->gpu_processes[i];
		struct fact_owner_row *row =
			add_owner(rows, OWNER_OTHER_PROCESSES, tenant->bytes, CUF_UNKNOWN,
				  question->gpu_processes_basis, tenant->pid);
		row->name = tenant->name;
		row->by_nvml = true;
	}
	if (!question->other_count && !question->gpu_process_count)
		add_owner(rows, OWNER_OTHER_PROCESSES, CUF_UNKNOWN, CUF_UNKNOWN, BASIS_NONE, 0);
}

/* What the driver allocated for itself around calls or, where NVML has a figure for the process,
 * what that leaves unexplained. */
static void add_context(struct owner_list *rows, const struct usage *focus)
{
	uint64_t bytes = focus->bytes[OWNER_CONTEXT];
	uint64_t others = subtract_to_zero(usage_bytes(focus), bytes);
	struct fact_owner_row *row;
	bool more = focus->nvml_bytes != CUF_UNKNOWN &&
		    subtract_to_zero(focus->nvml_bytes, others) > bytes;
	if (more)
		bytes = focus->nvml_bytes - others;
	if (!bytes)
		bytes = CUF_UNKNOWN;
	row = add_owner(rows, OWNER_CONTEXT, bytes, focus->count[OWNER_CONTEXT], BASIS_INFERRED,
			focus->pid);
	row->by_nvml = more;
}

/* Free memory, and whatever the driver's total contains beyond all rows. Raises *total_bytes when
 * the rows still exceed it after cut_to. */
static void add_rest(struct owner_list *rows, const struct owners_question *question,
		     uint64_t *total_bytes)
{
	struct fact_owner_row *unexplained =
		add_owner(rows, OWNER_UNEXPLAINED, CUF_UNKNOWN, CUF_UNKNOWN, BASIS_INFERRED, 0);
	add_owner(rows, OWNER_FREE, question->free_bytes, CUF_UNKNOWN, question->free_basis, 0);
	if (*total_bytes == CUF_UNKNOWN)
		return;
	cut_to(rows, *total_bytes);
	if (rows->sum > *total_bytes)
		*total_bytes = rows->sum;
	/* unknown free memory is part of this row, so the rows still sum to the total */
	unexplained->bytes = *total_bytes - rows->sum;
	if (question->free_bytes == CUF_UNKNOWN)
		unexplained->basis = BASIS_ESTIMATED;
	else
		unexplained->basis = BASIS_INFERRED;
}

struct fact_owner_row *owners_rows(const struct owners_question *question, struct arena *arena,
				   size_t *count, uint64_t *total_bytes)
{
	const struct usage *focus = question->focus;
	/* at most one row for each owner, role and process */
	struct owner_list rows = { .items = arena_zeroed(arena,
							 OWNER_MAX + focus->role_count +
								 question->other_count +
								 question->gpu_process_count,
							 sizeof *rows.items) };
	uint64_t exported = 0;
	struct fact_owner_row *managed;
	for (size_t i = 0; i < question->other_count; i++)
		exported = plus(exported, question->others[i].exported_bytes);
	*total_bytes = question->total_bytes <= ROW_BYTES_MAX ? question->total_bytes : CUF_UNKNOWN;
	add_focus(&rows, question, exported);
	add_others(&rows, question);
	add_context(&rows, focus);
	add_rest(&rows, question, total_bytes);
	/* managed memory migrates between host and device, so it is listed but not in the sum */
	managed = &rows.items[rows.count++];
	*managed = (struct fact_owner_row){ .kind = OWNER_MANAGED,
					    .bytes = focus->bytes[OWNER_MANAGED],
					    .count = focus->count[OWNER_MANAGED],
					    .basis = question->basis,
					    .pid = focus->pid };
	*count = rows.count;
	return rows.items;
}
