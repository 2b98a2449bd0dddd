/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Other GPU processes, as NVML reports them: which reading counts, which process is which, and that
 * hostile readings cost only their own figures.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include "analysis/explain/facts_build.h"
#include "interpose/abi/gpu_processes.h"
#include "tests/unit/fixtures/recording_maker.h"

#define TOTAL (16 * GiB)
#define BASE 0x700000000000ull
#define OWN 4242u /* of a made recording */
#define SEEN CUF_GPU_PROCESS_SEEN

/* 3 GiB of ours, a failure with 5 GiB free: 8 GiB are somebody else's. */
static struct maker *begin(void)
{
	struct maker *m = maker_new(&maker_small);
	maker_device(m, 0, TOTAL);
	maker_stack(m, 1, 0x401000, 2);
	maker_alloc(m, BASE, 3 * GiB, 1);
	maker_fail(m, 0, 6 * GiB, 5 * GiB, TOTAL, 1);
	return m;
}

/* A reading of now, and its tenants: pid, bytes, flags. */
static struct cuf_meta_gpu_processes *reading(struct maker *m, uint64_t incident, size_t count,
                                              const struct cuf_gpu_process *tenants)
{
	struct cuf_meta_gpu_processes *r = (void *)((uint8_t *)maker_section(m, CUF_SEC_META) +
	                                            m->h->meta_used);
	*r = (struct cuf_meta_gpu_processes){
		.meta = {
			.type = CUF_META_GPU_PROCESSES,
			.bytes = (uint32_t)(sizeof *r + count * sizeof *tenants),
			.time_ns = m->now_ns, .number = incident,
		},
		.reported_count = (uint32_t)count,
		.stored_count = (uint32_t)count
	};
	memcpy(r + 1, tenants, count * sizeof *tenants);
	m->h->meta_used += r->meta.bytes;
	return r;
}

static struct facts *report(struct maker *m)
{
	struct facts *facts;
	if (!m->h->end_kind)
		maker_end(m, CUF_END_ABORT, 6);
	assert_int_equal(facts_build_memory(m->data, m->bytes, NULL, &facts, NULL), 0);
	return facts;
}

static void done(struct maker *m, struct facts *facts)
{
	uint64_t sum = 0;
	for (size_t i = 0; i < facts->devices[0].owner_count; i++)
		if (facts->devices[0].owners[i].in_sum &&
		    facts->devices[0].owners[i].bytes != CUF_UNKNOWN)
			sum += facts->devices[0].owners[i].bytes;
	assert_int_equal(sum, facts->devices[0].total_bytes);
	facts_free(facts);
	maker_free_all(m);
}

static const struct fact_owner_row *row(const struct facts *facts, enum fact_owner kind,
                                        uint32_t pid)
{
	for (size_t i = 0; i < facts->devices[0].owner_count; i++)
		if (facts->devices[0].owners[i].kind == kind &&
		    (!pid || facts->devices[0].owners[i].pid == pid))
			return &facts->devices[0].owners[i];
	return NULL;
}

static uint64_t bytes(const struct facts *facts, enum fact_owner kind, uint32_t pid)
{
	const struct fact_owner_row *found = row(facts, kind, pid);
	assert_non_null(found);
	return found->bytes;
}

static size_t others(const struct facts *facts)
{
	size_t count = 0;
	for (size_t i = 0; i < facts->devices[0].owner_count; i++)
		count += facts->devices[0].owners[i].kind == OWNER_OTHER_PROCESSES &&
		         facts->devices[0].owners[i].by_nvml;
	return count;
}

static const struct cuf_gpu_process three[] = { { OWN, SEEN, 3 * GiB + 300 * MiB, "python3" },
	                                        { 20, SEEN, 2 * GiB, "vllm" },
	                                        { 30, 0, 5 * GiB, "" } };

