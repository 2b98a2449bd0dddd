/* SPDX-License-Identifier: Apache-2.0 */
/* The views over facts made by hand: the first screen fits 80x24 whatever the facts are, sums are
 * shown, unknown is null. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <json-c/json.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "analysis/explain/causes.h"
#include "analysis/view/json/report_json.h"
#include "analysis/view/text/report_text.h"

enum { OWNERS = 14, SITES = 40 };

/* One run whose every list is full and every text long. */
struct world {
	struct facts facts;
	struct fact_process process;
	struct fact_device devices[2];
	struct fact_owner_row owners[OWNERS];
	struct fact_incident incidents[3];
	struct fact_attempt attempts[8];
	struct fact_site sites[SITES];
	struct fact_text blind[3];
	struct fact_loss lost[2];
	struct fact_function functions[1];
	struct fact_allocator allocator;
	struct fact_host_advice advice[FIX_MAX];
	struct fact_host_row resident[PART_MAX];
	struct fact_host_pin pin;
	struct fact_phase phase;
	struct fact_phase_group groups[20];
	uint64_t frames[3];
};

#define GIB (1ull << 30)
static const char long_name[] =
	"a_function_with_a_name_that_alone_is_wider_than_any_terminal_of_eighty_columns_and_then_some\033[31m";

static struct fact_stack stack_of(struct world *world)
{
	return (struct fact_stack){
		.process = 0, .id = 1, .depth = 3, .addrs = world->frames, .time_ns = 1000,
	};
}

static void fill_layers(struct fact_layer *layers)
{
	for (size_t i = 0; i < LAYER_MAX; i++)
		layers[i] = (struct fact_layer){ GIB / (i + 1), "upper bound, as the driver says" };
	layers[LAYER_MEASURED].bytes = CUF_UNKNOWN;
}

static void fill_device(struct world *world, struct fact_device *d, uint32_t ordinal)
{
	*d = (struct fact_device){
		.ordinal = ordinal, .name = "NVIDIA H100 80GB HBM3", .pci = "",
		.total_bytes = 84 * GIB, .free_bytes = GIB / 2, .peak_bytes = 83 * GIB,
		.peak_ns = 5, .granularity_bytes = 2 << 20, .owners = world->owners,
		.owner_count = OWNERS, .peak_basis = BASIS_OBSERVED,
	};
	d->moment = (struct fact_moment){
		.kind = MOMENT_INCIDENT, .incident = 2, .basis = BASIS_ESTIMATED,
	};
	d->fragmentation.pages = 3;
	fill_layers(d->largest_free);
}

/* A fragmented heap whose names are too long; all that the books do not say is unknown. */
static void fill_host_lists(struct world *world, struct fact_host *h)
{
	memset(&world->allocator, 0xff, sizeof world->allocator);
	world->allocator.name = world->allocator.version = world->allocator.object = long_name;
	world->allocator.role = ALLOCATOR_PROCESS;
	world->allocator.fragmented_bytes = GIB;
	world->allocator.split_basis = BASIS_ESTIMATED;
	world->allocator.largest_free = (struct fact_layer){ GIB, long_name };
	world->allocator.free_count = world->allocator.slab_count = 0;
	for (size_t i = 0; i < FIX_MAX; i++)
		world->advice[i] = (struct fact_host_advice){ i, GIB };
	for (size_t i = 0; i < PART_MAX; i++)
		world->resident[i] = (struct fact_host_row){ i, GIB, BASIS_ESTIMATED };
	world->pin = (struct fact_host_pin){ stack_of(world), GIB, GIB, 7, BASIS_ESTIMATED };
	h->allocator = NULL;
	h->allocators = &world->allocator;
	h->allocator_count = 1;
	h->verdict = HOST_FRAGMENTED;
	h->advice = world->advice;
	h->advice_count = FIX_MAX;
	h->rows = world->resident;
	h->row_count = PART_MAX;
	h->pins = &world->pin;
	h->pin_count = 1;
}

