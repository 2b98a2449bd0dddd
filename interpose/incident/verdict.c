/* SPDX-License-Identifier: Apache-2.0 */
/* The words; the cause is found in verdict_cause.c. */
#include "interpose/incident/verdict.h"

#include "interpose/incident/incident.h"
#include "interpose/incident/phase_names.h"
#include "interpose/platform/options.h"
#include "interpose/platform/side_stack.h"
#include "interpose/store/hook_names.h"
#include "interpose/store/recording.h"
#include "interpose/platform/laws.h"

enum { LINE_BYTES = 512, COMMAND_BYTES = 1100 };

/* before and after are the words around the size. */
static void add_size(struct cuf_text *text, const char *before, uint64_t bytes, const char *after)
{
	cuf_text_add(text, before);
	cuf_text_size(text, bytes);
	cuf_text_add(text, after);
}

/* To stderr, and to the termination log when there is one. */
static void print_line(const struct cuf_text *text)
{
	cuf_say(text);
	if (*cuf_options.termination_log)
		cuf_say_to_file(cuf_options.termination_log, text);
}

/* ---- what failed ---- */

/* "cudaMalloc(6.00 MiB) failed" */
static void add_request(struct cuf_text *text, const struct cuf_incident *incident)
{
	if (incident->kind == CUF_KIND_FRAMEWORK)
		cuf_text_add(text, "PyTorch's request");
	else
		cuf_text_add(text,
			     cuf_hook_name(incident->label ? incident->label : incident->hook));
	if (incident->is_request)
		add_size(text, "(", incident->requested_bytes, ")");
	cuf_text_add(text, " failed");
}

/* What the program was doing, as it stated by its marks. */
static void add_phase(struct cuf_text *text, const struct cuf_incident *incident)
{
	if (incident->phase) {
		cuf_text_add(text, ", in ");
		cuf_phase_name_add(text, incident->phase);
	}
	if (incident->request_id) {
		cuf_text_add(text, ", request ");
		cuf_text_number(text, incident->request_id);
		cuf_text_add(text, " ");
		cuf_phase_name_add(text, incident->request_phase);
	}
}

/* No device: page-locked host memory, for example. */
static void add_free_memory(struct cuf_text *text, const struct cuf_incident *incident)
{
	if (incident->device == CUF_DEVICE_NONE)
		return;
	cuf_text_add(text, ", GPU ");
	cuf_text_number(text, incident->device);
	if (incident->free_bytes == CUF_UNKNOWN) {
		cuf_text_add(text, " could not be queried");
		return;
	}
	add_size(text, " has ", incident->free_bytes, " of ");
	add_size(text, "", incident->total_bytes, " free");
}

/* The words of the report's title. */
static const char *memory_of(const struct cuf_incident *incident)
{
	if (cuf_is_page_lock(incident))
		return "page-locked host memory";
	return incident->kind == CUF_KIND_HOST ? "host memory" : "GPU memory";
}

static void print_failure(const struct cuf_incident *incident)
{
	bool is_host = incident->kind == CUF_KIND_HOST;
	CUF_TEXT(text, LINE_BYTES);
	cuf_text_add(&text, "out of ");
	cuf_text_add(&text, memory_of(incident));
	cuf_text_add(&text, ": ");
	add_request(&text, incident);
	if (!is_host)
		add_free_memory(&text, incident);
	add_phase(&text, incident);
	print_line(&text);
}

/* ---- what the process holds ---- */

static void add_device_kinds(struct cuf_text *text, const struct cuf_incident *incident)
{
	static const struct {
		unsigned kind;
		const char *word;
	} rows[] = {
		{ CUF_KIND_DEVICE, " device" },
		{ CUF_KIND_ASYNC, " async" },
		{ CUF_KIND_VMM, " vmm" },
		{ CUF_KIND_ARRAY, " array" },
		{ CUF_KIND_GRAPH, " graph" },
		{ CUF_KIND_MANAGED, " managed" },
		{ CUF_KIND_PINNED, " pinned host" },
	};
	const char *before = " ";
	for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++)
		if (incident->live_bytes[rows[i].kind]) {
			add_size(text, before, incident->live_bytes[rows[i].kind], rows[i].word);
			before = ", ";
		}
	if (before[0] == ' ')
		cuf_text_add(text, " no GPU memory");
}

static void add_device(struct cuf_text *text, const struct cuf_incident *incident)
{
	add_device_kinds(text, incident);
	if (incident->framework_reserved_bytes != CUF_UNKNOWN) {
		add_size(text, "; PyTorch uses ", incident->framework_allocated_bytes, "");
		add_size(text, " of the ", incident->framework_reserved_bytes, " that it reserved");
	}
	if (incident->page_hole_bytes != CUF_UNKNOWN && incident->page_hole_bytes)
		add_size(text, "; largest free range inside its 2 MiB pages ",
			 incident->page_hole_bytes, "");
}

static void add_host(struct cuf_text *text, const struct cuf_incident *incident)
{
	add_size(text, " ", incident->host_live_bytes, " of malloc's");
	if (cuf_options.host == CUF_HOST_SAMPLED)
		cuf_text_add(text, " (estimated)");
	if (incident->rss_bytes != CUF_UNKNOWN)
		add_size(text, "; ", incident->rss_bytes, " resident");
	if (incident->cgroup_max_bytes != CUF_UNKNOWN) {
		add_size(text, "; its cgroup holds ", incident->cgroup_bytes, "");
		add_size(text, " of ", incident->cgroup_max_bytes, "");
	}
}

/* When no cause can be inferred: the facts that a person would ask for first. */
static void print_held(const struct cuf_incident *incident)
{
	CUF_TEXT(text, LINE_BYTES);
	cuf_text_add(&text, "this process holds");
	if (incident->kind == CUF_KIND_HOST)
		add_host(&text, incident);
	else
		add_device(&text, incident);
	print_line(&text);
}

/* ---- the verdict ---- */

/* Three lines: the failed request, the likely cause or what held the memory, and the command to
 * type. */
static void print_all(void *argument)
{
	const struct cuf_incident *incident = argument;
	CUF_TEXT(cause, LINE_BYTES);
	CUF_TEXT(command, COMMAND_BYTES);
	print_failure(incident);
	cuf_text_add(&cause, "likely: ");
	if (cuf_verdict_cause(incident, &cause))
		print_line(&cause);
	else
		print_held(incident);
	/* `cuflight run`, which is in `start`, ends with this line itself */
	if (*cuf_recording.path && cuf_options.start <= 1) {
		cuf_text_add(&command, "explain it: cuflight report ");
		cuf_text_add(&command, cuf_recording.path);
		print_line(&command);
	}
}

void cuf_verdict_print(const struct cuf_incident *incident)
{
	cuf_on_side_stack(print_all, (void *)incident);
}
