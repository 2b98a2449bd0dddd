/* SPDX-License-Identifier: Apache-2.0 */
/* leaks[], growth[] and the host figures of each process: the live sets by site, followed through the events. */
#include "analysis/facts/build.h"

#include <math.h>
#include <stdlib.h>
#include "analysis/device/framework_map.h"
#include "analysis/growth/growth.h"
#include "analysis/host/host_memory.h"
#include "analysis/recording/host_weight.h"
#include "analysis/facts/roles.h"
#include "analysis/phases/phases.h"
#include "analysis/replay/replay.h"

enum { ROWS_DEFAULT = 1000 };
#define DEVICE_CLOCK_NS 1000ull
#define HOST_CLOCK_NS 10000000ull     /* a coarse clock, kept in milliseconds */
#define BYTES_SANE ((uint64_t)1 << 57)

struct rows { struct fact_site *items; size_t count, room, most; int (*order)(const void *, const void *); };

static uint64_t whole(double value) { return value > 0 && value < 0x1p62 ? (uint64_t)llround(value) : 0; }

static int by_bytes(const void *a, const void *b)
{
	const struct fact_site *x = a, *y = b;
	if ((x->class == CLASS_LEAK) != (y->class == CLASS_LEAK))
		return x->class == CLASS_LEAK ? -1 : 1;
	if (x->bytes != y->bytes)
		return x->bytes > y->bytes ? -1 : 1;
	if (x->process != y->process)
		return x->process < y->process ? -1 : 1;
	return x->stack.id < y->stack.id ? -1 : x->stack.id > y->stack.id;
}

static int by_growth(const void *a, const void *b)
{
	const struct fact_site *x = a, *y = b;
	if (x->grown_bytes != y->grown_bytes)
		return x->grown_bytes > y->grown_bytes ? -1 : 1;
	return by_bytes(a, b);
}

/* Only the first `most` rows are wanted; sorting them out now and then keeps millions of sites from piling up. */
static void cut(struct rows *rows)
{
	if (rows->count)
		qsort(rows->items, rows->count, sizeof *rows->items, rows->order);
	rows->count = rows->count < rows->most ? rows->count : rows->most;
}

static void add_row(struct rows *rows, const struct fact_site *row)
{
	if (rows->count >= 4 * rows->most)
		cut(rows);
	xalloc_grow(&rows->items, rows->count, &rows->room, sizeof *row);
	rows->items[rows->count++] = *row;
}

static void fill_interval(const struct site *s, struct fact_site *row)
{
	struct host_estimate e = { (double)s->live_bytes, s->live_variance, s->live_third };
	struct host_interval interval = host_estimate_interval(&e, 0);
	row->low_bytes = s->live_variance > 0 ? whole(interval.low) : row->bytes;
	row->high_bytes = s->live_variance > 0 ? whole(interval.high) : row->bytes;
}

static void add_rows(struct build *b, uint32_t process, const struct growth *g, struct rows *live, struct rows *grown)
{
	const struct reader *r = b->run->processes[process].reader;
	for (size_t i = 0; i < g->sites.count; i++) {
		const struct site *s = &g->sites.items[i];
		struct fact_site row;
		if ((!s->live_count && s->net_bytes <= 0) || s->live_bytes > BYTES_SANE)
			continue;
		growth_judge(g, s, &row);
		fill_interval(s, &row);
		row.stack.process = row.process = process;
		row.pid = r->header.pid;
		row.device = s->device == CUF_DEVICE_NONE ? FACT_NONE : group_of(b, process, s->device);
		row.api = hook_name(b, process, s->label ? s->label : s->hook);
		stack_fill(b, &row.stack, s->last_ns == CUF_UNKNOWN ? r->header.start_ns : s->last_ns);
		if (row.device != FACT_NONE) {
			struct role role = role_of_site(b, process, s->role, s->stack, s->first_ns);
			row.role = role.name;
			row.role_basis = role.basis;
		}
		row.first_ns = reader_realtime(r, s->first_ns);
		row.last_ns = reader_realtime(r, s->last_ns);
		if (s->live_count)
			add_row(live, &row);
		if (s->net_bytes > 0)
			add_row(grown, &row);
	}
}

