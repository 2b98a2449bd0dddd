/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A preload whose constructor runs before the recorder's. PLUGIN is a library without relocations,
 * whose symbols and hash table are not in its first page. HOW=hidden: it opens the plugin and takes
 * away these pages, as another thread does that closes it. HOW=closes: a thread of it opens and
 * closes the plugin for ever.
 */
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE = 4096 };

static void *open_and_close(void *path)
{
	for (;;)
		dlclose(dlopen(path, RTLD_NOW));
	return NULL;
}

/* The first page has the program headers, which whoever holds the loader's lock may read. */
static void hide_tables(const char *path)
{
	struct link_map *plugin = dlopen(path, RTLD_NOW);
	if (!plugin || mprotect((void *)(plugin->l_addr + PAGE),
				((size_t)plugin->l_ld & -(size_t)PAGE) - plugin->l_addr - PAGE,
				PROT_NONE))
		_exit(3);
}

__attribute__((constructor)) static void start(void)
{
	const char *path = getenv("PLUGIN"), *how = getenv("HOW");
	pthread_t thread;
	if (!path || !how)
		return;
	if (!strcmp(how, "hidden"))
		hide_tables(path);
	else
		pthread_create(&thread, NULL, open_and_close, (void *)path);
}
