/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plugins, one after another: each is copied to a file of its own, opened, leaks three blocks of
 * 100,000 bytes, is closed, and its file is removed. So the next one gets its place. An argument
 * "quiet:PATH" is a plugin that is opened and allocates nothing. Prints whether all had one place.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int copy(const char *from, const char *to)
{
	static char bytes[1 << 20];
	FILE *in = fopen(from, "rb"), *out = fopen(to, "wb");
	size_t count;

	if (!in || !out)
		return -1;
	count = fread(bytes, 1, sizeof bytes, in);
	fwrite(bytes, 1, count, out);
	fclose(in);
	return fclose(out);
}

int main(int argc, char **argv)
{
	uintptr_t place = 0;
	int is_one_place = 1;

	for (int i = 1; i < argc; i++) {
		int is_quiet = !strncmp(argv[i], "quiet:", 6);
		const char *path = argv[i] + 6 * is_quiet;
		void *(*entry)(size_t);
		void *plugin;
		char name[4096];

		snprintf(name, sizeof name, "%s.copy", path);
		if (copy(path, name))
			return 2;
		plugin = dlopen(name, RTLD_NOW);
		entry = (void *(*)(size_t))(uintptr_t)dlsym(plugin, "entry");
		for (int n = 0; !is_quiet && n < 3; n++)
			entry(100000);
		is_one_place &= i == 1 || (uintptr_t)entry == place;
		place = (uintptr_t)entry;
		dlclose(plugin);
		unlink(name);
		usleep(20000); /* host events have a coarse time */
	}
	printf("one place: %d\n", is_one_place);
	return 0;
}
