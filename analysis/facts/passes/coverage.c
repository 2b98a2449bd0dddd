/* SPDX-License-Identifier: Apache-2.0 */
/* What the recorder saw and what it could not: counters, lists, and whole sentences for people. */
#include "analysis/facts/passes/passes.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "analysis/symbols/frameworks.h"
#include "analysis/recording/host_weight.h"
#include "analysis/symbols/symbols.h"
#include "analysis/facts/passes/gpu_processes.h"
#include "analysis/base/hash_index.h"
#include "analysis/base/paths.h"
#include "analysis/base/numbers.h"
#include "analysis/base/units.h"

/* By enum cuf_loss. */
static const char *const loss_words[CUF_LOST_MAX] = {
	[CUF_LOST_THREADS] = "events of threads beyond the thread table",
	[CUF_LOST_RING] = "device events dropped",
	[CUF_LOST_HOST_RING] = "host events dropped",
	[CUF_LOST_LEDGER] = "live device blocks dropped",
	[CUF_LOST_HOST_LEDGER] = "live host blocks dropped",
	[CUF_LOST_STACKS] = "call stacks dropped",
	[CUF_LOST_META] = "names and modules dropped",
	[CUF_LOST_INCIDENTS] = "older incidents overwritten",
	[CUF_LOST_DEVICES] = "events of devices beyond the sixteenth",
	[CUF_LOST_SWITCH] = "events while the recording moved to its file",
	[CUF_LOST_NESTED] = "events from inside the recorder",
	[CUF_LOST_FRAMEWORK_RING] = "framework events dropped",
	[CUF_LOST_CODES] = "names of Python functions and phases dropped",
	[CUF_LOST_TASKS] = "events of clone tasks without thread-local storage of their own",
	[CUF_LOST_SMALL] = "events beyond a small table (sums at a failure, pools, bindings, "
			   "shared maps, new threads)",
};

/* By enum cuf_note: the sentence for the note; NULL: no blind spot. */
static const char *const note_words[] = {
	[CUF_NOTE_OFF] = "recording was switched off: %s",
	[CUF_NOTE_DEEPBIND] = "%s was loaded with RTLD_DEEPBIND: its calls are not recorded",
	[CUF_NOTE_DLMOPEN] =
		"%s was loaded into a namespace of its own (dlmopen): its calls are not recorded",
	[CUF_NOTE_NO_UNWINDER] =
		"libunwind was not found: some stacks are shorter than they could be",
	[CUF_NOTE_OTHER_PRELOAD] = "another library was preloaded too: %s",
	[CUF_NOTE_CHECKPOINT] = "device memory was checkpointed or restored: %s",
	[CUF_NOTE_FRAMEWORK] = "%s",
	[CUF_NOTE_PYTHON] = "Python frames were not recorded: %s",
};

struct list {
	const char **items;
	size_t count, room;
};
struct sentences {
	struct fact_text *items;
	size_t count, room;
	struct hash_index index; /* text to its place in items */
};

/* More names than any process resolves. A recording may have a new one in every record. */
enum { NAMES_MAX = 1000 };

/* Keeps names in the order in which they were found. The caller owns the texts. */
static void add_once(struct list *list, const char *text)
{
	for (size_t i = 0; i < list->count; i++)
		if (!strcmp(list->items[i], text))
			return;
	if (list->count == NAMES_MAX)
		return;
	xalloc_grow(&list->items, list->count, &list->room, sizeof *list->items);
	list->items[list->count++] = text;
}

/* A sentence that holds for several processes is printed once, for the run. */
static void say(struct sentences *sentences, const char *text, uint32_t process)
{
	uint32_t *number = hash_index_place(&sentences->index,
					    hash_index_text(&sentences->index, text));

	if (*number) {
		struct fact_text *said = &sentences->items[*number - 1];
		if (said->process != process)
			said->process = FACT_NONE;
		return;
	}
	*number = (uint32_t)sentences->count + 1;
	xalloc_grow(&sentences->items, sentences->count, &sentences->room,
		    sizeof *sentences->items);
	sentences->items[sentences->count++] = (struct fact_text){ .text = text,
								   .process = process };
}