static void fill_incident(struct world *world, struct fact_incident *i, uint64_t id,
                          enum fact_outcome outcome)
{
	*i = (struct fact_incident){
		.id = id, .outcome = outcome,
		.outcome_why = "the process ended 3 ms later, by its own hand",
		.time_ns = 1700000000118000000, .pid = 4131, .tid = 4711, .kind = CUF_KIND_DEVICE,
		.is_request = true, .api = "cudaMalloc", .driver_api = "cuMemAlloc_v2", .result = 2,
		.requested_bytes = 2 * GIB, .free_bytes = GIB / 2, .total_bytes = 84 * GIB,
		.attempts = world->attempts, .attempt_count = 8, .fits_if_packed = FACT_YES,
		.packed_bytes = 3 * GIB, .rss_bytes = CUF_UNKNOWN, .cgroup_bytes = CUF_UNKNOWN,
		.cgroup_max_bytes = CUF_UNKNOWN, .host_live_bytes = CUF_UNKNOWN,
		.framework_requested_bytes = 2 * GIB - 1024, .least_requested_bytes = CUF_UNKNOWN,
		.resolved_ns = CUF_UNKNOWN, .basis = BASIS_OBSERVED, .phase = long_name,
		.phase_source = PHASE_NVTX, .phase_basis = BASIS_INFERRED,
		.request_phase = long_name, .request_id = 1234567,
	};
	i->stack = stack_of(world);
	fill_layers(i->largest_free);
}

static void fill_sites(struct world *world)
{
	for (size_t i = 0; i < SITES; i++) {
		world->sites[i] = (struct fact_site){
			.stack = stack_of(world), .pid = 4131, .device = 0, .kind = CUF_KIND_DEVICE,
			.class = i < 4 ? CLASS_LEAK : CLASS_LIVE, .shape = SHAPE_LINEAR,
			.bytes = 123 << 20, .count = 59, .basis = BASIS_OBSERVED,
			.slope_bytes_per_s = i ? 2e6 : NAN, .per_request_bytes = CUF_UNKNOWN,
			.grown_bytes = 1e9, .interval = { NAN, 3 },
		};
	}
}

static void fill_owners(struct world *world)
{
	for (size_t i = 0; i < OWNERS; i++)
		world->owners[i] = (struct fact_owner_row){
			.kind = (enum fact_owner)i,
			.bytes = i == OWNER_FREE ? GIB / 2 : 1000000 * (i + 1),
			.count = CUF_UNKNOWN, .basis = BASIS_OBSERVED, .in_sum = i != OWNER_MANAGED,
			.pid = i == OWNER_OTHER_PROCESSES ? 99 : 0,
		};
	world->owners[OWNER_CONTEXT].bytes = CUF_UNKNOWN;
	world->owners[OWNER_CONTEXT].basis = BASIS_NONE;
}

