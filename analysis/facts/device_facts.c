/* SPDX-License-Identifier: Apache-2.0 */
/* Devices of the run, merged by UUID, each at its moment. */
#include "analysis/facts/build.h"

#include <stdlib.h>
#include <string.h>
#include "analysis/facts/framework_facts.h"
#include "analysis/facts/tenants.h"

static bool is_used(const struct cuf_device *d)
{
	return d && (d->present || d->alloc_count || d->fail_count || d->peak_bytes);
}

/* Without a UUID: the same ordinal of the same host. */
static bool same_device(const struct build *b, uint32_t p, const struct cuf_device *d, unsigned ordinal, const struct device_group *g)
{
	static const uint8_t unknown[16];
	uint32_t q = g->members[0].process, other = g->members[0].ordinal;
	const struct cuf_device *first = reader_at(b->run->processes[q].reader, CUF_SEC_DEVICES, other);
	if (p == q)
		return false;
	if (memcmp(d->uuid, unknown, sizeof unknown) || memcmp(first->uuid, unknown, sizeof unknown))
		return !memcmp(d->uuid, first->uuid, sizeof d->uuid);
	return ordinal == other && !strcmp(b->facts->processes[p].hostname, b->facts->processes[q].hostname);
}

static int by_first_ordinal(const void *a, const void *b)
{
	const struct device_member *x = ((const struct device_group *)a)->members, *y = ((const struct device_group *)b)->members;
	if (x->ordinal != y->ordinal)
		return x->ordinal < y->ordinal ? -1 : 1;
	return x->process < y->process ? -1 : x->process > y->process;
}

static void join(struct build *b, uint32_t process, unsigned ordinal, size_t *room)
{
	const struct cuf_device *d = reader_at(b->run->processes[process].reader, CUF_SEC_DEVICES, ordinal);
	struct device_group *g = NULL;
	for (size_t i = 0; i < b->group_count && !g; i++)
		if (same_device(b, process, d, ordinal, &b->groups[i]))
			g = &b->groups[i];
	if (!g) {
		xalloc_grow(&b->groups, b->group_count, room, sizeof *b->groups);
		g = &b->groups[b->group_count++];
		*g = (struct device_group){ 0 };
	}
	xalloc_grow(&g->members, g->count, &g->room, sizeof *g->members);
	g->members[g->count++] = (struct device_member){ process, ordinal };
}

void build_groups(struct build *build)
{
	size_t room = 0;
	for (uint32_t p = 0; p < build->run->count; p++)
		for (unsigned d = 0; d < CUF_DEVICES_MAX; d++)
			if (is_used(reader_at(build->run->processes[p].reader, CUF_SEC_DEVICES, d)))
				join(build, p, d, &room);
	if (build->group_count)
		qsort(build->groups, build->group_count, sizeof *build->groups, by_first_ordinal);
}

uint32_t group_of(const struct build *build, uint32_t process, unsigned ordinal)
{
	for (uint32_t i = 0; i < build->group_count; i++)
		for (size_t m = 0; m < build->groups[i].count; m++)
			if (build->groups[i].members[m].process == process && build->groups[i].members[m].ordinal == ordinal)
				return i;
	return FACT_NONE;
}

unsigned ordinal_in(const struct build *build, uint32_t device, uint32_t process)
{
	const struct device_group *g = &build->groups[device];
	for (size_t m = 0; m < g->count; m++)
		if (g->members[m].process == process)
			return g->members[m].ordinal;
	return CUF_DEVICE_NONE;
}

