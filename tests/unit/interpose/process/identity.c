/* SPDX-License-Identifier: Apache-2.0 */
/* What a recording contains about its process, and what it must never contain. */
#include <pthread.h>
#include "tests/unit/fixtures/recorder.h"
#include "interpose/process/cgroup.h"
#include "interpose/process/identity.h"
#include "interpose/process/proc_file.h"

static char *environment[] = {
	(char *)"CUDA_VISIBLE_DEVICES=0,1",
	(char *)"HOME=/home/somebody",
	(char *)"AWS_SECRET_ACCESS_KEY=abcdefghij",
	(char *)"VLLM_API_KEY=vllmsecret",
	(char *)"NCCL_DEBUG=INFO",
	(char *)"CUDA_TOKEN=tokentoken",
	NULL,
};

static const char *const arguments[] = { "--port=80",
	                                 "--api-key=s3cr3tvalue",
	                                 "--hf-token",
	                                 "hunter2hunter2",
	                                 "--model",
	                                 "llama",
	                                 "hf_abcdefghijklmnop",
	                                 "postgres://user:pa55word@host/db",
	                                 "OPENAI_API_KEY=sk-abcdefghijklmnop",
	                                 "--tokenizer-mode=auto",
	                                 "--auth",
	                                 "--next" };
static const char *const secrets[] = { "s3cr3t",     "hunter2",    "hf_abc",
	                               "pa55word",   "sk-abc",     "abcdefghij",
	                               "vllmsecret", "tokentoken", "/home/somebody" };

static bool meta_holds(unsigned type, const char *text)
{
	for (uint64_t at = 0; at + sizeof(struct cuf_meta) <= cuf_recording.header->meta_used;) {
		const struct cuf_meta *meta = (const void *)(cuf_recording.meta + at);
		if ((!type || meta->type == type) &&
		    memmem(meta + 1, meta->text_bytes, text, strlen(text)))
			return true;
		at += meta->bytes;
	}
	return false;
}

static void test_identity__no_secret_is_kept(void **state)
{
	for (unsigned i = 0; i < sizeof secrets / sizeof *secrets; i++)
		if (meta_holds(0, secrets[i]))
			fail_msg("'%s' is in the recording", secrets[i]);
}

static void test_identity__the_rest_of_the_command_line_is(void **state)
{
	assert_true(meta_holds(CUF_META_CMDLINE,
	                       "--port=80 --api-key=*** --hf-token *** --model llama ***"));
	assert_true(meta_holds(CUF_META_CMDLINE, "postgres://user:***@host/db OPENAI_API_KEY=***"));
	/* an option is not its predecessor's value */
	assert_true(meta_holds(CUF_META_CMDLINE, "--auth --next"));
	assert_true(meta_holds(CUF_META_ENV, "CUDA_VISIBLE_DEVICES=0,1"));
	assert_true(meta_holds(CUF_META_ENV, "NCCL_DEBUG=INFO"));
	assert_true(meta_holds(CUF_META_EXE, "identity"));
}

static void test_identity__memory_is_plausible(void **state)
{
	struct cuf_process_memory memory;
	uint64_t kernel_bytes;
	char text[4096] = "";
	assert_true(cuf_proc_read("/proc/self/status", text, sizeof text) > 0);
	kernel_bytes = cuf_proc_number(text, "\nVmRSS:") * 1024;
	cuf_process_memory(&memory);
	assert_in_range(memory.rss_bytes, kernel_bytes / 2, kernel_bytes * 2);
}

static void *wait_for(void *lock)
{
	pthread_mutex_lock(lock);
	pthread_mutex_unlock(lock);
	return NULL;
}

static void test_identity__threads_are_counted(void **state)
{
	pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	uint64_t before = cuf_process_threads();
	pthread_t threads[3];
	pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, wait_for, &lock), 0);
	assert_true(before >= 1);
	assert_int_equal(cuf_process_threads(), before + 3);
	pthread_mutex_unlock(&lock);
	for (unsigned i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_identity__no_secret_is_kept),
		cmocka_unit_test(test_identity__the_rest_of_the_command_line_is),
		cmocka_unit_test(test_identity__memory_is_plausible),
		cmocka_unit_test(test_identity__threads_are_counted),
	};
	if (argc == 1) { /* again, with a command line worth hiding */
		const char *again[sizeof arguments / sizeof *arguments + 2] = { argv[0] };
		memcpy(again + 1, arguments, sizeof arguments);
		/* not /proc/self/exe, which is valgrind under valgrind */
		execv(argv[0], (char *const *)again);
		return 1;
	}
	fixture_start("size=4MiB:host=off", "/tmp");
	cuf_process_describe(environment);
	return cmocka_run_group_tests_name("identity", tests, NULL, NULL);
}
