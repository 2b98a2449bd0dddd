#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# A limit of the process refuses a request: the report names that limit, and what was held then.
load host

setup_file() {
	cd "$BATS_FILE_TMPDIR" || return
	cat >fills.c <<'EOF'
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#define MiB ((size_t)1 << 20)
enum { BLOCKS = 300 };
static char *held[BLOCKS];
/* RESOURCE malloc|mmap dies|survives; prints what is used of the limit, and the limit */
int main(int argc, char **argv)
{
	int resource = *argv[1] == 'v' ? RLIMIT_AS : RLIMIT_DATA;
	long all, data, skip;
	struct rlimit limit;
	void *more;
	for (int i = 0; i < BLOCKS; i++)
		memset(held[i] = malloc(MiB), 1, MiB);
	FILE *statm = fopen("/proc/self/statm", "r");
	if (!statm || fscanf(statm, "%ld %ld %ld %ld %ld %ld", &all, &skip, &skip, &skip, &skip, &data) != 6)
		return 3;
	if (!strcmp(argv[2], "malloc"))
		more = malloc(800 * MiB);
	else if ((more = mmap(0, 800 * MiB, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) == MAP_FAILED)
		more = NULL;
	getrlimit(resource, &limit);
	printf("%ld %lu\n", (resource == RLIMIT_AS ? all : data) * 4096, (unsigned long)limit.rlim_cur);
	fflush(stdout);
	if (more)
		return 4;
	if (!strcmp(argv[3], "dies"))
		abort();
	return 0;
}
EOF
	"${CC:-cc}" -g fills.c -o fills
	cat >fills.py <<'EOF'
import mmap, resource, sys
def hold():
    blocks = []
    for i in range(300):
        blocks.append(bytearray(1 << 20))
    return blocks
held = hold()
kind = resource.RLIMIT_AS if sys.argv[1] == "v" else resource.RLIMIT_DATA
pages = open("/proc/self/statm").read().split()
print(int(pages[0 if sys.argv[1] == "v" else 5]) * 4096, resource.getrlimit(kind)[0], flush=True)
file = open("file", "w+b")
file.truncate(800 << 20)
try:
    if sys.argv[2] == "malloc":
        more = bytearray(800 << 20)
    elif sys.argv[2] == "file":
        more = mmap.mmap(file.fileno(), 800 << 20, access=mmap.ACCESS_READ)
    else:
        more = mmap.mmap(-1, 800 << 20, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
except (MemoryError, OSError):
    if sys.argv[3] == "dies":
        raise
    sys.exit(0)
sys.exit(4)
EOF
}

# RESOURCE CALL ENDING PROGRAM...: in a shell with a limit of 1 GiB; writes report.json and screen
limited() {
	local resource=$1 call=$2 ending=$3 status=0
	shift 3
	rm -rf rec
	(
		ulimit "-$resource" 1048576
		CUFLIGHT_OUTPUT=rec/ LD_PRELOAD=$build/libcuflight.so \
			"$@" "$resource" "$call" "$ending" >truth 2>err
	) || status=$?
	[ "$status" != 4 ] && [ "$status" != 3 ]
	[ "$ending" = dies ] || [ "$status" = 0 ]
	read -r used limit <truth
	"$cuflight" report --json rec >report.json
	"$cuflight" report rec >screen
	[ "$(wc -l <screen)" -le 21 ] && [ "$(wc -L <screen)" -le 80 ]
}

# RESOURCE: the refused request, and the limit that the shell had set, to the byte
knows() {
	local key=address_space
	[ "$1" = v ] || key=private_data
	report_has "d.incidents.length === 1 && d.incidents[0].requested_bytes >> 20 === 800"
	report_has "d.incidents[0].refused_by === '$key' && d.incidents[0].limits.$key.max_bytes === $limit"
	report_has "Math.abs(d.incidents[0].limits.$key.used_bytes - $used) < 2 << 20"
}

# RESOURCE PLACE: every part of the screen names it (a file once, so the place is without it where the
# cause had it); the table is of the refusal, when 300 MiB were held
blames() {
	local what=addresses service=LimitAS=
	[ "$1" = v ] || what='private memory' service=LimitDATA=
	report_has "d.cause.name_id === 'host-process-limit' && d.cause.confidence >= 0.5"
	report_has "d.cause.fix[0].value === d.incidents[0].limits[d.incidents[0].refused_by].used_bytes + d.incidents[0].requested_bytes"
	report_has "d.host.rss_bytes > 300 << 20"
	grep -qE "^[a-z]+\(800 MiB\) failed with [0-9]+ MiB of 1\.00 GiB left \(ulimit -$1\)" screen
	grep -qE "^  800 MiB did not fit: [0-9]+ MiB of 1\.00 GiB of $what was in use" screen
	tr '\n' ' ' <screen | tr -s ' ' | grep -qE "Fix: raise the limit above 1\.[0-9]+ GiB \(ulimit -$1, or $service of its service\)"
	grep -qE "^Who held host memory; ulimit -$1 is 1\.00 GiB +3[0-9][0-9] MiB" screen
	grep -qE "^> $2 +300 MiB" screen
}

dies() {
	local resource=$1 place=$2 call
	shift 2
	for call in malloc mmap; do
		limited "$resource" "$call" dies "$@"
		knows "$resource"
		report_has "d.incidents[0].fatal"
		blames "$resource" "$place"
	done
}

survives() {
	local resource=$1 call
	shift
	for call in malloc mmap; do
		limited "$resource" "$call" survives "$@"
		knows "$resource"
		report_has "!d.incidents[0].fatal && d.cause === null"
		tr '\n' ' ' <screen | grep -qE "the program handled it: [a-z]+\(800 MiB\) with [0-9]+ MiB of 1\.00 GiB left \(ulimit -$resource\)\."
	done
}

@test "C dies of ulimit -v: the limit of addresses is named, and who held memory then" {
	dies v 'main \((fills.c)?:17\)' "$BATS_FILE_TMPDIR/fills"
}

@test "C dies of ulimit -d: the limit of private memory is named, and who held memory then" {
	dies d 'main \((fills.c)?:17\)' "$BATS_FILE_TMPDIR/fills"
}

@test "Python dies of ulimit -v by MemoryError, or of a map" {
	command -v python3 >/dev/null || skip "no python3 here"
	dies v 'hold \((fills.py)?:5\)' python3 "$BATS_FILE_TMPDIR/fills.py"
}

@test "Python dies of ulimit -d by MemoryError, or of a map" {
	command -v python3 >/dev/null || skip "no python3 here"
	dies d 'hold \((fills.py)?:5\)' python3 "$BATS_FILE_TMPDIR/fills.py"
}

@test "C handles what ulimit -v or -d refuses: one line names the limit" {
	survives v "$BATS_FILE_TMPDIR/fills"
	survives d "$BATS_FILE_TMPDIR/fills"
}

@test "Python handles MemoryError of ulimit -v or -d: one line names the limit" {
	command -v python3 >/dev/null || skip "no python3 here"
	survives v python3 "$BATS_FILE_TMPDIR/fills.py"
	survives d python3 "$BATS_FILE_TMPDIR/fills.py"
}

@test "the lower of two limits is named; without a limit of the process there is none" {
	(ulimit -d 1000000; limited v malloc dies "$BATS_FILE_TMPDIR/fills")
	report_has "d.incidents[0].refused_by === 'private_data' && d.incidents[0].limits.private_data.max_bytes === 1000000 << 10"
	report_has "d.incidents[0].limits.address_space.max_bytes === 1 << 30"
	cat >negative.c <<'EOF'
#include <stdlib.h>
int main(void)
{
	volatile size_t bytes = (size_t)1 << 46;
	if (!malloc(bytes))
		abort();
}
EOF
	"${CC:-cc}" negative.c -o negative
	CUFLIGHT_OUTPUT=none/ LD_PRELOAD=$build/libcuflight.so ./negative && return 1
	"$cuflight" report --json none >report.json
	report_has "d.incidents[0].refused_by === null && d.cause.name_id === 'host-request-too-large'"
}

@test "Python dies of ulimit -v where it maps a file, as a model's" {
	command -v python3 >/dev/null || skip "no python3 here"
	limited v file dies python3 "$BATS_FILE_TMPDIR/fills.py"
	knows v
	report_has "d.incidents[0].fatal"
	blames v 'hold \((fills.py)?:5\)'
}

# A request of less than 64 KiB is recorded when the sample wants it; a refusal is seen all the same.
@test "C crashes by the NULL of a small request: the refusal is seen, also under a limit of its own" {
	local call own
	cat >small.c <<'EOF'
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
enum { BYTES = 4000 };
static void *small(char call)
{
	if (call == 'm')
		return malloc(BYTES);
	return call == 'c' ? calloc(8, BYTES / 8) : realloc(malloc(100), BYTES);
}
/* malloc|calloc|realloc own|shell: keeps small blocks until one is refused, and writes to that, too */
int main(int argc, char **argv)
{
	const struct rlimit limit = { (size_t)256 << 20, (size_t)256 << 20 };
	void **last = NULL;
	for (int i = 0;; i++) {
		void **block = small(*argv[1]);
		memset(block, 1, BYTES);
		*block = last;
		last = block;
		if (i == 4000 && *argv[2] == 'o' && setrlimit(RLIMIT_AS, &limit))
			return 3;
	}
}
EOF
	"${CC:-cc}" -O1 -fno-builtin -g small.c -o small
	for own in shell own; do
		for call in malloc calloc realloc; do
			rm -rf rec
			(
				[ "$own" = own ] || ulimit -v 262144
				CUFLIGHT_OUTPUT=rec/ LD_PRELOAD=$build/libcuflight.so exec ./small $call $own
			) && return 1
			"$cuflight" report --json rec >report.json
			report_has "d.incidents.length === 1 && d.incidents[0].requested_bytes === 4000"
			report_has "d.incidents[0].refused_by === 'address_space' && d.incidents[0].api === '$call'"
			"$cuflight" report rec | grep -q '^OUT OF HOST MEMORY: small'
		done
	done
}

# CPython has 16 KiB mapped for the first function of a thread, and it is refused where that cannot be.
@test "a small map is refused: the limit of addresses is named" {
	cat >maps.c <<'EOF'
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
enum { BYTES = 16384 };
int main(void)
{
	void *at;
	while ((at = mmap(0, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) != MAP_FAILED)
		memset(at, 1, BYTES);
	abort();
}
EOF
	"${CC:-cc}" -g maps.c -o maps
	(
		ulimit -v 262144
		CUFLIGHT_OPTIONS=start=1 CUFLIGHT_OUTPUT=rec/ LD_PRELOAD=$build/libcuflight.so exec ./maps
	) && return 1
	"$cuflight" report --json rec >report.json
	report_has "d.incidents.length === 1 && d.incidents[0].fatal && d.incidents[0].refused_by === 'address_space'"
	report_has "d.incidents[0].api === 'mmap' && d.incidents[0].requested_bytes === 16384"
	"$cuflight" report rec | grep -q '^OUT OF HOST MEMORY: maps'
}

# HOW: creates threads that stay until one is refused. attributes: 64 MiB of stack; c11: thrd_create;
# people: until this user has too many, with addresses enough
creates() {
	cat >creates.c <<'EOF'
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <threads.h>
#include <unistd.h>
static void *work(void *argument) { pause(); return argument; }
static int work_c11(void *argument) { pause(); return !argument; }
static int more(const char *how)
{
	pthread_attr_t attributes;
	pthread_t thread;
	if (*how == 'c')
		return thrd_create(&thread, work_c11, NULL);
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, 64 << 20);
	return pthread_create(&thread, *how == 'a' ? &attributes : NULL, work, NULL);
}
int main(int argc, char **argv)
{
	const struct rlimit people = { 3, 3 };
	if (*argv[1] == 'p' && (setrlimit(RLIMIT_NPROC, &people) || setresuid(65534, 65534, 65534)))
		return 3;
	while (!more(argv[1]))
		usleep(100);
	abort();
}
EOF
	"${CC:-cc}" -g -pthread creates.c -o creates
	rm -rf rec
	(
		ulimit -v 1048576 -s 8192
		CUFLIGHT_OPTIONS=start=1 CUFLIGHT_OUTPUT=rec/ LD_PRELOAD=$build/libcuflight.so exec ./creates "$1"
	) && return 1
	"$cuflight" report --json rec >report.json
	"$cuflight" report rec >screen
}

# HOW CALL MIB: that call was refused its stack, and the screen says what to do
refused_stack() {
	creates "$1"
	report_has "d.incidents.length === 1 && d.incidents[0].fatal && d.incidents[0].refused_by === 'address_space'"
	report_has "d.incidents[0].api === '$2' && d.incidents[0].requested_bytes === $3 << 20"
	report_has "d.cause.name_id === 'host-process-limit' && d.incidents[0].stack.some((f) => f.function === 'more')"
	grep -qE "^$2\($3(\.[0-9]+)? MiB\) failed with [0-9.]+ [KM]iB of 1.00 GiB left \(ulimit -v\)" screen || { cat screen; false; }
	tr -s '\n ' ' ' <screen | grep -qE "Fix: create fewer threads, or give them smaller stacks \(ulimit -s\): each takes $3(\.[0-9]+)? MiB" || { cat screen; false; }
}

# What the recorder needs for a thread is refused then, too.
@test "a thread that has allocated nothing so far is refused memory: the limit of addresses is named" {
	cat >late.c <<'EOF'
#include <malloc.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
static sem_t has_begun, may_work;
static void *stay(void *argument)
{
	memset(malloc(1 << 20), 1, 1 << 20);
	sem_post(&has_begun);
	return sem_wait(argument) ? NULL : argument;
}
static void *ask(void *argument)
{
	sem_wait(&may_work);
	if (!malloc(4 << 20))
		abort();
	return argument;
}
/* PAGES that are left */
int main(int argc, char **argv)
{
	struct rlimit limit = { 0, RLIM_INFINITY };
	pthread_t thread;
	sem_t never;
	long pages;
	mallopt(M_ARENA_MAX, 1);
	memset(malloc(32 << 20), 1, 32 << 20);
	sem_init(&may_work, 0, 0);
	sem_init(&has_begun, 0, 0);
	sem_init(&never, 0, 0);
	pthread_create(&thread, NULL, stay, &never);
	sem_wait(&has_begun);
	pthread_create(&thread, NULL, ask, NULL);
	FILE *statm = fopen("/proc/self/statm", "r");
	if (!statm || fscanf(statm, "%ld", &pages) != 1)
		return 3;
	limit.rlim_cur = (rlim_t)(pages + atoi(argv[argc - 1])) * 4096;
	setrlimit(RLIMIT_AS, &limit);
	sem_post(&may_work);
	pthread_join(thread, NULL);
	return 0;
}
EOF
	"${CC:-cc}" -g -pthread late.c -o late
	for left in 0 16; do
		rm -rf rec
		(
			CUFLIGHT_OPTIONS=start=1 CUFLIGHT_OUTPUT=rec/ LD_PRELOAD=$build/libcuflight.so exec ./late $left
		) && return 1
		"$cuflight" report --json rec >report.json
		report_has "d.incidents.length === 1 && d.incidents[0].fatal && d.incidents[0].refused_by === 'address_space'"
		report_has "d.incidents[0].api === 'malloc' && d.incidents[0].stack.some((f) => f.function === 'ask')"
	done
}

@test "a thread whose stack is refused: the limit of addresses is named, and to have fewer threads" {
	refused_stack default pthread_create 8
	refused_stack attributes pthread_create 64
	grep -q thrd_create /usr/include/threads.h || skip "no C11 threads here"
	refused_stack c11 thrd_create 8
}

@test "a thread that is one too many for its user was refused no memory" {
	[ "$(id -u)" = 0 ] || skip "needs another user"
	creates people
	report_has "d.incidents.length === 0"
}
