/* SPDX-License-Identifier: Apache-2.0 */
/* Stacks, open requests, names and the rate of phases, as the recorder keeps them. */
#include <pthread.h>
#include "interpose/incident/phase_names.h"
#include "interpose/incident/open_phases.h"
#include "tests/unit/fixtures/recorder.h"

static struct cuf_phase_text text_of(const char *text, uint32_t stack)
{
	return (struct cuf_phase_text){
		.domain = "", .text = text, .bytes = strlen(text), .stack = stack,
	};
}

static int push(const char *text, uint32_t stack)
{
	struct cuf_phase_text t = text_of(text, stack);
	return (int)cuf_phase_begin(CUF_PHASE_PUSH, CUF_PHASE_PROGRAM, &t, 0);
}

static int pop(uint32_t stack) { return cuf_phase_end(CUF_PHASE_POP, CUF_PHASE_PROGRAM, stack); }

static uint64_t begin(const char *text, uint64_t id)
{
	struct cuf_phase_text t = text_of(text, 0);
	return (uint64_t)cuf_phase_begin(CUF_PHASE_REQUEST_BEGIN, CUF_PHASE_PROGRAM, &t, id);
}

/* The last phase's event in a ring. */
static struct cuf_event last_event(enum cuf_ring ring)
{
	struct cuf_event last = { 0 };
	const struct cuf_ring_place *place = &cuf_recording.rings[ring];
	for (unsigned i = 0; i < place->segment_count; i++) {
		const struct cuf_segment *s = (const void *)(place->at + i * place->segment_bytes);
		const struct cuf_event *e = (const void *)(s + 1);
		for (uint32_t n = 0; n < s->used; n++)
			if (e[n].op == CUF_OP_PHASE && e[n].seq > last.seq)
				last = e[n];
	}
	return last;
}

/* What META calls a name; NULL: it has none. */
static const char *name_of(uint64_t id)
{
	static char text[512];
	for (uint64_t at = 0;
	     at < cuf_recording.header->meta_used && at < cuf_recording.meta_bytes;) {
		const struct cuf_meta *meta = (const void *)(cuf_recording.meta + at);
		if (meta->type == CUF_META_PHASE && meta->number == id) {
			snprintf(text, sizeof text, "%.*s", (int)meta->text_bytes,
			         (const char *)(meta + 1));
			return text;
		}
		at += meta->bytes;
	}
	return NULL;
}

static struct cuf_incident at_incident(void)
{
	struct cuf_incident incident = { .tid = (uint32_t)gettid() };
	cuf_phases_at_incident(&incident);
	return incident;
}

static void test_stacks__end_in_any_order(void **state)
{
	assert_int_equal(pop(0), -1);
	assert_int_equal(push("a", 0), 0);
	assert_int_equal(push("b", 7), 0);
	assert_int_equal(push("c", 0), 1);
	assert_string_equal(name_of(at_incident().phase), "c");
	assert_int_equal(pop(7), 0);
	assert_string_equal(name_of(last_event(CUF_RING_DEVICE).addr), "b");
	assert_int_equal(cuf_phase_op(last_event(CUF_RING_DEVICE).extra), CUF_PHASE_POP);
	assert_int_equal(pop(0), 1);
	assert_string_equal(name_of(at_incident().phase), "a");
	assert_int_equal(pop(0), 0);
	assert_int_equal(at_incident().phase, 0);
}

static void test_stacks__deeper_than_is_kept(void **state)
{
	uint64_t left_out = cuf_recording.header->phases_left_out, seq;
	for (int i = 0; i < 100; i++)
		assert_int_equal(push("deep", 0), i);
	assert_int_equal(cuf_recording.header->phases_left_out - left_out, 100 - 64);
	seq = cuf_recording.header->next_seq;
	for (int i = 99; i >= 0; i--)
		assert_int_equal(pop(0), i);
	assert_int_equal(pop(0), -1);
	/* an end for each beginning that was written */
	assert_int_equal(cuf_recording.header->next_seq - seq, 64);
}

