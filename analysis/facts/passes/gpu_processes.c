/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses the reading, finds ourselves in it, and leaves the others. */
#include "analysis/base/numbers.h"
#include "analysis/facts/passes/gpu_processes.h"

#include <stdlib.h>
#include <string.h>
#include "interpose/abi/nvml.h"

#define NEAR_NS 2000000000ull /* who holds what hardly changes: a reading of that moment */
#define STALE_NS 60000000000ull /* and one of another, but better than none */

/* Time between two moments, in either order. */
static uint64_t apart(uint64_t a, uint64_t b)
{
	return most_of(a, b) - least_of(a, b);
}

/* Readings that failed, or have an unknown layout, are only for gpu_processes_refusal. */
static bool is_whole(const struct gpu_processes_reading *reading)
{
	return !reading->head.failed && !(reading->head.flags & CUF_GPU_PROCESSES_LAYOUT);
}

struct choice {
	const struct gpu_processes_reading *reading;
	uint32_t process;
	uint64_t apart_ns;
};

/* NVML knows the whole machine, so any process of the run may have asked. */
static struct choice choose(const struct facts *facts, uint32_t device, uint64_t time_ns)
{
	const struct fact_device *used = &facts->devices[device];
	struct choice best = { NULL, FACT_NONE, STALE_NS };
	for (size_t m = 0; m < used->member_count; m++) {
		const struct meta *meta = &facts->run->processes[used->members[m].process].meta;
		for (size_t i = 0; i < meta->reading_count; i++) {
			const struct gpu_processes_reading *reading = &meta->readings[i];
			if (reading->head.device != used->members[m].ordinal ||
			    !is_whole(reading) || apart(reading->time_ns, time_ns) >= best.apart_ns)
				continue;
			best = (struct choice){ reading, used->members[m].process,
						apart(reading->time_ns, time_ns) };
		}
	}
	return best;
}

static const struct cuf_gpu_process *find(const struct gpu_processes_reading *reading, uint32_t pid)
{
	for (uint32_t i = 0; i < reading->head.stored_count; i++)
		if (reading->holders[i].pid == pid)
			return &reading->holders[i];
	return NULL;
}

/*
 * The focus in the list. Where it is not there although it lived and held memory, the ids are of
 * another pid namespace: the smallest process that holds as much as it does, and that its own
 * namespace does not have, is taken for it.
 */
static const struct cuf_gpu_process *find_focus(const struct gpu_processes_reading *reading,
						const struct usage *focus, bool *guessed)
{
	const struct cuf_gpu_process *own = find(reading, focus->pid), *holder;
	*guessed = false;
	if (own || reading->head.flags & CUF_GPU_PROCESSES_AFTER)
		return own;
	for (uint32_t i = 0; i < reading->head.stored_count; i++) {
		holder = &reading->holders[i];
		if (!(holder->flags & CUF_GPU_PROCESS_SEEN) && holder->used_bytes != CUF_UNKNOWN &&
		    holder->used_bytes >= usage_bytes(focus) &&
		    (!own || holder->used_bytes < own->used_bytes))
			own = holder;
	}
	*guessed = own != NULL;
	return own;
}

/* Largest first; processes of unknown size last. */
static int by_held_bytes(const void *a, const void *b)
{
	const struct gpu_process *x = a, *y = b;
	uint64_t left = known_or_zero(x->bytes),
		 right = known_or_zero(y->bytes);
	if (left != right)
		return compare_numbers(right, left);
	return compare_numbers(x->pid, y->pid);
}

/* A process of the run by its pid; NULL: it has no recording. */
static struct usage *usage_of(struct usage *others, size_t count, uint32_t pid)
{
	for (size_t i = 0; i < count; i++)
		if (others[i].pid == pid)
			return &others[i];
	return NULL;
}

