/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NVTX version 3: ranges and marks become phases. The layouts are those of NVTX's headers
 * (nvtxDetail/nvtxTypes.h, nvtxInit.h); tests/e2e/marks/nvtx.bats compiles them against the tables
 * here. Export table 1 gives, for each module, an array of pointers to the function pointers that
 * an object calls through.
 *
 * Another tool named by the environment (Nsight) is opened and initialised first. What it put into
 * the table is called after ours, and its results, handles and ids are returned. Each object has a
 * table of its own, and our functions do not know which table they were called through. So if a
 * tool gives objects different functions, those of later objects are not replaced by ours.
 */
#include "interpose/hooks/framework/nvtx.h"

#include <link.h>
#include <string.h>
#include "interpose/objects/elf_symbol.h"
#include "interpose/platform/options.h"
#include "interpose/record/recorder.h"
#include "interpose/hooks/framework/nvtx_strings.h"
#include "interpose/hooks/loader/dso.h"
#include "interpose/hooks/loader/real.h"

/* ---- NVTX's types ---- */

struct attributes {               /* nvtxEventAttributes_t */
	uint16_t version, size;
	uint32_t category;
	int32_t color_type;
	uint32_t color;
	int32_t payload_type, reserved;
	uint64_t payload;
	int32_t message_type;
	union { const char *ascii; const wchar_t *unicode; const void *registered; } message;
};
_Static_assert(sizeof(struct attributes) == 48, "nvtxEventAttributes_v2");

enum { MESSAGE_ASCII = 1, MESSAGE_UNICODE = 2, MESSAGE_REGISTERED = 3 };
enum { TABLE_CALLBACKS = 1, MODULE_CORE = 1, MODULE_CORE2 = 5, NO_TRACKING = -2 };

typedef void (*any_fn)(void);
struct callbacks {                /* NvtxExportTableCallbacks */
	size_t bytes;
	int (*get_module_function_table)(int module, any_fn ***table, unsigned *count);
};

/* ---- texts ---- */

struct message {
	struct cuf_phase_text text;
	char narrow[CUF_PHASE_NAME_BYTES]; /* room for a converted text */
};

/* NULL is the empty name. Texts are borrowed for the call only. */
static void set_ascii(struct message *message, const char *text)
{
	message->text.text = "";
	message->text.bytes = 0;
	if (text) {
		message->text.text = text;
		message->text.bytes = strnlen(text, CUF_PHASE_NAME_BYTES);
	}
}

/* Programs on Linux seldom use these; the conversion needs room on the stack. */
static void set_wide(struct message *message, const wchar_t *text)
{
	message->text.text = message->narrow;
	message->text.bytes = cuf_nvtx_narrow(text, message->narrow, sizeof message->narrow);
}

/* Each domain nests for itself: its number selects the stack. */
static void set_domain(struct message *message, const void *domain)
{
	const struct cuf_nvtx_string *name = cuf_nvtx_string_of(domain);
	message->text.domain = "";
	message->text.domain_bytes = 0;
	message->text.stack = 0;
	if (name) {
		message->text.domain = name->text;
		message->text.domain_bytes = name->bytes;
		message->text.stack = name->number;
	}
}

/* A handle that we do not know leaves the empty name. */
static void set_registered(struct message *message, const void *handle)
{
	const struct cuf_nvtx_string *string = cuf_nvtx_string_of(handle);
	if (string) {
		message->text.text = string->text;
		message->text.bytes = string->bytes;
	}
}

/* A struct that is shorter than ours is not read. */
static void set_attributes(struct message *message, const struct attributes *attributes)
{
	set_ascii(message, NULL);
	if (!attributes || attributes->size < sizeof *attributes)
		return;
	switch (attributes->message_type) {
	case MESSAGE_ASCII: set_ascii(message, attributes->message.ascii); break;
	case MESSAGE_UNICODE: set_wide(message, attributes->message.unicode); break;
	case MESSAGE_REGISTERED: set_registered(message, attributes->message.registered); break;
	}
}

/* ---- the functions that we put into a table ---- */

/* Module, index in its table, result, name, parameters, arguments. Indices are those of
 * nvtxTypes.h. */