static void fill_world(struct world *world)
{
	memset(world, 0, sizeof *world);
	for (size_t i = 0; i < 3; i++)
		world->frames[i] = 0x401000 + i;
	world->functions[0] = (struct fact_function){ 0x401000, long_name, MODULE_NONE };
	fill_owners(world);
	world->process = (struct fact_process){
		.pid = 4131, .ppid = 1, .parent = FACT_NONE, .exec_of = FACT_NONE,
		.ended_by = FACT_NONE, .path = "/r/x.cuf", .exe = "/usr/bin/python3",
		.cmdline = "python3 \xff server.py", .hostname = "h",
		.start_ns = 1699999990000000000, .end_ns = 1700000000200000000, .end = END_SIGNAL,
		.end_status = 6, .end_basis = BASIS_OBSERVED, .complete = true,
		.host_mode = CUF_HOST_SAMPLED, .functions = world->functions, .function_count = 1,
		.first_cuda_ns = CUF_UNKNOWN,
	};
	world->phase = (struct fact_phase){
		.name = long_name, .source = PHASE_INFERRED, .basis = BASIS_INFERRED,
		.why = long_name, .end_ns = CUF_UNKNOWN, .request_id = CUF_UNKNOWN,
	};
	for (size_t g = 0; g < 20; g++)
		world->groups[g] = (struct fact_phase_group){
			.name = long_name, .source = PHASE_NVTX, .count = 1234567, .open = 12345,
			.total_ns = 86400000000000ull * 20, .longest_ns = 86400000000000ull * 19,
			.peak_bytes = 84 * GIB, .rise_bytes = 83 * GIB,
		};
	world->process.phases = &world->phase;
	world->process.phase_count = 1;
	world->process.phase_groups = world->groups;
	world->process.phase_group_count = 20;
	world->process.work_layer = "framework";
	world->process.phases_left_out = 1234567890;
	world->process.requests = (struct fact_requests){
		.count = 1234567890, .open = 1234567, .name = long_name, .basis = BASIS_INFERRED,
		.why = long_name, .concurrency_max = CUF_UNKNOWN, .median_peak_bytes = 84 * GIB,
		.largest_peak_bytes = 84 * GIB, .largest_id = CUF_UNKNOWN,
		.largest_ns = CUF_UNKNOWN, .floor_slope_bytes = -1e9, .floor_low_bytes = -2e9,
		.floor_high_bytes = 3e9, .per_s = NAN,
	};
	memset(&world->process.host, 0xff, sizeof world->process.host);
	world->process.host.malloc_basis = BASIS_ESTIMATED;
	world->process.host.heap = (struct fact_heap){ .limit_bytes = CUF_UNKNOWN,
						       .nobodys_bytes = CUF_UNKNOWN };
	fill_host_lists(world, &world->process.host);
	fill_device(world, &world->devices[0], 0);
	fill_device(world, &world->devices[1], 1);
	for (size_t i = 0; i < 8; i++)
		world->attempts[i] = (struct fact_attempt){
			.number = i + 1, .requested_bytes = 2 * GIB, .free_bytes = GIB / 2,
			.total_bytes = 84 * GIB, .result = 2,
		};
	fill_incident(world, &world->incidents[0], 1, OUTCOME_RECOVERED);
	fill_incident(world, &world->incidents[1], 2, OUTCOME_FATAL);
	fill_incident(world, &world->incidents[2], 3, OUTCOME_HANDLED);
	world->incidents[2].device = FACT_NONE;
	world->incidents[2].kind = CUF_KIND_PINNED;
	fill_sites(world);
	for (size_t i = 0; i < 3; i++)
		world->blind[i] = (struct fact_text){
			"a whole sentence that says at some length what could not be seen and why that matters",
			FACT_NONE, false
		};
	world->lost[0] = (struct fact_loss){ "blocks that found no room in the ledger", 12, 0 };
	world->facts = (struct facts){
		.path = "/r", .processes = &world->process, .process_count = 1,
		.devices = world->devices, .device_count = 2, .incidents = world->incidents,
		.incident_count = 3, .leaks = world->sites, .leak_count = SITES,
		.growth = world->sites, .growth_count = SITES, .fatal_incident = 2,
		.events_recorded = 1204551, .events_overwritten = 1000000, .events_lost = 12,
	};
	world->facts.coverage.blind = world->blind;
	world->facts.coverage.blind_count = 3;
	world->facts.coverage.lost = world->lost;
	world->facts.coverage.lost_count = 1;
}

static struct symbols *symbols;

enum { SCREEN_LINES = 21 /* a terminal of 24 rows also shows the command, a note and the next prompt */ };

static char *as_text_with(const struct facts *facts, unsigned columns, const struct report_text_options *options)
{
	struct style style = { .colour = false, .utf8 = false, .columns = columns };
	struct frames *frames = frames_new(facts, symbols);
	char *text = NULL;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);
	report_text(out, facts, frames, &style, options);
	fclose(out);
	frames_free(frames);
	return text;
}

static char *as_text(const struct facts *facts, unsigned columns) { return as_text_with(facts, columns, NULL); }

