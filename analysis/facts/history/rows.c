/* SPDX-License-Identifier: Apache-2.0 */
/* What all rows need: filter, call sites, roles, phases, and blocks of the recording as rows. */
#include "analysis/facts/history/rows.h"

#include <stdlib.h>
#include "analysis/base/numbers.h"
#include "analysis/base/xalloc.h"
#include "analysis/measure/host_ledger.h"
#include "analysis/facts/places.h"
#include "analysis/recording/host_weight.h"
#include "analysis/facts/history/rows_parts.h"

const char *const row_part_names[ROW_PART_MAX] = { NULL, "malloc", "map", "python" };
const char *const event_op_names[EVENT_OP_MAX] = { "alloc", "free", "restore", "fail" };

struct rows_filter rows_filter_all(void)
{
	struct rows_filter filter = { .device = FACT_NONE, .interpreter = true };

	for (unsigned kind = 0; kind < CUF_KIND_MAX; kind++)
		if (kind_is_block(kind) || kind == CUF_KIND_FRAMEWORK || kind == CUF_KIND_HOST)
			filter.kinds |= 1u << kind;
	return filter;
}

static uint64_t role_key(uint32_t process, unsigned kind, uint32_t stack)
{
	return (uint64_t)process << 40 | (uint64_t)kind << 32 | stack;
}

/* Roles that the report found by function names and phases. */
static void note_roles(struct rows *rows, const struct fact_site *sites, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		uint32_t *place;

		if (!sites[i].role)
			continue;
		place = hash_index_place(&rows->role_index,
					 role_key(sites[i].process, sites[i].kind,
						  sites[i].stack.id));
		if (*place)
			continue;
		xalloc_grow(&rows->roles, rows->role_count, &rows->role_room, sizeof *rows->roles);
		rows->roles[rows->role_count++] = sites[i].role;
		*place = (uint32_t)rows->role_count;
	}
}

struct rows *rows_new(const struct facts *facts, struct frames *frames,
		      const struct rows_filter *filter)
{
	struct rows *rows = xalloc_zeroed(1, sizeof *rows);

	rows->facts = facts;
	rows->frames = frames;
	rows->run = facts->run;
	rows->filter = *filter;
	hash_index_init(&rows->site_index, 1024);
	hash_index_init(&rows->role_index, 64);
	rows->phases = xalloc_zeroed(facts->process_count, sizeof *rows->phases);
	note_roles(rows, facts->leaks, facts->leak_count);
	note_roles(rows, facts->growth, facts->growth_count);
	return rows;
}

void rows_free(struct rows *rows)
{
	if (!rows)
		return;
	for (size_t i = 0; i < rows->facts->process_count; i++) {
		if (rows->phases[i].ready)
			hash_index_fini(&rows->phases[i].cache);
		free(rows->phases[i].at);
		free(rows->phases[i].found);
	}
	hash_index_fini(&rows->site_index);
	hash_index_fini(&rows->role_index);
	free(rows->phases);
	free(rows->sites);
	free(rows->own_frames);
	free(rows->roles);
	free(rows);
}

const struct facts *rows_facts(const struct rows *rows) { return rows->facts; }

const struct rows_filter *rows_filter_of(const struct rows *rows) { return &rows->filter; }

void rows_want_kinds(struct rows *rows, uint32_t kinds) { rows->filter.kinds = kinds; }

bool rows_want_process(const struct rows *rows, uint32_t process)
{
	return !rows->filter.pid || rows->facts->processes[process].pid == rows->filter.pid;
}

bool rows_want_device(const struct rows *rows, uint32_t device)
{
	return rows->filter.device == FACT_NONE || rows->filter.device == device;
}

bool rows_want(const struct rows *rows, unsigned kind, uint32_t device)
{
	return kind < CUF_KIND_MAX && rows->filter.kinds >> kind & 1 &&
	       rows_want_device(rows, device);
}

uint32_t rows_device(const struct rows *rows, uint32_t process, unsigned ordinal)
{
	if (ordinal >= CUF_DEVICES_MAX)
		return FACT_NONE;
	return rows->facts->processes[process].device_of[ordinal];
}

