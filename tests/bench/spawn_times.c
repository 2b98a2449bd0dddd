/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a command costs in several environments: spawn_times ROUNDS NAME[,VARIABLE=VALUE]... --
 * COMMAND...
 *
 * Each round runs the command once in each environment, and begins with another environment each
 * time, so that a slow minute of the machine affects all alike. Prints for each: its name, median
 * and least wall time in microseconds, greatest resident size in KiB. The output of the command
 * goes to the null device. A command that fails ends the benchmark.
 */
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define VARIANTS_MAX 8
#define VARIABLES_MAX 8

struct variant {
	char *name;
	char **environment;
	double *wall_us;
	long rss_kib;
};

static void fail(const char *what, const char *detail)
{
	fprintf(stderr, "spawn_times: %s %s\n", what, detail);
	exit(1);
}

static void *allocate(size_t count, size_t bytes)
{
	void *p = calloc(count, bytes);

	if (!p)
		fail("out of memory", "");
	return p;
}

/* "name,A=1,B=2": our environment and these */
static void variant_parse(struct variant *variant, char *text, unsigned rounds)
{
	size_t count = 0;
	char *item;

	while (environ[count])
		count++;
	variant->environment = allocate(count + VARIABLES_MAX + 1, sizeof(char *));
	variant->wall_us = allocate(rounds, sizeof(double));
	variant->name = strtok(text, ",");
	/* first match wins in getenv: ours go before what was inherited */
	for (count = 0; count < VARIABLES_MAX && (item = strtok(NULL, ",")); count++)
		variant->environment[count] = item;
	for (size_t i = 0; environ[i]; i++)
		variant->environment[count + i] = environ[i];
}

static void variant_run(struct variant *variant, unsigned round, char **command,
                        posix_spawn_file_actions_t *actions)
{
	struct timespec began, ended;
	struct rusage usage;
	int status, error;
	pid_t pid;

	clock_gettime(CLOCK_MONOTONIC, &began);
	error = posix_spawnp(&pid, command[0], actions, NULL, command, variant->environment);
	if (error)
		fail(command[0], strerror(error));
	if (wait4(pid, &status, 0, &usage) != pid || status)
		fail("failed:", variant->name);
	clock_gettime(CLOCK_MONOTONIC, &ended);
	variant->wall_us[round] = (double)(ended.tv_sec - began.tv_sec) * 1e6 +
	                          (double)(ended.tv_nsec - began.tv_nsec) / 1e3;
	if (usage.ru_maxrss > variant->rss_kib)
		variant->rss_kib = usage.ru_maxrss;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
	struct variant variants[VARIANTS_MAX] = {0};
	unsigned rounds = argc > 3 ? (unsigned)atoi(argv[1]) : 0, count = 0;
	posix_spawn_file_actions_t actions;
	int i;

	for (i = 2; i < argc && strcmp(argv[i], "--") && count < VARIANTS_MAX && rounds; i++)
		variant_parse(&variants[count++], argv[i], rounds);
	if (!count || i + 1 >= argc || strcmp(argv[i], "--"))
		fail("usage:", "spawn_times ROUNDS NAME[,VARIABLE=VALUE]... -- COMMAND...");
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
	for (unsigned round = 0; round < rounds; round++)
		for (unsigned n = 0; n < count; n++)
			variant_run(&variants[(round + n) % count], round, argv + i + 1, &actions);
	for (unsigned n = 0; n < count; n++) {
		qsort(variants[n].wall_us, rounds, sizeof(double), by_value);
		printf("%s %.0f %.0f %ld\n", variants[n].name, variants[n].wall_us[rounds / 2],
		       variants[n].wall_us[0], variants[n].rss_kib);
	}
	return 0;
}
