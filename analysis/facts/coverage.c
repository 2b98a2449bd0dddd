/* SPDX-License-Identifier: Apache-2.0 */
/* What the recorder saw and what it could not: counters, lists, and whole sentences for people. */
#include "analysis/facts/build.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "analysis/recording/host_means.h"
#include "analysis/symbols/symbols.h"
#include "analysis/facts/tenants.h"
#include "analysis/base/units.h"

/* By enum cuf_loss. */
static const char *const loss_words[CUF_LOST_MAX] = {
	[CUF_LOST_THREADS] = "events of threads that found no slot", [CUF_LOST_RING] = "device events that found no room",
	[CUF_LOST_HOST_RING] = "host events that found no room", [CUF_LOST_LEDGER] = "blocks that found no room among the live ones",
	[CUF_LOST_HOST_LEDGER] = "host blocks that found no room among the live ones", [CUF_LOST_STACKS] = "call stacks not kept",
	[CUF_LOST_META] = "names and modules not kept", [CUF_LOST_INCIDENTS] = "older incidents overwritten",
	[CUF_LOST_DEVICES] = "events of devices beyond the sixteenth", [CUF_LOST_SWITCH] = "events while the recording moved to its file",
	[CUF_LOST_NESTED] = "events from inside the recorder",
	[CUF_LOST_FRAMEWORK_RING] = "framework events that found no room", [CUF_LOST_CODES] = "names of Python functions and phases not kept",
};

/* By enum cuf_note: how the note's text is told; NULL: no blind spot. */
static const char *const note_words[] = {
	[CUF_NOTE_OFF] = "the recorder switched itself off: %s",
	[CUF_NOTE_DEEPBIND] = "%s was loaded with RTLD_DEEPBIND: its calls pass the recorder by",
	[CUF_NOTE_DLMOPEN] = "%s was loaded into a namespace of its own: its calls pass the recorder by",
	[CUF_NOTE_NO_UNWINDER] = "libunwind was not found: some stacks are shorter than they could be",
	[CUF_NOTE_OTHER_PRELOAD] = "another library was preloaded too: %s",
	[CUF_NOTE_CHECKPOINT] = "device memory was checkpointed away or restored: %s",
	[CUF_NOTE_FRAMEWORK] = "%s",
	[CUF_NOTE_PYTHON] = "Python was seen, but not its frames: %s",
};

struct list { const char **items; size_t count, room; };
struct sentences { struct fact_text *items; size_t count, room; };

static void add_once(struct list *l, const char *text)
{
	for (size_t i = 0; i < l->count; i++)
		if (!strcmp(l->items[i], text))
			return;
	xalloc_grow(&l->items, l->count, &l->room, sizeof *l->items);
	l->items[l->count++] = text;
}

/* What holds for several processes is said once, of the run. */
static void say(struct sentences *s, const char *text, uint32_t process)
{
	for (size_t i = 0; i < s->count; i++)
		if (!strcmp(s->items[i].text, text)) {
			s->items[i].process = s->items[i].process == process ? process : FACT_NONE;
			return;
		}
	xalloc_grow(&s->items, s->count, &s->room, sizeof *s->items);
	s->items[s->count++] = (struct fact_text){ .text = text, .process = process };
}

/* True of most recordings, or without effect on who holds what and why: the first screen leaves it out. */
static void say_minor(struct sentences *s, const char *text, uint32_t process)
{
	size_t count = s->count;
	say(s, text, process);
	if (s->count > count)
		s->items[count].minor = true;
}

static void tell_losses(struct build *b, uint32_t p, struct sentences *blind)
{
	const struct fact_process *f = &b->facts->processes[p];
	const struct run_process *from = &b->run->processes[p];
	if (from->reader->missing_bytes)
		say(blind, arena_format(b->arena, "the recording is cut: %" PRIu64 " of %" PRIu64 " bytes are missing", from->reader->missing_bytes,
			from->reader->header.file_bytes), p);
	if (from->meta.damage_offset)
		say(blind, arena_format(b->arena, "the recording is damaged at byte %" PRIu64 ": names and modules after it are missing", from->meta.damage_offset), p);
	if (f->events_lost)
		say(blind, arena_format(b->arena, "%" PRIu64 " events were lost: no table had room for them", f->events_lost), p);
	if (from->reader->header.lost[CUF_LOST_LEDGER] || from->reader->header.lost[CUF_LOST_HOST_LEDGER])
		say(blind, arena_format(b->arena, "%" PRIu64 " live blocks found no room in %s: more is held than is shown; a larger size= keeps them",
			from->reader->header.lost[CUF_LOST_LEDGER] + from->reader->header.lost[CUF_LOST_HOST_LEDGER],
			units_bytes(from->reader->header.file_bytes).s), p);
	if (from->reader->header.lost[CUF_LOST_STACKS])
		say(blind, arena_format(b->arena, "call stacks found no room in %s %" PRIu64 " times, those of small blocks first: a larger size= keeps them",
			units_bytes(from->reader->header.file_bytes).s, from->reader->header.lost[CUF_LOST_STACKS]), p);
	if (f->events_overwritten)
		say_minor(blind, arena_format(b->arena, "%" PRIu64 " older events left the ring: growth is judged over what is left", f->events_overwritten), p);
}

