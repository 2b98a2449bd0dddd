/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pprof's profile.proto, gzipped. A sample is one call site, kind, device, thread and phase; its
 * values are what lives at the moment and what was allocated in the whole recording. Strings,
 * functions, locations and mappings are written when they are first used: fields of a message may
 * come in any order.
 */
#include "analysis/view/export/formats.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>
#include "analysis/base/numbers.h"
#include "analysis/base/xalloc.h"
#include "analysis/facts/totals.h"
#include "analysis/view/export/names.h"
#include "analysis/view/export/proto.h"
#include "analysis/view/export/site_sums.h"
#include "analysis/facts/kinds.h"

/* Numbers of fields in profile.proto. */
enum {
	PROFILE_SAMPLE_TYPE = 1, PROFILE_SAMPLE = 2, PROFILE_MAPPING = 3, PROFILE_LOCATION = 4,
	PROFILE_FUNCTION = 5, PROFILE_STRING = 6, PROFILE_TIME = 9, PROFILE_DURATION = 10,
	PROFILE_PERIOD_TYPE = 11, PROFILE_PERIOD = 12, PROFILE_COMMENT = 13,
	PROFILE_DEFAULT_TYPE = 14,
	VALUE_TYPE = 1, VALUE_UNIT = 2,
	SAMPLE_LOCATION = 1, SAMPLE_VALUE = 2, SAMPLE_LABEL = 3,
	LABEL_KEY = 1, LABEL_TEXT = 2,
	MAPPING_ID = 1, MAPPING_START = 2, MAPPING_LIMIT = 3, MAPPING_FILE = 5, MAPPING_BUILD = 6,
	MAPPING_HAS_FUNCTIONS = 7, MAPPING_HAS_FILES = 8, MAPPING_HAS_LINES = 9,
	MAPPING_HAS_INLINES = 10,
	LOCATION_ID = 1, LOCATION_MAPPING = 2, LOCATION_ADDRESS = 3, LOCATION_LINE = 4,
	LINE_FUNCTION = 1, LINE_LINE = 2,
	FUNCTION_ID = 1, FUNCTION_NAME = 2, FUNCTION_SYSTEM_NAME = 3, FUNCTION_FILE = 4
};

struct pprof {
	gzFile file;
	struct rows *rows;
	struct hash_index strings, functions, locations, mappings;
	uint32_t string_count, function_count, location_count, mapping_count;
	struct proto out;       /* fields of the profile, written when it is long */
	uint64_t *stack;        /* ids of locations */
	size_t stack_room;
};

enum { OUT_BYTES = 1 << 16 };

static void flush(struct pprof *pprof)
{
	if (pprof->out.count)
		gzwrite(pprof->file, pprof->out.bytes, (unsigned)pprof->out.count);
	proto_clear(&pprof->out);
}

/* A field of the profile. Takes the message. */
static void put_field(struct pprof *pprof, unsigned field, struct proto *message)
{
	proto_message(&pprof->out, field, message);
	proto_fini(message);
	if (pprof->out.count > OUT_BYTES)
		flush(pprof);
}

/* The number of a text in the string table. The first one is the empty text. */
static uint64_t string_of(struct pprof *pprof, const char *text)
{
	uint32_t *place = hash_index_place(&pprof->strings,
					   hash_index_text(&pprof->strings, text));

	if (!*place) {
		proto_text(&pprof->out, PROFILE_STRING, text);
		*place = ++pprof->string_count;
	}
	return *place - 1;
}

static void put_value_type(struct pprof *pprof, unsigned field, const char *type, const char *unit)
{
	struct proto message = { 0 };

	proto_number(&message, VALUE_TYPE, string_of(pprof, type));
	proto_number(&message, VALUE_UNIT, string_of(pprof, unit));
	put_field(pprof, field, &message);
}

static void put_label(struct pprof *pprof, struct proto *sample, const char *key, const char *text)
{
	struct proto label = { 0 };

	proto_number(&label, LABEL_KEY, string_of(pprof, key));
	proto_number(&label, LABEL_TEXT, string_of(pprof, text));
	proto_message(sample, SAMPLE_LABEL, &label);
	proto_fini(&label);
}

/* ---- where ---- */

