/* SPDX-License-Identifier: Apache-2.0 */
/* The fingerprint of an environment, and how two of them differ. */
#include "analysis/gate/finding.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "analysis/base/numbers.h"
#include "analysis/base/units.h"
#include "analysis/base/xalloc.h"
#include "analysis/facts/facts.h"

enum { WORDS_MAX = 32, WORD_BYTES = 128, TEXT_BYTES = 1024 };

/* A sorted set of words. */
struct words { char items[WORDS_MAX][WORD_BYTES]; size_t count; };

static int by_text(const void *a, const void *b) { return strcmp(a, b); }

static void add_word(struct words *words, const char *word)
{
	for (size_t i = 0; i < words->count; i++)
		if (!strcmp(words->items[i], word))
			return;
	if (words->count < WORDS_MAX && *word)
		snprintf(words->items[words->count++], WORD_BYTES, "%s", word);
}

static const char *join_texts(struct words *words, struct arena *arena)
{
	char text[TEXT_BYTES] = "";

	qsort(words->items, words->count, WORD_BYTES, by_text);
	for (size_t i = 0; i < words->count; i++) {
		size_t used = strlen(text);
		snprintf(text + used, sizeof text - used, "%s%s", used ? " + " : "",
			 words->items[i]);
	}
	return arena_text(arena, text, strlen(text));
}

static void take_gpus(const struct facts *facts, struct arena *arena,
		      struct gate_environment *out)
{
	struct words names = { .count = 0 };

	out->gpu_bytes = CUF_UNKNOWN;
	for (size_t i = 0; i < facts->device_count; i++) {
		add_word(&names, facts->devices[i].name);
		if (facts->devices[i].total_bytes != CUF_UNKNOWN)
			out->gpu_bytes =
				known_or_zero(out->gpu_bytes) + facts->devices[i].total_bytes;
	}
	out->gpu = join_texts(&names, arena);
}

static void take_frameworks(const struct facts *facts, struct arena *arena,
			    struct gate_environment *out)
{
	struct words names = { .count = 0 };

	for (size_t i = 0; i < facts->device_count; i++) {
		const struct fact_fragmentation *from = &facts->devices[i].fragmentation;
		for (size_t f = 0; f < from->framework_count; f++) {
			char word[WORD_BYTES];
			snprintf(word, sizeof word, "%s %s", from->frameworks[f].name,
				 from->frameworks[f].version);
			add_word(&names, word);
		}
	}
	out->frameworks = join_texts(&names, arena);
}

static const char *driver_of(const struct facts *facts, struct arena *arena)
{
	for (size_t i = 0; i < facts->process_count; i++) {
		uint64_t version = facts->processes[i].driver_version;
		if (version && version != CUF_UNKNOWN)
			return arena_format(arena, "%llu.%llu", (unsigned long long)version / 1000,
					    (unsigned long long)version % 1000 / 10);
	}
	return "";
}

void environment_take(const struct facts *facts, struct arena *arena,
		      struct gate_environment *out)
{
	static const char *const modes[] = { "off", "sampled", "full" };
	const struct fact_process *focus = &facts->processes[facts->focus];

	*out = (struct gate_environment){ .host_mode = "", .recorder = "" };
	take_gpus(facts, arena, out);
	take_frameworks(facts, arena, out);
	out->driver = driver_of(facts, arena);
	if (!facts->process_count)
		return;
	if (focus->host_mode < sizeof modes / sizeof *modes)
		out->host_mode = modes[focus->host_mode];
	out->recorder = arena_format(arena, "sample=%llu:stack_depth=%llu",
				     (unsigned long long)focus->sample_mean_bytes,
				     (unsigned long long)focus->stack_depth);
}

static bool differ(const char *one, const char *other)
{
	return *one && *other && strcmp(one, other) != 0;
}

const char *environment_difference(const struct gate_environment *baseline,
				   const struct gate_environment *now, struct arena *arena)
{
	if (differ(baseline->gpu, now->gpu))
		return arena_format(arena, "the baseline was recorded on another GPU: %s, now %s",
				    baseline->gpu, now->gpu);
	if (*baseline->gpu && !*now->gpu)
		return arena_format(arena, "the baseline was recorded on a GPU (%s), this run "
				    "used none", baseline->gpu);
	if (!*baseline->gpu && *now->gpu)
		return arena_format(arena, "the baseline was recorded without a GPU, this run "
				    "used %s", now->gpu);
	if (is_known(baseline->gpu_bytes) && is_known(now->gpu_bytes) &&
	    baseline->gpu_bytes != now->gpu_bytes)
		return arena_format(arena, "the GPU of the baseline had %s, this one has %s",
				    units_bytes(baseline->gpu_bytes).s,
				    units_bytes(now->gpu_bytes).s);
	if (differ(baseline->driver, now->driver))
		return arena_format(arena, "the baseline was recorded with CUDA %s of the driver, "
				    "now it is %s", baseline->driver, now->driver);
	if (differ(baseline->host_mode, now->host_mode))
		return arena_format(arena, "the baseline was recorded with --host=%s, this run "
				    "with --host=%s", baseline->host_mode, now->host_mode);
	return NULL;
}

const char *environment_remark(const struct gate_environment *baseline,
			       const struct gate_environment *now, struct arena *arena)
{
	if (differ(baseline->frameworks, now->frameworks))
		return arena_format(arena, "the baseline was recorded with %s, now it is %s",
				    baseline->frameworks, now->frameworks);
	if (differ(baseline->recorder, now->recorder))
		return arena_format(arena, "the recorder's settings differ: %s, now %s",
				    baseline->recorder, now->recorder);
	return NULL;
}
