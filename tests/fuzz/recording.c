/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libFuzzer over the reader, the facts and both forms of the report. Any bytes give an error, or
 * facts that can be walked and printed, never a crash, and the document is JSON. tests/fuzz/seeds.c makes the corpus: real
 * recordings are mostly zeros, and the code behind the checks must be reached.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "analysis/explain/facts_build.h"
#include "analysis/view/text/report_text.h"
#include "analysis/view/json/report_json.h"
#include "tests/fuzz/json_check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

static uint64_t walk_cause(const struct fact_cause *c)
{
	uint64_t sum =
		c ? strlen(c->id) + strlen(c->name) + strlen(c->summary) + strlen(c->discriminator) : 0;
	for (size_t i = 0; c && i < c->evidence_count; i++) {
		sum += strlen(c->evidence[i].text) +
		       (c->evidence[i].seq_count ? c->evidence[i].seqs[c->evidence[i].seq_count - 1]
		                                 : 0);
		for (uint32_t d = 0; d < c->evidence[i].stack.depth; d++)
			sum += c->evidence[i].stack.addrs[d];
	}
	for (size_t i = 0; c && i < c->fix_count; i++)
		sum += strlen(c->fixes[i].text) + strlen(c->fixes[i].unit);
	if (c && (c->confidence < 0 || c->confidence > 1))
		abort();
	return sum;
}

/* Touches what a view would print: a dangling pointer shows here. */
static uint64_t walk(const struct facts *facts)
{
	uint64_t sum = 0;
	for (size_t i = 0; i < facts->process_count; i++) {
		const struct fact_process *p = &facts->processes[i];
		sum += strlen(p->exe) + strlen(p->cmdline) + strlen(p->hostname);
		for (size_t t = 0; t < p->text_count; t++)
			sum += strlen(p->texts[t].text);
		for (size_t m = 0; m < p->module_count; m++)
			sum += strlen(p->modules[m].path);
	}
	for (size_t i = 0; i < facts->device_count; i++) {
		const struct fact_device *d = &facts->devices[i];
		uint64_t rows = 0;
		for (size_t r = 0; r < d->owner_count; r++)
			if (d->owners[r].in_sum && d->owners[r].bytes != CUF_UNKNOWN)
				rows += d->owners[r].bytes;
		if (d->total_bytes != CUF_UNKNOWN && rows != d->total_bytes)
			abort(); /* the one promise that no input may break */
		for (size_t p = 0; p < d->fragmentation.pin_count; p++)
			sum += d->fragmentation.pins[p].stack.depth
			               ? d->fragmentation.pins[p].stack.addrs[0]
			               : 0;
	}
	for (size_t i = 0; i < facts->incident_count; i++) {
		const struct fact_incident *f = &facts->incidents[i];
		for (uint32_t d = 0; d < f->stack.depth; d++)
			sum += f->stack.addrs[d];
		sum += strlen(f->api) + strlen(f->outcome_why) +
		       f->attempts[f->attempt_count - 1].seq + walk_cause(f->cause);
	}
	for (size_t i = 0; i < facts->leak_count; i++)
		for (uint32_t d = 0; d < facts->leaks[i].stack.depth; d++)
			sum += facts->leaks[i].stack.addrs[d];
	for (size_t i = 0; i < facts->coverage.blind_count; i++)
		sum += strlen(facts->coverage.blind[i].text);
	return sum + walk_cause(facts->cause);
}

/* A document is either whole, or the caller is told that it is not. */
static void print_json(const struct facts *facts, struct frames *frames)
{
	struct json_check check;
	FILE *out = json_check_open(&check);
	bool finished;

	if (!out)
		abort();
	finished = report_json(out, facts, frames);
	fclose(out);
	if (finished ? !json_check_whole(&check) : check.broken)
		abort();
}

/* No files are opened but the one that swallows the reports: modules are looked for where there are
 * none. */
static void print(const struct facts *facts)
{
	static const struct style plain = { .columns = STYLE_COLUMNS };
	static FILE *nowhere;
	struct symbols *symbols = symbols_new(&(struct symbols_options){ .sysroot = "/dev/null" });
	struct frames *frames = frames_new(facts, symbols);
	if (!nowhere && !(nowhere = fopen("/dev/null", "w")))
		abort();
	report_text(nowhere, facts, frames, &plain, &(struct report_text_options){ .full = true, .verbose = true });
	report_text(nowhere, facts, frames, &plain, NULL);
	print_json(facts, frames);
	frames_free(frames);
	symbols_free(symbols);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	static volatile uint64_t sink;
	struct facts_options options = { .at = bytes ? (enum facts_at)(data[bytes - 1] % 5)
		                                     : FACTS_AT_AUTO,
		                         .at_value = 1,
		                         .threads = 1 };
	struct reader_error error;
	struct facts *facts;
	if (!facts_build_memory(data, bytes, &options, &facts, &error)) {
		sink = walk(facts);
		print(facts);
	}
	facts_free(facts);
	return 0;
}