static uint64_t function_of(struct pprof *pprof, const struct frame *frame)
{
	char name[NAME_BYTES], file[NAME_BYTES];
	uint64_t names, files;
	struct proto message = { 0 };
	uint32_t *place;

	name_function(frame, name, sizeof name);
	names = string_of(pprof, name);
	files = 0;
	if (frame->file) {
		name_text(frame->file, file, sizeof file);
		files = string_of(pprof, file);
	}
	place = hash_index_place(&pprof->functions, names << 32 | files);
	if (*place)
		return *place;
	*place = ++pprof->function_count;
	proto_number(&message, FUNCTION_ID, *place);
	proto_number(&message, FUNCTION_NAME, names);
	proto_number(&message, FUNCTION_SYSTEM_NAME, names);
	proto_number(&message, FUNCTION_FILE, files);
	put_field(pprof, PROFILE_FUNCTION, &message);
	return pprof->function_count;
}

/* 0: the address is in no module. */
static uint64_t mapping_of(struct pprof *pprof, uint32_t process, uint64_t addr)
{
	const struct fact_module *module =
		fact_module_at(&rows_facts(pprof->rows)->processes[process], addr, CUF_UNKNOWN);
	char text[NAME_BYTES], build[2 * sizeof module->build_id + 1] = "";
	struct proto message = { 0 };
	uint64_t file, build_id;
	uint32_t *place;

	if (!module)
		return 0;
	place = hash_index_place(&pprof->mappings, (uint64_t)process << 32 | module->id);
	if (*place)
		return *place;
	*place = ++pprof->mapping_count;
	for (uint32_t i = 0; i < least_of(module->build_id_bytes, sizeof module->build_id); i++)
		snprintf(build + 2 * (size_t)i, 3, "%02x", module->build_id[i]);
	name_text(module->path, text, sizeof text);
	file = string_of(pprof, text);
	build_id = string_of(pprof, build);
	proto_number(&message, MAPPING_ID, pprof->mapping_count);
	proto_number(&message, MAPPING_START, module->start);
	proto_number(&message, MAPPING_LIMIT, module->end);
	proto_number(&message, MAPPING_FILE, file);
	proto_number(&message, MAPPING_BUILD, build_id);
	for (unsigned field = MAPPING_HAS_FUNCTIONS; field <= MAPPING_HAS_INLINES; field++)
		proto_number(&message, field, 1); /* pprof shall not search for symbols */
	put_field(pprof, PROFILE_MAPPING, &message);
	return pprof->mapping_count;
}

/* Frames 0 to count - 1 are of one address: all but the last are inlined. */
static uint64_t location_of(struct pprof *pprof, uint32_t process, const struct frame *frames,
			    size_t count)
{
	uint64_t key = frames[0].addr ^ (uint64_t)process << 48;
	uint32_t *place = hash_index_place(&pprof->locations, key), id;
	struct proto message = { 0 };

	if (*place)
		return *place;
	id = *place = ++pprof->location_count;
	proto_number(&message, LOCATION_ID, id);
	if (!frame_is_python(&frames[0])) {
		proto_number(&message, LOCATION_MAPPING,
			     mapping_of(pprof, process, frames[0].addr));
		proto_number(&message, LOCATION_ADDRESS, frames[0].addr);
	}
	for (size_t i = 0; i < count; i++) {
		struct proto line = { 0 };

		proto_number(&line, LINE_FUNCTION, function_of(pprof, &frames[i]));
		proto_number(&line, LINE_LINE, frames[i].line);
		proto_message(&message, LOCATION_LINE, &line);
		proto_fini(&line);
	}
	put_field(pprof, PROFILE_LOCATION, &message);
	return id;
}

static void put_stack(struct pprof *pprof, struct proto *sample, const struct site_sum *sum)
{
	static const struct frame unknown = { .function = "?", .language = "native" };
	const struct frame *frames;
	size_t count = rows_site_frames(pprof->rows, sum->site, &frames), depth = 0;

	if (!count) {
		frames = &unknown;
		count = 1;
	}
	for (size_t i = 0; i < count;) {
		size_t end = i;

		while (frames[end].inlined && end + 1 < count)
			end++;
		xalloc_grow(&pprof->stack, depth, &pprof->stack_room, sizeof *pprof->stack);
		pprof->stack[depth++] = location_of(pprof, sum->process, &frames[i], end + 1 - i);
		i = end + 1;
	}
	proto_packed(sample, SAMPLE_LOCATION, pprof->stack, depth);
}

/* ---- samples ---- */

