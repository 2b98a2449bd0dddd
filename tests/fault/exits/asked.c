/* SPDX-License-Identifier: Apache-2.0 */
/* asked exit|quick_exit|main: 64 MiB of blocks, and an end. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern int is_ending __attribute__((weak));

int main(int argc, char **argv)
{
	enum { BLOCKS = 1024, BYTES = 65536 };
	static char *blocks[BLOCKS];
	for (int i = 0; i < BLOCKS; i++)
		memset(blocks[i] = malloc(BYTES), 1, BYTES);
	puts(argv[1]);
	fflush(stdout);
	if (&is_ending)
		is_ending = 1;
	if (!strcmp(argv[1], "exit"))
		exit(3);
	if (!strcmp(argv[1], "quick_exit"))
		quick_exit(3);
	return 3;
}
