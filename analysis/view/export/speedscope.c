/* SPDX-License-Identifier: Apache-2.0 */
/*
 * speedscope's own format: one profile of live bytes for each process and kind of memory, which its
 * menu offers; a "sample" is a call site, its weight is bytes.
 */
#include "analysis/view/export/formats.h"

#include <stdlib.h>
#include <string.h>
#include "analysis/base/hash_index.h"
#include "analysis/base/numbers.h"
#include "analysis/base/xalloc.h"
#include "analysis/view/export/names.h"
#include "analysis/view/export/site_sums.h"

struct speedscope {
	FILE *out;
	struct rows *rows;
	struct hash_index index; /* texts of frames to their numbers, plus one */
	FILE *frames;            /* in memory: the list follows the profiles */
	uint32_t frame_count;
};

static int by_profile(const void *a, const void *b)
{
	const struct site_sum *left = a, *right = b;

	if (left->process != right->process)
		return compare_numbers(left->process, right->process);
	if (left->kind != right->kind)
		return compare_numbers(left->kind, right->kind);
	if (left->device != right->device)
		return compare_numbers(left->device, right->device);
	if (left->live_bytes != right->live_bytes)
		return compare_numbers(right->live_bytes, left->live_bytes);
	return compare_numbers(left->site, right->site);
}

static bool is_same_profile(const struct site_sum *a, const struct site_sum *b)
{
	return a->process == b->process && a->kind == b->kind && a->device == b->device;
}

static uint32_t frame_of(struct speedscope *speedscope, const struct frame *frame)
{
	char name[NAME_BYTES], key[2 * NAME_BYTES];
	uint32_t *place;

	name_function(frame, name, sizeof name);
	snprintf(key, sizeof key, "%s\n%.900s\n%u", name, frame->file ? frame->file : "",
		 frame->line);
	place = hash_index_place(&speedscope->index, hash_index_text(&speedscope->index, key));
	if (*place)
		return *place - 1;
	*place = ++speedscope->frame_count;
	fputs(speedscope->frame_count > 1 ? ",\n{\"name\":" : "{\"name\":", speedscope->frames);
	name_put_json(speedscope->frames, name);
	if (frame->file) {
		fputs(",\"file\":", speedscope->frames);
		name_put_json(speedscope->frames, frame->file);
	}
	if (frame->line)
		fprintf(speedscope->frames, ",\"line\":%u", frame->line);
	fputc('}', speedscope->frames);
	return speedscope->frame_count - 1;
}

/* Outermost first. */
static void put_stack(struct speedscope *speedscope, const struct site_sum *sum)
{
	static const struct frame unknown = { .function = "?", .language = "native" };
	const struct frame *frames;
	size_t count = rows_site_frames(speedscope->rows, sum->site, &frames);

	if (!count) {
		frames = &unknown;
		count = 1;
	}
	fputc('[', speedscope->out);
	for (size_t i = count; i--;)
		fprintf(speedscope->out, i ? "%u," : "%u", frame_of(speedscope, &frames[i]));
	fputc(']', speedscope->out);
}

static void put_profile(struct speedscope *speedscope, const struct site_sum *sums, size_t count)
{
	const struct facts *facts = rows_facts(speedscope->rows);
	char process[NAME_BYTES], memory[64], name[NAME_BYTES + 64];
	uint64_t bytes = 0;

	name_process(facts, sums->process, process, sizeof process);
	name_memory(facts, sums->kind, sums->device, memory, sizeof memory);
	snprintf(name, sizeof name, "%.63s: %.1000s", memory, process);
	fputs("{\"type\":\"sampled\",\"name\":", speedscope->out);
	name_put_json(speedscope->out, name);
	fputs(",\"unit\":\"bytes\",\"samples\":[", speedscope->out);
	for (size_t i = 0; i < count; i++) {
		if (i)
			fputs(",\n", speedscope->out);
		put_stack(speedscope, &sums[i]);
		bytes += sums[i].live_bytes;
	}
	fputs("],\"weights\":[", speedscope->out);
	for (size_t i = 0; i < count; i++)
		fprintf(speedscope->out, i ? ",%llu" : "%llu",
			(unsigned long long)sums[i].live_bytes);
	fprintf(speedscope->out, "],\"startValue\":0,\"endValue\":%llu}",
		(unsigned long long)bytes);
}

static void put_profiles(struct speedscope *speedscope, const struct site_sums *sums)
{
	for (size_t i = 0; i < sums->count;) {
		size_t end = i + 1;

		while (end < sums->count && is_same_profile(&sums->items[i], &sums->items[end]))
			end++;
		if (i)
			fputs(",\n", speedscope->out);
		put_profile(speedscope, &sums->items[i], end - i);
		i = end;
	}
}

static int write_speedscope(struct export_target *target, struct rows *rows)
{
	struct speedscope speedscope = { .out = target->file, .rows = rows };
	char *frames = NULL;
	size_t bytes = 0;
	struct site_sums sums;

	speedscope.frames = open_memstream(&frames, &bytes);
	if (!speedscope.frames) {
		snprintf(target->error, sizeof target->error, "not enough memory");
		return -1;
	}
	hash_index_init(&speedscope.index, 1024);
	site_sums_read(&sums, rows, false, false);
	if (sums.count)
		qsort(sums.items, sums.count, sizeof *sums.items, by_profile);
	fputs("{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\","
	      "\"exporter\":\"cuflight\",\"profiles\":[", target->file);
	put_profiles(&speedscope, &sums);
	fclose(speedscope.frames);
	fputs("],\"shared\":{\"frames\":[", target->file);
	fwrite(frames, 1, bytes, target->file);
	fputs("]}}\n", target->file);
	site_sums_fini(&sums);
	hash_index_fini(&speedscope.index);
	free(frames);
	return 0;
}

const struct export_format export_speedscope = {
	.name = "speedscope",
	.ending = ".speedscope.json",
	.about = "live bytes by call stack, a profile for each kind of memory, for speedscope",
	.takes_moment = true,
	.sums = true,
	.write = write_speedscope,
};