static void tell_texts(struct build *b, uint32_t p, struct sentences *blind, struct list *unhooked, struct list *cudart)
{
	const struct meta *m = &b->run->processes[p].meta;
	for (size_t i = 0; i < m->text_count; i++) {
		const struct fact_meta_text *t = &m->texts[i];
		const char *words = t->number < sizeof note_words / sizeof *note_words ? note_words[t->number] : NULL;
		if (t->type == CUF_META_UNHOOKED)
			add_once(unhooked, t->text);
		else if (t->type == CUF_META_STATIC_CUDART)
			add_once(cudart, t->text);
		else if (t->type == CUF_META_NOTE && words) {
			const char *at = strstr(words, "%s");
			say(blind, at ? arena_format(b->arena, "%.*s%s%s", (int)(at - words), words, t->text, at + 2) : words, p);
		}
	}
}

/*
 * Allocators that were linked into an object under hidden names, known by the messages they print. The file must be here.
 * What the recorder itself saw is told by its books, and the recorder knows their names, too.
 */
static const struct { const char *name, *message; } built_in[] = {
	{ "jemalloc", "<jemalloc>: " }, { "mimalloc", "mimalloc: warning: " }, { "tcmalloc", "TCMALLOC_" },
};
enum { BUILT_IN = sizeof built_in / sizeof *built_in };

struct searched { struct { struct symbols_module *module; size_t found; } *items; size_t count, room; };

static size_t built_into(struct searched *s, struct symbols_module *module)
{
	const char *messages[BUILT_IN];
	for (size_t i = 0; i < s->count; i++)
		if (s->items[i].module == module)
			return s->items[i].found;
	for (unsigned i = 0; i < BUILT_IN; i++)
		messages[i] = built_in[i].message;
	xalloc_grow(&s->items, s->count, &s->room, sizeof *s->items);
	s->items[s->count].module = module;
	return s->items[s->count++].found = symbols_module_constant(module, messages, BUILT_IN);
}

static bool is_known_allocator(const struct fact_process *p, const char *path)
{
	const char *slash = strrchr(path, '/');
	for (size_t i = 0; i < p->host.allocator_count; i++)
		if (!strcmp(p->host.allocators[i].object, path))
			return true;
	return !strncmp(slash ? slash + 1 : path, "libcuflight.so", 14);
}

static void tell_built_in(struct build *b, uint32_t p, struct searched *searched, struct sentences *blind)
{
	const struct fact_process *f = &b->facts->processes[p];
	if (!b->options.symbols || f->host_mode == CUF_HOST_OFF)
		return;
	for (size_t i = 0; i < f->module_count; i++) {
		const struct fact_module *m = &f->modules[i];
		size_t again = 0, found;
		while (again < i && strcmp(f->modules[again].path, m->path))
			again++;
		if (again < i) /* loaded once more */
			continue;
		found = is_known_allocator(f, m->path) ? BUILT_IN :
			built_into(searched, symbols_module(b->options.symbols, m->path, m->build_id, m->build_id_bytes));
		if (found < BUILT_IN)
			say(blind, arena_format(b->arena, "%s has %s built in: what it takes from that is not recorded", m->path, built_in[found].name), p);
	}
}

static void tell_process(struct build *b, uint32_t p, struct sentences *blind)
{
	const struct cuf_header *h = &b->run->processes[p].reader->header;
	if (h->framework_blind)
		say(blind, arena_format(b->arena, "%" PRIu64 " reports of PyTorch's allocator named no address: its blocks are counted, not placed", h->framework_blind), p);
	if (h->unknown_frees)
		say_minor(blind, arena_format(b->arena, "%" PRIu64 " frees were of memory that is older than the recorder, or foreign", h->unknown_frees), p);
	if (h->replaced)
		say(blind, arena_format(b->arena, "%" PRIu64 " blocks were allocated where one was live already: frees were missed", h->replaced), p);
	for (size_t i = 0; i < b->facts->processes[p].host.allocator_count; i++) {
		const struct fact_allocator *a = &b->facts->processes[p].host.allocators[i];
		if (a->role == ALLOCATOR_IN_FRONT)
			say(blind, arena_format(b->arena, "%s defines malloc itself (%s): its host allocations pass the recorder by", a->object, a->name), p);
		else if (a->role == ALLOCATOR_PRIVATE)
			say(blind, arena_format(b->arena, "%s has an allocator of its own (%s): its blocks are not recorded", a->object, a->name), p);
	}
	if (tenants_refusal(b, p))
		say(blind, tenants_refusal(b, p), p);
	if (h->options_host_mode == CUF_HOST_OFF)
		say_minor(blind, "host memory was not recorded (host=off)", p);
}