/* Rows that the recorder counted at the incident are right even when the replay is not. */
static void correct_counts(struct holding *h, const struct cuf_incident *i)
{
	static const struct { enum fact_owner owner; enum cuf_kind kind; } rows[] = {
		{ OWNER_DEVICE, CUF_KIND_DEVICE }, { OWNER_ARRAY, CUF_KIND_ARRAY }, { OWNER_ASYNC, CUF_KIND_ASYNC }, { OWNER_VMM, CUF_KIND_VMM },
		{ OWNER_IMPORTED, CUF_KIND_IMPORTED }, { OWNER_CONTEXT, CUF_KIND_CONTEXT }, { OWNER_MANAGED, CUF_KIND_MANAGED },
	};
	for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
		if (i->live_bytes[rows[r].kind] < (uint64_t)1 << CUF_KEY_SHIFT) {
			h->bytes[rows[r].owner] = i->live_bytes[rows[r].kind];
			h->count[rows[r].owner] = i->live_count[rows[r].kind];
		}
	if (i->page_free_bytes != CUF_UNKNOWN) {
		h->bytes[OWNER_PAGE_ROUNDING] = i->page_free_bytes;
		h->fragmentation.page_free_bytes = i->page_free_bytes;
	}
}

/*
 * What a segment should have held. PyTorch asks the driver for 2 MiB at a time on behalf of requests of up to 1 MiB, so a
 * driver's failure of that size says no more of them; its own report has the true size.
 */
static uint64_t requested_bytes(const struct cuf_incident *i)
{
	if (!i || !i->is_request)
		return CUF_UNKNOWN;
	return i->kind != CUF_KIND_FRAMEWORK && i->requested_bytes == CUF_PAGE_BYTES ? CUF_PAGE_BYTES / 2 : i->requested_bytes;
}

struct member_view { struct holding holding; struct levels levels; bool exact; };

static bool measure_member(struct build *b, const struct device_member *member, const struct moment *moment, bool with_roles, struct member_view *out)
{
	struct run_process *p = &b->run->processes[member->process];
	const struct cuf_header *h = &p->reader->header;
	const struct cuf_incident *incident = moment->process == member->process ? moment->incident : NULL;
	const struct liveset *live;
	uint64_t seq;
	if (!process_at(b, member->process, moment, &seq))
		return false;
	live = run_live(p, seq, &out->exact);
	levels_at(p->reader, p->events, member->ordinal, seq, h->end_kind && seq == h->end_seq, &out->levels);
	if (incident)
		levels_overlay(incident, &out->levels);
	holding_measure(live, member->ordinal, member->process, b->facts->processes[member->process].pid, &out->levels, b->arena, &out->holding);
	if (!out->exact && incident)
		correct_counts(&out->holding, incident);
	framework_facts(b, &(struct framework_question){ member->process, member->ordinal, seq, requested_bytes(moment->incident), incident,
		p->live_exact, with_roles }, live, &out->holding);
	return true;
}

static void fill_layers(struct device_view *view, const struct cuf_incident *incident)
{
	holes_layers(&view->focus.fragmentation, &view->focus.pages, view->layers);
	for (size_t i = 0; i < view->focus.fragmentation.framework_count && view->layers[LAYER_SEGMENT].bytes == CUF_UNKNOWN; i++)
		view->layers[LAYER_SEGMENT] = view->focus.fragmentation.frameworks[i].largest_hole;
	if (view->levels.free_bytes != CUF_UNKNOWN)
		view->layers[LAYER_DEVICE] = (struct fact_layer){ view->levels.free_bytes, view->levels.free_basis == BASIS_OBSERVED ? "upper bound" : "estimated" };
	if (!incident)
		return;
	if (incident->probed_bytes != CUF_UNKNOWN && incident->probed_bytes)
		view->layers[LAYER_MEASURED] = (struct fact_layer){ incident->probed_bytes, "measured" };
	if (view->exact)
		return;
	/* the replay has gaps, the recorder's own look at that moment has none */
	view->layers[LAYER_PAGE] = (struct fact_layer){ CUF_UNKNOWN, "" };
	if (incident->page_hole_bytes != CUF_UNKNOWN && incident->live_count[CUF_KIND_DEVICE])
		view->layers[LAYER_PAGE] = (struct fact_layer){ incident->page_hole_bytes, "exact" };
	if (incident->vmm_hole_bytes != CUF_UNKNOWN && (incident->vmm_hole_bytes || incident->vmm_mapped_bytes))
		view->layers[LAYER_VMM] = (struct fact_layer){ incident->vmm_hole_bytes, "exact" };
}

