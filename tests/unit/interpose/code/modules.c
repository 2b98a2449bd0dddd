/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Modules in META: the right file and build-id, one record each however many threads meet the
 * object at once, and its end when it is closed.
 */
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include "tests/unit/fixtures/recorder.h"
#include "interpose/code/modules.h"
#include "interpose/platform/at_fork_child.h"

/* small libraries that come with libc and that nothing here needs */
static const char *const spare[] = { "libresolv.so.2", "libthread_db.so.1", "libnss_hesiod.so.2",
	                             "libBrokenLocale.so.1", "libanl.so.1" };
enum { SPARE = sizeof spare / sizeof *spare, THREADS = 8 };

struct seen {
	unsigned records, ends; /* ends: of the last record */
	const struct cuf_meta_module *last;
};

/* The records in META of objects mapped at this base. */
static struct seen find(uint64_t base)
{
	struct seen seen = {0};
	size_t used = cuf_recording.header->meta_used;
	for (size_t at = 0; at < used;) {
		const struct cuf_meta *meta = (const struct cuf_meta *)(cuf_recording.meta + at);
		if (meta->type == CUF_META_MODULE &&
		    ((const struct cuf_meta_module *)meta)->base == base) {
			seen.last = (const struct cuf_meta_module *)meta;
			seen.records++;
			seen.ends = 0;
		}
		if (meta->type == CUF_META_MODULE_END && seen.last &&
		    meta->number == seen.last->meta.number)
			seen.ends++;
		assert_true(meta->bytes >= sizeof *meta);
		at += meta->bytes;
	}
	return seen;
}

static struct link_map *open_spare(unsigned i)
{
	struct link_map *map = dlopen(spare[i], RTLD_NOW | RTLD_LOCAL);
	return map;
}

static bool path_is(const struct cuf_meta_module *module, const char *path)
{
	return module->path_bytes == strlen(path) && !memcmp(module + 1, path, module->path_bytes);
}

/* The build-id is the file's: its bytes are in the file. */
static bool file_holds(const char *path, const uint8_t *bytes, size_t count)
{
	static char content[8 << 20];
	int fd = open(path, O_RDONLY);
	ssize_t got = read(fd, content, sizeof content);
	close(fd);
	return got > 0 && memmem(content, (size_t)got, bytes, count);
}

static void what_is_there_at_the_start(void **state)
{
	char path[4096];
	struct link_map *program = dlopen(NULL, RTLD_NOW);
	ssize_t bytes = readlink("/proc/self/exe", path, sizeof path - 1);
	struct seen seen = find(program->l_addr);
	assert_true(bytes > 0);
	path[bytes] = 0;
	assert_int_equal(seen.records, 1);
	assert_true(path_is(seen.last, path));
	assert_in_range((uintptr_t)&what_is_there_at_the_start, seen.last->start,
	                seen.last->end - 1);
	if (seen.last->build_id_bytes)
		assert_true(file_holds(path, seen.last->build_id, seen.last->build_id_bytes));
	assert_int_equal(seen.ends, 0);
}

static void libc_has_its_path_and_build_id(void **state)
{
	Dl_info info;
	struct link_map *map;
	struct seen seen;
	assert_true(dladdr1((void *)&getauxval, &info, (void **)&map, RTLD_DL_LINKMAP));
	cuf_modules_note((uintptr_t)&getauxval);
	seen = find(map->l_addr);
	assert_int_equal(seen.records, 1);
	assert_true(path_is(seen.last, map->l_name));
	assert_int_equal(seen.last->build_id_bytes, 20);
	assert_true(file_holds(map->l_name, seen.last->build_id, 20));
}

static void nothing_is_nowhere(void **state)
{
	uint64_t used = cuf_recording.header->meta_used;
	cuf_modules_note(0);
	cuf_modules_note(8);
	cuf_modules_note(UINT64_MAX);
	cuf_modules_note((uintptr_t)&used);
	assert_int_equal(cuf_recording.header->meta_used, used);
	assert_false(
		cuf_modules_is_self((uintptr_t)&nothing_is_nowhere)); /* linked into a program,
	                                                                 there is no such object */
}

