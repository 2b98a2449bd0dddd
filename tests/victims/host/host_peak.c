/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_peak [CALLS]: two call sites allocate, in small and in large blocks, until a known peak; then all is
 * freed, half of it before the end and half by an exit handler. In between, CALLS blocks are
 * allocated and freed one after another, which overwrites the events before. No CUDA. Prints what
 * each held at the peak.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROWS = 30000, ROW_BYTES = 2000, TABLES = 300, TABLE_BYTES = 100000 };

static void *rows[ROWS], *tables[TABLES];

static void *read_row(void) { return memset(malloc(ROW_BYTES), 1, ROW_BYTES); }

static void *build_table(void) { return memset(malloc(TABLE_BYTES), 1, TABLE_BYTES); }

static void free_tables(void)
{
	for (unsigned i = 0; i < TABLES; i++)
		free(tables[i]);
}

int main(int argc, char **argv)
{
	long calls = argc > 1 ? atol(argv[1]) : 0;

	atexit(free_tables);
	for (unsigned i = 0; i < ROWS; i++)
		rows[i] = read_row();
	for (unsigned i = 0; i < TABLES; i++)
		tables[i] = build_table();
	for (unsigned i = 0; i < ROWS; i++)
		free(rows[i]);
	for (long i = 0; i < calls; i++)
		free(build_table());
	printf("peak site read_row bytes %zu count %d\n", (size_t)ROWS * ROW_BYTES, ROWS);
	printf("peak site build_table bytes %zu count %d\n", (size_t)TABLES * TABLE_BYTES, TABLES);
	printf("end state exit 0\n");
	return 0;
}