/* Allocators that keep regions of the driver's and tell nothing of their inside. */
static void tell_regions(struct build *b, struct sentences *blind)
{
	for (size_t d = 0; d < b->facts->device_count; d++) {
		const struct fact_fragmentation *f = &b->facts->devices[d].fragmentation;
		for (size_t i = 0; i < f->framework_count; i++) {
			const struct fact_framework *w = &f->frameworks[i];
			if (w->allocated_bytes == CUF_UNKNOWN)
				say(blind, arena_format(b->arena, "%s keeps %s in %zu block%s of GPU %u: what is free inside them is not seen, nor what it refuses by itself", w->name,
							units_bytes(w->reserved_bytes).s, w->segment_count, w->segment_count == 1 ? "" : "s",
							b->facts->devices[d].ordinal), w->process);
		}
	}
}

/* What is so in most runs comes last: the first sentence stands on the first screen. A parent without CUDA of children
 * with it is no gap. */
static void tell_usual(struct build *b, struct sentences *blind)
{
	bool driver = false;
	for (uint32_t p = 0; p < b->run->count; p++)
		driver |= b->run->processes[p].reader->header.driver_version != 0;
	for (uint32_t p = 0; p < b->run->count && !driver; p++)
		say_minor(blind, "no CUDA driver was seen in this process", p);
	for (uint32_t p = 0; p < b->run->count; p++) {
		struct host_means means = host_means_of(b->run->processes[p].reader, &b->run->processes[p].meta);
		uint64_t last_bytes = means.count ? means.changes[means.count - 1].mean_bytes : means.first_bytes;
		const char *later = means.count ? arena_format(b->arena, " at first, in %" PRIu64 " at last", last_bytes) : "";
		if (means.first_bytes)
			say_minor(blind, arena_format(b->arena, "host blocks below 64 KiB are a sample (one in %" PRIu64 " bytes%s): their figures are estimates",
						means.first_bytes, later), p);
	}
}

static void add_counters(struct build *b, struct fact_coverage *c, uint32_t p, struct fact_loss *lost)
{
	const struct cuf_header *h = &b->run->processes[p].reader->header;
	for (unsigned i = 0; i < CUF_LOST_MAX; i++)
		if (h->lost[i])
			lost[c->lost_count++] = (struct fact_loss){ loss_words[i] ? loss_words[i] : "unknown to this version", h->lost[i], p };
	for (unsigned i = 0; i < CUF_STOP_MAX; i++)
		c->stack_stops[i] += h->stack_stops[i];
	c->unknown_frees += h->unknown_frees;
	c->replaced += h->replaced;
	c->undone_frees += h->undone_frees;
	c->recorder_ns += h->recorder_ns;
}

static const char *const *keep(struct build *b, struct list *l, size_t *count)
{
	const char *const *kept = arena_copy(b->arena, l->items, l->count, sizeof *l->items);
	*count = l->count;
	free(l->items);
	return kept;
}

/* Functions that the recording names and that events came from. */
static void list_hooked(struct build *b, uint32_t p, struct list *hooked)
{
	const struct run_process *from = &b->run->processes[p];
	bool *used = xalloc_zeroed(UINT16_MAX + 1, sizeof *used);
	for (size_t i = 0; i < from->events->count; i++) {
		struct cuf_event e = events_get(from->events, i);
		used[e.hook] = used[e.label] = true;
	}
	reader_drop(from->reader, CUF_SEC_RING);
	for (unsigned i = 1; i < from->meta.hook_name_count; i++)
		if (used[i] && from->meta.hook_names[i])
			add_once(hooked, from->meta.hook_names[i]);
	free(used);
}

void build_coverage(struct build *build)
{
	struct fact_coverage *c = &build->facts->coverage;
	struct list hooked = { 0 }, unhooked = { 0 }, cudart = { 0 };
	struct sentences blind = { 0 };
	struct searched searched = { 0 };
	struct fact_loss *lost = arena_zeroed(build->arena, build->run->count * CUF_LOST_MAX, sizeof *lost);
	*c = (struct fact_coverage){ .complete = !build->run->unreadable_count };
	for (size_t i = 0; i < build->run->unreadable_count; i++)
		say(&blind, build->run->unreadable[i], FACT_NONE);
	for (uint32_t p = 0; p < build->run->count; p++) {
		const struct fact_process *f = &build->facts->processes[p];
		size_t before = c->lost_count;
		add_counters(build, c, p, lost);
		c->complete &= f->complete && !f->events_overwritten && !f->switched_off && c->lost_count == before;
		tell_losses(build, p, &blind);
		list_hooked(build, p, &hooked);
	}
	for (uint32_t p = 0; p < build->run->count; p++) {
		tell_texts(build, p, &blind, &unhooked, &cudart);
		tell_process(build, p, &blind);
		tell_built_in(build, p, &searched, &blind);
	}
	free(searched.items);
	tell_regions(build, &blind);
	tell_usual(build, &blind);
	c->lost = lost;
	c->hooked = keep(build, &hooked, &c->hooked_count);
	c->unhooked = keep(build, &unhooked, &c->unhooked_count);
	c->static_cudart = keep(build, &cudart, &c->static_cudart_count);
	c->blind = arena_copy(build->arena, blind.items, blind.count, sizeof *blind.items);
	c->blind_count = blind.count;
	free(blind.items);
}
