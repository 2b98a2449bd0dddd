/* SPDX-License-Identifier: Apache-2.0 */
/* Rules of `cuflight watch`: what is read, what is refused and where, when one fires, whom a signal
 * reaches, and what a second watcher finds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "analysis/cmd/live/actions.h"
#include "analysis/cmd/live/firing.h"
#include "analysis/cmd/live/keep.h"

#define SECOND 1000000000ull

static struct rule rule;

static void read_rule(const char *text)
{
	struct rule_error error = { 0, "" };

	if (!rule_parse(&rule, text, &error))
		fail_msg("%s: %s at %zu", text, error.text, error.at);
}

static void rules_that_are_read(void **state)
{
	(void)state;
	read_rule("time_to_oom(gpu)<30m for 5m->snapshot,exec ./drain.sh 'a, b' c\"d e\", log");
	assert_string_equal(rule.subject.metric->name, "cuflight_time_to_oom_seconds");
	assert_string_equal(rule.condition, "time_to_oom(gpu)<30m for 5m");
	assert_true(rule.is_below && rule.value == 1800 && rule.hold_s == 300);
	assert_int_equal(rule.action_count, 3);
	assert_int_equal(rule.actions[0].kind, ACTION_SNAPSHOT);
	assert_string_equal(rule.actions[1].args[0], "./drain.sh");
	assert_string_equal(rule.actions[1].args[1], "a, b");
	assert_string_equal(rule.actions[1].args[2], "cd e");
	assert_null(rule.actions[1].args[3]);
	read_rule("  used(gpu) > 90.5% -> signal SIGTERM ");
	assert_true(rule.is_share && rule.subject.is_rest && !rule.is_below);
	assert_true(fabs(rule.value - 0.905) < 1e-9);
	assert_int_equal(rule.actions[0].signal, SIGTERM);
	read_rule("headroom < -512MiB -> webhook https://host/path?a=b");
	assert_true(rule.value == -512.0 * (1 << 20));
	read_rule("used(cgroup) > 95% -> log");
	assert_string_equal(rule.subject.whole->name, "cuflight_cgroup_memory_limit_bytes");
	read_rule("time_to_oom(machine, soonest) < 1.5h -> log");
	assert_string_equal(rule.subject.words[0], "host");
	read_rule("failures(fatal) > 0 -> log");
	read_rule("cuflight_gpu_memory_bytes(kv) > 40GiB -> log");
}

static void rules_that_are_refused(void **state)
{
	static const struct { const char *text, *why; size_t at; } wrong[] = {
		{ "", "expected a name", 0 },
		{ "foo < 3 -> log", "unknown name", 0 },
		{ "failurs > 0 -> log", "did you mean 'failures'", 0 },
		{ "time_to_oom(gup) < 1m -> log", "expected machine, gpu, cgroup", 12 },
		{ "time_to_oom(gpu < 1m -> log", "expected )", 16 },
		{ "host_resident(x) > 1 -> log", "takes no word", 14 },
		{ "leak = 3 -> log", "expected < or >", 5 },
		{ "time_to_oom < 30 -> log", "a duration", 14 },
		{ "leak > 1e9 -> log", "a size", 7 },
		{ "failures > 50% -> log", "a number", 11 },
		{ "leak > nan -> log", "a size", 7 },
		{ "leak > 1MiB for -> log", "a duration", 16 },
		{ "leak > 1MiB", "expected ->", 11 },
		{ "leak > 1MiB ->", "expected an action", 14 },
		{ "leak > 1MiB -> bark", "expected an action", 15 },
		{ "leak > 1MiB -> log log", "a comma", 19 },
		{ "leak > 1MiB -> log,", "expected an action", 19 },
		{ "leak > 1MiB -> exec", "expected a command", 19 },
		{ "leak > 1MiB -> exec 'a", "has no end", 20 },
		{ "leak > 1MiB -> webhook ftp://x", "one address", 23 },
		{ "leak > 1MiB -> signal NOPE", "expected a signal", 22 },
	};
	struct rule_error error;

	(void)state;
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		assert_false(rule_parse(&rule, wrong[i].text, &error));
		if (!strstr(error.text, wrong[i].why) || error.at != wrong[i].at)
			fail_msg("%s: %s at %zu", wrong[i].text, error.text, error.at);
	}
}

/* ---- when it fires ---- */

