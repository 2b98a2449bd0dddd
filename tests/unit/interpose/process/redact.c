/* SPDX-License-Identifier: Apache-2.0 */
/* Secrets that people put into command lines and variables, and words that only look like them. */
#include "tests/unit/fixtures/recorder.h"
#include "interpose/process/redact.h"

/* Each contains "S3CRET" once or more; nothing of that may be left. */
static const char *const secrets[][2] = {
	{ "-H", "Authorization: Bearer S3CRETbearer" },
	{ "-H", "X-Api-Key: S3CRETheader" },
	{ "--header=Authorization: Bearer S3CRET", "" },
	{ "-H", "Cookie: session=S3CRET; path=/" },
	{ "-u", "bob:S3CRETuser" },
	{ "--user", "bob:S3CRETuser" },
	{ "-pS3CRETmysql", "" },
	{ "-p", "S3CRETmysql" },
	{ "{\"api_key\": \"S3CRETjson\"}", "" },
	{ "{\"max_tokens\": 64, \"token\": \"S3CRETjson\"}", "" },
	{ "{\"auth_tokens\": [\"S3CRETjson\"]}", "" },
	{ "{\"user\": \"bob\", \"password\":\"S3CRETjson\"}", "" },
	{ "--password", "-S3CRETdash" },
	{ "postgres://bob:p@S3CRETat@host/db", "" },
	{ "postgres://bob:a/S3CRETslash@host/db", "" },
	{ "redis://:S3CRETredis@h:6379", "" },
	{ "mongodb://u:S3CRETmongo@h1,h2/db", "" },
	{ "https://S3CRETtoken@host/path", "" },
	{ "a https://u:x@h https://u:S3CRETsecond@h", "" },
	{ "https://host/file?sig=S3CRETsignature", "" },
	{ "-c", "login('hf_S3CRETinside12345')" },
	{ "--sasl.jaas", "password \"S3CRETjaas\";" },
	{ "--token", "S3CRETtoken" },
	{ "--password=S3CRET", "" },
	{ "hf_S3CRETaaaaaaaa", "" },
	{ "--pass", "S3CRETpass" },
	{ "--pwd=S3CRETpwd", "" },
	{ "--pw", "S3CRETpw" },
	{ "--passphrase", "S3CRETphrase" },
	{ "--key", "S3CRETkey" },
	{ "--login=S3CRETlogin", "" },
	{ "AWS_SESSION=S3CRETaws", "" },
	{ "--env=DB_PASSWORD=S3CRETenv", "" },
	{ "-e", "MYSQL_ROOT_PASSWORD=S3CRETenv" },
	{ "ghs_S3CRETgithub1234", "" },
	{ "x=AIzaS3CRETgoogle1234", "" },
	{ "ASIAS3CRETaws1234", "" },
	{ "xoxa-S3CRETslack1234", "" },
	{ "npm_S3CRETnpm12345", "" },
	{ "dckr_pat_S3CRETdocker", "" },
	{ "glpat-S3CRETgitlab123", "" },
	{ "sk_live_S3CRETstripe1", "" },
	{ "pypi-S3CRETpypi1234567", "" },
	{ "eyJS3CRETjwt.aaaaaaa.bbbb", "" },
	{ "-----BEGIN PRIVATE KEY----- S3CRETpem", "" },
	{ "aws_secret_access_key = S3CRETkey", "" },
	{ "client_secret:S3CRET", "" },
	{ "--credentials", "S3CRETfile" },
	{ "private_key='S3CRET'", "" },
	{ "curl -H 'X-Auth-Token: S3CRET' host", "" },
	{ "Bearer S3CRETbearer", "" },
	{ "Basic czpTM0NSRVQvS3CRET==", "" },
	{ "--password=", "S3CRETapart" },
	{ "Authorization:", "S3CRETapart" },
	{ "--wandb", "S3CRETwandb1" },
	{ "--api-tokens", "S3CRETtokens" },
	{ "API_TOKENS=123,S3CRET", "" },
	{ "--token-file=S3CRET", "" },
};

/* What a report needs, and what only looks like a secret. */
static const char *const harmless[][2] = {
	{ "--max-model-len", "16384" },
	{ "--gpu-memory-utilization=0.9", "" },
	{ "--port=80", "" },
	{ "-p", "8080" },
	{ "-pthread", "" },
	{ "http://host:8080/v1/models", "" },
	{ "/models/llama-3-8b", "--dtype=float16" },
	{ "--sort=monkey", "" },
	{ "-u", "-m" },
	{ "keyboard:us", "" },
	{ "-c", "print(sum(range(10)))" },
	{ "--wandb", "online" },
	{ "Basic arithmetic", "bearer of" },
	{ "x=\"auth\"", "next" },
	{ "--max-num-batched-tokens", "8192" },
	{ "--max-num-batched-tokens=8192", "" },
	{ "max_new_tokens=512", "" },
	{ "--pad-token-id", "-1" },
	{ "--tokenizer", "/models/llama" },
	{ "--tokenizer-mode=auto", "" },
	{ "--max-tokens-per-batch", "8k" },
	{ "{\"max_tokens\": 64}", "" },
	{ "{\"max_tokens\":64,\"stop\":[]}", "" },
	{ "{\"max_tokens\":", "64}" },
};

static const char *redacted(const char *const pair[2], char *out, size_t bytes)
{
	struct cuf_text line = { out, 0, bytes };
	enum secrets_next next = SECRETS_NOTHING;

	out[0] = 0;
	cuf_redact_argument(&line, pair[0], strlen(pair[0]), &next);
	cuf_text_add(&line, " ");
	cuf_redact_argument(&line, pair[1], strlen(pair[1]), &next);
	return out;
}

static void test_redact__no_secret_is_left(void **state)
{
	char out[512];

	for (unsigned i = 0; i < sizeof secrets / sizeof *secrets; i++)
		if (strstr(redacted(secrets[i], out, sizeof out), "CRET"))
			fail_msg("'%s %s' becomes '%s'", secrets[i][0], secrets[i][1], out);
}

static void test_redact__harmless_words_are_kept(void **state)
{
	char out[512], expected[512];

	for (unsigned i = 0; i < sizeof harmless / sizeof *harmless; i++) {
		snprintf(expected, sizeof expected, "%s %s", harmless[i][0], harmless[i][1]);
		assert_string_equal(redacted(harmless[i], out, sizeof out), expected);
	}
}

static void test_redact__a_variable_is_searched_too(void **state)
{
	CUF_TEXT(text, 256);
	const char *value = "https://bob:S3CRET@host/ Authorization: Bearer S3CRET";

	cuf_redact_text(&text, SECRETS_ARGUMENT, value, strlen(value));
	assert_null(strstr(text.at, "CRET"));
	assert_non_null(strstr(text.at, "@host/"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_redact__no_secret_is_left),
		cmocka_unit_test(test_redact__harmless_words_are_kept),
		cmocka_unit_test(test_redact__a_variable_is_searched_too),
	};

	return cmocka_run_group_tests_name("redact", tests, NULL, NULL);
}
