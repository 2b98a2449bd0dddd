/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libc10_cuda.so as Python has it: opened RTLD_LOCAL from the folder torch next to the program, its
 * functions in `torch`. torch_library_open returns NULL, or why it could not be opened. torch_find
 * does the same for any library there: it fills slots with functions.
 */
#pragma once

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/victims/torch/c10_cuda.h"

static __attribute__((unused)) struct {
	typeof(&torch_open) open;
	typeof(&torch_malloc) malloc;
	typeof(&torch_free) free;
	typeof(&torch_empty_cache) empty_cache;
	typeof(&torch_address) address;
	typeof(&torch_bytes) bytes;
	typeof(&torch_books) books;
	typeof(&torch_most_pinned) most_pinned;
	typeof(&torch_reported) reported;
	typeof(&torch_use_stream) use_stream;
} torch;

struct torch_function { const char *name; void **slot; };

static inline const char *torch_find(const char *file, const struct torch_function *rows,
                                     unsigned count)
{
	static const char *const places[] = {"torch/", "../torch/"};
	char path[4096];
	ssize_t length = readlink("/proc/self/exe", path, sizeof path - 64);
	path[length > 0 ? length : 0] = 0;
	char *name = strrchr(path, '/');
	void *library = NULL;
	for (unsigned i = 0; name && i < 2 && !library; i++) {
		strcat(strcpy(name + 1, places[i]), file);
		library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	}
	for (unsigned i = 0; library && i < count; i++)
		if (!(*rows[i].slot = dlsym(library, rows[i].name)))
			library = NULL;
	return library ? NULL : dlerror();
}

static inline const char *torch_library_open(void)
{
	const struct torch_function rows[] = {
		{ "torch_open", (void **)&torch.open },
		{ "torch_malloc", (void **)&torch.malloc },
		{ "torch_free", (void **)&torch.free },
		{ "torch_empty_cache", (void **)&torch.empty_cache },
		{ "torch_address", (void **)&torch.address },
		{ "torch_bytes", (void **)&torch.bytes },
		{ "torch_books", (void **)&torch.books },
		{ "torch_most_pinned", (void **)&torch.most_pinned },
		{ "torch_reported", (void **)&torch.reported },
		{ "torch_use_stream", (void **)&torch.use_stream },
	};
	return torch_find("libc10_cuda.so", rows, sizeof rows / sizeof *rows);
}