static void add_live(struct growth *g, const struct liveset *live, bool framework)
{
	size_t at = 0;
	for (const struct cuf_block *b; (b = liveset_next(live, &at));) {
		struct site *s;
		if (!growth_counts(framework, b->kind) || b->bytes > BYTES_SANE)
			continue;
		s = sites_get(&g->sites, b->kind, b->device, b->stack);
		s->live_bytes += b->bytes;
		s->live_count++;
		if (b->role)
			s->role = b->role;
		if (b->time_ns < s->first_ns)
			s->first_ns = b->time_ns;
		if (s->last_ns == CUF_UNKNOWN || b->time_ns > s->last_ns) {
			s->last_ns = b->time_ns;
			s->hook = b->hook ? b->hook : s->hook;
			s->label = b->hook ? b->label : s->label;
		}
	}
}

/* A bit for each device on which a framework holds blocks. */
static unsigned framework_devices(const struct liveset *live)
{
	unsigned devices = 0;
	size_t at = 0;
	for (const struct cuf_block *b; (b = liveset_next(live, &at));)
		if (b->kind == CUF_KIND_FRAMEWORK && b->device < CUF_DEVICES_MAX)
			devices |= 1u << b->device;
	return devices;
}

/* The sites whose blocks a framework's blocks lie in; of mapped memory, all that create such memory. */
static void mark_segments(struct growth *g, const struct liveset *live)
{
	struct framework_map map;
	for (unsigned devices = framework_devices(live); devices; devices &= devices - 1) {
		unsigned device = (unsigned)__builtin_ctz(devices);
		bool mapped = false;
		framework_map_make(live, device, &map);
		for (size_t i = 0; i < map.range_count; i++)
			if (map.ranges[i].count && map.ranges[i].kind == CUF_KIND_MAPPING)
				mapped = true;
			else if (map.ranges[i].count)
				sites_get(&g->sites, map.ranges[i].kind, device, map.ranges[i].stack)->holds_blocks = true;
		for (size_t i = 0; mapped && i < g->sites.count; i++)
			if (g->sites.items[i].kind == CUF_KIND_VMM && g->sites.items[i].device == device)
				g->sites.items[i].holds_blocks = true;
		framework_map_fini(&map);
	}
}

/* When none of the requests that a process marked was open. */
struct quiet { struct cycle_mark *marks; size_t count; uint64_t requests; };

static struct quiet quiet_of(const struct build *b, uint32_t process)
{
	const struct fact_requests *r = &b->facts->processes[process].requests;
	struct quiet q = { NULL, 0, 0 };
	if (r->basis == BASIS_OBSERVED || r->basis == BASIS_ESTIMATED)
		q.requests = phases_quiet_marks(b->run->processes[process].events, &q.marks, &q.count);
	return q;
}

static void take_quiet(struct growth *g, const struct quiet *q, uint64_t resolution_ns)
{
	/* a clock too coarse to tell one request from the next orders nothing */
	if (!q->count || q->marks[q->count - 1].time_ns - q->marks[0].time_ns < q->count * 4 * resolution_ns)
		return;
	g->quiet = q->marks;
	g->quiet_count = q->count;
	g->requests = q->requests;
}

static void layer_sites(struct build *b, uint32_t process, struct growth_device *state, const struct quiet *quiet, const struct liveset *live, struct rows *rows, struct rows *grown)
{
	struct growth_source source = growth_device_source(state);
	struct growth g;
	size_t at = 0;
	growth_init(&g);
	take_quiet(&g, quiet, DEVICE_CLOCK_NS);
	add_live(&g, live, state->framework);
	growth_follow(&g, &source);
	if (!state->framework)
		mark_segments(&g, live);
	g.births = growth_asks_births(&g, DEVICE_CLOCK_NS);
	for (const struct cuf_block *block; g.births && (block = liveset_next(live, &at));)
		if (growth_counts(state->framework, block->kind) && block->bytes <= BYTES_SANE)
			growth_birth(&g, sites_get(&g.sites, block->kind, block->device, block->stack), block->bytes, block->time_ns);
	add_rows(b, process, &g, rows, grown);
	growth_fini(&g);
}

