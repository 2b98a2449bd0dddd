/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program with an interpreter inside: embed PROGRAMS TRUTH. It starts and ends the interpreter
 * three times, the last time next to threads of its own, one of which Python does not know. It is
 * linked to libpython, or loads it when needed. Then libpython is unloaded in between, while the
 * other thread allocates.
 */
#include <Python.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#if defined LINKED
#define CALL(name) name
#else
static void *library;
#define CALL(name) ((__typeof__(&name))dlsym(library, #name))
#endif

static volatile int stop;
static void *volatile kept;

static void *work_alone(void *unused)
{
	while (!stop) {
		kept = malloc(100000);
		free(kept);
	}
	return unused;
}

__attribute__((noinline)) static int run_text(const char *text)
{
	return CALL(PyRun_SimpleString)(text) + 0;
}

static void *work_inside(void *text)
{
	PyGILState_STATE state = CALL(PyGILState_Ensure)();
	run_text(text);
	CALL(PyGILState_Release)(state);
	return NULL;
}

int main(int argc, char **argv)
{
	char text[2048],
		more[] = "def by_thread(): marks.mark('thread of the program')\nby_thread()\n";
	pthread_t alone, inside;
	int failed = argc != 3;
#if !defined LINKED
	if (!(library = dlopen(LIBRARY, RTLD_NOW | RTLD_GLOBAL)))
		return fprintf(stderr, "%s\n", dlerror()), 1;
#endif
	pthread_create(&alone, NULL, work_alone, NULL);
	for (int i = 0; i < 2 && !failed; i++) {
		CALL(Py_InitializeEx)(0);
		failed |= run_text("x = [bytearray(100000) for _ in range(100)]\n");
		failed |= CALL(Py_FinalizeEx)();
	}
#if !defined LINKED
	dlclose(library);
	if (!(library = dlopen(LIBRARY, RTLD_NOW | RTLD_GLOBAL)))
		return fprintf(stderr, "%s\n", dlerror()), 1;
#endif
	CALL(Py_InitializeEx)(0);
	snprintf(
		text, sizeof text,
		"import sys; sys.path.insert(0, '%s'); import marks\ndef embedded(): marks.mark('embedded')\nembedded()\n",
		argv[1]);
	failed |= run_text(text);
	PyThreadState *state = CALL(PyEval_SaveThread)();
	pthread_create(&inside, NULL, work_inside, more);
	pthread_join(inside, NULL);
	CALL(PyEval_RestoreThread)(state);
	stop = 1;
	pthread_join(alone, NULL);
	snprintf(text, sizeof text, "marks.done('%s')\n", argv[2]);
	return run_text(text) | failed | 1; /* it does not come back */
}