static void an_object_comes_goes_and_comes_again(void **state)
{
	uint64_t generation = cuf_modules_generation(), base, first;
	struct link_map *map = open_spare(0);
	uintptr_t inside;
	if (!map)
		skip();
	base = map->l_addr;
	inside = (uintptr_t)map->l_ld;
	cuf_modules_note(inside);
	cuf_modules_note(inside);
	assert_int_equal(find(base).records, 1);
	first = find(base).last->meta.number;
	cuf_modules_changed(); /* another object was closed */
	assert_int_equal(find(base).ends, 0);
	assert_int_equal(cuf_modules_generation(), generation + 1);

	dlclose(map);
	cuf_modules_changed();
	cuf_modules_changed();
	assert_int_equal(find(base).ends, 1);
	assert_int_equal(cuf_modules_generation(), generation + 3);
	cuf_modules_note(inside);
	assert_int_equal(find(base).records, 1);

	map = open_spare(0);
	base = map->l_addr;
	cuf_modules_note((uintptr_t)map->l_ld);
	assert_true(find(base).last->meta.number > first);
	assert_int_equal(find(base).ends, 0);
	dlclose(map);
	cuf_modules_changed();
	assert_int_equal(find(base).ends, 1);
}

/* libc closes its plugins without a dlclose that an interposer sees. */
static void an_unseen_replacement_is_noticed(void **state)
{
	struct link_map *map;
	uintptr_t start;
	struct cuf_object object;
	char *copy = NULL;
	if (!(map = open_spare(0)))
		skip();
	cuf_modules_note((uintptr_t)map->l_ld);
	assert_true(cuf_object_find((uintptr_t)map->l_ld, &object));
	start = object.start;
	copy = map->l_name;
	map->l_name = strdup(copy); /* as if another object were there now */
	uint64_t generation = cuf_modules_generation();
	cuf_modules_note((uintptr_t)map->l_ld);
	free(map->l_name);
	map->l_name = copy;
	assert_int_equal(cuf_modules_generation(), generation + 1);
	assert_int_equal(find(map->l_addr).last->start, start);
	dlclose(map);
	cuf_modules_changed();
}

static pthread_barrier_t together;
static uintptr_t places[SPARE];

static void *meet(void *unused)
{
	for (unsigned i = 0; i < SPARE; i++) {
		pthread_barrier_wait(&together);
		cuf_modules_note(places[i]);
	}
	return NULL;
}

static void many_threads_meet_an_object_at_once(void **state)
{
	struct link_map *maps[SPARE];
	for (unsigned round = 0; round < 20; round++) {
		pthread_t threads[THREADS];
		unsigned before[SPARE] = {0};
		for (unsigned i = 0; i < SPARE; i++) {
			maps[i] = open_spare(i);
			places[i] = maps[i] ? (uintptr_t)maps[i]->l_ld : 0;
			before[i] = maps[i] ? find(maps[i]->l_addr).records : 0;
		}
		pthread_barrier_init(&together, NULL, THREADS);
		for (unsigned i = 0; i < THREADS; i++)
			assert_int_equal(pthread_create(&threads[i], NULL, meet, NULL), 0);
		for (unsigned i = 0; i < THREADS; i++)
			pthread_join(threads[i], NULL);
		for (unsigned i = 0; i < SPARE; i++) {
			if (!maps[i])
				continue;
			assert_int_equal(find(maps[i]->l_addr).records, before[i] + 1);
			dlclose(maps[i]);
		}
		pthread_barrier_destroy(&together);
		cuf_modules_changed();
	}
}

/* Opened by a name that is valid in one directory only. */
static void a_relative_path_is_made_absolute(void **state)
{
	char directory[] = "/tmp/cuflight-modules-XXXXXX", before[4096], path[4200], copy[4300];
	struct link_map *map = open_spare(0);
	if (!map)
		skip();
	assert_non_null(getcwd(before, sizeof before));
	assert_non_null(mkdtemp(directory));
	snprintf(path, sizeof path, "%s/plugin.so", directory);
	snprintf(copy, sizeof copy, "cp '%s' '%s'", map->l_name, path);
	assert_int_equal(system(copy), 0);
	dlclose(map);
	assert_int_equal(chdir(directory), 0);
	map = dlopen("./plugin.so", RTLD_NOW);
	assert_non_null(map);
	cuf_modules_note((uintptr_t)map->l_ld);
	snprintf(path, sizeof path, "%s/./plugin.so", directory);
	assert_true(path_is(find(map->l_addr).last, path));
	dlclose(map);
	cuf_modules_changed();
	assert_int_equal(unlink("plugin.so"), 0);
	assert_int_equal(chdir(before), 0);
	assert_int_equal(rmdir(directory), 0);
}