void rows_on_progress(struct rows *rows,
		      void (*progress)(void *context, uint64_t done, uint64_t total),
		      void *context)
{
	rows->progress = progress;
	rows->progress_context = context;
}

void rows_begin_pass(struct rows *rows)
{
	rows->passed = rows->total = 0;
	for (uint32_t p = 0; p < rows->facts->process_count; p++)
		if (rows_want_process(rows, p))
			rows->total += rows->facts->processes[p].events_recorded -
				       least_of(rows->facts->processes[p].events_overwritten,
						rows->facts->processes[p].events_recorded);
}

/* ---- call sites ---- */

uint32_t rows_site_of_stack(struct rows *rows, uint32_t process, uint32_t stack)
{
	uint32_t merged = reader_call_site(rows->run->processes[process].reader, stack), *place;

	if (!merged)
		return 0;
	place = hash_index_place(&rows->site_index, (uint64_t)process << 32 | merged);
	if (*place)
		return *place;
	xalloc_grow(&rows->sites, rows->site_count, &rows->site_room, sizeof *rows->sites);
	rows->sites[rows->site_count++] = (struct site_row){ process, merged };
	*place = (uint32_t)rows->site_count;
	return *place;
}

void rows_call_sites(struct rows *rows, uint32_t process,
		     void (*see)(void *context, const struct fact_stack *stack), void *context)
{
	const struct reader *reader = rows->run->processes[process].reader;
	uint64_t stacks = reader_count(reader, CUF_SEC_STACK_INDEX);

	for (uint32_t id = 1; id <= stacks && id != UINT32_MAX; id++) {
		struct fact_stack stack = { .process = process, .id = id, .time_ns = CUF_UNKNOWN };

		if (reader_call_site(reader, id) != id)
			continue;
		stack.addrs = reader_stack(reader, id, &stack.depth, &stack.stop);
		if (stack.addrs)
			see(context, &stack);
	}
	reader_drop(reader, CUF_SEC_STACK_INDEX);
	reader_drop(reader, CUF_SEC_STACK_FRAMES);
}

struct site_row rows_site(const struct rows *rows, uint32_t site) { return rows->sites[site - 1]; }

/* Copies the stack of a Python program without the interpreter's C code, unless it is asked for. */
static size_t own_frames(struct rows *rows, size_t count, const struct frame **frames)
{
	size_t kept = 0;
	bool has_python = false;

	for (size_t i = 0; i < count; i++)
		has_python |= frame_is_python(&(*frames)[i]);
	if (!has_python || rows->filter.interpreter)
		return count;
	for (size_t i = 0; i < count; i++) {
		if (places_is_interpreter(&(*frames)[i]))
			continue;
		xalloc_grow(&rows->own_frames, kept, &rows->own_frame_room, sizeof **frames);
		rows->own_frames[kept++] = (*frames)[i];
	}
	*frames = rows->own_frames;
	return kept;
}

/* An address is named by the module that held it last, as where stacks are merged. */
size_t rows_site_frames(struct rows *rows, uint32_t site, const struct frame **frames)
{
	struct fact_stack stack = { .time_ns = CUF_UNKNOWN };
	struct site_row row;

	*frames = NULL;
	if (!site || site > rows->site_count)
		return 0;
	row = rows_site(rows, site);
	stack.process = row.process;
	stack.id = row.stack;
	stack.addrs = reader_stack(rows->run->processes[row.process].reader, row.stack,
				   &stack.depth, &stack.stop);
	return own_frames(rows, frames_of(rows->frames, &stack, frames), frames);
}

/* ---- names ---- */

const char *rows_api(const struct rows *rows, uint32_t process, unsigned hook, unsigned label)
{
	const struct fact_process *fact = &rows->facts->processes[process];
	unsigned id = label ? label : hook;

	if (!id || id >= fact->hook_name_count)
		return NULL;
	return fact->hook_names[id];
}

