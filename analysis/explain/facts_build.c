/* SPDX-License-Identifier: Apache-2.0 */
/* facts_build: opens the run and lets each part fill its share; the order of the parts is in
 * build_all. */
#include "analysis/explain/facts_build.h"

#include <stdlib.h>
#include "analysis/base/xalloc.h"
#include "analysis/explain/causes.h"
#include "analysis/explain/evidence/event_pass.h"
#include "analysis/explain/live/live_facts.h"
#include "analysis/explain/replayed.h"
#include "analysis/explain/what_if_facts.h"
#include "analysis/facts/passes/build.h"
#include "analysis/recording/pack.h"
#include "analysis/symbols/names_file.h"

struct facts_store {
	struct facts facts;
	struct run run;
	struct trace *trace;
	struct replayed about; /* the trace */
};

/*
 * The passes in order. Each reads what the passes before it filled, and writes only what is listed
 * here; nothing else runs them.
 *
 *   pass                 fills
 *   build_processes      processes[] except what follows; build->exit_reasons
 *   build_groups         build->groups: which devices are the same one
 *   build_incidents      incidents[] except what follows; processes[].fatal_incident
 *   build_process_group  group, fatal_incident; processes[].rank, ended_by,
 *                        held_bytes, device_peak_bytes
 *   build_moment         build->moment, moment, focus; processes[].moment_seq, device_of
 *   build_peaks          devices[].peak_bytes, peak_ns, peak_process, peak_basis
 *   build_live_moments   processes[].live
 *   build_sites          processes[].phases, phase_groups, requests; incidents[].phase, request;
 *                        leaks[], growth[]; build->host_memory, host_maps
 *   build_devices        devices[]
 *   build_recent         processes[].recent
 *   build_incident_views incidents[].owners, largest_free, packing, basis; free memory that the
 *                        driver was not asked for
 *   build_host           processes[].host
 *   build_judgement      judgement; of a running process, leaks[].class and growth[].class
 *   build_coverage       coverage
 *   build_what_ifs       what_ifs
 *   build_causes         incidents[].cause, cause, also
 */
static void run_passes(struct build *build)
{
	build_processes(build);
	build_groups(build);
	build_incidents(build);
	build_process_group(build);
	build_moment(build);
	build_peaks(build);
	build_live_moments(build);
	build_sites(build);
	build_devices(build);
	build_recent(build);
	build_incident_views(build);
	build_host(build);
	build_judgement(build);
	build_coverage(build);
	build_what_ifs(build);
	build_causes(build);
}

/* What explains the fatal incident reads the events along with what grows. */
static void listen(struct build *build, uint32_t process,
		   struct sweep_consumer consumers[LISTENERS])
{
	listen_for_what_ifs(build, process, &consumers[0]);
	event_pass_listen(build, process, &consumers[1]);
}

static void build_all(struct facts_store *store, const struct facts_options *options)
{
	struct build build = build_begin(&store->run, &store->facts, options);

	build.listen = listen;
	if (store->run.pack && build.options.symbols)
		names_file_read(build.options.symbols, pack_names(store->run.pack));
	run_merge_call_sites(&store->run, build.options.symbols);
	run_passes(&build);
	if (build.trace)
		store->trace = replayed_trace(build.trace, &store->run, &store->facts,
					      build.options.symbols, &store->about);
	for (size_t i = 0; i < store->run.count; i++)
		event_pass_fini(build.event_passes[i]);
	build_end(&build);
}

struct trace *facts_trace(const struct facts *facts, struct replayed *about)
{
	*about = facts->store->about;
	return facts->store->trace;
}

/* Passes that do not depend on the moment have filled the rest. */
const struct facts *facts_at_peak(const struct facts *facts, struct symbols *symbols)
{
	struct facts_store *store = facts->store;
	struct facts *peak = arena_copy(store->run.arena, facts, 1, sizeof *peak);
	struct build build = build_begin(&store->run, peak, &(struct facts_options){
							      .at = FACTS_AT_PEAK,
							      .symbols = symbols });

	build_groups(&build);
	build.moment = moment_asked(&build);
	build_peaks(&build);
	build_devices(&build);
	build_end(&build);
	return peak;
}

static int finish(struct facts_store *store, int code, const char *path,
		  const struct facts_options *options, struct facts **out)
{
	*out = NULL;
	if (code) {
		run_fini(&store->run);
		free(store);
		return code;
	}
	store->facts.store = store;
	store->facts.run = &store->run;
	store->facts.run_count = store->run.run_count;
	store->facts.run_number = store->run.run_number;
	store->facts.path = arena_format(store->run.arena, "%s", path);
	build_all(store, options);
	*out = &store->facts;
	return 0;
}

int facts_build(const char *path, const struct facts_options *options, struct facts **out,
		struct reader_error *error)
{
	struct facts_store *store = xalloc_zeroed(1, sizeof *store);
	size_t number = options ? options->run : 0;
	int code = options && options->catalog ?
			   run_open_listed(&store->run, options->catalog, number, error) :
			   run_open_number(&store->run, path, number, error);

	if (!code && options && options->pid && !run_keep_pid(&store->run, options->pid)) {
		code = READER_E_NO_PROCESS;
		if (error)
			*error = (struct reader_error){ .code = code };
	}
	return finish(store, code, path, options, out);
}

int facts_build_memory(const void *data, size_t bytes, const struct facts_options *options,
		       struct facts **out, struct reader_error *error)
{
	struct facts_store *store = xalloc_zeroed(1, sizeof *store);
	return finish(store, run_open_memory(&store->run, data, bytes, error), "", options, out);
}

void facts_free(struct facts *facts)
{
	struct facts_store *store = facts ? facts->store : NULL;
	if (!store)
		return;
	trace_free(store->trace);
	run_fini(&store->run);
	free(store);
}
