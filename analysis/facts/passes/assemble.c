/* SPDX-License-Identifier: Apache-2.0 */
/* The passes in order. */
#include "analysis/facts/passes/assemble.h"

#include <stdlib.h>
#include "analysis/base/xalloc.h"
#include "analysis/facts/passes/roles.h"
#include "analysis/recording/pack.h"
#include "analysis/symbols/names_file.h"

/*
 * Each pass reads the recordings and what the passes before it filled, and writes only what is
 * listed here; nothing else runs them.
 *
 *   pass                 reads also                   fills                        and returns
 *   build_processes                                   processes[] but the rest     how each ended
 *   build_groups                                      devices[].members;
 *                                                     processes[].device_of
 *   build_incidents      how each ended               incidents[] but the rest;
 *                                                     processes[].fatal_incident
 *   build_process_group                               group, fatal_incident;
 *                                                     processes[].rank, ended_by,
 *                                                     held_bytes, device_peak_bytes
 *   build_moment         options                      moment, focus;
 *                                                     processes[].moment_seq, gone_ns
 *   build_peaks                                       devices[].peak_*
 *   build_moments        options                      processes[].live             moments
 *   build_sites          options, moments, memory     processes[].phases,          swept
 *                                                     phase_groups, requests;
 *                                                     incidents[].phase, request;
 *                                                     leaks[], growth[]
 *   build_devices        moments, memory              devices[] but the above
 *   build_incident_views memory                       incidents[].owners, packing,
 *                                                     largest_free, basis; free
 *                                                     memory that the driver was
 *                                                     not asked for
 *   build_host           moments, swept               processes[].host;
 *                                                     leaks[].shared_bytes
 *   coverage_of          swept                                                     coverage
 *
 * memory: what is remembered of blocks (roles.h). swept: what the sweeps found on their way.
 */
static void run_passes(struct facts *facts, const struct facts_options *options,
		       const struct listener *listener)
{
	const struct exit_reason *ends = build_processes(facts);
	struct block_memory *memory = block_memory_new(facts->process_count);
	struct moments moments;
	struct swept *swept;

	build_groups(facts);
	build_incidents(facts, ends);
	build_process_group(facts);
	build_moment(facts, options);
	build_peaks(facts);
	moments = build_moments(facts, options);
	swept = build_sites(facts, options, &moments, memory, listener);
	build_devices(facts, moments.of_device, memory);
	build_incident_views(facts, memory);
	build_host(facts, &moments, swept);
	facts->coverage = coverage_of(facts, swept);
	free(swept);
	block_memory_free(memory, facts->process_count);
}

static int take_run(struct facts *facts, struct run *run, int code, const char *path)
{
	*facts = (struct facts){ .run = run };
	if (code) {
		facts_close(facts);
		return code;
	}
	facts->arena = run->arena;
	facts->path = arena_format(run->arena, "%s", path);
	facts->run_count = run->run_count;
	facts->run_number = run->run_number;
	return 0;
}

int facts_open(struct facts *facts, const char *path, const struct facts_options *options,
	       struct reader_error *error)
{
	struct run *run = xalloc_zeroed(1, sizeof *run);
	size_t number = options ? options->run : 0;
	int code = options && options->catalog ?
			   run_open_listed(run, options->catalog, number, error) :
			   run_open_number(run, path, number, error);

	if (!code && options && options->pid && !run_keep_pid(run, options->pid)) {
		code = READER_E_NO_PROCESS;
		if (error)
			*error = (struct reader_error){ .code = code };
	}
	return take_run(facts, run, code, path);
}

int facts_open_memory(struct facts *facts, const void *data, size_t bytes,
		      struct reader_error *error)
{
	struct run *run = xalloc_zeroed(1, sizeof *run);

	return take_run(facts, run, run_open_memory(run, data, bytes, error), "");
}

void facts_close(struct facts *facts)
{
	run_fini(facts->run);
	free(facts->run);
}

void facts_assemble(struct facts *facts, const struct facts_options *options,
		    const struct listener *listener)
{
	struct run *run = facts->run;

	run->symbols = options->symbols;
	run->threads = options->threads;
	if (run->pack && run->symbols)
		names_file_read(run->symbols, pack_names(run->pack));
	run_merge_call_sites(run);
	run_passes(facts, options, listener);
}

/* Passes that do not depend on the moment have filled the rest. */
const struct facts *facts_at_peak(const struct facts *facts)
{
	const struct facts_options options = { .at = FACTS_AT_PEAK };
	const struct fact_moment moment = moment_asked(facts, &options);
	struct facts *peak = arena_copy(facts->arena, facts, 1, sizeof *peak);
	struct block_memory *memory = block_memory_new(facts->process_count);

	peak->devices = arena_copy(facts->arena, facts->devices, facts->device_count,
				   sizeof *facts->devices);
	build_devices(peak, device_moments(peak, &options, &moment), memory);
	block_memory_free(memory, facts->process_count);
	return peak;
}
