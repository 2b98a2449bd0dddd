/* SPDX-License-Identifier: Apache-2.0 */
/* Hostile and damaged recordings: errors with their place, cut files, torn records. */
#include <stdarg.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <setjmp.h>
#include <stddef.h>
#include <cmocka.h>
#include "analysis/recording/cut_guard.h"
#include "analysis/recording/events.h"
#include "analysis/explain/facts_build.h"
#include "tests/unit/fixtures/recording_maker.h"

static const struct maker_plan tiny = { 4, 1024, 4, 1024, 64, 64, 16, 8, 8, 4, 1024 };

static struct maker *sample_recording(void)
{
	struct maker *maker = maker_new(&tiny);
	maker_device(maker, 0, 16 * GiB);
	maker_stack(maker, 1, 0x401000, 3);
	maker_stack(maker, 2, 0x402000, 2);
	maker_meta(maker, CUF_META_EXE, 0, "/usr/bin/victim");
	maker_meta(maker, CUF_META_HOOK, 100, "cuMemAlloc_v2");
	maker_module(maker, 1, 0x400000, 0x500000, "/usr/bin/victim");
	maker_alloc(maker, 0x700000000000, 3 * MiB, 1);
	maker_alloc(maker, 0x700000400000, 1000, 1);
	maker_free(maker, 0x700000000000);
	maker_host_alloc(maker, 0x5000, 100, 1);
	maker_sample(maker);
	maker_fail(maker, 0, 20 * GiB, 15 * GiB, 16 * GiB, 2);
	maker_end(maker, CUF_END_EXIT, 1);
	return maker;
}

static void expect_error(const void *data, size_t bytes, int code, uint64_t offset)
{
	struct reader *r = (void *)1;
	struct reader_error error = { 0 };
	assert_int_equal(reader_open_memory(data, bytes, &r, &error), code);
	assert_null(r);
	assert_int_equal(error.code, code);
	assert_int_equal(error.offset, offset);
	assert_true(strlen(reader_error_sentence(code)) > 5);
}

/* Somebody copies over the file, or rotates logs, while a report is being made. */
static void test_reader__a_file_that_is_cut_while_it_is_read(void **state)
{
	struct maker *maker = sample_recording();
	char path[] = "/tmp/reader.XXXXXX";
	int fd = mkstemp(path);
	struct reader *reader;
	struct reader_error error;
	uint64_t sum = 0;

	assert_int_equal(write(fd, maker->data, maker->bytes), maker->bytes);
	assert_int_equal(reader_open(path, &reader, &error), 0);
	assert_false(cut_guard_seen());
	assert_int_equal(ftruncate(fd, 100), 0);
	for (uint64_t at = 0; at < reader->bytes; at += 512)
		sum += ((const unsigned char *)reader->data)[at];
	assert_true(sum > 0); /* the first page is there */
	assert_true(cut_guard_seen());
	reader_close(reader);
	close(fd);
	unlink(path);
	maker_free_all(maker);
}

/* Opening a FIFO would wait for its writer. */
static void test_reader__what_is_no_regular_file_is_not_opened(void **state)
{
	char folder[] = "/tmp/reader.XXXXXX", fifo[64], link[64];
	struct reader *reader;
	struct reader_error error;

	assert_non_null(mkdtemp(folder));
	snprintf(fifo, sizeof fifo, "%s/fifo.cuf", folder);
	snprintf(link, sizeof link, "%s/link.cuf", folder);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	assert_int_equal(symlink("/proc/self/exe", link), 0);
	assert_int_equal(reader_open(fifo, &reader, &error), READER_E_MAGIC);
	assert_int_equal(reader_open("/dev/zero", &reader, &error), READER_E_MAGIC);
	assert_int_equal(reader_open_entry(link, &reader, &error), READER_E_MAGIC);
	unlink(fifo);
	unlink(link);
	rmdir(folder);
}

