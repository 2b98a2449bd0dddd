/* SPDX-License-Identifier: Apache-2.0 */
/* Names along a stack. */
#include "analysis/explain/evidence/stacks.h"

#include <stdlib.h>
#include <string.h>
#include "analysis/symbols/frameworks.h"
#include "analysis/symbols/role_names.h"
#include "analysis/facts/passes/roles.h"
#include "analysis/base/numbers.h"
#include "analysis/symbols/symbols.h"

enum { NATIVE_LOOKED_AT = 24, STACKS_MAX = 1 << 22 };

/* What the roles' tables know of real engines, and what such functions are mostly called. */
static unsigned function_hints(const char *function)
{
	static const struct {
		const char *role;
		unsigned hint;
	} rows[] = { { "kv", HINT_KV },
		     { "weights", HINT_WEIGHTS },
		     { "activations", HINT_ACTIVATIONS } };
	const char *role = function ? role_of_function(function) : NULL;
	for (size_t i = 0; role && i < sizeof rows / sizeof *rows; i++)
		if (!strcmp(role, rows[i].role))
			return rows[i].hint | name_hints(function);
	return name_hints(function);
}

/* The text has name and file, so both can give a hint. */
static unsigned python_hints(const struct fact_process *process, uint64_t frame)
{
	for (size_t i = 0; i < process->text_count; i++)
		if (process->texts[i].type == CUF_META_CODE &&
		    process->texts[i].number == cuf_frame_code(frame))
			return name_hints(process->texts[i].text);
	return 0;
}

/* Names that the recorder noted cost nothing, so symbols are read only where those do not tell. */
unsigned native_names_tell(struct symbols *symbols, const struct fact_process *process,
			   uint64_t addr, uint64_t time_ns, unsigned (*what)(const char *function))
{
	const struct fact_module *module = fact_module_at(process, addr, time_ns);
	const struct symbols_frame *frames;
	unsigned told = what(fact_function_at(process, addr, module));
	size_t count;
	/* only files whose functions tell: libtorch has half a million of names */
	if (told || !module || !symbols || !has_telling_symbols(module->path, process->exe))
		return told;
	count = symbols_resolve(symbols_module(symbols, module->path, module->build_id,
					       module->build_id_bytes),
				addr - module->base - 1, &frames);
	for (size_t i = 0; i < count && !told; i++)
		told = what(frames[i].function);
	return told;
}

/*
 * The innermost frame with a hint decides. Only graph capture and what reads count from any frame,
 * and what a function reads is no cache, whoever called it.
 * A framework's own calls may fill the first dozens of frames, so all frames of Python are looked
 * at; native ones need symbols, which cost more and tell less further out.
 *
 * What is outside of an event loop does not tell of its tasks. What a task's own function reads is
 * what it works on, and no model: one is loaded by a function that the task calls.
 */
unsigned stack_hints(const struct facts *facts, uint32_t process, uint32_t stack)
{
	const struct fact_process *recorded = &facts->processes[process];
	struct fact_stack frames = { .process = process, .id = stack };
	const unsigned anywhere = HINT_CAPTURE | HINT_READS;
	unsigned hints = 0, called = 0; /* by all but the last function of Python */
	stack_fill(facts, &frames, CUF_UNKNOWN);
	for (uint32_t i = 0; i < frames.depth; i++) {
		unsigned now = 0;
		if (cuf_frame_is_python(frames.addrs[i])) {
			now = python_hints(recorded, frames.addrs[i]);
			if (now & HINT_TASK)
				return (hints & ~HINT_READS) | (called & HINT_READS) | HINT_TASK;
			called = hints;
		} else if (i < NATIVE_LOOKED_AT) {
			now = native_names_tell(facts->run->symbols, recorded, frames.addrs[i],
						frames.time_ns, function_hints);
		}
		if (hints & HINT_READS)
			now &= ~(unsigned)HINT_KV;
		hints |= hints & ~anywhere ? now & anywhere : now;
	}
	return hints;
}

/* Its frames from the first one outside of the allocator's library, as a hash with the top bit set;
 * the id where there is none. */
static uint32_t site_key(const struct facts *facts, uint32_t process, uint32_t stack)
{
	const struct fact_process *recorded = &facts->processes[process];
	struct fact_stack frames = { .process = process, .id = stack };
	uint32_t first = 0, hash = 2166136261u;
	stack_fill(facts, &frames, CUF_UNKNOWN);
	for (; first < frames.depth && !cuf_frame_is_python(frames.addrs[first]); first++) {
		const struct fact_module *module = fact_module_at(recorded, frames.addrs[first],
								  frames.time_ns);
		if (!module || !is_allocator_front(module->path))
			break;
	}
	if (!first || first == frames.depth)
		return stack;
	for (uint32_t i = first; i < frames.depth; i++)
		for (unsigned byte = 0; byte < 64; byte += 8)
			hash = (hash ^ (uint32_t)(frames.addrs[i] >> byte & 0xff)) * 16777619u;
	return hash | 0x80000000u;
}

uint32_t stack_site(const struct facts *facts, uint32_t process, uint32_t stack,
		    struct stack_sites *sites)
{
	if (!sites->keys) {
		sites->count = reader_count(facts->run->processes[process].reader,
					    CUF_SEC_STACK_INDEX) + 1;
		sites->count = least_of(sites->count, STACKS_MAX);
		sites->keys = xalloc_zeroed(sites->count, sizeof *sites->keys);
	}
	if (!stack || stack >= sites->count)
		return stack;
	if (!sites->keys[stack])
		sites->keys[stack] = site_key(facts, process, stack);
	return sites->keys[stack];
}

void stack_sites_fini(struct stack_sites *sites)
{
	free(sites->keys);
}

/* Looks past the CUDA runtime at the library that called it. */
bool stack_is_framework_call(const struct facts *facts, uint32_t process, uint32_t stack)
{
	const struct fact_process *recorded = &facts->processes[process];
	struct fact_stack frames = { .process = process, .id = stack };

	stack_fill(facts, &frames, CUF_UNKNOWN);
	for (uint32_t i = 0; i < frames.depth && i < 4; i++) {
		const struct fact_module *module = NULL;
		if (!cuf_frame_is_python(frames.addrs[i]))
			module = fact_module_at(recorded, frames.addrs[i], frames.time_ns);
		if (module && !is_cuda_library(module->path))
			return is_allocator_front(module->path);
	}
	return false;
}
