/* SPDX-License-Identifier: Apache-2.0 */
/*
 * library_host [deep|close] LIBRARY...: loads each library and calls its go(). deep: with
 * RTLD_DEEPBIND. close: unloads it before it loads the next, which may then be at the same
 * addresses.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	int first = 1, flags = RTLD_NOW, closes = 0, status = 0;
	if (argc > 1 && !strcmp(argv[1], "deep")) {
		flags |= RTLD_DEEPBIND;
		first = 2;
	} else if (argc > 1 && !strcmp(argv[1], "close")) {
		closes = 1;
		first = 2;
	}
	for (int i = first; i < argc; i++) {
		void *library = dlopen(argv[i], flags);
		int (*go)(void) = library ? (int (*)(void))dlsym(library, "go") : NULL;
		if (!go) {
			fprintf(stderr, "%s\n", dlerror());
			return 2;
		}
		status |= go();
		if (closes) {
			dlclose(library);
			usleep(30000); /* host events know their time to some milliseconds */
		}
	}
	return status;
}
