/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a program learns from the loader: answers, dlerror() and errno. Prints one line a query, the
 * same with and without the recorder. Names of CUDA must not be found where there is none, and
 * RTLD_NEXT must mean the caller's next object. With two libraries as arguments
 * (tests/e2e/device/doors.bats builds them) it also queries from within the first one.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

static void ask(const char *how, void *handle, const char *name)
{
	dlerror();
	errno = 4711;
	void *found = dlsym(handle, name);
	int kept = errno == 4711;
	const char *error = dlerror();
	printf("%s %s: %s%s%s\n", how, name, found ? "found" : "not found",
	       error ? ", with an error" : "", kept || !found ? "" : ", errno changed");
}

int main(int argc, char **argv)
{
	static const char *const names[] = { "cuInit",
		                             "cuMemAlloc_v2",
		                             "cuGetProcAddress_v2",
		                             "cudaMalloc",
		                             "cudaFree",
		                             "cublasCreate_v2",
		                             "curl_easy_init",
		                             "cuFoo",
		                             "c",
		                             "",
		                             "malloc",
		                             "dlsym",
		                             "no_such_symbol" };
	void *self = dlopen(NULL, RTLD_NOW), *libm = dlopen("libm.so.6", RTLD_NOW | RTLD_LOCAL);
	for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
		ask("default", RTLD_DEFAULT, names[i]);
		ask("the program", self, names[i]);
		ask("libm", libm, names[i]);
		/* the program's next is the recorder itself */
		if (strcmp(names[i], "malloc") && strcmp(names[i], "dlsym"))
			ask("next", RTLD_NEXT, names[i]);
	}
	printf("dlvsym: %d %d\n", dlvsym(RTLD_DEFAULT, "cuInit", "X") != NULL,
	       dlvsym(libm, "cuInit", "GLIBC_2.2.5") != NULL);
	printf("dlopen: %d %d\n", dlopen("no_such_library.so", RTLD_NOW) != NULL,
	       dlerror() != NULL);
	printf("dlclose: %d\n", dlclose(libm));
	if (argc == 3) {
		void *second = dlopen(argv[2], RTLD_NOW | RTLD_GLOBAL),
		     *first = dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL);
		const char *(*chain)(void) = first ? (const char *(*)(void))dlsym(first, "chain")
		                                   : NULL;
		printf("chain: %s\n", chain && second ? chain() : dlerror());
	}
	return 0;
}
