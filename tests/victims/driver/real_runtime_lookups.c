/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Has NVIDIA's runtime look its driver up: the runtime named as the argument, or the one linked
 * into this program. Then reads the pointers that it keeps, in the writable segments of its object.
 * Every name of the hook table that the runtime looked up must be there as the recorder's function,
 * never as the driver's.
 *
 * Run it with SIMCUDA_LOOKUPS_ONLY=1, so that cuInit fails and the private tables stay unused, and
 * with SIMCUDA_LOG=FILE, which records the look-ups. Prints TAP. build/victims/static/ has the form
 * with the runtime linked in.
 */
#include <dlfcn.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef RUNTIME_STATIC
int cudaMalloc(void **out, size_t bytes);
#endif

enum { POINTERS_MAX = 8192 };
static uintptr_t kept[POINTERS_MAX];
static size_t kept_count;
static uintptr_t inside; /* an address of the object searched */

static const char *const hooked[] = {
#define HOOK(id, lib, ret, name, params, args, role) #lib "!" #name,
#include "interpose/abi/hooks.def"
};

static const char *library_of(uintptr_t address, const char **name)
{
	Dl_info info;
	if (!dladdr((void *)address, &info) || !info.dli_fname)
		return "";
	*name = info.dli_sname && (uintptr_t)info.dli_saddr == address ? info.dli_sname : NULL;
	return strrchr(info.dli_fname, '/') ? strrchr(info.dli_fname, '/') + 1 : info.dli_fname;
}

/* keeps the words of one object's writable segments that are addresses of the driver's or the
 * recorder's functions */
static int search(struct dl_phdr_info *object, size_t size, void *unused)
{
	bool holds = false;
	for (int i = 0; i < object->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &object->dlpi_phdr[i];
		holds |= p->p_type == PT_LOAD &&
		         inside - object->dlpi_addr - p->p_vaddr < p->p_memsz;
	}
	for (int i = 0; holds && i < object->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &object->dlpi_phdr[i];
		const uintptr_t *word = (const uintptr_t *)(object->dlpi_addr + p->p_vaddr),
				*end = word + p->p_memsz / sizeof *word;
		for (; p->p_type == PT_LOAD && (p->p_flags & PF_W) && word < end; word++) {
			if (word >= kept && word < kept + POINTERS_MAX)
				continue; /* our own list */
			const char *name = NULL,
				   *library = *word > 65536 ? library_of(*word, &name) : "";
			if (name &&
			    (strstr(library, "libcuda.so") || strstr(library, "libcuflight.so")) &&
			    kept_count < POINTERS_MAX)
				kept[kept_count++] = *word;
		}
	}
	return holds;
}

static bool is_kept(const char *wanted_library, const char *exact)
{
	for (size_t i = 0; i < kept_count; i++) {
		const char *name = NULL, *library = library_of(kept[i], &name);
		if (name && !strcmp(name, exact) && strstr(library, wanted_library))
			return true;
	}
	return false;
}

/* Was this exact name answered? From the simulator's log: "... answer NAME ADDRESS". */
static bool was_answered(const char *log, const char *exact)
{
	char line[512], pattern[160];
	bool found = false;
	FILE *in = fopen(log, "r");
	snprintf(pattern, sizeof pattern, " answer %s ", exact);
	while (in && !found && fgets(line, sizeof line, in))
		found = strstr(line, pattern) != NULL;
	if (in)
		fclose(in);
	return found;
}

static int call_runtime(int argc, char **argv)
{
	int (*allocate)(void **, size_t) = NULL;
	void *ptr;
#ifdef RUNTIME_STATIC
	allocate = cudaMalloc;
	inside = (uintptr_t)&kept_count;
#else
	void *handle = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
	struct link_map *map;
	if (!handle || dlinfo(handle, RTLD_DI_LINKMAP, &map)) {
		printf("1..0 # SKIP cannot open %s\n",
		       argc > 1 ? argv[1] : "a runtime: none named");
		return 0;
	}
	/* by its own symbol table: dlsym may hand back the recorder's label */
	inside = (uintptr_t)map->l_ld;
	*(void **)&allocate = dlsym(handle, "cudaMalloc");
#endif
	return allocate ? allocate(&ptr, 1 << 20) : 0;
}

int main(int argc, char **argv)
{
	const char *log = getenv("SIMCUDA_LOG");
	int number = 0, failed = 0, answered = 0;
	if (!call_runtime(argc, argv) || !log) {
		if (inside)
			printf("1..0 # SKIP set SIMCUDA_LOOKUPS_ONLY=1 and SIMCUDA_LOG\n");
		return 0;
	}
	dl_iterate_phdr(search, NULL);
	for (size_t i = 0; i < sizeof hooked / sizeof *hooked; i++) {
		const char *exact = hooked[i] + 5;
		if (strncmp(hooked[i], "CUDA!", 5) || !was_answered(log, exact))
			continue;
		bool ours = is_kept("libcuflight.so", exact), theirs = is_kept("libcuda.so", exact);
		/* the resolver's own forms are used and not always kept */
		bool right = !theirs && (ours || !strncmp(exact, "cuGetProcAddress", 16));
		printf("%sok %d - %s kept %s%s\n", right ? "" : "not ", ++number, exact,
		       ours ? "as our hook" : "nowhere", theirs ? ", and as the driver's" : "");
		failed += !right;
		answered++;
	}
	printf("# %zu pointers of driver functions are kept, %d of hooked names\n1..%d\n",
	       kept_count, answered, number);
	return failed != 0 || !answered;
}
