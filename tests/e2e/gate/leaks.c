/* SPDX-License-Identifier: Apache-2.0 */
/* Loses blocks at four places, whose functions have patterns of a file of suppressions. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

__attribute__((noinline)) static void *lose_known(void) { return memset(malloc(1000), 1, 1000); }
__attribute__((noinline)) static void *lose_other(void) { return memset(malloc(3000), 1, 3000); }
__attribute__((noinline)) static void *lose_below(void) { return memset(malloc(5000), 1, 5000); }
__attribute__((noinline)) static void *lose_last(void) { return memset(malloc(7000), 1, 7000); }
__attribute__((noinline)) static void *call_below(void)
{
	void *volatile at = lose_below();

	return at;
}

int main(void)
{
	static char buffer[64];
	void *volatile at;

	setvbuf(stdout, buffer, _IOFBF, sizeof buffer); /* no block of stdio */
	for (int i = 0; i < 50; i++) {
		at = lose_known();
		at = lose_other();
		at = call_below();
		at = lose_last();
		at = NULL;
	}
	(void)at;
	puts("done");
	return 0;
}