/* Every line within the columns, nothing but printable ASCII, no blank at the end of a line, no two blank lines. */
static size_t check_lines(const char *text, size_t columns)
{
	size_t lines = 0;
	bool was_blank = true; /* nor one at the beginning */
	for (const char *line = text; *line; line += strcspn(line, "\n") + 1) {
		size_t length = strcspn(line, "\n");
		if (length > columns)
			fail_msg("wider than %zu: %.*s", columns, (int)length, line);
		for (size_t i = 0; i < length; i++)
			assert_in_range(line[i], 0x20, 0x7e);
		if (length && line[length - 1] == ' ')
			fail_msg("blank at the end: %.*s", (int)length, line);
		assert_false(was_blank && !length);
		was_blank = !length;
		lines++;
	}
	assert_false(was_blank);
	return lines;
}

static void fits(const char *text, size_t columns)
{
	size_t lines = check_lines(text, columns);
	if (lines > SCREEN_LINES)
		fail_msg("the first screen has %zu lines:\n%s", lines, text);
	assert_true(lines >= 4);
}

static void contains(const char *text, const char *words)
{
	if (!strstr(text, words))
		fail_msg("no \"%s\" in:\n%s", words, text);
}

static void test_screen__fits_when_every_list_is_full(void **state)
{
	struct world w;
	fill_world(&w);
	char *text = as_text(&w.facts, 80);
	fits(text, 80);
	assert_int_equal(strncmp(text, "OUT OF GPU MEMORY: ? (pid ", 26), 0);
	contains(text, "(pid 4131), GPU 0, killed by signal 6 (Aborted)\n");
	contains(text, "cudaMalloc(2.00 GiB) failed with 512 MiB of 84.0 GiB free, after 10.1 s");
	contains(text, "Who held GPU 0 at the failure ");
	contains(text, "\n  free ");
	contains(text, "\n  other: ");
	contains(text, "a_function_with_a_name");
	contains(text, "More: cuflight report --full ");
	free(text);
	text = as_text(&w.facts, 132);
	fits(text, 132);
	free(text);
}

/* The fullest screen: also a cause whose every text is too long, and a run of several processes. */
static void test_screen__fits_with_a_cause_of_long_texts(void **state)
{
	static const char *const ids[] = { "gpu-leak", "host-leak", "fragmentation-pinned", "page-lock-refused", "other-tenant" };
	static const double confidences[] = { 0.9, 0.6, 0.2 };
	for (size_t i = 0; i < sizeof ids / sizeof *ids; i++)
		for (size_t c = 0; c < sizeof confidences / sizeof *confidences; c++) {
			struct world w;
			fill_world(&w);
			struct fact_fix fix = { .text = long_name, .value = CUF_UNKNOWN, .unit = "", .by_bytes = CUF_UNKNOWN };
			struct fact_cause cause = { .id = "S8", .name_id = ids[i], .name = "a cause whose name is as long as a line of a terminal is wide, or even a little more",
				.summary = long_name, .confidence = confidences[c], .fixes = &fix, .fix_count = 1, .site = stack_of(&w),
				.runner_up_id = "S4", .runner_up_name_id = "kv-cache-grew", .runner_up_name = long_name, .runner_up_confidence = 0.1,
				.discriminator = long_name, .process = 0, .device = 0,
				.blames = cause_named(ids[i])->blames, .marks = cause_named(ids[i])->marks, .is_page_lock = cause_named(ids[i])->is_page_lock };
			w.facts.cause = &cause;
			char *text = as_text(&w.facts, 80);
			fits(text, 80);
			contains(text, confidences[c] < 0.5 ? "Cause unclear: " : "Likely cause: ");
			contains(text, ids[i]);
			assert_null(strstr(text, "S8"));
			free(text);
			text = as_text(&w.facts, 40);
			check_lines(text, 51); /* a command is never cut: "      cuflight help fragmentation-growing-sizes" */
			free(text);
		}
}

static void test_screen__fits_when_nothing_is_known(void **state)
{
	struct world w;
	fill_world(&w);
	w.facts.device_count = w.facts.incident_count = w.facts.leak_count = w.facts.growth_count = 0;
	w.facts.fatal_incident = 0;
	w.facts.coverage = (struct fact_coverage){ .complete = true };
	w.process.end = END_RUNNING;
	char *text = as_text(&w.facts, 80);
	fits(text, 80);
	assert_int_equal(strncmp(text, "RUNNING: ", 9), 0);
	contains(text, "No allocation failed, no leak found. No GPU was used.");
	free(text);
}

