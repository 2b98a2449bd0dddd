/* SPDX-License-Identifier: Apache-2.0 */
/* A library that the random program opens and closes. It allocates while it is loaded, used and
 * unloaded. */
#include <stddef.h>
#include <stdlib.h>

static void *held;

__attribute__((constructor)) static void load(void) { held = malloc(300); }
__attribute__((destructor)) static void unload(void) { free(held); }

/* Allocates and frees one block. Returns 0. */
__attribute__((visibility("default"))) int plugin_pair(size_t bytes);
int plugin_pair(size_t bytes)
{
	void *volatile block = malloc(bytes);

	if (!block)
		return 1;
	free(block);
	return 0;
}