static const char *rows_role_of(const struct rows *rows, uint32_t process, unsigned kind,
				uint32_t stack, unsigned recorded)
{
	static const char *const names[CUF_ROLE_MAX] = {
		[CUF_ROLE_WEIGHTS] = "weights", [CUF_ROLE_KV] = "kv",
		[CUF_ROLE_COMPUTE] = "compute", [CUF_ROLE_OUTPUT] = "output",
		[CUF_ROLE_SCRATCH] = "scratch", [CUF_ROLE_LIBRARY] = "library",
		[CUF_ROLE_COMMUNICATION] = "communication", [CUF_ROLE_GRAPH] = "graph",
	};
	uint32_t found;

	if (recorded && recorded < CUF_ROLE_MAX)
		return names[recorded];
	stack = reader_call_site(rows->run->processes[process].reader, stack);
	found = hash_index_find(&rows->role_index, role_key(process, kind, stack));
	return found ? rows->roles[found - 1] : NULL;
}

/* ---- phases ---- */

static void begin_phases(struct phase_times *times, const struct fact_process *process)
{
	times->at = xalloc_zeroed(2 * process->phase_count + 1, sizeof *times->at);
	for (size_t i = 0; i < process->phase_count; i++) {
		const struct fact_phase *phase = &process->phases[i];

		times->at[times->count++] = phase->begin_ns;
		if (is_known(phase->end_ns)) /* a phase covers its end */
			times->at[times->count++] = phase->end_ns + 1;
	}
	if (times->count)
		qsort(times->at, times->count, sizeof *times->at, compare_uint64);
	hash_index_init(&times->cache, 64);
	times->ready = true;
}