static void *other_thread(void *argument)
{
	*(uint32_t *)argument = at_incident().phase;
	push("left open", 0);
	return NULL;
}

static void test_stacks__are_a_threads_own(void **state)
{
	pthread_t thread;
	uint32_t seen = 1;
	push("mine", 0);
	for (int i = 0; i < 3; i++) { /* the slot's next thread begins with nothing */
		pthread_create(&thread, NULL, other_thread, &seen);
		pthread_join(thread, NULL);
		assert_int_equal(seen, 0);
	}
	assert_int_equal(pop(0), 0);
}

static void test_requests__open_ones_are_known(void **state)
{
	uint64_t first = begin("first", 0), second = begin("second", 4711);
	assert_true(first != 0);
	assert_int_equal(second, 4711);
	assert_int_equal(at_incident().request_id, 4711);
	assert_string_equal(name_of(at_incident().request_phase), "second");
	cuf_phase_end(CUF_PHASE_REQUEST_END, CUF_PHASE_PROGRAM, second);
	assert_int_equal(at_incident().request_id, first);
	cuf_phase_end(CUF_PHASE_REQUEST_END, CUF_PHASE_PROGRAM, first);
	assert_int_equal(at_incident().request_id, 0);
	cuf_phase_end(CUF_PHASE_REQUEST_END, CUF_PHASE_PROGRAM, first); /* once more: written as an end of nothing */
	assert_int_equal(last_event(CUF_RING_DEVICE).addr, 0);
}

static void test_ranges__of_the_process_stand_in(void **state)
{
	struct cuf_phase_text t = text_of("serving", 0);
	uint64_t ours = (uint64_t)cuf_phase_begin(CUF_PHASE_START, CUF_PHASE_PROGRAM, &t, 0);
	t.text = "theirs", t.bytes = 6;
	assert_int_equal(cuf_phase_begin(CUF_PHASE_START, CUF_PHASE_NVTX, &t, ours), ours); /* another tool's id */
	assert_string_equal(name_of(at_incident().phase), "theirs");
	cuf_phase_end(CUF_PHASE_END, CUF_PHASE_NVTX, ours);
	assert_int_equal(cuf_phase_source(last_event(CUF_RING_FRAMEWORK).extra), CUF_PHASE_NVTX);
	assert_string_equal(name_of(at_incident().phase), "serving");
	push("inner", 0);
	assert_string_equal(name_of(at_incident().phase), "inner");
	pop(0);
	cuf_phase_end(CUF_PHASE_END, CUF_PHASE_PROGRAM, ours);
	assert_int_equal(at_incident().phase, 0);
}

static void test_names__written_once(void **state)
{
	uint32_t id = cuf_phase_name("domain", 6, "text", 4);
	uint64_t used = cuf_recording.header->meta_used;
	assert_string_equal(name_of(id), "domain: text");
	assert_int_equal(cuf_phase_name("domain", 6, "text", 4), id);
	assert_int_not_equal(cuf_phase_name("domai", 5, "ntext", 5), id);
	assert_int_not_equal(cuf_phase_name("", 0, "text", 4), id);
	assert_true(cuf_recording.header->meta_used > used);
	used = cuf_recording.header->meta_used;
	for (int i = 0; i < 100; i++)
		assert_int_equal(cuf_phase_name("domain", 6, "text", 4), id);
	assert_int_equal(cuf_recording.header->meta_used, used);
}

static void test_names__cut_and_any_length(void **state)
{
	char text[300];
	memset(text, 'n', sizeof text);
	assert_int_equal(cuf_phase_name("", 0, text, 300),
	                 cuf_phase_name("", 0, text, CUF_PHASE_NAME_BYTES));
	for (size_t bytes = 0; bytes < 40; bytes++)
		for (size_t other = 0; other < bytes; other++)
			assert_int_not_equal(cuf_phase_name("", 0, text, bytes),
			                     cuf_phase_name("", 0, text, other));
}

