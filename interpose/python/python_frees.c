/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When code was freed, before 3.12, in host=full. An address of code may be another function's a moment later, and to read what it is
 * called, at every stack, costs four times the rest. So the interpreter's own destructor of code is preceded by one that
 * counts: as long as the count for an address has not changed, so has the code there. Owns that one word of the
 * interpreter. Must never write it where it is not what the headers say; then code is known by its name and file instead.
 */
#include <string.h>
#include "interpose/code/modules.h"
#include "interpose/python/python_parts.h"
#include "interpose/platform/readable.h"
#include "interpose/platform/laws.h"

enum { TYPE_NAME = 24, TYPE_FREE = 48 }; /* in a type: its name; what frees its objects. The same from 3.9 to 3.11 */

uint32_t cuf_python_frees[CUF_PYTHON_FREES];
static void (*free_code)(void *code);

static void count_and_free(void *code)
{
	__atomic_fetch_add(cuf_python_frees_of((uintptr_t)code), 1, __ATOMIC_RELAXED); /* the next owner's thread comes here by way of the GIL */
	free_code(code);
}

bool cuf_python_frees_are_counted(uintptr_t code_type)
{
	return cuf_python_load(code_type + TYPE_FREE) == (uintptr_t)count_and_free;
}

bool cuf_python_count_frees(uintptr_t code_type)
{
	static const char name[] = "code";
	char found[sizeof name];
	struct cuf_object object, of_function;
	uint64_t at, function;
	if (!cuf_object_find(code_type, &object) || !cuf_readable_copy(&at, code_type + TYPE_NAME, sizeof at) ||
	    !cuf_readable_copy(found, at, sizeof found) || memcmp(found, name, sizeof name) ||
	    !cuf_readable_copy(&function, code_type + TYPE_FREE, sizeof function))
		return false;
	if (function == (uintptr_t)count_and_free)
		return true;
	if (!cuf_object_find(function, &of_function) || of_function.start != object.start ||
	    cuf_object_access(&object, function) != (PF_R | PF_X) || cuf_object_access(&object, code_type + TYPE_FREE) != (PF_R | PF_W))
		return false;
	free_code = (void (*)(void *))function;
	__atomic_store_n((uintptr_t *)(code_type + TYPE_FREE), (uintptr_t)count_and_free, __ATOMIC_RELEASE);
	return true;
}
