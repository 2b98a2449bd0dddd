/* SPDX-License-Identifier: Apache-2.0 */
/* The words; the cause is told in verdict_cause.c. */
#include "interpose/incident/verdict.h"

#include "interpose/store/hook_names.h"
#include "interpose/incident/totals.h"
#include "interpose/platform/options.h"
#include "interpose/incident/phase_names.h"
#include "interpose/store/recording.h"
#include "interpose/platform/laws.h"

static void add_held(struct cuf_text *text, const struct cuf_incident *i)
{
	static const struct { unsigned kind; const char *word; } rows[] = {
		{ CUF_KIND_DEVICE, " device" }, { CUF_KIND_ASYNC, " async" }, { CUF_KIND_VMM, " vmm" }, { CUF_KIND_ARRAY, " array" },
		{ CUF_KIND_GRAPH, " graph" }, { CUF_KIND_MANAGED, " managed" }, { CUF_KIND_PINNED, " pinned host" },
	};
	const char *comma = "";
	for (unsigned n = 0; n < sizeof rows / sizeof *rows; n++)
		if (i->live_bytes[rows[n].kind]) {
			cuf_text_add(text, comma);
			cuf_text_size(text, i->live_bytes[rows[n].kind]);
			cuf_text_add(text, rows[n].word);
			comma = ", ";
		}
	if (!*comma)
		cuf_text_add(text, "nothing");
}

static void say_both(const struct cuf_text *text)
{
	CUF_TEXT(line, 1100);
	cuf_say(text);
	if (!*cuf_options.termination_log)
		return;
	cuf_text_add(&line, "cuflight: ");
	cuf_text_add(&line, text->at);
	cuf_text_add(&line, "\n");
	cuf_say_to_file(cuf_options.termination_log, &line);
}

static void add_request(struct cuf_text *text, const struct cuf_incident *i)
{
	cuf_text_add(text, i->kind == CUF_KIND_FRAMEWORK ? "PyTorch" : cuf_hook_name(i->label ? i->label : i->hook));
	if (i->is_request) {
		cuf_text_add(text, " wanted ");
		cuf_text_size(text, i->requested_bytes);
	} else {
		cuf_text_add(text, " failed");
	}
}

/* What the program said that it was doing. */
static void add_phase(struct cuf_text *text, const struct cuf_incident *i)
{
	if (i->phase) {
		cuf_text_add(text, "; in ");
		cuf_phase_name_add(text, i->phase);
	}
	if (i->request_id) {
		cuf_text_add(text, "; request ");
		cuf_text_number(text, i->request_id);
		cuf_text_add(text, " ");
		cuf_phase_name_add(text, i->request_phase);
	}
}

static void say_device(const struct cuf_incident *i)
{
	CUF_TEXT(what, 512);
	CUF_TEXT(held, 512);
	cuf_text_add(&what, "out of memory on GPU ");
	cuf_text_number(&what, i->device);
	cuf_text_add(&what, ": ");
	add_request(&what, i);
	cuf_text_add(&what, "; the driver had ");
	cuf_text_size(&what, i->free_bytes);
	cuf_text_add(&what, " free of ");
	cuf_text_size(&what, i->total_bytes);
	add_phase(&what, i);
	say_both(&what);
	cuf_text_add(&held, "this process held ");
	add_held(&held, i);
	if (i->framework_reserved_bytes != CUF_UNKNOWN) {
		cuf_text_add(&held, "; PyTorch used ");
		cuf_text_size(&held, i->framework_allocated_bytes);
		cuf_text_add(&held, " of the ");
		cuf_text_size(&held, i->framework_reserved_bytes);
		cuf_text_add(&held, " that it had reserved");
	}
	if (i->page_hole_bytes != CUF_UNKNOWN && i->page_hole_bytes) {
		cuf_text_add(&held, "; largest hole inside its 2 MiB pages ");
		cuf_text_size(&held, i->page_hole_bytes);
	}
	say_both(&held);
}

static void say_host(const struct cuf_incident *i)
{
	CUF_TEXT(what, 512);
	CUF_TEXT(held, 512);
	cuf_text_add(&what, "out of host memory: ");
	add_request(&what, i);
	say_both(&what);
	cuf_text_add(&held, "this process held ");
	cuf_text_size(&held, i->host_live_bytes);
	cuf_text_add(&held, cuf_options.host == CUF_HOST_SAMPLED ? " of malloc's (estimated)" : " of malloc's");
	if (i->rss_bytes != CUF_UNKNOWN) {
		cuf_text_add(&held, "; ");
		cuf_text_size(&held, i->rss_bytes);
		cuf_text_add(&held, " resident");
	}
	if (i->cgroup_max_bytes != CUF_UNKNOWN) {
		cuf_text_add(&held, "; its cgroup held ");
		cuf_text_size(&held, i->cgroup_bytes);
		cuf_text_add(&held, " of ");
		cuf_text_size(&held, i->cgroup_max_bytes);
	}
	say_both(&held);
}

void cuf_verdict_print(const struct cuf_incident *i)
{
	CUF_TEXT(cause, 512);
	CUF_TEXT(next, 1100);
	if (i->kind == CUF_KIND_HOST)
		say_host(i);
	else
		say_device(i);
	cuf_text_add(&cause, "likely: ");
	if (cuf_verdict_cause(i, &cause))
		say_both(&cause);
	if (*cuf_recording.path) {
		cuf_text_add(&next, "next: cuflight report ");
		cuf_text_add(&next, cuf_recording.path);
		say_both(&next);
	}
}