/* After the other tests of names: the table is full afterwards. */
static void test_names__too_many_fold_their_digits(void **state)
{
	char text[64];
	uint64_t lost = cuf_recording.header->lost[CUF_LOST_CODES], used;
	uint32_t folded = 0;
	for (int i = 0; i < 5000; i++) {
		snprintf(text, sizeof text, "request %d of %d", i, 5000);
		folded = cuf_phase_name("", 0, text, strlen(text));
		assert_int_not_equal(folded, 0);
	}
	assert_string_equal(name_of(folded), "request # of #");
	assert_int_equal(cuf_recording.header->lost[CUF_LOST_CODES], lost);
	for (int i = 0; i < 5000; i++) {
		snprintf(text, sizeof text, "%c%c%c%c", 'a' + i % 26, 'a' + i / 26 % 26,
		         'a' + i / 676 % 26, 'Z');
		cuf_phase_name("", 0, text, strlen(text));
	}
	assert_true(cuf_recording.header->lost[CUF_LOST_CODES] - lost > 3000);
	used = cuf_recording.header->meta_used;
	cuf_phase_name("", 0, "one more", 8);
	assert_int_equal(cuf_recording.header->meta_used, used);
	assert_true(used < cuf_recording.meta_bytes / 2);
}

static void *name_together(void *argument)
{
	uint32_t *ids = argument;
	char text[16];
	for (int i = 0; i < 200; i++) {
		snprintf(text, sizeof text, "together %c%c", 'a' + i % 26, 'a' + i / 26);
		ids[i] = cuf_phase_name("", 0, text, strlen(text));
	}
	return NULL;
}

static void test_names__threads_agree(void **state)
{
	enum { THREADS = 4 };
	static uint32_t ids[THREADS][200];
	pthread_t threads[THREADS];
	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, name_together, ids[i]);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	for (int i = 1; i < THREADS; i++)
		assert_memory_equal(ids[i], ids[0], sizeof ids[0]);
}

static void test_rate__a_flood_leaves_half_the_ring_and_keeps_ends(void **state)
{
	const struct cuf_ring_place *place = &cuf_recording.rings[CUF_RING_FRAMEWORK];
	uint64_t events = place->segment_count *
	                  (place->segment_bytes / sizeof(struct cuf_event) - 1),
		 left_out = cuf_recording.header->phases_left_out;
	uint64_t seq = cuf_recording.header->next_seq, written;
	struct cuf_phase_text t = text_of("flood", 3);
	for (unsigned i = 0; i < 4 * events; i++) {
		cuf_phase_begin(CUF_PHASE_PUSH, CUF_PHASE_NVTX, &t, 0);
		cuf_phase_end(CUF_PHASE_POP, CUF_PHASE_NVTX, 3);
	}
	written = cuf_recording.header->next_seq - seq;
	assert_int_equal(written % 2, 0);
	assert_int_equal(cuf_recording.header->framework_overwritten, 0);
	assert_in_range(written, events / 2 - 2, events * 3 / 4);
	assert_int_equal(written / 2 + (cuf_recording.header->phases_left_out - left_out),
	                 4 * events);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stacks__end_in_any_order),
		cmocka_unit_test(test_stacks__deeper_than_is_kept),
		cmocka_unit_test(test_stacks__are_a_threads_own),
		cmocka_unit_test(test_requests__open_ones_are_known),
		cmocka_unit_test(test_ranges__of_the_process_stand_in),
		cmocka_unit_test(test_names__written_once),
		cmocka_unit_test(test_names__threads_agree),
		cmocka_unit_test(test_names__cut_and_any_length),
		cmocka_unit_test(test_rate__a_flood_leaves_half_the_ring_and_keeps_ends),
		cmocka_unit_test(test_names__too_many_fold_their_digits),
	};
	fixture_start("size=16MiB:host=off", "/tmp");
	return cmocka_run_group_tests_name("phases", tests, NULL, NULL);
}