/* True of most recordings, or without effect on who holds what and why: the first screen leaves it
 * out. */
static void say_minor(struct sentences *sentences, const char *text, uint32_t process)
{
	size_t count = sentences->count;
	say(sentences, text, process);
	if (sentences->count > count)
		sentences->items[count].minor = true;
}

/* The size that the recorder had, also where the file was trimmed later. */
static uint64_t reserved_bytes(const struct reader *reader)
{
	return reader->header.reserved_bytes ? reader->header.reserved_bytes
					     : reader->header.file_bytes;
}

/* What the recording lost, with the remedy where there is one. Each table of the recording has its
 * counter. */
static void tell_losses(const struct facts *facts, uint32_t p, struct sentences *blind)
{
	const struct fact_process *process = &facts->processes[p];
	const struct run_process *from = &facts->run->processes[p];
	if (from->reader->missing_bytes)
		say(blind,
		    arena_format(facts->arena,
				 "the recording is cut: %" PRIu64 " of %" PRIu64
				 " bytes are missing",
				 from->reader->missing_bytes, from->reader->header.file_bytes),
		    p);
	if (from->meta.damage_offset)
		say(blind,
		    arena_format(facts->arena,
				 "the recording is damaged at byte %" PRIu64
				 ": names and modules after it are missing",
				 from->meta.damage_offset),
		    p);
	if (process->events_lost)
		say(blind,
		    arena_format(facts->arena,
				 "%" PRIu64 " events were dropped: no table had room",
				 process->events_lost),
		    p);
	if (from->reader->header.lost[CUF_LOST_LEDGER] ||
	    from->reader->header.lost[CUF_LOST_HOST_LEDGER])
		say(blind,
		    arena_format(facts->arena,
				 "%" PRIu64 " live blocks were dropped (the recording has %s): "
			    "more is held than shown (raise --size)",
			    from->reader->header.lost[CUF_LOST_LEDGER] +
				    from->reader->header.lost[CUF_LOST_HOST_LEDGER],
			    units_bytes(reserved_bytes(from->reader)).s),
		    p);
	if (from->reader->header.lost[CUF_LOST_STACKS])
		say(blind,
		    arena_format(facts->arena,
				 "%s call stacks were dropped, of small blocks first: "
				 "the recording has %s (raise --size)",
				 units_count(from->reader->header.lost[CUF_LOST_STACKS]).s,
				 units_bytes(reserved_bytes(from->reader)).s),
		    p);
	if (process->events_overwritten)
		say_minor(blind,
			  arena_format(facts->arena,
				 "%s old events were overwritten; growth covers only the "
				  "remaining history (raise --size)",
				  units_count(process->events_overwritten).s),
			  p);
}

/* Notes of the recorder become sentences. Names of functions that could not be hooked, and of
 * objects with a static CUDA runtime, are lists of their own. */
static void tell_texts(const struct facts *facts, uint32_t p, struct sentences *blind,
		       struct list *unhooked, struct list *cudart)
{
	const struct meta *meta = &facts->run->processes[p].meta;
	for (size_t i = 0; i < meta->text_count; i++) {
		const struct fact_meta_text *text = &meta->texts[i];
		const char *words = NULL;

		if (text->number < sizeof note_words / sizeof *note_words)
			words = note_words[text->number];
		if (text->type == CUF_META_UNHOOKED)
			add_once(unhooked, text->text);
		else if (text->type == CUF_META_STATIC_CUDART)
			add_once(cudart, text->text);
		else if (text->type == CUF_META_NOTE && words) {
			const char *at = strstr(words, "%s");
			if (at)
				words = arena_format(facts->arena, "%.*s%s%s", (int)(at - words),
						     words, text->text, at + 2);
			say(blind, words, p);
		}
	}
}