static void test_tenants__a_row_each_and_less_unexplained(void **state)
{
	struct maker *m = begin();
	struct facts *facts;
	reading(m, 1, 3, three);
	facts = report(m);
	assert_int_equal(bytes(facts, OWNER_OTHER_PROCESSES, 30), 5 * GiB);
	assert_int_equal(bytes(facts, OWNER_OTHER_PROCESSES, 20), 2 * GiB);
	assert_string_equal(row(facts, OWNER_OTHER_PROCESSES, 20)->name, "vllm");
	assert_null(row(facts, OWNER_OTHER_PROCESSES, 30)->name);
	assert_int_equal(row(facts, OWNER_OTHER_PROCESSES, 20)->basis, BASIS_OBSERVED);
	assert_int_equal(row(facts, OWNER_OTHER_PROCESSES, 0)->pid, 30); /* the largest first */
	assert_int_equal(others(facts), 2);
	assert_null(row(facts, OWNER_OTHER_PROCESSES, OWN));
	/* ours is over what our blocks are by the context */
	assert_int_equal(bytes(facts, OWNER_CONTEXT, OWN), 300 * MiB);
	assert_int_equal(bytes(facts, OWNER_UNEXPLAINED, 0), 8 * GiB - 7 * GiB - 300 * MiB);
	done(m, facts);
}

static void test_tenants__of_run_they_are_a_moment_later(void **state)
{
	struct maker *m = begin();
	struct facts *facts;
	reading(m, 1, 3, three)->flags = CUF_GPU_PROCESSES_BY_RUN;
	facts = report(m);
	assert_int_equal(bytes(facts, OWNER_OTHER_PROCESSES, 20), 2 * GiB);
	assert_int_equal(bytes(facts, OWNER_CONTEXT, 0), CUF_UNKNOWN);
	assert_int_equal(bytes(facts, OWNER_UNEXPLAINED, 0), 1 * GiB);
	done(m, facts);
}

static void test_tenants__what_cannot_be_told_stays_unexplained(void **state)
{
	struct maker *m = begin();
	struct facts *facts;
	const struct cuf_gpu_process tenants[] = { three[0], { 20, SEEN, CUF_UNKNOWN, "Xorg" } };
	reading(m, 1, 2, tenants);
	facts = report(m);
	assert_int_equal(bytes(facts, OWNER_OTHER_PROCESSES, 20), CUF_UNKNOWN);
	assert_int_equal(row(facts, OWNER_OTHER_PROCESSES, 20)->basis, BASIS_NONE);
	assert_int_equal(bytes(facts, OWNER_UNEXPLAINED, 0), 8 * GiB - 300 * MiB);
	done(m, facts);
}

static void test_tenants__the_nearest_reading_counts_and_an_old_one_does_not(void **state)
{
	struct maker *m = begin();
	struct facts *facts;
	const struct cuf_gpu_process later[] = { three[0], { 20, SEEN, 1 * GiB, "vllm" } };
	reading(m, 1, 3, three)->meta.time_ns -= 1500000000;
	reading(m, 9, 2, later)->meta.time_ns += 1000000000;
	facts = report(m);
	assert_int_equal(bytes(facts, OWNER_OTHER_PROCESSES, 20), 1 * GiB);
	assert_int_equal(row(facts, OWNER_OTHER_PROCESSES, 20)->basis, BASIS_OBSERVED);
	assert_int_equal(bytes(facts, OWNER_CONTEXT, 0), CUF_UNKNOWN); /* of another failure */
	done(m, facts);

	m = begin();
	reading(m, 1, 3, three)->meta.time_ns += 30000000000;
	facts = report(m);
	assert_int_equal(row(facts, OWNER_OTHER_PROCESSES, 20)->basis, BASIS_ESTIMATED);
	done(m, facts);

	m = begin();
	reading(m, 1, 3, three)->meta.time_ns += 90000000000;
	facts = report(m);
	assert_int_equal(others(facts), 0);
	assert_int_equal(bytes(facts, OWNER_UNEXPLAINED, 0), 8 * GiB);
	done(m, facts);
}