static void test_reader__damage_is_told_with_its_place(void **state)
{
	struct maker *maker = sample_recording();
	struct cuf_header saved = *maker->h;
	expect_error("", 0, READER_E_EMPTY, 0);
	expect_error("hello, this is text", 19, READER_E_MAGIC, 0);
	expect_error("CUF", 3, READER_E_MAGIC, 0);
	expect_error(maker->data, 4095, READER_E_SHORT, 4095);
	memset(maker->h->magic, 0, sizeof maker->h->magic);
	expect_error(maker->data, maker->bytes, READER_E_UNBEGUN, 0);
	maker->h->endian = 0;
	expect_error(maker->data, maker->bytes, READER_E_MAGIC, 0);
	*maker->h = saved;
	expect_error((const char[READER_HEADER_BYTES]){ 0 }, READER_HEADER_BYTES, READER_E_UNBEGUN, 0);
	maker->h->version = CUF_VERSION + 1;
	expect_error(maker->data, maker->bytes, READER_E_VERSION,
	             offsetof(struct cuf_header, version));
	*maker->h = saved;
	maker->h->endian = 0x04030201;
	expect_error(maker->data, maker->bytes, READER_E_ENDIAN,
	             offsetof(struct cuf_header, endian));
	*maker->h = saved;
	maker->h->section_count = 25;
	expect_error(maker->data, maker->bytes, READER_E_SECTIONS,
	             offsetof(struct cuf_header, section_count));
	*maker->h = saved;
	maker->h->sections[3].offset = maker->bytes;
	expect_error(maker->data, maker->bytes, READER_E_SECTIONS,
	             offsetof(struct cuf_header, sections) + 3 * sizeof(struct cuf_section));
	*maker->h = saved;
	maker->h->sections[2].bytes = UINT64_MAX - 100;
	expect_error(maker->data, maker->bytes, READER_E_SECTIONS,
	             offsetof(struct cuf_header, sections) + 2 * sizeof(struct cuf_section));
	*maker->h = saved;
	maker->h->sections[5].record_bytes = 63;
	expect_error(maker->data, maker->bytes, READER_E_SECTIONS,
	             offsetof(struct cuf_header, sections) + 5 * sizeof(struct cuf_section));
	*maker->h = saved;
	maker->h->device_segment_bytes = 32;
	expect_error(maker->data, maker->bytes, READER_E_HEADER,
	             offsetof(struct cuf_header, device_segment_bytes));
	*maker->h = saved;
	maker->h->header_bytes = 100;
	expect_error(maker->data, maker->bytes, READER_E_HEADER,
	             offsetof(struct cuf_header, header_bytes));
	maker_free_all(maker);
}

static void test_reader__missing_file_has_errno(void **state)
{
	struct reader *r;
	struct reader_error error;
	assert_int_equal(reader_open("/nonexistent/x.cuf", &r, &error), READER_E_OPEN);
	assert_int_equal(error.system, ENOENT);
	assert_string_equal(error.path, "/nonexistent/x.cuf");
}

static void test_reader__unknown_sections_are_skipped(void **state)
{
	struct maker *maker = sample_recording();
	struct reader *r;
	maker->h->sections[maker->h->section_count++] = (struct cuf_section){ 77, 8, 4096, 4096 };
	assert_int_equal(reader_open_memory(maker->data, maker->bytes, &r, NULL), 0);
	assert_true(r->complete);
	assert_int_equal(reader_count(r, CUF_SEC_LEDGER), 64);
	reader_close(r);
	maker_free_all(maker);
}

/* Later writers append fields to records: this reader steps over them. */
static void test_reader__longer_records_are_stepped_over(void **state)
{
	struct maker *maker = sample_recording();
	struct reader *r;
	for (unsigned i = 0; i < maker->h->section_count; i++)
		if (maker->h->sections[i].id == CUF_SEC_LEDGER)
			maker->h->sections[i].record_bytes = 128;
	assert_int_equal(reader_open_memory(maker->data, maker->bytes, &r, NULL), 0);
	assert_int_equal(reader_count(r, CUF_SEC_LEDGER), 32);
	assert_ptr_equal(reader_at(r, CUF_SEC_LEDGER, 1),
	                 maker->data + maker->at[CUF_SEC_LEDGER] + 128);
	assert_null(reader_at(r, CUF_SEC_LEDGER, 32));
	reader_close(r);
	maker_free_all(maker);
}

static void test_reader__misaligned_memory_is_copied(void **state)
{
	struct maker *maker = sample_recording();
	uint8_t *shifted = malloc(maker->bytes + 64);
	struct facts *facts;
	memcpy(shifted + 17, maker->data, maker->bytes);
	assert_int_equal(facts_build_memory(shifted + 17, maker->bytes, NULL, &facts, NULL), 0);
	assert_int_equal(facts->incident_count, 1);
	facts_free(facts);
	free(shifted);
	maker_free_all(maker);
}

static bool tells_of_a_cut(const struct fact_coverage *coverage)
{
	for (size_t i = 0; i < coverage->blind_count; i++)
		if (strstr(coverage->blind[i].text, "the recording is cut"))
			return true;
	return false;
}