/* Comes first: whatever else is missing, this explains it. */
static void tell_switched_off(const struct facts *facts, uint32_t p, struct sentences *blind)
{
	const struct meta *meta = &facts->run->processes[p].meta;
	for (size_t i = 0; i < meta->text_count; i++)
		if (meta->texts[i].type == CUF_META_NOTE && meta->texts[i].number == CUF_NOTE_OFF)
			say(blind,
			    arena_format(facts->arena, "recording was switched off: %s",
					 meta->texts[i].text),
			    p);
}

/*
 * Allocators that were linked into an object under hidden names, recognised by the messages they
 * print. The file must be on this machine. Allocators that the recorder recognised are left out:
 * their statistics are in the recording, under their names.
 */
static const struct {
	const char *name, *message;
} built_in[] = {
	{ "jemalloc", "<jemalloc>: " },
	{ "mimalloc", "mimalloc: warning: " },
	{ "tcmalloc", "TCMALLOC_" },
};
enum { BUILT_IN = sizeof built_in / sizeof *built_in };

struct searched {
	struct {
		struct symbols_module *module;
		size_t found;
	} * items;
	size_t count, room;
	struct hash_index index; /* address of the module to its place in items */
};

/* A file that was found by its build-id is the same one, however its path is written. */
static uint64_t key_of_module(const struct hash_index *index, const struct fact_module *recorded,
			      const struct symbols_module *module)
{
	char id[2 * sizeof recorded->build_id + 1] = "";

	if (!recorded->build_id_bytes || symbols_module_state(module) != SYMBOLS_VERIFIED)
		return (uintptr_t)module;
	for (size_t i = 0; i < recorded->build_id_bytes; i++)
		snprintf(id + 2 * i, 3, "%02x", recorded->build_id[i]);
	return hash_index_text(index, id);
}

/* Index into built_in, or BUILT_IN. The search reads the whole file, so its result is kept per
 * module: processes of one run share most of them. */
static size_t built_into(struct searched *searched, const struct fact_module *recorded,
			 struct symbols_module *module)
{
	const char *messages[BUILT_IN];
	uint32_t *number = hash_index_place(&searched->index,
					    key_of_module(&searched->index, recorded, module));
	if (*number)
		return searched->items[*number - 1].found;
	*number = (uint32_t)searched->count + 1;
	for (unsigned i = 0; i < BUILT_IN; i++)
		messages[i] = built_in[i].message;
	xalloc_grow(&searched->items, searched->count, &searched->room, sizeof *searched->items);
	searched->items[searched->count].module = module;
	return searched->items[searched->count++].found = symbols_module_constant(module, messages,
										  BUILT_IN);
}

/* The recorder contains the messages of all three allocators, so it is skipped by its name. */
static bool is_known_allocator(const struct fact_process *process, const char *path)
{
	
	for (size_t i = 0; i < process->host.allocator_count; i++)
		if (!strcmp(process->host.allocators[i].object, path))
			return true;
	return !strncmp(path_base_name(path), "libcuflight.so", 14);
}

/* From 3.13 on CPython has mimalloc built in, and uses it only without the GIL: python3.13t. */
static bool is_asleep(const char *allocator, const char *path)
{
	const char *version = strstr(path_base_name(path), "python");

	return !strcmp(allocator, "mimalloc") && is_python_interpreter(path) &&
	       version[strlen("python") + strspn(version + strlen("python"), "0123456789.")] != 't';
}