static void test_tenants__of_another_device_or_refused_or_of_unknown_layout(void **state)
{
	struct maker *m = begin();
	struct facts *facts;
	size_t told = 0;
	reading(m, 1, 3, three)->device = 1;
	reading(m, 1, 3, three)->flags = CUF_GPU_PROCESSES_LAYOUT;
	reading(m, 1, 0, three)->failed = 7;
	facts = report(m);
	assert_int_equal(others(facts), 0);
	assert_int_equal(bytes(facts, OWNER_UNEXPLAINED, 0), 8 * GiB);
	for (size_t i = 0; i < facts->coverage.blind_count; i++)
		told += strstr(facts->coverage.blind[i].text, "NVML") != NULL;
	assert_int_equal(told, 1);
	done(m, facts);
}

/* The ids are the machine's: ours is the smallest of those that nobody here has and that hold what
 * we hold. */
static void test_tenants__ids_of_another_namespace(void **state)
{
	static const struct cuf_gpu_process foreign[] = { { 70001, 0, 1 * GiB, "" },
		                                          { 70002, 0, 3 * GiB + 100 * MiB, "" },
		                                          { 70003, 0, 4 * GiB, "" },
		                                          { 70004, SEEN, 3 * GiB, "seen" } };
	struct maker *m = begin();
	struct facts *facts;
	reading(m, 1, 4, foreign);
	facts = report(m);
	assert_int_equal(others(facts), 3);
	assert_null(row(facts, OWNER_OTHER_PROCESSES, 70002));
	assert_int_equal(row(facts, OWNER_OTHER_PROCESSES, 70003)->basis, BASIS_ESTIMATED);
	assert_int_equal(bytes(facts, OWNER_CONTEXT, 0), CUF_UNKNOWN);
	assert_int_equal(bytes(facts, OWNER_UNEXPLAINED, 0), 0);
	done(m, facts);

	m = begin(); /* after our end nobody is us */
	reading(m, 1, 4, foreign)->flags = CUF_GPU_PROCESSES_BY_RUN | CUF_GPU_PROCESSES_AFTER;
	facts = report(m);
	assert_int_equal(others(facts), 4);
	done(m, facts);
}

static void test_tenants__hostile_records(void **state)
{
	struct maker *m = begin();
	struct facts *facts;
	struct cuf_gpu_process tenants[] = { { OWN, SEEN, UINT64_MAX - 1, "" },
		                             { 20, SEEN, UINT64_MAX - 1, "no end of a name" },
		                             { 30, SEEN, UINT64_MAX / 2, "" } };
	memset(tenants[1].name, 'x', sizeof tenants[1].name);
	reading(m, 1, 3, tenants)->stored_count = UINT32_MAX;
	facts = report(m);
	assert_string_equal(row(facts, OWNER_OTHER_PROCESSES, 20)->name, "xxxxxxxxxxxxxxxx");
	assert_int_equal(bytes(facts, OWNER_DEVICE, OWN), 3 * GiB); /* what was recorded stays */
	done(m, facts);

	m = begin();
	/* shorter than its head; what follows is damage */
	reading(m, 1, 0, tenants)->meta.bytes = sizeof(struct cuf_meta);
	facts = report(m);
	assert_int_equal(others(facts), 0);
	done(m, facts);
}

/* Other processes of the cause are those that were recorded; NVML's are no such witnesses. */
static void test_tenants__do_not_count_as_recorded(void **state)
{
	struct maker *m = begin();
	struct facts *facts;
	reading(m, 1, 3, three);
	facts = report(m);
	assert_false(row(facts, OWNER_OTHER_PROCESSES, 20)->recorded);
	assert_true(row(facts, OWNER_OTHER_PROCESSES, 20)->by_nvml);
	assert_false(row(facts, OWNER_DEVICE, OWN)->by_nvml);
	done(m, facts);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tenants__a_row_each_and_less_unexplained),
		cmocka_unit_test(test_tenants__of_run_they_are_a_moment_later),
		cmocka_unit_test(test_tenants__what_cannot_be_told_stays_unexplained),
		cmocka_unit_test(test_tenants__the_nearest_reading_counts_and_an_old_one_does_not),
		cmocka_unit_test(test_tenants__of_another_device_or_refused_or_of_unknown_layout),
		cmocka_unit_test(test_tenants__ids_of_another_namespace),
		cmocka_unit_test(test_tenants__hostile_records),
		cmocka_unit_test(test_tenants__do_not_count_as_recorded),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