void device_view_at(struct build *build, uint32_t device, const struct moment *moment, struct device_view *view)
{
	const struct device_group *g = &build->groups[device];
	struct holding *others = xalloc_zeroed(g->count, sizeof *others);
	struct owners_question q = { .focus = &view->focus, .others = others };
	bool have_focus = false;
	uint32_t focus = moment->process;
	*view = (struct device_view){ .process = focus, .levels = { .free_bytes = CUF_UNKNOWN, .total_bytes = CUF_UNKNOWN }, .exact = true };
	if (ordinal_in(build, device, focus) == CUF_DEVICE_NONE)
		focus = g->members[0].process;
	for (size_t i = 0; i < g->count; i++) {
		bool itemised = g->members[i].process == focus || (!have_focus && i + 1 == g->count);
		struct member_view member;
		if (!measure_member(build, &g->members[i], moment, itemised, &member))
			continue;
		view->exact &= member.exact;
		if (!itemised) {
			others[q.other_count++] = member.holding;
			continue;
		}
		have_focus = true;
		view->process = g->members[i].process;
		view->focus = member.holding;
		view->levels = member.levels;
	}
	tenants_share(build, device, moment, &view->focus, others, &q);
	q.total_bytes = view->levels.total_bytes;
	q.free_bytes = view->levels.free_bytes;
	q.free_basis = view->levels.free_basis;
	q.basis = view->exact ? BASIS_OBSERVED : BASIS_ESTIMATED;
	view->owners = owners_rows(&q, build->arena, &view->owner_count, &view->total_bytes);
	view->focus.fragmentation.basis = q.basis;
	fill_layers(view, moment->incident);
	free(others);
}

static void fill_framework_stacks(struct build *b, const struct fact_framework *f, uint64_t time_ns)
{
	const struct reader *r = b->run->processes[f->process].reader;
	for (size_t i = 0; i < f->pin_count; i++)
		stack_fill(b, &((struct fact_pin *)(uintptr_t)f->pins)[i].stack, time_ns);
	for (size_t i = 0; i < f->segment_count; i++) {
		struct fact_segment *s = &((struct fact_segment *)(uintptr_t)f->segments)[i];
		stack_fill(b, &s->stack, s->born_ns);
		s->born_ns = reader_realtime(r, s->born_ns);
	}
}

static void fill_stacks(struct build *b, struct fact_fragmentation *f, uint64_t time_ns)
{
	for (size_t i = 0; i < f->pin_count; i++)
		stack_fill(b, &((struct fact_pin *)(uintptr_t)f->pins)[i].stack, time_ns);
	for (size_t i = 0; i < f->vmm_count; i++)
		stack_fill(b, &((struct fact_vmm *)(uintptr_t)f->vmm)[i].stack, time_ns);
	for (size_t i = 0; i < f->framework_count; i++)
		fill_framework_stacks(b, &f->frameworks[i], time_ns);
}

static uint64_t live_at(const struct fact_process *p, unsigned ordinal, uint64_t time_ns, size_t *at)
{
	while (*at < p->timeline_count && p->timeline[*at].time_ns <= time_ns)
		++*at;
	if (!*at || (p->timeline[*at - 1].time_ns > p->end_ns) || (time_ns > p->end_ns && p->end != END_RUNNING))
		return 0;
	return p->timeline[*at - 1].device_live_bytes[ordinal];
}

