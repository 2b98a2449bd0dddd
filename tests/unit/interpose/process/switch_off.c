/* SPDX-License-Identifier: Apache-2.0 */
/* Faults of the recorder: each is noticed on a slow path, and recording stops. Each case runs in a forked child. */
#include <sys/wait.h>
#include "tests/unit/fixtures/recorder.h"
#include "interpose/incident/timeline.h"
#include "interpose/platform/say.h"
#include "interpose/process/switch_off.h"
#include "interpose/process/thread.h"
#include "interpose/store/fault.h"
#include "interpose/store/ring.h"
#include "interpose/store/seal.h"

static bool has_note(const char *text)
{
	const struct cuf_header *header = cuf_recording.header;

	for (uint64_t at = 0; at + sizeof(struct cuf_meta) <= header->meta_used;) {
		const struct cuf_meta *meta = (const void *)(cuf_recording.meta + at);

		if (meta->type == CUF_META_NOTE && meta->number == CUF_NOTE_OFF &&
		    memmem(meta + 1, meta->text_bytes, text, strlen(text)))
			return true;
		at += meta->bytes;
	}
	return false;
}

/* Runs `damage` in a child with a recording of its own. It must switch recording off, with this note and one line. */
static void must_switch_off(void (*damage)(void), const char *note)
{
	int pipes[2], status;
	char lines[1024] = "";
	pid_t child;

	assert_int_equal(pipe(pipes), 0);
	child = fork();
	if (!child) {
		dup2(pipes[1], 2);
		cuf_say_start();
		fixture_alloc(CUF_KIND_DEVICE, 0x1000, 100);
		damage();
		fixture_alloc(CUF_KIND_DEVICE, 0x2000, 100); /* passes through */
		_exit(!cuf_gate_is_on() && cuf_recording.header->state == CUF_OFF && has_note(note) ? 0 : 1);
	}
	close(pipes[1]);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_true(read(pipes[0], lines, sizeof lines - 1) > 0);
	assert_non_null(strstr(lines, "recording stopped: "));
	assert_ptr_equal(strchr(lines, '\n'), lines + strlen(lines) - 1); /* one line */
	close(pipes[0]);
}

static void damage_magic(void)
{
	cuf_recording.header->magic[0] ^= 1;
	cuf_check_recording();
	cuf_check_recording(); /* only the first fault counts */
}

static void damage_everything(void)
{
	memset(cuf_recording.base, 0xa5, cuf_recording.bytes);
	cuf_check_recording();
}

static void damage_timeline(void)
{
	cuf_recording.header->sample_count = UINT64_MAX;
	cuf_timeline_sample(1);
}

static void damage_ring(void)
{
	struct cuf_writer writer = *(struct cuf_writer *)&cuf_tls.thread->writer;

	writer.slot->host_segment = 0xffff;
	cuf_ring_inherit(&writer);
}

static void damage_meta(void)
{
	cuf_recording.header->meta_used = UINT64_MAX;
	cuf_note(CUF_META_NOTE, 0, "lost", 4);
}

static void damage_ledger(void)
{
	for (uint64_t i = 0; i <= cuf_recording.ledger_mask; i++)
		if (cuf_recording.ledger[i].key)
			cuf_recording.ledger[i].kind = 200;
	fixture_free(CUF_KIND_DEVICE, 0x1000);
}

static void test_switch_off__an_overwritten_header_is_repaired_to_hold_the_note(void **state)
{
	must_switch_off(damage_magic, "header was overwritten");
	must_switch_off(damage_everything, "header was overwritten");
}

static void test_switch_off__impossible_indices_and_kinds_are_noticed(void **state)
{
	must_switch_off(damage_timeline, "timeline was overwritten");
	must_switch_off(damage_ring, "event rings were overwritten");
	must_switch_off(damage_meta, "texts were overwritten");
	must_switch_off(damage_ledger, "table of live blocks was overwritten");
}

static void test_switch_off__a_sound_recording_is_left_alone(void **state)
{
	fixture_alloc(CUF_KIND_DEVICE, 0x1000, 100);
	cuf_check_recording();
	cuf_timeline_sample(1);
	assert_true(cuf_gate_is_on());
	assert_true(cuf_recording_is_intact());
	assert_int_equal(cuf_recording.header->state, CUF_RUNNING);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_switch_off__an_overwritten_header_is_repaired_to_hold_the_note),
		cmocka_unit_test(test_switch_off__impossible_indices_and_kinds_are_noticed),
		cmocka_unit_test(test_switch_off__a_sound_recording_is_left_alone),
	};

	fixture_start("size=8MiB:host=off", "/tmp");
	return cmocka_run_group_tests_name("switch_off", tests, NULL, NULL);
}