static struct live_resource *resource;
static struct watch_process process;
static struct pass pass;
static struct watch_process *processes[] = { &process };
static struct watch watch = { .processes = processes, .count = 1 };
static struct firings firings;
static unsigned fired;
static bool may_fire;

static bool fire(void *state, const struct rule *of, const struct rule_sample *sample)
{
	(void)state;
	(void)of;
	assert_string_equal(sample->process, "server");
	assert_string_equal(sample->series, "server, GPU 3");
	fired += may_fire;
	return may_fire;
}

/* Seconds to the end as the pass has it, at a second of the clock. */
static unsigned seen(double oom_s, unsigned at_s)
{
	fired = 0;
	resource->oom_s[LIVE_EXPECTED] = oom_s;
	firing_look(&firings, &rule, &watch, at_s * SECOND, fire, NULL);
	return fired;
}

static void fires_once_until_it_was_false(void **state)
{
	(void)state;
	strcpy(process.name, "server");
	process.pass = &pass;
	pass.device_count = pass.resource_count = 1;
	pass.devices[0].ordinal = 3;
	resource = pass.resources;
	resource->kind = LIVE_GPU;
	may_fire = true;
	read_rule("time_to_oom(gpu) < 100s for 10s -> log");
	assert_int_equal(seen(50, 1000), 0);
	assert_int_equal(seen(50, 1009), 0);
	assert_int_equal(seen(INFINITY, 1010), 0); /* it begins anew */
	assert_int_equal(seen(99, 1011), 0);
	assert_int_equal(seen(99, 1021), 1);
	assert_int_equal(seen(10, 1031), 0);
	assert_int_equal(seen(INFINITY, 1040), 0);
	assert_int_equal(seen(10, 1041), 0); /* false for less than it must */
	assert_int_equal(seen(10, 1060), 0);
	assert_int_equal(seen(NAN, 1070), 0); /* unknown is not true */
	assert_int_equal(seen(NAN, 1080), 0);
	assert_int_equal(seen(10, 1081), 0);
	may_fire = false; /* a limit */
	assert_int_equal(seen(10, 1095), 0);
	may_fire = true;
	assert_int_equal(seen(10, 1096), 1);
	process.gone_ns = 1; /* it has ended */
	assert_int_equal(seen(10, 1100), 0);
	firing_fini(&firings);
	process.gone_ns = 0;
}

/* ---- whom a signal reaches ---- */

static uint64_t start_ticks(pid_t pid)
{
	char path[40], text[512] = "";
	unsigned long long ticks = 0;
	FILE *file;

	snprintf(path, sizeof path, "/proc/%d/stat", pid);
	file = fopen(path, "re");
	assert_non_null(file);
	assert_true(fread(text, 1, sizeof text - 1, file) > 0);
	fclose(file);
	assert_int_equal(sscanf(strrchr(text, ')') + 1,
				" %*c %*s %*s %*s %*s %*s %*s %*s %*s %*s"
				" %*s %*s %*s %*s %*s %*s %*s %*s %*s %llu", &ticks), 1);
	return ticks;
}

static void read_boot(uint8_t id[16])
{
	FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
	unsigned byte;

	assert_non_null(file);
	for (unsigned i = 0; i < 16; i++) {
		assert_int_equal(fscanf(file, i >= 4 && i <= 10 && i % 2 == 0 ? "-%2x" : "%2x",
					&byte), 1);
		id[i] = (uint8_t)byte;
	}
	fclose(file);
}