static void put_labels(struct pprof *pprof, struct proto *sample, const struct site_sum *sum)
{
	const struct facts *facts = rows_facts(pprof->rows);
	char text[NAME_BYTES];

	put_label(pprof, sample, "kind", kind_name(sum->kind));
	if (sum->device != FACT_NONE) {
		snprintf(text, sizeof text, "%u", facts->devices[sum->device].ordinal);
		put_label(pprof, sample, "device", text);
	}
	if (sum->tid) {
		snprintf(text, sizeof text, "%u", sum->tid);
		put_label(pprof, sample, "thread", text);
	}
	if (sum->phase) {
		name_text(sum->phase, text, sizeof text);
		put_label(pprof, sample, "phase", text);
	}
	if (facts->process_count > 1) {
		name_process(facts, sum->process, text, sizeof text);
		put_label(pprof, sample, "process", text);
	}
}

static void put_sample(struct pprof *pprof, const struct site_sum *sum)
{
	const uint64_t values[] = { sum->live_count, sum->live_bytes, sum->alloc_count,
				    sum->alloc_bytes };
	struct proto sample = { 0 };

	put_stack(pprof, &sample, sum);
	proto_packed(&sample, SAMPLE_VALUE, values, sizeof values / sizeof *values);
	put_labels(pprof, &sample, sum);
	put_field(pprof, PROFILE_SAMPLE, &sample);
}

static void put_head(struct pprof *pprof)
{
	const struct facts *facts = rows_facts(pprof->rows);
	const struct fact_process *first = &facts->processes[facts->focus];

	string_of(pprof, "");
	put_value_type(pprof, PROFILE_SAMPLE_TYPE, "inuse_objects", "count");
	put_value_type(pprof, PROFILE_SAMPLE_TYPE, "inuse_space", "bytes");
	put_value_type(pprof, PROFILE_SAMPLE_TYPE, "alloc_objects", "count");
	put_value_type(pprof, PROFILE_SAMPLE_TYPE, "alloc_space", "bytes");
	put_value_type(pprof, PROFILE_PERIOD_TYPE, "space", "bytes");
	proto_number(&pprof->out, PROFILE_PERIOD, most_of(first->sample_mean_bytes, 1));
	proto_number(&pprof->out, PROFILE_TIME, first->start_ns);
	proto_number(&pprof->out, PROFILE_DURATION, facts_duration_ns(facts));
	proto_number(&pprof->out, PROFILE_DEFAULT_TYPE, string_of(pprof, "inuse_space"));
	if (facts->events_overwritten)
		proto_number(&pprof->out, PROFILE_COMMENT,
			     string_of(pprof, "alloc_*: older events were overwritten, so blocks "
					      "that died before them are missing"));
}

static void write_samples(struct pprof *pprof)
{
	struct site_sums sums;

	site_sums_read(&sums, pprof->rows, true, true);
	for (size_t i = 0; i < sums.count; i++)
		put_sample(pprof, &sums.items[i]);
	site_sums_fini(&sums);
}

static int write_pprof(struct export_target *target, struct rows *rows)
{
	struct pprof pprof = { .rows = rows };
	int fd, result;

	fflush(target->file);
	fd = dup(fileno(target->file));
	pprof.file = fd < 0 ? NULL : gzdopen(fd, "wb");
	if (!pprof.file) {
		snprintf(target->error, sizeof target->error, "%s", strerror(errno));
		return -1;
	}
	hash_index_init(&pprof.strings, 1024);
	hash_index_init(&pprof.functions, 1024);
	hash_index_init(&pprof.locations, 1024);
	hash_index_init(&pprof.mappings, 64);
	put_head(&pprof);
	write_samples(&pprof);
	flush(&pprof);
	result = gzclose(pprof.file);
	hash_index_fini(&pprof.strings);
	hash_index_fini(&pprof.functions);
	hash_index_fini(&pprof.locations);
	hash_index_fini(&pprof.mappings);
	proto_fini(&pprof.out);
	free(pprof.stack);
	if (result == Z_OK)
		return 0;
	snprintf(target->error, sizeof target->error, "the file could not be written: %s",
		 strerror(errno));
	return -1;
}

const struct export_format export_pprof = {
	.name = "pprof",
	.ending = ".pb.gz",
	.about = "live and allocated bytes by call stack, for go tool pprof, Pyroscope and Parca",
	.binary = true,
	.takes_moment = true,
	.sums = true,
	.write = write_pprof,
};