/* Cut anywhere: below the header's page an error, above it a report that is marked incomplete. */
static void test_reader__cut_at_every_byte(void **state)
{
	struct maker *maker = sample_recording();
	for (uint64_t bytes = 0; bytes <= maker->bytes; bytes++) {
		struct facts *facts = NULL;
		struct reader_error error;
		uint8_t *cut;
		int code;
		/* records start at the pages' beginnings */
		if (bytes > 4096 && bytes % 4096 > 600 && bytes % 61 && bytes < maker->bytes)
			continue;
		/* exactly what is read may be read: for AddressSanitizer */
		cut = aligned_alloc(64, (bytes + 64) & ~63ull);
		memcpy(cut, maker->data, bytes);
		code = facts_build_memory(cut, bytes, NULL, &facts, &error);
		if (bytes < 4096) {
			assert_true(code < 0);
			assert_null(facts);
		} else {
			assert_int_equal(code, 0);
			assert_int_equal(facts->processes[0].complete, bytes == maker->bytes);
			assert_int_equal(facts->coverage.complete, bytes == maker->bytes);
			assert_int_equal(tells_of_a_cut(&facts->coverage), bytes < maker->bytes);
		}
		facts_free(facts);
		free(cut);
	}
	maker_free_all(maker);
}

static void test_reader__torn_records_are_left_out(void **state)
{
	struct maker *maker = sample_recording();
	struct cuf_block *blocks = maker_section(maker, CUF_SEC_LEDGER);
	struct cuf_event *events = (void *)((uint8_t *)maker_section(maker, CUF_SEC_RING) +
	                                    sizeof(struct cuf_segment));
	struct reader *r;
	struct events *e;
	struct facts *facts;
	blocks[10] = (struct cuf_block){
		.key = CUF_KEY_BUSY, .bytes = 1 * GiB, .kind = CUF_KIND_DEVICE,
	};
	events[1].seq = 0;
	assert_int_equal(reader_open_memory(maker->data, maker->bytes, &r, NULL), 0);
	e = events_new(r, NULL);
	assert_int_equal(e->count, 4);
	assert_int_equal(events_get(e, 1).seq, 3);
	/* nothing was overwritten: a call that never finished */
	assert_int_equal(e->complete_since, 0);
	events_free(e);
	reader_close(r);
	assert_int_equal(facts_build_memory(maker->data, maker->bytes, NULL, &facts, NULL), 0);
	assert_int_equal(facts->devices[0].owners[OWNER_DEVICE].bytes, 1000);
	facts_free(facts);
	maker_free_all(maker);
}

static void test_reader__damaged_meta_ends_there(void **state)
{
	struct maker *maker = sample_recording();
	struct cuf_meta *first = maker_section(maker, CUF_SEC_META);
	struct cuf_meta *second = (void *)((uint8_t *)first + first->bytes);
	struct facts *facts;
	second->bytes = 7;
	assert_int_equal(facts_build_memory(maker->data, maker->bytes, NULL, &facts, NULL), 0);
	assert_string_equal(facts->processes[0].exe, "/usr/bin/victim");
	assert_int_equal(facts->processes[0].module_count, 0);
	assert_false(facts->processes[0].complete);
	assert_non_null(strstr(facts->coverage.blind[0].text, "damaged at byte"));
	facts_free(facts);
	maker_free_all(maker);
}

/* Every header word set to an odd value, one at a time: an answer or an error, never a crash. */
static void test_reader__every_header_word_may_lie(void **state)
{
	static const uint64_t lies[] = { 0, 1, 63, 4096, UINT32_MAX, INT64_MAX, UINT64_MAX };
	struct maker *maker = sample_recording();
	for (size_t at = 0; at < sizeof(struct cuf_header); at += 8)
		for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
			struct cuf_header saved = *maker->h;
			struct facts *facts;
			memcpy(maker->data + at, &lies[i], 8);
			facts_build_memory(maker->data, maker->bytes, NULL, &facts, NULL);
			facts_free(facts);
			*maker->h = saved;
		}
	maker_free_all(maker);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reader__damage_is_told_with_its_place),
		cmocka_unit_test(test_reader__a_file_that_is_cut_while_it_is_read),
		cmocka_unit_test(test_reader__what_is_no_regular_file_is_not_opened),
		cmocka_unit_test(test_reader__missing_file_has_errno),
		cmocka_unit_test(test_reader__unknown_sections_are_skipped),
		cmocka_unit_test(test_reader__longer_records_are_stepped_over),
		cmocka_unit_test(test_reader__misaligned_memory_is_copied),
		cmocka_unit_test(test_reader__cut_at_every_byte),
		cmocka_unit_test(test_reader__torn_records_are_left_out),
		cmocka_unit_test(test_reader__damaged_meta_ends_there),
		cmocka_unit_test(test_reader__every_header_word_may_lie),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