static void test_screen__first_words_tell_how_it_ended(void **state)
{
	static const struct { enum fact_end end; uint64_t status; size_t leaks; const char *words; } rows[] = {
		{ END_EXIT, 0, 0, "FINISHED: python3 (pid 4131), exit status 0, after " }, { END_EXIT, 3, 0, "FINISHED: python3 (pid 4131), exit status 3" },
		{ END_EXIT, 0, 1, "FINISHED: " }, { END_SIGNAL, 11, 1, "CRASHED: " }, { END_SIGNAL, 15, 0, "KILLED: " },
		{ END_KILLED, CUF_UNKNOWN, 0, "NO END RECORDED: " }, { END_KILLED, 9, 0, "KILLED: " }, { END_OOM_KILLED, CUF_UNKNOWN, 0, "KILLED BY THE KERNEL (out of memory): " },
		{ END_EXEC, 0, 0, "FINISHED: " },
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct world w;
		fill_world(&w);
		w.process.cmdline = "python3";
		w.facts.fatal_incident = 0;
		w.incidents[1].outcome = OUTCOME_HANDLED;
		w.facts.leak_count = rows[i].leaks;
		w.process.end = rows[i].end;
		w.process.end_status = rows[i].status;
		char *text = as_text(&w.facts, 80);
		fits(text, 80);
		if (strncmp(text, rows[i].words, strlen(rows[i].words)) != 0)
			fail_msg("not \"%s\" but: %.80s", rows[i].words, text);
		free(text);
	}
}

/* "1.34 GiB failed with 1.34 GiB free" is no reason. */
static void test_screen__figures_that_print_alike_have_their_difference(void **state)
{
	struct world w;
	fill_world(&w);
	struct fact_incident *fatal = &w.incidents[w.facts.fatal_incident - 1];
	fatal->kind = CUF_KIND_DEVICE;
	fatal->result = 2;
	fatal->refused_by = LIMIT_NONE;
	fatal->framework_requested_bytes = CUF_UNKNOWN;
	fatal->free_bytes = 1376ull << 20;
	fatal->requested_bytes = fatal->free_bytes + (216 << 10);
	char *text = as_text(&w.facts, 80);
	contains(text, "free, 216 KiB too little");
	free(text);
}

/* Bytes at the end of a table's row, as units_bytes prints them; 0: the line has none. */
static double row_bytes(const char *line)
{
	static const char *const units[] = { " B ", " KiB", " MiB", " GiB" };
	double factor = 1;
	line += strnlen(line, 40); /* behind the name */
	for (size_t u = 0; u < 4; u++, factor *= 1024) {
		const char *unit = strstr(line, units[u]), *digit = unit;
		if (!unit || unit > line + strcspn(line, "\n"))
			continue;
		while (digit > line && strchr("0123456789.", digit[-1]))
			digit--;
		return digit < unit ? atof(digit) * factor : 0;
	}
	return 0;
}

/* The rows of the table, that of the smaller ones included, sum up to the figure beside its title. */
static void test_holders__rows_sum_to_the_title(void **state)
{
	struct world w;
	uint64_t sum = 0;
	fill_world(&w);
	for (size_t i = 0; i < OWNERS; i++)
		if (w.owners[i].in_sum && w.owners[i].bytes != CUF_UNKNOWN)
			sum += w.owners[i].bytes;
	w.devices[0].total_bytes = sum;
	for (size_t leaks = 0; leaks <= SITES; leaks += SITES) {
		w.facts.leak_count = leaks;
		char *text = as_text(&w.facts, 80);
		const char *line = strstr(text, "Who held GPU 0");
		assert_non_null(line);
		double title = row_bytes(line), rows = 0;
		for (line = strchr(line, '\n') + 1; *line && *line != '\n'; line = strchr(line, '\n') + 1)
			if (!strstr(line, "not counted above") || strstr(line, "not counted above") > line + strcspn(line, "\n"))
				rows += row_bytes(line);
		assert_true(fabs(title - (double)sum) < 0.01 * (double)sum);
		if (fabs(rows - title) > 0.02 * title)
			fail_msg("rows have %.0f, the title %.0f:\n%s", rows, title, text);
		free(text);
	}
}

