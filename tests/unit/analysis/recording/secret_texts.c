/* SPDX-License-Identifier: Apache-2.0 */
/* Recordings of a recorder that hid nothing: their secrets are not printed, and not packed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>
#include "analysis/recording/meta.h"
#include "tests/unit/fixtures/recording_maker.h"

/* How an older version wrote it; how it is read. */
static const struct row { uint32_t type; const char *written, *read; } rows[] = {
	{ CUF_META_CMDLINE, "curl -H Authorization: Bearer S3CRETbearer --http2",
	  "curl -H Authorization: Bearer *** --http2" },
	{ CUF_META_CMDLINE, "run --api-key S3CRETkey --port 80", "run --api-key *** --port 80" },
	{ CUF_META_CMDLINE, "run --api-key=S3CRETkey --port 80", "run --api-key=*** --port 80" },
	{ CUF_META_CMDLINE, "run --password= S3CRET -v", "run --password= *** -v" },
	{ CUF_META_CMDLINE, "curl -u bob:S3CRET h", "curl -u bob:*** h" },
	{ CUF_META_CMDLINE, "mysql -pS3CRET -p S3CRET", "mysql -p*** -p ***" },
	{ CUF_META_CMDLINE, "run Bearer S3CRET12", "run Bearer ***" },
	{ CUF_META_CMDLINE, "run Basic S3CRET12 Model7B", "run Basic *** Model7B" },
	{ CUF_META_CMDLINE, "run --wandb S3CRET12", "run --wandb ***" },
	{ CUF_META_CMDLINE, "x {\"password\": \"S3CRET\"} y", "x {\"password\": *** y" },
	{ CUF_META_CMDLINE, "x postgres://bob:S3CRET@h/db y", "x postgres://bob:***@h/db y" },
	{ CUF_META_CMDLINE, "x hf_S3CRETaaaaaaaa y", "x *** y" },
	{ CUF_META_CMDLINE, "run --api-key *** --auth=*** x", "run --api-key *** --auth=*** x" },
	{ CUF_META_CMDLINE, "grep token file.txt", "grep token file.txt" },
	{ CUF_META_CMDLINE, "run --key", "run --key" },
	{ CUF_META_CMDLINE, "vllm --max-num-batched-tokens 8192 --tokenizer m --token 12345",
	  "vllm --max-num-batched-tokens 8192 --tokenizer m --token ***" },
	{ CUF_META_CMDLINE, "curl -d {\"max_tokens\": 64} -d {\"max_tokens\":64,\"n\":1} x",
	  "curl -d {\"max_tokens\": 64} -d {\"max_tokens\":64,\"n\":1} x" },
	{ CUF_META_ENV, "VLLM_API_KEY=S3CRET", "VLLM_API_KEY=***" },
	{ CUF_META_ENV, "OLLAMA_HOST=http://u:S3CRET@h", "OLLAMA_HOST=http://u:***@h" },
	{ CUF_META_ENV, "VLLM_X=k=1", "VLLM_X=k=1" },
	{ CUF_META_PHASE, "login password=S3CRET12", "login password=***" },
	{ CUF_META_PHASE, "get https://u:S3CRET@h/", "get https://u:***@h/" },
	{ CUF_META_PHASE, "decode tokens=128", "decode tokens=128" },
	{ CUF_META_PHASE, "key: value cache", "key: value cache" },
	{ CUF_META_NOTE, "sk-S3CRETabcdefgh", "***" },
	{ CUF_META_EXE, "/opt/token=S3CRET12/bin", "/opt/token=S3CRET12/bin" },
};

static void test_secret_texts__no_secret_is_read(void **state)
{
	struct maker *maker = maker_new(&maker_small);
	struct reader *reader = NULL;
	struct arena *arena = arena_new();
	struct reader_error error;
	struct meta meta;

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		maker_meta(maker, rows[i].type, i, rows[i].written);
	assert_int_equal(0, reader_open_memory(maker->data, maker->bytes, &reader, &error));
	meta_read(&meta, reader, arena);
	for (size_t i = 0; i < meta.text_count; i++)
		assert_string_equal(meta.texts[i].text, rows[meta.texts[i].number].read);
	assert_int_equal(sizeof rows / sizeof *rows, meta.text_count);
	reader_close(reader);
	arena_free(arena);
	maker_free_all(maker);
}

/* In a copy for another machine, each by stars of its own length. */
static void test_secret_texts__no_secret_is_packed(void **state)
{
	struct { struct cuf_meta head; char text[64]; } record = { 0 };

	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		bool is_secret = strcmp(rows[i].written, rows[i].read) != 0;
		size_t bytes = strlen(rows[i].written);

		record.head = (struct cuf_meta){ .type = rows[i].type, .bytes = sizeof record,
						 .text_bytes = (uint32_t)bytes };
		strcpy(record.text, rows[i].written);
		assert_int_equal(is_secret, secret_texts_cover(&record, sizeof record) > 0);
		assert_int_equal(bytes, strlen(record.text));
		assert_true(!is_secret || !strstr(record.text, "CRET"));
		assert_int_equal(0, secret_texts_cover(&record, sizeof record));
	}
}

/* A hostile text takes time by its length, not by the square of it. */
static void test_secret_texts__long_texts_take_no_longer(void **state)
{
	static const char *const units[] = { "://", "key=", "bearer ", ":", "\"key\": ", "hf_", "-" };
	enum { BYTES = 256 << 10 };
	char *text = xalloc_bytes(BYTES + 1);

	for (size_t i = 0; i < sizeof units / sizeof *units; i++)
		for (uint32_t type = CUF_META_CMDLINE; type <= CUF_META_PHASE; type++) {
			for (size_t at = 0; at < BYTES; at++)
				text[at] = units[i][at % strlen(units[i])];
			text[BYTES] = 0;
			secret_texts_hide(type, text);
		}
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_secret_texts__no_secret_is_read),
		cmocka_unit_test(test_secret_texts__no_secret_is_packed),
		cmocka_unit_test(test_secret_texts__long_texts_take_no_longer),
	};

	return cmocka_run_group_tests_name("secret_texts", tests, NULL, NULL);
}