/* A process may map one file several times. Each path is searched once. */
static void tell_built_in(const struct facts *facts, uint32_t p, struct searched *searched,
			  struct sentences *blind)
{
	const struct fact_process *process = &facts->processes[p];
	struct hash_index paths;
	if (!facts->run->symbols || process->host_mode == CUF_HOST_OFF)
		return;
	hash_index_init(&paths, process->module_count);
	for (size_t i = 0; i < process->module_count; i++) {
		const struct fact_module *module = &process->modules[i];
		uint32_t *seen = hash_index_place(&paths, hash_index_text(&paths, module->path));
		size_t found;
		if ((*seen)++) /* loaded once more */
			continue;
		if (is_known_allocator(process, module->path))
			continue;
		found = built_into(searched, module,
				   symbols_module(facts->run->symbols, module->path,
						  module->build_id, module->build_id_bytes));
		if (found < BUILT_IN && !is_asleep(built_in[found].name, module->path))
			say(blind,
			    arena_format(facts->arena,
				 "%s has %s built in: its allocations are not recorded",
				    module->path, built_in[found].name),
			    p);
	}
	hash_index_fini(&paths);
}

/* A walk now and then may meet a frame that is being made. Where many do, the layout is wrong. */
static void tell_python_walks(const struct facts *facts, struct sentences *blind, uint32_t p)
{
	enum { DAMAGED = 0, FEW = 64 };
	uint64_t refused = facts->run->processes[p].reader->header.python_stops[DAMAGED];
	const char *text =
		arena_format(facts->arena,
			     "%s walks of Python frames were refused: call sites may lack them",
			     units_count(refused).s);

	if (refused > FEW)
		say(blind, text, p);
	else if (refused)
		say_minor(blind, text, p);
}

/* A runtime is among the modules when one of its functions was on a stack. It maps and allocates
 * host memory for all that it does, so one that was used is there. */
static bool tell_other_gpus(const struct facts *facts, uint32_t p, struct sentences *blind)
{
	const struct fact_process *process = &facts->processes[p];
	const char *vendor, *told = "";

	for (size_t i = 0; i < process->module_count; i++) {
		const char *path = process->modules[i].path;

		if (!(vendor = other_gpu_vendor(path)) || !strcmp(vendor, told))
			continue;
		say(blind,
		    arena_format(facts->arena,
				 "memory of %s GPUs is not recorded (%s is in use): host memory "
				 "and PyTorch's blocks are",
				 told = vendor, path_base_name(path)),
		    p);
	}
	return *told;
}

/* Blind spots that the header counts, and allocators that malloc's hooks do not see. */
static void tell_process(const struct facts *facts, uint32_t p, struct sentences *blind)
{
	const struct reader *reader = facts->run->processes[p].reader;
	const struct cuf_header *header = &reader->header;
	if (header->framework_blind)
		say(blind,
		    arena_format(facts->arena,
				 "%" PRIu64 " reports of PyTorch's allocator have no address: "
				 "blocks are counted, not placed",
			    header->framework_blind),
		    p);
	if (header->unknown_frees)
		say_minor(
			blind,
			arena_format(facts->arena,
				 "%" PRIu64 " frees were of memory that was allocated before "
				       "recording began, or by other code",
				header->unknown_frees),
			p);
	if (header->replaced)
		say(blind,
		    arena_format(facts->arena,
				 "%" PRIu64 " blocks were allocated at addresses that were still "
				 "live: frees were missed",
			    header->replaced),
		    p);
	for (size_t i = 0; i < facts->processes[p].host.allocator_count; i++) {
		const struct fact_allocator *allocator = &facts->processes[p].host.allocators[i];
		if (allocator->role == ALLOCATOR_IN_FRONT)
			say(blind,
			    arena_format(facts->arena,
				 "%s defines malloc itself (%s): its host allocations "
				    "are not recorded",
				    allocator->object, allocator->name),
			    p);
		else if (allocator->role == ALLOCATOR_PRIVATE)
			say(blind,
			    arena_format(facts->arena,
				 "%s has a private allocator (%s): its blocks are not recorded",
				    allocator->object, allocator->name),
			    p);
	}
	if (gpu_processes_refusal(facts, p))
		say(blind, gpu_processes_refusal(facts, p), p);
	tell_python_walks(facts, blind, p);
	if (reader->is_blurred && reader->writers == FILE_HAS_WRITER)
		say_minor(blind,
			  "the process was allocating while it was read, and no one moment was "
			  "found: sums may differ by the blocks of those calls", p);
	if (header->options_host_mode == CUF_HOST_OFF)
		say_minor(blind, "host memory was not recorded (host=off)", p);
}