static void device_sites(struct build *b, uint32_t process, uint64_t seq, const struct quiet *quiet, const struct liveset *live, struct rows *rows, struct rows *grown)
{
	struct run_process *p = &b->run->processes[process];
	struct growth_device driver = { .events = p->events, .seq = seq };
	struct growth_device framework = { .events = p->events->framework, .seq = seq, .framework = true };
	layer_sites(b, process, &driver, quiet, live, rows, grown);
	layer_sites(b, process, &framework, quiet, live, rows, grown);
	reader_drop(p->reader, CUF_SEC_RING);
	reader_drop(p->reader, CUF_SEC_FRAMEWORK_RING);
}

static void host_figures(struct fact_host *out, const struct host_memory *memory)
{
	struct host_interval bytes, count;
	if (!memory->known)
		return;
	bytes = host_estimate_interval(&memory->bytes, (double)memory->mean_bytes);
	count = host_estimate_interval(&memory->count, memory->mean_bytes ? INFINITY : 0);
	out->malloc_live_bytes = whole(memory->bytes.value);
	out->malloc_live_count = whole(memory->count.value);
	out->malloc_basis = memory->estimated ? BASIS_ESTIMATED : BASIS_OBSERVED;
	out->malloc_low_bytes = whole(bytes.low);
	out->malloc_high_bytes = whole(bytes.high);
	out->malloc_low_count = whole(count.low);
	out->malloc_high_count = isinf(count.high) ? CUF_UNKNOWN : whole(count.high);
}

static void host_sites(struct build *b, uint32_t process, uint64_t time_ns, const struct quiet *quiet, struct rows *rows, struct rows *grown)
{
	const struct reader *r = b->run->processes[process].reader;
	struct growth_host state = { .reader = r, .time_ns = time_ns };
	struct growth_source source = growth_host_source(&state);
	struct host_means means = host_means_of(r, &b->run->processes[process].meta);
	struct host_memory memory;
	struct host_row row;
	struct growth g;
	uint64_t at = 0;
	growth_init(&g);
	take_quiet(&g, quiet, HOST_CLOCK_NS);
	host_memory_read(r, &means, time_ns, &g.sites, &memory);
	host_figures(&b->facts->processes[process].host, &memory);
	growth_follow(&g, &source);
	host_stream_free(state.stream);
	g.births = time_ns == CUF_UNKNOWN && growth_asks_births(&g, HOST_CLOCK_NS);
	while (g.births && host_memory_row(r, &at, &g.sites, &row))
		for (size_t i = 0; i < row.count; i++) { /* as many bytes as its birth's event had */
			const struct host_live *block = &row.blocks[i];
			growth_birth(&g, &g.sites.items[row.sites[i]], host_weight_bytes(block->bytes, host_means_at(&means, block->birth)), block->birth_ns);
		}
	add_rows(b, process, &g, rows, grown);
	growth_fini(&g);
}

/* The threads' sums. A sampler saw every allocation's bytes go by, but counted those that it took. */
static void count_calls(const struct reader *r, struct fact_host *h)
{
	bool all = r->header.options_host_mode == CUF_HOST_FULL;
	for (uint64_t i = 0; i < reader_count(r, CUF_SEC_THREADS); i++) {
		struct cuf_thread t = *(const struct cuf_thread *)reader_at(r, CUF_SEC_THREADS, i);
		h->recorded_alloc_count += t.host_allocs;
		h->recorded_free_count += t.host_frees;
		h->alloc_bytes += t.host_alloc_bytes;
	}
	h->alloc_count = all ? h->recorded_alloc_count : CUF_UNKNOWN;
	h->free_count = all ? h->recorded_free_count : CUF_UNKNOWN;
	if (r->header.options_host_mode == CUF_HOST_OFF)
		h->alloc_bytes = CUF_UNKNOWN;
}