/* How many boundaries are at or before a time. */
static size_t stretch_of(const struct phase_times *times, uint64_t time_ns)
{
	size_t low = 0, high = times->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (times->at[middle] <= time_ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Between two boundaries a thread is always in the same phase, so each is looked up once. */
static const struct phase_found *find_phase(struct phase_times *times,
					    const struct fact_process *process, uint32_t tid,
					    uint64_t time_ns)
{
	uint64_t key = (uint64_t)stretch_of(times, time_ns) << 32 | tid;
	uint32_t *place = hash_index_place(&times->cache, key);

	if (!*place) {
		xalloc_grow(&times->found, times->found_count, &times->found_room,
			    sizeof *times->found);
		times->found[times->found_count++] =
			(struct phase_found){ phase_at(process, tid, time_ns),
					      request_at(process, tid, time_ns) };
		*place = (uint32_t)times->found_count;
	}
	return &times->found[*place - 1];
}

/* What follows from the time and thread of the birth. */
static void rows_fill_phase(struct rows *rows, struct block_row *block)
{
	const struct fact_process *process = &rows->facts->processes[block->process];
	struct phase_times *times = &rows->phases[block->process];
	const struct phase_found *found;

	block->phase = NULL;
	block->request = CUF_UNKNOWN;
	if (!process->phase_count || !is_known(block->born_ns))
		return;
	if (!times->ready)
		begin_phases(times, process);
	found = find_phase(times, process, block->tid, block->born_ns);
	if (found->phase)
		block->phase = found->phase->name;
	if (found->request)
		block->request = found->request->request_id;
}

/* ---- blocks ---- */

struct block_row rows_device_block(struct rows *rows, uint32_t process,
				   const struct cuf_block *block)
{
	const struct reader *reader = rows->run->processes[process].reader;
	uint64_t bytes = block->bytes > BYTES_SANE ? 0 : block->bytes;
	struct block_row row = {
		.addr = cuf_key_addr(block->key), .bytes = bytes,
		.weight_bytes = bytes, .weight_count = 1,
		.born_ns = reader_realtime(reader, block->time_ns), .died_ns = CUF_UNKNOWN,
		.born_seq = block->seq, .process = process,
		.device = rows_device(rows, process, block->device), .kind = block->kind,
		.tid = block->tid, .site = rows_site_of_stack(rows, process, block->stack),
		.api = rows_api(rows, process, block->hook, block->label),
		.role = rows_role_of(rows, process, block->kind, block->stack, block->role),
		.aux = block->aux,
	};

	if (!block->seq) /* put back by its FREE, which has the thread that freed it */
		row.tid = 0;
	rows_fill_phase(rows, &row);
	return row;
}

struct block_row rows_host_block(struct rows *rows, uint32_t process, const struct host_row *host)
{
	const struct reader *reader = rows->run->processes[process].reader;
	struct block_row row = {
		.addr = host->addr, .bytes = host->bytes,
		.weight_bytes = host_weight_bytes(host->bytes, host->mean_bytes),
		.weight_count = host_weight_count(host->bytes, host->mean_bytes),
		.born_ns = CUF_UNKNOWN, .died_ns = CUF_UNKNOWN,
		.process = process, .device = FACT_NONE, .kind = CUF_KIND_HOST, .tid = host->tid,
		.site = rows_site_of_stack(rows, process, host->stack), .part = ROW_MALLOC,
		.role = rows_role_of(rows, process, CUF_KIND_HOST, host->stack, 0),
	};

	if (is_known(host->born_ns))
		row.born_ns = reader_realtime(reader, host->born_ns);
	if (cuf_address_is_map(host->addr, host->bytes))
		row.part = ROW_MAP;
	else if (cuf_address_is_python(host->addr, host->bytes))
		row.part = ROW_PYTHON;
	rows_fill_phase(rows, &row);
	return row;
}

bool rows_ledger_next(const struct run_process *recorded, const struct host_means *means,
		      uint64_t *at, struct host_row *out)
{
	const struct reader *reader = recorded->reader;
	struct cuf_host_block entry;
	uint32_t birth;

	if (!host_ledger_next(reader, at, &entry))
		return false;
	birth = cuf_host_birth(entry.word0);
	*out = (struct host_row){ .addr = cuf_host_addr(entry.word0),
				  .bytes = cuf_host_bytes(entry.word1),
				  .born_ns = reader->header.start_ns +
					     cuf_birth_ms(birth) * 1000000u,
				  .mean_bytes = host_means_at(means, birth),
				  .stack = cuf_host_stack(entry.word1) };
	return true;
}

/* ---- samples ---- */

static void see_samples(const struct rows *rows, uint32_t process, const struct fact_sample *sample,
			void (*see)(void *context, const struct sample_row *sample), void *context)
{
	const struct { const char *name; uint64_t bytes; } of_process[] = {
		{ "rss_bytes", sample->rss_bytes }, { "cgroup_bytes", sample->cgroup_bytes },
		{ "host_live_bytes", sample->host_live_bytes },
		{ "pinned_bytes", sample->pinned_bytes },
	};
	struct sample_row row = { .time_ns = sample->time_ns, .process = process,
				  .device = FACT_NONE };

	for (size_t i = 0; rows_want_device(rows, FACT_NONE) &&
	     i < sizeof of_process / sizeof *of_process; i++) {
		row.name = of_process[i].name;
		row.bytes = of_process[i].bytes;
		if (is_known(row.bytes))
			see(context, &row);
	}
	for (unsigned d = 0; d < CUF_DEVICES_MAX; d++) {
		row.device = rows_device(rows, process, d);
		if (row.device == FACT_NONE || !rows_want_device(rows, row.device))
			continue;
		row.name = "device_live_bytes";
		row.bytes = sample->device_live_bytes[d];
		if (is_known(row.bytes))
			see(context, &row);
		row.name = "device_free_bytes";
		row.bytes = sample->device_free_bytes[d];
		if (is_known(row.bytes))
			see(context, &row);
	}
}

void rows_samples(struct rows *rows, void (*see)(void *context, const struct sample_row *sample),
		  void *context)
{
	for (uint32_t p = 0; p < rows->facts->process_count; p++) {
		const struct fact_process *process = &rows->facts->processes[p];

		for (size_t i = 0; rows_want_process(rows, p) && i < process->timeline_count; i++)
			see_samples(rows, p, &process->timeline[i], see, context);
	}
}