#define NVTX_TABLE(ROW) \
	ROW(MODULE_CORE, 1, void, MarkEx, (const struct attributes *a), (a)) \
	ROW(MODULE_CORE, 2, void, MarkA, (const char *s), (s)) \
	ROW(MODULE_CORE, 3, void, MarkW, (const wchar_t *s), (s)) \
	ROW(MODULE_CORE, 4, uint64_t, RangeStartEx, (const struct attributes *a), (a)) \
	ROW(MODULE_CORE, 5, uint64_t, RangeStartA, (const char *s), (s)) \
	ROW(MODULE_CORE, 6, uint64_t, RangeStartW, (const wchar_t *s), (s)) \
	ROW(MODULE_CORE, 7, void, RangeEnd, (uint64_t id), (id)) \
	ROW(MODULE_CORE, 8, int, RangePushEx, (const struct attributes *a), (a)) \
	ROW(MODULE_CORE, 9, int, RangePushA, (const char *s), (s)) \
	ROW(MODULE_CORE, 10, int, RangePushW, (const wchar_t *s), (s)) \
	ROW(MODULE_CORE, 11, int, RangePop, (void), ()) \
	ROW(MODULE_CORE2, 1, void, DomainMarkEx, \
	    (void *domain, const struct attributes *a), (domain, a)) \
	ROW(MODULE_CORE2, 2, uint64_t, DomainRangeStartEx, \
	    (void *domain, const struct attributes *a), (domain, a)) \
	ROW(MODULE_CORE2, 3, void, DomainRangeEnd, (void *domain, uint64_t id), (domain, id)) \
	ROW(MODULE_CORE2, 4, int, DomainRangePushEx, \
	    (void *domain, const struct attributes *a), (domain, a)) \
	ROW(MODULE_CORE2, 5, int, DomainRangePop, (void *domain), (domain)) \
	ROW(MODULE_CORE2, 10, void *, DomainRegisterStringA, \
	    (void *domain, const char *s), (domain, s)) \
	ROW(MODULE_CORE2, 11, void *, DomainRegisterStringW, \
	    (void *domain, const wchar_t *s), (domain, s)) \
	ROW(MODULE_CORE2, 12, void *, DomainCreateA, (const char *s), (s)) \
	ROW(MODULE_CORE2, 13, void *, DomainCreateW, (const wchar_t *s), (s))

/* The other tool's functions. NULL: it has none. */
static struct next {
#define ROW(module, index, ret, name, params, args) ret (*name) params;
	NVTX_TABLE(ROW)
#undef ROW
} next;

/* The forms of a call differ only in how the name is passed: `set` stores it in m. */
#define NAMED(set) \
	struct message m; \
	set_domain(&m, NULL); \
	set
#define IN_DOMAIN(set) \
	struct message m; \
	set_domain(&m, domain); \
	set

/* A mark has no end. It is recorded before the other tool's function, which may take long. */
#define MARK(name, params, args, named) \
	static void name params \
	{ \
		named; \
		cuf_phase_begin(CUF_PHASE_MARK, CUF_PHASE_NVTX, &m.text, 0); \
		if (next.name) \
			next.name args; \
	}
MARK(MarkEx, (const struct attributes *a), (a), NAMED(set_attributes(&m, a)))
MARK(MarkA, (const char *s), (s), NAMED(set_ascii(&m, s)))
MARK(MarkW, (const wchar_t *s), (s), NAMED(set_wide(&m, s)))
MARK(DomainMarkEx, (void *domain, const struct attributes *a), (domain, a),
     IN_DOMAIN(set_attributes(&m, a)))

/* A tool's id is kept, because the program passes it to RangeEnd, where that tool expects it.
 * Without a tool the phase's number is the id. */
#define START(name, params, args, named) \
	static uint64_t name params \
	{ \
		uint64_t id = 0; \
		named; \
		if (next.name) \
			id = next.name args; \
		return (uint64_t)cuf_phase_begin(CUF_PHASE_START, CUF_PHASE_NVTX, &m.text, id); \
	}
START(RangeStartEx, (const struct attributes *a), (a), NAMED(set_attributes(&m, a)))
START(RangeStartA, (const char *s), (s), NAMED(set_ascii(&m, s)))
START(RangeStartW, (const wchar_t *s), (s), NAMED(set_wide(&m, s)))
START(DomainRangeStartEx, (void *domain, const struct attributes *a), (domain, a),
      IN_DOMAIN(set_attributes(&m, a)))

/* Ends name only the id. Ids are the other tool's, or ours without one. */
static void RangeEnd(uint64_t id)
{
	cuf_phase_end(CUF_PHASE_END, CUF_PHASE_NVTX, id);
	if (next.RangeEnd)
		next.RangeEnd(id);
}