/* NULL: the recorder could not read it. */
static const char *holder_name(const struct facts *facts, const struct cuf_gpu_process *holder)
{
	if (!*holder->name)
		return NULL;
	return arena_text(facts->arena, holder->name, strnlen(holder->name, sizeof holder->name));
}

/* The failing process asked at the failure itself. `run` asks a moment later, when others may have
 * ended or come. */
static bool is_of_moment(const struct choice *choice, uint32_t process,
			 const struct cuf_incident *incident)
{
	const struct cuf_meta_gpu_processes *head = &choice->reading->head;

	return !(head->flags & CUF_GPU_PROCESSES_BY_RUN) && choice->process == process &&
	       incident && incident->number == head->meta.number;
}

void gpu_processes_share(const struct facts *facts, uint32_t device,
			 const struct fact_moment *moment, const struct cuf_incident *incident,
			 struct usage *focus, struct usage *others,
			 struct owners_question *question)
{
	struct choice choice = choose(facts, device, moment->time_ns);
	const struct cuf_gpu_process *own;
	struct gpu_process *rows;
	bool guessed, of_moment;
	if (!choice.reading || !focus->pid)
		return;
	own = find_focus(choice.reading, focus, &guessed);
	rows = arena_zeroed(facts->arena, choice.reading->head.stored_count, sizeof *rows);
	question->gpu_processes = rows;
	question->gpu_processes_basis = basis_if_exact(choice.apart_ns <= NEAR_NS && !guessed);
	/* what is over the blocks of a recorded process is its context, but only of the very moment
	 * at which the blocks are known */
	of_moment = is_of_moment(&choice, moment->process, incident);
	if (own && !guessed && of_moment)
		focus->nvml_bytes = own->used_bytes;
	for (uint32_t i = 0; i < choice.reading->head.stored_count; i++) {
		const struct cuf_gpu_process *holder = &choice.reading->holders[i];
		struct usage *recorded = usage_of(others, question->other_count, holder->pid);
		if (holder == own)
			continue;
		if (recorded && of_moment)
			recorded->nvml_bytes = holder->used_bytes;
		else if (!recorded)
			rows[question->gpu_process_count++] = (struct gpu_process){
				holder->pid, holder_name(facts, holder), holder->used_bytes };
	}
	if (question->gpu_process_count)
		qsort(rows, question->gpu_process_count, sizeof *rows, by_held_bytes);
}

/* What NVML's result means, in parentheses; "" for results without a row. */
static const char *result_words(uint32_t result)
{
	static const struct {
		uint32_t result;
		const char *words;
	} known[] = {
		{ 3, " (not supported)" },
		{ 4, " (no permission)" },
		{ 6, " (not found)" },
		{ 7, " (too many processes)" },
		{ 9, " (driver not loaded)" },
		{ 10, " (no answer in time)" },
		{ 13, " (function not found)" },
		{ 15, " (the GPU is lost)" },
		{ 18, " (library and driver are of different versions)" },
	};
	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (known[i].result == result)
			return known[i].words;
	return "";
}

const char *gpu_processes_refusal(const struct facts *facts, uint32_t process)
{
#define NAME(name, parameters) #name,
	static const char *const names[] = { "", CUF_NVML_FUNCTIONS(NAME) };
#undef NAME
	const struct meta *meta = &facts->run->processes[process].meta;
	for (size_t i = 0; i < meta->reading_count; i++) {
		const struct cuf_meta_gpu_processes *head = &meta->readings[i].head;
		const char *function = "an unknown function";

		if (head->flags & CUF_GPU_PROCESSES_LAYOUT)
			return "NVML's list of processes has a layout that is not known: "
			       "other processes are not told apart";
		if (!head->failed)
			continue;
		if (head->failed < CUF_NVML_FUNCTION_MAX)
			function = names[head->failed];
		return arena_format(facts->arena,
				    "NVML did not say who else holds the device: %s answered %u%s",
				    function, head->result, result_words(head->result));
	}
	return NULL;
}