static void test_full__every_section_keeps_the_width(void **state)
{
	static const char *const titles[] = { "\nBy call site\n", "\nFailed requests (3)\n", "\nHost memory of pid 4131\n", "\nProcesses (1)\n",
		"\nWhat could not be seen\n", "\nPhases (framework memory)\n" };
	const struct report_text_options options = { .full = true, .verbose = true, .rows = 30 };
	struct world w;
	fill_world(&w);
	for (unsigned columns = 80; columns <= 200; columns += 20) {
		char *text = as_text_with(&w.facts, columns, &options);
		check_lines(text, columns);
		for (size_t i = 0; i < sizeof titles / sizeof *titles; i++)
			contains(text, titles[i]);
		free(text);
	}
}

static void test_leak_of_a_sample__says_small_only_of_small_blocks(void **state)
{
	static const struct { uint64_t count; const char *words, *not; } rows[] = {
		{ 300, "holds ~250 MiB and keeps growing", "small" },
		{ 60000, "holds ~250 MiB in small blocks and keeps growing", NULL },
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct world w;
		fill_world(&w);
		struct fact_cause cause = { .id = "S8h", .name_id = "host-leak", .name = "host memory leak", .summary = "",
			.confidence = 0.9, .discriminator = "", .marks = MARKS_HOST_LEAKS };
		w.sites[0].class = CLASS_LEAK;
		w.sites[0].kind = CUF_KIND_HOST;
		w.sites[0].basis = BASIS_ESTIMATED;
		w.sites[0].bytes = 250ull << 20;
		w.sites[0].count = rows[i].count;
		w.facts.cause = &cause;
		w.facts.leak_count = 1;
		char *text = as_text(&w.facts, 200);
		contains(text, rows[i].words);
		assert_true(!rows[i].not || !strstr(text, rows[i].not));
		free(text);
	}
}

static void test_cause__one_line_for_run(void **state)
{
	struct world w;
	fill_world(&w);
	struct fact_cause cause = { .id = "S8", .name_id = "gpu-leak", .name = "GPU memory leak", .summary = "", .confidence = 0.9, .discriminator = "", .marks = MARKS_GPU_LEAKS };
	struct frames *frames = frames_new(&w.facts, symbols);
	char line[160];
	assert_false(report_text_cause(&w.facts, frames, line, sizeof line));
	w.facts.cause = &cause;
	assert_true(report_text_cause(&w.facts, frames, line, sizeof line));
	assert_string_equal(line, "GPU memory leak");
	cause.site = stack_of(&w);
	w.functions[0].name = "remember";
	assert_true(report_text_cause(&w.facts, frames, line, sizeof line));
	assert_string_equal(line, "GPU memory leak in remember");
	cause.confidence = 0.4;
	assert_false(report_text_cause(&w.facts, frames, line, sizeof line));
	frames_free(frames);
}

static struct json_object *as_json(const struct facts *facts)
{
	struct frames *frames = frames_new(facts, symbols);
	char *text = NULL;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);
	report_json(out, facts, frames);
	fclose(out);
	frames_free(frames);
	struct json_object *document = json_tokener_parse(text);
	assert_non_null(document);
	free(text);
	return document;
}

/* "incidents.1.fits_if_packed"; the key must be there, its value may be NULL (null). */
static struct json_object *at(struct json_object *object, const char *path)
{
	char copy[128], *save = NULL;
	snprintf(copy, sizeof copy, "%s", path);
	for (char *key = strtok_r(copy, ".", &save); key; key = strtok_r(NULL, ".", &save)) {
		if (json_object_is_type(object, json_type_array))
			object = json_object_array_get_idx(object, (size_t)atoi(key));
		else if (!json_object_object_get_ex(object, key, &object))
			fail_msg("no key %s of %s", key, path);
	}
	return object;
}