static void DomainRangeEnd(void *domain, uint64_t id)
{
	cuf_phase_end(CUF_PHASE_END, CUF_PHASE_NVTX, id);
	if (next.DomainRangeEnd)
		next.DomainRangeEnd(domain, id);
}

/* NVTX returns the depth of a range, or that nothing tracks it. */
static int depth_or_none(int depth) { return depth < 0 ? NO_TRACKING : depth; }

/* The program gets the other tool's depth. Both count from 0, so they agree unless the tool started
 * later. */
#define PUSH(name, params, args, named) \
	static int name params \
	{ \
		int depth; \
		named; \
		depth = (int)cuf_phase_begin(CUF_PHASE_PUSH, CUF_PHASE_NVTX, &m.text, 0); \
		if (next.name) \
			return next.name args; \
		return depth_or_none(depth); \
	}
PUSH(RangePushEx, (const struct attributes *a), (a), NAMED(set_attributes(&m, a)))
PUSH(RangePushA, (const char *s), (s), NAMED(set_ascii(&m, s)))
PUSH(RangePushW, (const wchar_t *s), (s), NAMED(set_wide(&m, s)))
PUSH(DomainRangePushEx, (void *domain, const struct attributes *a), (domain, a),
     IN_DOMAIN(set_attributes(&m, a)))

/* Pops name nothing: the thread's stack does. */
static int RangePop(void)
{
	int depth = cuf_phase_end(CUF_PHASE_POP, CUF_PHASE_NVTX, 0);
	if (next.RangePop)
		return next.RangePop();
	return depth_or_none(depth);
}

static int DomainRangePop(void *domain)
{
	const struct cuf_nvtx_string *name = cuf_nvtx_string_of(domain);
	int depth = cuf_phase_end(CUF_PHASE_POP, CUF_PHASE_NVTX, name ? name->number : 0);
	if (next.DomainRangePop)
		return next.DomainRangePop(domain);
	return depth_or_none(depth);
}

/* A registered string or a domain. Its text is copied, since the program may free it afterwards. */
#define KEEP(name, params, args, named) \
	static void *name params \
	{ \
		void *handle = NULL; \
		NAMED(named); \
		if (next.name) \
			handle = next.name args; \
		return cuf_nvtx_string_keep(handle, m.text.text, m.text.bytes); \
	}
KEEP(DomainRegisterStringA, (void *domain, const char *s), (domain, s), set_ascii(&m, s))
KEEP(DomainRegisterStringW, (void *domain, const wchar_t *s), (domain, s), set_wide(&m, s))
KEEP(DomainCreateA, (const char *s), (s), set_ascii(&m, s))
KEEP(DomainCreateW, (const wchar_t *s), (s), set_wide(&m, s))

/* Each row of the table with our function and the place of the other tool's. */
static const struct row {
	int module;
	unsigned index;
	any_fn ours;
	any_fn *next;
} rows[] = {
#define ROW(module, index, ret, name, params, args) \
	{ module, index, (any_fn)name, (any_fn *)&next.name },
	NVTX_TABLE(ROW)
#undef ROW
};
enum { ROWS = sizeof rows / sizeof *rows };

/* ---- the tool behind us ---- */

/* The real getenv: our hook would return our path. NULL when the variable is not set. */
static const char *path_of_other(void)
{
	if (!cuf_real.getenv)
		return NULL;
	return cuf_real.getenv(CUF_NVTX_VARIABLE);
}

/* Opened again for each object. The loader counts references, and none is returned: a tool
 * stays. */
static void *open_other(void)
{
	const char *path = path_of_other();
	if (!path || !*path || !cuf_real.dlopen)
		return NULL;
	return cuf_real.dlopen(path, RTLD_LAZY);
}

/* NULL: there is no other tool, or it is this library again. */
static any_fn function_of_other(const char *name, any_fn ours)
{
	void *handle = open_other();
	any_fn found = NULL;
	if (handle)
		found = (any_fn)cuf_real.dlsym(handle, name);
	if (found == ours)
		return NULL;
	return found;
}

/* With "./." the user requests no tool at all. */
static bool is_refused(void)
{
	const char *path = path_of_other();
	return path && !strcmp(path, "./.");
}

/* ---- how NVTX finds us ---- */