/* Allocators that keep regions of the driver's and tell nothing of their inside. */
static void tell_regions(const struct facts *facts, struct sentences *blind)
{
	for (size_t d = 0; d < facts->device_count; d++) {
		const struct fact_fragmentation *fragmentation = &facts->devices[d].fragmentation;
		for (size_t i = 0; i < fragmentation->framework_count; i++) {
			const struct fact_framework *framework = &fragmentation->frameworks[i];
			if (framework->allocated_bytes == CUF_UNKNOWN)
				say(blind,
				    arena_format(facts->arena,
				 "%s keeps %s in %zu block%s of GPU %u: free memory "
					    "inside them is not visible, and neither are requests "
					    "that it refuses by itself",
					    framework->name,
					    units_bytes(framework->reserved_bytes).s,
					    framework->segment_count,
					    framework->segment_count == 1 ? "" : "s",
					    facts->devices[d].ordinal),
				    framework->process);
		}
	}
}

/* What is so in most runs comes last: the first sentence stands on the first screen. A parent
 * without CUDA of children with it is no gap. */
static void tell_usual(const struct facts *facts, struct sentences *blind)
{
	bool driver = false;
	for (uint32_t p = 0; p < facts->run->count; p++)
		driver |= facts->run->processes[p].reader->header.driver_version != 0;
	for (uint32_t p = 0; p < facts->run->count && !driver; p++)
		say_minor(blind, "no CUDA driver was seen in this process", p);
	for (uint32_t p = 0; p < facts->run->count; p++) {
		struct host_means means = host_means_of(facts->run->processes[p].reader,
							&facts->run->processes[p].meta);
		const char *later = "";

		if (means.count)
			later = arena_format(facts->arena, " at first, in %" PRIu64 " at last",
					     means.changes[means.count - 1].mean_bytes);
		
		if (means.first_bytes)
			say_minor(blind,
				  arena_format(facts->arena,
				 "host blocks below 64 KiB are sampled (one in %" PRIu64
					  " bytes%s): their figures are estimates",
					  means.first_bytes, later),
				  p);
	}
}

/* Sums over processes, except for losses: those stay apart because each recording has its size. */
static void add_counters(const struct facts *facts, struct fact_coverage *coverage, uint32_t p,
			 struct fact_loss *lost)
{
	const struct cuf_header *header = &facts->run->processes[p].reader->header;
	for (unsigned i = 0; i < CUF_LOST_MAX; i++)
		if (header->lost[i])
			lost[coverage->lost_count++] = (struct fact_loss){
				loss_words[i] ? loss_words[i] : "unknown to this version",
				header->lost[i], p
			};
	for (unsigned i = 0; i < CUF_STOP_MAX; i++)
		coverage->stack_stops[i] += header->stack_stops[i];
	coverage->unknown_frees += header->unknown_frees;
	coverage->replaced += header->replaced;
	coverage->undone_frees += header->undone_frees;
	coverage->recorder_ns += header->recorder_ns;
}

/* Moves a list from the heap into the arena. */
static const char *const *keep(const struct facts *facts, struct list *list, size_t *count)
{
	const char *const *kept = arena_copy(facts->arena, list->items, list->count,
					     sizeof *list->items);
	*count = list->count;
	free(list->items);
	return kept;
}

static bool take_hooks(void *state, const struct sweep_row *row)
{
	bool *hooks = state;

	for (size_t i = 0; i < row->count; i++)
		if (!row->is_framework[i])
			hooks[row->events[i].hook] = hooks[row->events[i].label] = true;
	return true;
}