static void memory_figures(struct build *b, uint32_t process, const struct liveset *live, uint64_t moment_ns)
{
	struct fact_process *p = &b->facts->processes[process];
	const struct run_process *from = &b->run->processes[process];
	struct fact_host *h = &p->host;
	const struct fact_sample *last = NULL;
	size_t at = 0;
	*h = (struct fact_host){ .rss_bytes = CUF_UNKNOWN, .rss_peak_bytes = CUF_UNKNOWN, .malloc_live_bytes = CUF_UNKNOWN,
		.malloc_live_count = CUF_UNKNOWN, .malloc_low_bytes = CUF_UNKNOWN, .malloc_high_bytes = CUF_UNKNOWN,
		.malloc_low_count = CUF_UNKNOWN, .malloc_high_count = CUF_UNKNOWN,
		.mapped_file_bytes = CUF_UNKNOWN, .cgroup_bytes = CUF_UNKNOWN, .cgroup_max_bytes = meta_limit(&from->meta, "memory.max"),
		.memory_total_bytes = meta_limit(&from->meta, "MemTotal") };
	for (size_t i = 0; i < p->timeline_count; i++) {
		const struct fact_sample *s = &p->timeline[i];
		if (s->rss_bytes != CUF_UNKNOWN && (h->rss_peak_bytes == CUF_UNKNOWN || s->rss_bytes > h->rss_peak_bytes))
			h->rss_peak_bytes = s->rss_bytes;
		if (s->time_ns <= moment_ns || !last)
			last = s;
	}
	if (last) {
		h->rss_bytes = last->rss_bytes;
		h->cgroup_bytes = last->cgroup_bytes;
	}
	for (const struct cuf_block *block; (block = liveset_next(live, &at));)
		if ((block->kind == CUF_KIND_PINNED || block->kind == CUF_KIND_REGISTERED) && block->bytes <= BYTES_SANE)
			h->pinned_bytes += block->bytes;
	count_calls(from->reader, h);
}

static struct fact_site *settle(struct build *b, struct rows *rows, size_t *count)
{
	struct fact_site *kept;
	cut(rows);
	*count = rows->count;
	kept = arena_copy(b->arena, rows->items, *count, sizeof *kept);
	free(rows->items);
	return kept;
}

/* The recorder put the clock of the host's events right at this instant, so they can be told apart to the nanosecond. */
static bool is_marked(const struct build *b, const struct moment *m)
{
	return m->kind == MOMENT_INCIDENT && b->facts->incidents[m->incident_id - 1].kind == CUF_KIND_HOST;
}

uint64_t host_time_of(const struct build *b, uint32_t process)
{
	const struct reader *r = b->run->processes[process].reader;
	const struct moment *m = &b->moment;
	uint64_t seq;
	if (m->kind == MOMENT_NOW || !process_at(b, process, m, &seq))
		return CUF_UNKNOWN;
	if (m->kind == MOMENT_END)
		return r->header.work_end_ns ? r->header.work_end_ns : CUF_UNKNOWN;
	/* host events are ordered by a coarse clock: bring back only what is clearly earlier */
	if (is_marked(b, m) || m->time_ns + 10 * HOST_CLOCK_NS < b->facts->processes[process].end_ns)
		return m->time_ns - r->header.start_realtime_ns + r->header.start_ns;
	return r->header.work_end_ns ? r->header.work_end_ns : CUF_UNKNOWN;
}

/* The moment of the run in this process; its own end when it was not there then. */
static uint64_t seq_for_sites(const struct build *b, uint32_t process)
{
	const struct reader *r = b->run->processes[process].reader;
	uint64_t seq;
	if (!process_at(b, process, &b->moment, &seq))
		return r->header.end_kind && r->header.end_seq ? r->header.end_seq : CUF_UNKNOWN;
	return seq;
}

void build_sites(struct build *build)
{
	size_t most = build->options.sites_max ? build->options.sites_max : ROWS_DEFAULT;
	struct rows live = { .most = most, .order = by_bytes }, grown = { .most = most, .order = by_growth };
	for (uint32_t p = 0; p < build->run->count; p++) {
		uint64_t host_time_ns = host_time_of(build, p), seq = seq_for_sites(build, p);
		bool exact;
		const struct liveset *blocks = run_live(&build->run->processes[p], seq, &exact);
		memory_figures(build, p, blocks, build->moment.time_ns);
		struct quiet quiet = quiet_of(build, p);
		device_sites(build, p, seq, &quiet, blocks, &live, &grown);
		host_sites(build, p, host_time_ns, &quiet, &live, &grown);
		free(quiet.marks);
	}
	build->facts->leaks = settle(build, &live, &build->facts->leak_count);
	build->facts->growth = settle(build, &grown, &build->facts->growth_count);
}