static void test_json__values_and_nulls(void **state)
{
	static const char *const nulls[] = {
		"incidents.1.cause",
		"incidents.2.device",
		"incidents.0.rss_bytes",
		"incidents.0.largest_free.measured_bytes",
		"incidents.0.largest_free.basis.measured_bytes",
		"processes.0.parent",
		"processes.0.first_cuda_ns",
		"host.rss_bytes",
		"host.allocator.live_bytes",
		"host.maps",
		"leaks.0.slope_bytes_per_s",
		"leaks.0.interval.0",
		"leaks.0.per_request_bytes",
		"devices.0.uuid",
		"devices.0.owners.10.bytes",
		"devices.0.owners.10.basis",
		"devices.0.owners.0.pid",
		"incidents.0.stack.0.line",
		"coverage.blind.0.pid",
	};
	struct world world;
	fill_world(&world);
	struct json_object *document = as_json(&world.facts);
	for (size_t i = 0; i < sizeof nulls / sizeof *nulls; i++)
		if (at(document, nulls[i]))
			fail_msg("%s is not null", nulls[i]);
	assert_string_equal(json_object_get_string(at(document, "schema")), "cuflight.report/1");
	assert_string_equal(json_object_get_string(at(document, "capture.end_state")), "signal");
	assert_int_equal(json_object_get_uint64(at(document, "incidents.1.requested_bytes")),
	                 2 * GIB);
	assert_true(json_object_get_boolean(at(document, "incidents.1.fatal")));
	assert_false(json_object_get_boolean(at(document, "incidents.0.fatal")));
	assert_string_equal(json_object_get_string(at(document, "incidents.0.stack.0.address")),
	                    "0x401000");
	assert_string_equal(json_object_get_string(at(document, "incidents.0.stack.0.function")),
	                    long_name);
	assert_string_equal(json_object_get_string(at(document, "processes.0.command_line")),
	                    "python3 \xef\xbf\xbd server.py");
	assert_int_equal(json_object_get_uint64(at(document, "devices.0.owners.9.pid")), 99);
	assert_int_equal(json_object_array_length(at(document, "leaks")), SITES);
	assert_int_equal(json_object_get_uint64(at(document, "fragmentation.device")), 0);
	json_object_put(document);
}

static void test_json__fits_if_packed_has_three_values(void **state)
{
	struct world world;
	fill_world(&world);
	world.incidents[1].fits_if_packed = FACT_CANNOT_TELL;
	world.incidents[2].fits_if_packed = FACT_NO;
	struct json_object *document = as_json(&world.facts);
	assert_true(json_object_get_boolean(at(document, "incidents.0.fits_if_packed")));
	assert_null(at(document, "incidents.1.fits_if_packed"));
	assert_true(
		json_object_is_type(at(document, "incidents.2.fits_if_packed"), json_type_boolean));
	assert_false(json_object_get_boolean(at(document, "incidents.2.fits_if_packed")));
	json_object_put(document);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_screen__fits_when_every_list_is_full),
		cmocka_unit_test(test_screen__fits_when_nothing_is_known),
		cmocka_unit_test(test_screen__fits_with_a_cause_of_long_texts),
		cmocka_unit_test(test_screen__first_words_tell_how_it_ended),
		cmocka_unit_test(test_screen__figures_that_print_alike_have_their_difference),
		cmocka_unit_test(test_holders__rows_sum_to_the_title),
		cmocka_unit_test(test_full__every_section_keeps_the_width),
		cmocka_unit_test(test_leak_of_a_sample__says_small_only_of_small_blocks),
		cmocka_unit_test(test_cause__one_line_for_run),
		cmocka_unit_test(test_json__values_and_nulls),
		cmocka_unit_test(test_json__fits_if_packed_has_three_values),
	};
	symbols = symbols_new(NULL);
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	symbols_free(symbols);
	return failed;
}