/* Several processes: the highest sum at the samples of any of them, and no less than any one's own peak. */
static void common_peak(struct build *b, const struct device_group *g, struct fact_device *d)
{
	size_t *at = xalloc_zeroed(g->count, sizeof *at);
	for (size_t i = 0; i < g->count; i++) {
		const struct fact_process *p = &b->facts->processes[g->members[i].process];
		memset(at, 0, g->count * sizeof *at);
		for (size_t s = 0; s < p->timeline_count; s++) {
			uint64_t sum = 0, time_ns = p->timeline[s].time_ns;
			for (size_t m = 0; m < g->count; m++)
				sum += live_at(&b->facts->processes[g->members[m].process], g->members[m].ordinal, time_ns, &at[m]);
			if (sum > d->peak_bytes && sum < (uint64_t)1 << CUF_KEY_SHIFT) {
				d->peak_bytes = sum;
				d->peak_ns = time_ns;
				d->peak_basis = BASIS_ESTIMATED;
			}
		}
	}
	free(at);
}

static void sum_members(struct build *b, const struct device_group *g, struct fact_device *d)
{
	d->peak_ns = CUF_UNKNOWN;
	d->peak_basis = BASIS_OBSERVED;
	for (size_t i = 0; i < g->count; i++) {
		const struct reader *r = b->run->processes[g->members[i].process].reader;
		const struct cuf_device from = *(const struct cuf_device *)reader_at(r, CUF_SEC_DEVICES, g->members[i].ordinal);
		if (from.present && !*d->name) {
			d->name = arena_text(b->arena, from.name, strnlen(from.name, sizeof from.name));
			d->pci = arena_text(b->arena, from.pci, strnlen(from.pci, sizeof from.pci));
			memcpy(d->uuid, from.uuid, sizeof d->uuid);
			d->granularity_bytes = from.granularity_bytes;
		}
		if (from.peak_bytes > d->peak_bytes) {
			d->peak_bytes = from.peak_bytes;
			d->peak_ns = reader_realtime(r, from.peak_ns);
		}
		d->alloc_count += from.alloc_count;
		d->free_count += from.free_count;
		d->fail_count += from.fail_count;
	}
	if (g->count > 1)
		common_peak(b, g, d);
}

static void fill_device(struct build *b, uint32_t index, struct fact_device *d)
{
	const struct device_group *g = &b->groups[index];
	struct moment m = moment_of_device(b, index);
	struct cuf_incident incident;
	struct device_view view;
	*d = (struct fact_device){ .name = "", .pci = "", .granularity_bytes = CUF_UNKNOWN };
	sum_members(b, g, d);
	if (m.incident_id) {
		const struct fact_incident *f = &b->facts->incidents[m.incident_id - 1];
		if (f->device == index && incident_at(b, f, &incident))
			m.incident = &incident;
	}
	device_view_at(b, index, &m, &view);
	d->focus = ordinal_in(b, index, view.process) == CUF_DEVICE_NONE ? g->members[0].process : view.process;
	d->ordinal = ordinal_in(b, index, d->focus);
	d->total_bytes = view.total_bytes;
	d->free_bytes = view.levels.free_bytes;
	d->moment = (struct fact_moment){ m.kind, m.time_ns, m.process, m.seq, m.incident_id, view.exact ? BASIS_OBSERVED : BASIS_ESTIMATED };
	d->owners = view.owners;
	d->owner_count = view.owner_count;
	memcpy(d->largest_free, view.layers, sizeof d->largest_free);
	d->fragmentation = view.focus.fragmentation;
	fill_stacks(b, &d->fragmentation, m.incident ? m.incident->time_ns : b->run->processes[d->focus].reader->header.start_ns);
}

void build_devices(struct build *build)
{
	build->facts->device_count = build->group_count;
	build->facts->devices = arena_zeroed(build->arena, build->group_count, sizeof *build->facts->devices);
	for (uint32_t i = 0; i < build->group_count; i++)
		fill_device(build, i, &build->facts->devices[i]);
}