static void a_signal_reaches_its_process_alone(void **state)
{
	struct cuf_header header = { .pid = 0 };
	struct stat namespace;
	int status;
	pid_t pid = fork();

	(void)state;
	assert_true(pid >= 0);
	if (!pid)
		for (;;)
			pause();
	read_boot(header.boot_id);
	assert_int_equal(stat("/proc/self/ns/pid", &namespace), 0);
	header.pid = (uint32_t)pid;
	header.pid_namespace = namespace.st_ino;
	header.process_start_ticks = start_ticks(pid) + 1; /* another one had the pid */
	assert_int_equal(signal_recorded(&header, SIGTERM), -1);
	assert_int_equal(errno, ESRCH);
	header.process_start_ticks--;
	header.pid_namespace++; /* the pid is of another namespace */
	assert_int_equal(signal_recorded(&header, SIGTERM), -1);
	header.pid_namespace--;
	header.boot_id[0]++; /* of another machine, or before it was started anew */
	assert_int_equal(signal_recorded(&header, SIGTERM), -1);
	header.boot_id[0]--;
	assert_int_equal(waitpid(pid, &status, WNOHANG), 0);
	assert_int_equal(signal_recorded(&header, SIGTERM), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
	assert_int_equal(signal_recorded(&header, SIGTERM), -1);
}

/* ---- what outlives it ---- */

static void limits_outlive_the_watcher(void **state)
{
	char directory[] = "/tmp/cuflight-watch.XXXXXX", path[64];
	struct keep keep, second;
	pid_t other;

	(void)state;
	assert_non_null(mkdtemp(directory));
	assert_int_equal(keep_open(&keep, directory, 600, &other), 0);
	assert_true(keep_may(&keep, "rule", "server", 5000));
	assert_int_equal(keep_note(&keep, "rule", "server", 5000), 0);
	assert_int_equal(keep_open(&second, directory, 600, &other), -1);
	assert_int_equal(errno, EWOULDBLOCK);
	assert_int_equal(other, getpid());
	keep_close(&keep);
	assert_int_equal(keep_open(&keep, directory, 600, &other), 0);
	assert_false(keep_may(&keep, "rule", "server", 5599));
	assert_true(keep_may(&keep, "rule", "server", 5600));
	assert_true(keep_may(&keep, "rule", "server #2", 5001));
	assert_true(keep_may(&keep, "rules", "erver", 5001));
	assert_true(keep_may(&keep, "rule", "server", 4000)); /* the clock was set back */
	for (unsigned i = 0; i < 1100; i++) { /* more than it has places for: the oldest go */
		char name[16];

		snprintf(name, sizeof name, "%u", i);
		assert_int_equal(keep_note(&keep, "rule", name, 6000 + i), 0);
		assert_false(keep_may(&keep, "rule", name, 6000 + i));
	}
	keep_close(&keep);
	snprintf(path, sizeof path, "%s/state", directory);
	unlink(path);
	rmdir(directory);
}

static void make_snapshot(const struct snapshots *snapshots, const char *name, size_t bytes)
{
	char path[128], *zeros = calloc(1, bytes);
	FILE *file;

	snprintf(path, sizeof path, "%s/%s", snapshots->directory, name);
	file = fopen(path, "we");
	assert_non_null(file);
	assert_int_equal(fwrite(zeros, 1, bytes, file), bytes);
	fclose(file);
	free(zeros);
}

static bool is_there(const struct snapshots *snapshots, const char *name)
{
	char path[128];

	snprintf(path, sizeof path, "%s/%s", snapshots->directory, name);
	return !access(path, F_OK);
}

static void the_first_and_the_newest_snapshots_stay(void **state)
{
	char directory[] = "/tmp/cuflight-watch.XXXXXX", path[64];
	struct snapshots snapshots = { .directory = directory, .most = 3, .most_bytes = 1000 };
	static const char *const names[] = { "snapshot.1.a.cufpack", "snapshot.2.a.cufpack",
					     "snapshot.3.a.cufpack", "snapshot.4.a.cufpack" };

	(void)state;
	assert_non_null(mkdtemp(directory));
	make_snapshot(&snapshots, "mine.cufpack", 5000);
	for (unsigned i = 0; i < 4; i++)
		make_snapshot(&snapshots, names[i], 100);
	assert_int_equal(snapshots_trim(&snapshots), 3);
	assert_true(is_there(&snapshots, names[0]) && !is_there(&snapshots, names[1]));
	make_snapshot(&snapshots, names[3], 850);
	assert_int_equal(snapshots_trim(&snapshots), 2);
	assert_true(is_there(&snapshots, names[0]) && is_there(&snapshots, names[3]));
	make_snapshot(&snapshots, names[3], 950);
	assert_int_equal(snapshots_trim(&snapshots), 1);
	assert_true(is_there(&snapshots, names[3]));
	make_snapshot(&snapshots, names[3], 1001);
	assert_int_equal(snapshots_trim(&snapshots), 0);
	assert_true(is_there(&snapshots, "mine.cufpack"));
	snprintf(path, sizeof path, "%s/mine.cufpack", directory);
	unlink(path);
	rmdir(directory);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rules_that_are_read),
		cmocka_unit_test(rules_that_are_refused),
		cmocka_unit_test(fires_once_until_it_was_false),
		cmocka_unit_test(a_signal_reaches_its_process_alone),
		cmocka_unit_test(limits_outlive_the_watcher),
		cmocka_unit_test(the_first_and_the_newest_snapshots_stay),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
