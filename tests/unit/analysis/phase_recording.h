/* SPDX-License-Identifier: Apache-2.0 */
/* Recordings with phases, made in memory, and what a report says of them. Contract: as recording_maker.h. */
#ifndef PHASE_RECORDING_H
#define PHASE_RECORDING_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include "analysis/explain/facts_build.h"
#include "tests/unit/analysis/recording_maker.h"

#define TOTAL (80 * GiB)
#define WEIGHTS 0x700000000000ull
#define CACHE 0x710000000000ull
#define WORK 0x720000000000ull

enum { NAME_OUTER = 1, NAME_INNER, NAME_REQUEST, NAME_MARK, NAME_RANGE };
enum { HOOK_INFO = 150 };

static inline struct maker *begin(void)
{
	static const struct maker_plan plan = { 512, 4096, 16, 4096, 4096, 4096, 256, 64, 32, 512, 4096 };
	struct maker *m = maker_new(&plan);
	maker_device(m, 0, TOTAL);
	maker_meta(m, CUF_META_HOOK, 100, "cuMemAlloc_v2");
	maker_meta(m, CUF_META_HOOK, HOOK_INFO, "cuMemGetInfo_v2");
	maker_meta(m, CUF_META_PHASE, NAME_OUTER, "outer");
	maker_meta(m, CUF_META_PHASE, NAME_INNER, "inner");
	maker_meta(m, CUF_META_PHASE, NAME_REQUEST, "generate");
	maker_meta(m, CUF_META_PHASE, NAME_MARK, "moment");
	maker_meta(m, CUF_META_PHASE, NAME_RANGE, "range");
	for (uint32_t id = 1; id < 9; id++)
		maker_stack(m, id, 0x401000 + id * 256, 2);
	return m;
}

static inline void say(struct maker *m, unsigned op, uint64_t name, uint64_t id)
{
	maker_event(m, (struct cuf_event){ .op = CUF_OP_PHASE, .addr = name, .aux = id, .extra = cuf_phase_extra(op, CUF_PHASE_PROGRAM), .device = CUF_DEVICE_NONE });
}

static inline void say_nvtx(struct maker *m, unsigned op, uint64_t name, uint64_t id)
{
	maker_event_in(m, MAKER_FRAMEWORK, (struct cuf_event){ .op = CUF_OP_PHASE, .addr = name, .aux = id, .extra = cuf_phase_extra(op, CUF_PHASE_NVTX),
		.device = CUF_DEVICE_NONE });
}

static inline struct facts *report(struct maker *m)
{
	struct facts *facts;
	assert_int_equal(facts_build_memory(m->data, m->bytes, NULL, &facts, NULL), 0);
	return facts;
}

static inline const struct fact_phase *find(const struct facts *facts, const char *name)
{
	const struct fact_process *p = &facts->processes[0];
	for (size_t i = 0; i < p->phase_count; i++)
		if (!strcmp(p->phases[i].name, name))
			return &p->phases[i];
	return NULL;
}

static inline void done(struct maker *m, struct facts *facts)
{
	facts_free(facts);
	maker_free_all(m);
}

#endif
