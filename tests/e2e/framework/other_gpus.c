/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program of PyTorch's on a GPU of another vendor, and with -DRUNTIME the vendor's runtime: its
 * memory is no host memory, but its queues are. argv[1]: the type of c10::Device. It has ten blocks
 * of 100 MiB on the GPU and 100 MiB on the host, and a request for 200 MiB fails.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "tests/victims/torch/c10.h"

enum { MIB = 1 << 20, BLOCKS = 10 };

char *runtime_alloc(size_t bytes);
void load_weights(struct c10_device device);
void *keep_answers(size_t bytes);

#ifdef RUNTIME
char *runtime_alloc(size_t bytes)
{
	static char on_device[BLOCKS * 4096], *next = on_device;
	void *queue = mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return queue == MAP_FAILED ? NULL : next++;
}
#else
static size_t held;

void load_weights(struct c10_device device)
{
	char *block = runtime_alloc(100 * MIB);

	held += 100 * MIB;
	C10_REPORT_M(block, 100 * MIB, held, held, device);
}

void *keep_answers(size_t bytes)
{
	return memset(malloc(bytes), 1, bytes);
}

int main(int argc, char **argv)
{
	const struct c10_device device = { argc > 1 ? (int8_t)atoi(argv[1]) : 0, 0 };
	char *answers = keep_answers(100 * MIB);

	for (int i = 0; i < BLOCKS; i++)
		load_weights(device);
	C10_OOM_MMM(200 * MIB, held, held, device);
	return *answers;
}
#endif
