/* SPDX-License-Identifier: Apache-2.0 */
/* A plugin that leaks. NAME: of the function that allocates. */
#include <stdlib.h>
#include <string.h>

__attribute__((noinline)) void *NAME(size_t bytes)
{
	void *block = malloc(bytes);

	memset(block, 1, bytes);
	return block;
}

void *entry(size_t bytes)
{
	void *block = NAME(bytes);

	__asm__ volatile("");
	return block;
}