/* The first waits for a hand-over: NVTX asks each object once, and a no is permanent. */
static bool records(void)
{
	return cuf_process_is_recorded(true) && cuf_recorder_status().is_on;
}

/* Our object, if libc comes after it: then we were preloaded. NULL otherwise. */
static const struct link_map *self_in_front(void)
{
	struct cuf_dso self;
	const struct link_map *map;
	if (!cuf_dso_at((const void *)cuf_nvtx_tool_path, &self))
		return NULL;
	for (map = self.map; map && !cuf_dso_is(map, "libc.so");)
		map = cuf_elf_next_at_start(map);
	return map ? self.map : NULL;
}

const char *cuf_nvtx_tool_path(void)
{
	static const char *known;
	const struct link_map *self;
	if (!records() || is_refused())
		return NULL;
	if (!known && (self = self_in_front()) && self->l_name && *self->l_name)
		known = self->l_name;
	return known;
}

/* NVTX finds a tool by this variable. A program that was started without `cuflight run` does not
 * have it, so the hook supplies the value. All other names cost two comparisons. */
char *cuf_hook_getenv(const char *name)
{
	const char *path;
	if (__builtin_expect(!cuf_real.getenv, 0))
		cuf_real_resolve();
	if (__builtin_expect(name && name[0] == 'N' && !strcmp(name, CUF_NVTX_VARIABLE), 0) &&
	    (path = cuf_nvtx_tool_path()))
		return (char *)(uintptr_t)path;
	return cuf_real.getenv ? cuf_real.getenv(name) : NULL;
}

/* ---- filling the table of an object ---- */

/* Where the object keeps its pointer to the function of this row. NULL: its NVTX lacks it. */
static any_fn *pointer_in_table(const struct callbacks *callbacks, const struct row *row)
{
	any_fn **table = NULL;
	unsigned count = 0;
	if (!callbacks->get_module_function_table(row->module, &table, &count) || !table ||
	    row->index >= count)
		return NULL;
	return table[row->index];
}

/* Several objects may be initialised at once, each with a table of its own. The first that has
 * another tool's function fills `next`. */
static void install(any_fn *pointer, any_fn before, const struct row *row)
{
	any_fn other = *pointer, none = NULL;
	if (!other || other == before) { /* the other tool left it alone */
		if (__atomic_load_n(row->next, __ATOMIC_ACQUIRE))
			return;
	} else if (!__atomic_compare_exchange_n(row->next, &none, other, 0, __ATOMIC_ACQ_REL,
						__ATOMIC_ACQUIRE) && none != other) {
		return;
	}
	*pointer = row->ours;
}

/* Called by the loader in each object with NVTX's header. 0 makes the object drop its calls for
 * good, so a library that was opened without a preload returns it. */
int cuf_hook_InitializeInjectionNvtx2(cuf_nvtx_export_fn exports)
{
	const struct callbacks *callbacks = NULL;
	any_fn before[ROWS], *pointers[ROWS];
	int (*other)(cuf_nvtx_export_fn);
	if (exports)
		callbacks = exports(TABLE_CALLBACKS);
	if (!callbacks || callbacks->bytes < sizeof *callbacks || !records() || !self_in_front())
		return 0;
	for (unsigned i = 0; i < ROWS; i++) {
		pointers[i] = pointer_in_table(callbacks, &rows[i]);
		before[i] = pointers[i] ? *pointers[i] : NULL;
	}
	other = (int (*)(cuf_nvtx_export_fn))function_of_other(
		"InitializeInjectionNvtx2", (any_fn)cuf_hook_InitializeInjectionNvtx2);
	if (other && !other(exports))
		for (unsigned i = 0; i < ROWS; i++) /* it failed: what it wrote is not called */
			if (pointers[i])
				*pointers[i] = before[i];
	for (unsigned i = 0; i < ROWS; i++)
		if (pointers[i])
			install(pointers[i], before[i], &rows[i]);
	return 1;
}

/* Payloads and counters are no phases and belong to the other tool. Without one we accept and
 * ignore them: after a refusal NVTX would report domains as disabled (nvtxDomainIsEnabled), and its
 * Python package would stay silent. */
int cuf_hook_InitializeInjectionNvtxExtension(void *module)
{
	int (*other)(void *) = (int (*)(void *))function_of_other(
		"InitializeInjectionNvtxExtension",
		(any_fn)cuf_hook_InitializeInjectionNvtxExtension);
	if (other)
		return other(module);
	return records() && self_in_front();
}
