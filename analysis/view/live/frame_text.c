/* SPDX-License-Identifier: Apache-2.0 */
/* A frame for people: GPUs, then each process with its verdict and its call sites. */
#include "analysis/view/live/frame.h"

#include <math.h>
#include "analysis/base/units.h"

static void put_gpu(FILE *out, const struct top_gpu *gpu)
{
	fprintf(out, "GPU %u  %s", gpu->number, units_bytes(gpu->total_bytes).s);
	for (unsigned owner = 0; gpu->is_known && owner < WATCH_OWNER_MAX; owner++)
		if (gpu->owners[owner])
			fprintf(out, "  %s %s", watch_owner_names[owner],
				units_bytes(gpu->owners[owner]).s);
	fputc('\n', out);
}

static void put_site(FILE *out, const struct top_frame *frame, const struct pass_site *site)
{
	bool is_flat = isnan(site->slope_bytes_per_s);
	uint64_t age_ns = site->first_ns && site->first_ns < frame->time_ns ?
				  frame->time_ns - site->first_ns : 0;

	fprintf(out, "  %10s  %-9s  %-8s  %12s%s  %8s  %s\n", units_bytes(site->bytes).s,
		watch_memory_names[site->memory],
		site->is_judged ? live_state_names[site->state] : "",
		is_flat ? "" : units_bytes_signed(site->slope_bytes_per_s).s, is_flat ? "  " : "/s",
		age_ns ? units_duration(age_ns).s : "", site->name);
}

void top_text(FILE *out, const struct top_frame *frame, unsigned sites)
{
	char words[PASS_SENTENCE + 64];

	for (size_t i = 0; i < frame->gpu_count; i++)
		put_gpu(out, &frame->gpus[i]);
	if (!frame->process_count)
		fputs("nothing is recorded now\n", out);
	for (size_t i = 0; i < frame->process_count; i++) {
		const struct top_process *process = &frame->processes[i];
		const struct pass *pass = process->pass;

		top_words(process, words, sizeof words);
		fprintf(out, "\n%s (pid %u)  %s\n", process->name, process->pid, words);
		for (size_t s = 0; pass && s < pass->site_count && s < sites; s++)
			put_site(out, frame, &pass->sites[s]);
	}
}