struct sweep_consumer hooks_consumer(bool *hooks)
{
	return (struct sweep_consumer){ take_hooks, hooks };
}

/* Functions that the recording names and that events came from. */
static void list_hooked(const struct facts *facts, uint32_t p, const bool *hooks,
			struct list *hooked)
{
	const struct meta *meta = &facts->run->processes[p].meta;

	for (unsigned i = 1; i < meta->hook_name_count; i++)
		if (hooks[i] && meta->hook_names[i])
			add_once(hooked, meta->hook_names[i]);
}

#define NOBODYS_LEAST (16ull << 20) /* less is stacks of threads and the like */

/* Resident memory of which nothing is known, where it is a quarter and more of all. */
static void tell_nobodys(const struct facts *facts, uint32_t p, struct sentences *blind)
{
	const struct fact_host *host = &facts->processes[p].host;
	uint64_t bytes = host->heap.nobodys_bytes;

	if (!is_known(bytes) || !is_known(host->rss_bytes) || bytes < NOBODYS_LEAST ||
	    bytes < host->rss_bytes / 4)
		return;
	say(blind,
	    arena_format(facts->arena, "%s of %s resident is of no recorded call: %s%s%s",
			 units_bytes(bytes).s, units_bytes(host->rss_bytes).s,
			 host->heap.name && !host->heap.bytes ? "it may be the " : "",
			 host->heap.name && !host->heap.bytes ? host->heap.name
							      : "the allocator may keep it",
			 ", or it was mapped out of sight"),
	    p);
}

/* The order of the sentences is the order of the report: what explains most comes first. */
struct fact_coverage coverage_of(const struct facts *facts, const struct swept *swept)
{
	struct fact_coverage coverage = { .complete = !facts->run->unreadable_count };
	struct list hooked = { 0 }, unhooked = { 0 }, cudart = { 0 };
	struct sentences blind = { 0 };
	struct searched searched = { 0 };
	struct fact_loss *lost = arena_zeroed(facts->arena, facts->run->count * CUF_LOST_MAX,
					      sizeof *lost);
	hash_index_init(&blind.index, 0);
	hash_index_init(&searched.index, 0);
	for (size_t i = 0; i < facts->run->unreadable_count; i++)
		say(&blind, facts->run->unreadable[i], FACT_NONE);
	for (uint32_t p = 0; p < facts->run->count; p++) {
		const struct fact_process *process = &facts->processes[p];
		size_t before = coverage.lost_count;
		add_counters(facts, &coverage, p, lost);
		coverage.complete &= process->complete && !process->events_overwritten &&
				      !process->switched_off && coverage.lost_count == before;
		tell_switched_off(facts, p, &blind);
		tell_losses(facts, p, &blind);
		list_hooked(facts, p, swept[p].hooks, &hooked);
	}
	for (uint32_t p = 0; p < facts->run->count; p++) {
		tell_texts(facts, p, &blind, &unhooked, &cudart);
		coverage.other_gpus |= tell_other_gpus(facts, p, &blind);
		tell_process(facts, p, &blind);
		tell_nobodys(facts, p, &blind);
		tell_built_in(facts, p, &searched, &blind);
	}
	free(searched.items);
	hash_index_fini(&searched.index);
	tell_regions(facts, &blind);
	tell_usual(facts, &blind);
	coverage.lost = lost;
	coverage.hooked = keep(facts, &hooked, &coverage.hooked_count);
	coverage.unhooked = keep(facts, &unhooked, &coverage.unhooked_count);
	coverage.static_cudart = keep(facts, &cudart, &coverage.static_cudart_count);
	coverage.blind = arena_copy(facts->arena, blind.items, blind.count, sizeof *blind.items);
	coverage.blind_count = blind.count;
	free(blind.items);
	hash_index_fini(&blind.index);
	return coverage;
}