/* As when another thread closes it at this moment: the loader still answers. */
static void an_object_that_is_being_unmapped(void **state)
{
	struct link_map *map = open_spare(0);
	struct cuf_object object;
	struct seen seen;
	if (!map || !cuf_object_find((uintptr_t)map->l_ld, &object))
		skip();
	assert_int_equal(mprotect((void *)object.start, 4096, PROT_NONE), 0);
	cuf_modules_note_going((uintptr_t)map->l_ld);
	seen = find(map->l_addr);
	assert_non_null(seen.last);
	assert_int_equal(seen.last->build_id_bytes, 0);
	assert_int_equal(mprotect((void *)object.start, 4096, PROT_READ | PROT_EXEC), 0);
	assert_int_equal(dlclose(map), 0);
	cuf_modules_changed();
}

/* An address means another object once one was closed there; the same one is recognised. */
static void a_place_where_an_object_was_closed(void **state)
{
	struct link_map *map = open_spare(0);
	uint64_t first, again;
	uintptr_t inside;

	if (!map)
		skip();
	inside = (uintptr_t)map->l_ld;
	assert_int_equal(cuf_modules_epoch((uintptr_t)&cuf_modules_init), 0);
	cuf_modules_note(inside);
	dlclose(map);
	cuf_modules_changed();
	assert_true(cuf_modules_any_closed());
	assert_int_equal(cuf_modules_epoch(inside), 0); /* nothing is there */
	map = open_spare(0);
	if ((uintptr_t)map->l_ld != inside)
		skip(); /* the loader gave it another place */
	first = cuf_modules_epoch(inside);
	assert_int_not_equal(first, 0);
	dlclose(map);
	cuf_modules_changed();
	map = open_spare(0);
	again = cuf_modules_epoch(inside);
	assert_true(again == first || (uintptr_t)map->l_ld != inside);
	dlclose(map);
	cuf_modules_changed();
}

/* reads all of an object, including what a sanitizer has fenced off */
__attribute__((no_sanitize("address"))) static void spans_are_the_readable_segments(void **state)
{
	struct cuf_object object;
	struct cuf_span span;
	unsigned readable = 0, gaps = 0;
	assert_true(cuf_object_find((uintptr_t)&spans_are_the_readable_segments, &object));
	for (uintptr_t at = object.start; at < object.end; at += 64) {
		if (!cuf_object_span(&object, at, &span)) {
			gaps++;
			continue;
		}
		readable++;
		assert_in_range(at, span.start, span.end - 1);
		assert_true(*(const volatile char *)at || true); /* faults when unreadable */
	}
	assert_true(readable > gaps);
	assert_false(cuf_object_span(&object, object.end, &span));
	assert_false(cuf_object_span(&object, object.start - 1, &span));
}

static void a_child_forgets(void **state)
{
	struct link_map *program = dlopen(NULL, RTLD_NOW);
	uint64_t used = cuf_recording.header->meta_used;
	cuf_at_fork_child_run();
	assert_int_equal(cuf_recording.header->meta_used, used);
	cuf_modules_init(NULL);
	assert_int_equal(find(program->l_addr).records, 2);
	assert_int_equal(find(program->l_addr).last->meta.number, 1);
}

static int set_up(void **state)
{
	fixture_start("size=8MiB:host=off", "/tmp");
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_there_at_the_start),
		cmocka_unit_test(libc_has_its_path_and_build_id),
		cmocka_unit_test(nothing_is_nowhere),
		cmocka_unit_test(an_object_comes_goes_and_comes_again),
		cmocka_unit_test(an_unseen_replacement_is_noticed),
		cmocka_unit_test(many_threads_meet_an_object_at_once),
		cmocka_unit_test(a_relative_path_is_made_absolute),
		cmocka_unit_test(spans_are_the_readable_segments),
		cmocka_unit_test(an_object_that_is_being_unmapped),
		cmocka_unit_test(a_child_forgets),
		cmocka_unit_test(a_place_where_an_object_was_closed),
	};
	return cmocka_run_group_tests_name("modules", tests, set_up, NULL);
}
