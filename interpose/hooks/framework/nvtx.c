/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NVTX version 3: ranges and marks become phases. The facts are NVTX's own headers' (nvtxDetail/nvtxTypes.h, nvtxInit.h,
 * tests/e2e/marks/nvtx.bats compiles them against the tables here): export table 1 gives, by module, arrays of pointers to
 * the function pointers that an object's calls go through.
 *
 * Another tool named by the environment (Nsight) is opened and asked first; what it put into the table is called
 * after ours, with its results, handles and ids. Every object has a table of its own, our functions do not know by
 * which they were called: a tool that gives objects different functions keeps those of the later ones to itself.
 */
#include "interpose/hooks/framework/nvtx.h"

#include <link.h>
#include <string.h>
#include "interpose/platform/options.h"
#include "interpose/incident/phases.h"
#include "interpose/record/recorder.h"
#include "interpose/record/state.h"
#include "interpose/hooks/loader/dso.h"
#include "interpose/hooks/framework/nvtx_strings.h"
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

struct message { struct cuf_phase_text text; char narrow[CUF_PHASE_NAME_BYTES]; };

static void set_ascii(struct message *m, const char *s)
{
	m->text.text = s ? s : "";
	m->text.bytes = s ? strnlen(s, CUF_PHASE_NAME_BYTES) : 0;
}

static void set_wide(struct message *m, const wchar_t *s)
{
	m->text.text = m->narrow;
	m->text.bytes = cuf_nvtx_narrow(s, m->narrow, sizeof m->narrow);
}

static void set_domain(struct message *m, const void *domain)
{
	const struct cuf_nvtx_string *s = cuf_nvtx_string_of(domain);
	m->text.domain = s ? s->text : "";
	m->text.domain_bytes = s ? s->bytes : 0;
	m->text.stack = s ? s->number : 0;
}

static void set_attributes(struct message *m, const struct attributes *a)
{
	const struct cuf_nvtx_string *s;
	set_ascii(m, NULL);
	if (!a || a->size < sizeof *a)
		return;
	if (a->message_type == MESSAGE_ASCII) {
		set_ascii(m, a->message.ascii);
	} else if (a->message_type == MESSAGE_UNICODE) {
		set_wide(m, a->message.unicode);
	} else if (a->message_type == MESSAGE_REGISTERED && (s = cuf_nvtx_string_of(a->message.registered))) {
		m->text.text = s->text;
		m->text.bytes = s->bytes;
	}
}

/* ---- what the table is filled with ---- */

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
	ROW(MODULE_CORE2, 1, void, DomainMarkEx, (void *domain, const struct attributes *a), (domain, a)) \
	ROW(MODULE_CORE2, 2, uint64_t, DomainRangeStartEx, (void *domain, const struct attributes *a), (domain, a)) \
	ROW(MODULE_CORE2, 3, void, DomainRangeEnd, (void *domain, uint64_t id), (domain, id)) \
	ROW(MODULE_CORE2, 4, int, DomainRangePushEx, (void *domain, const struct attributes *a), (domain, a)) \
	ROW(MODULE_CORE2, 5, int, DomainRangePop, (void *domain), (domain)) \
	ROW(MODULE_CORE2, 10, void *, DomainRegisterStringA, (void *domain, const char *s), (domain, s)) \
	ROW(MODULE_CORE2, 11, void *, DomainRegisterStringW, (void *domain, const wchar_t *s), (domain, s)) \
	ROW(MODULE_CORE2, 12, void *, DomainCreateA, (const char *s), (s)) \
	ROW(MODULE_CORE2, 13, void *, DomainCreateW, (const wchar_t *s), (s))

/* The other tool's functions; NULL: it has none. */
static struct next {
#define ROW(module, index, ret, name, params, args) ret (*name) params;
	NVTX_TABLE(ROW)
#undef ROW
} next;

/* One body for the forms of a call, which differ in how the name comes. */
#define NAMED(set) struct message m; set_domain(&m, NULL); set
#define IN_DOMAIN(set) struct message m; set_domain(&m, domain); set

#define MARK(name, params, args, named) \
	static void name params { named; cuf_phase_mark(CUF_PHASE_NVTX, &m.text); if (next.name) next.name args; }
MARK(MarkEx, (const struct attributes *a), (a), NAMED(set_attributes(&m, a)))
MARK(MarkA, (const char *s), (s), NAMED(set_ascii(&m, s)))
MARK(MarkW, (const wchar_t *s), (s), NAMED(set_wide(&m, s)))
MARK(DomainMarkEx, (void *domain, const struct attributes *a), (domain, a), IN_DOMAIN(set_attributes(&m, a)))

#define START(name, params, args, named) \
	static uint64_t name params { named; return cuf_phase_start(CUF_PHASE_NVTX, &m.text, next.name ? next.name args : 0); }
START(RangeStartEx, (const struct attributes *a), (a), NAMED(set_attributes(&m, a)))
START(RangeStartA, (const char *s), (s), NAMED(set_ascii(&m, s)))
START(RangeStartW, (const wchar_t *s), (s), NAMED(set_wide(&m, s)))
START(DomainRangeStartEx, (void *domain, const struct attributes *a), (domain, a), IN_DOMAIN(set_attributes(&m, a)))

static void RangeEnd(uint64_t id)
{
	cuf_phase_end(CUF_PHASE_NVTX, id);
	if (next.RangeEnd)
		next.RangeEnd(id);
}

static void DomainRangeEnd(void *domain, uint64_t id)
{
	cuf_phase_end(CUF_PHASE_NVTX, id);
	if (next.DomainRangeEnd)
		next.DomainRangeEnd(domain, id);
}

static int depth_or_none(int depth) { return depth < 0 ? NO_TRACKING : depth; }

#define PUSH(name, params, args, named) \
	static int name params { named; int depth = cuf_phase_push(CUF_PHASE_NVTX, &m.text); return next.name ? next.name args : depth_or_none(depth); }
PUSH(RangePushEx, (const struct attributes *a), (a), NAMED(set_attributes(&m, a)))
PUSH(RangePushA, (const char *s), (s), NAMED(set_ascii(&m, s)))
PUSH(RangePushW, (const wchar_t *s), (s), NAMED(set_wide(&m, s)))
PUSH(DomainRangePushEx, (void *domain, const struct attributes *a), (domain, a), IN_DOMAIN(set_attributes(&m, a)))

static int RangePop(void)
{
	int depth = cuf_phase_pop(CUF_PHASE_NVTX, 0);
	return next.RangePop ? next.RangePop() : depth_or_none(depth);
}

static int DomainRangePop(void *domain)
{
	const struct cuf_nvtx_string *s = cuf_nvtx_string_of(domain);
	int depth = cuf_phase_pop(CUF_PHASE_NVTX, s ? s->number : 0);
	return next.DomainRangePop ? next.DomainRangePop(domain) : depth_or_none(depth);
}

#define KEEP(name, params, args, named) \
	static void *name params { NAMED(named); return cuf_nvtx_string_keep(next.name ? next.name args : NULL, m.text.text, m.text.bytes); }
KEEP(DomainRegisterStringA, (void *domain, const char *s), (domain, s), set_ascii(&m, s))
KEEP(DomainRegisterStringW, (void *domain, const wchar_t *s), (domain, s), set_wide(&m, s))
KEEP(DomainCreateA, (const char *s), (s), set_ascii(&m, s))
KEEP(DomainCreateW, (const wchar_t *s), (s), set_wide(&m, s))

static const struct row { int module; unsigned index; any_fn own; any_fn *next; } rows[] = {
#define ROW(module, index, ret, name, params, args) { module, index, (any_fn)name, (any_fn *)&next.name },
	NVTX_TABLE(ROW)
#undef ROW
};
enum { ROWS = sizeof rows / sizeof *rows };

/* ---- the tool behind us ---- */

static void *open_other(void)
{
	const char *path = cuf_real.getenv ? cuf_real.getenv(CUF_NVTX_VARIABLE) : NULL;
	return path && *path && cuf_real.dlopen ? cuf_real.dlopen(path, RTLD_LAZY) : NULL;
}

static any_fn function_of_other(void *handle, const char *name, any_fn own)
{
	any_fn found = handle ? (any_fn)cuf_real.dlsym(handle, name) : NULL;
	return found == own ? NULL : found;
}

/* "./." is the way to ask for no tool at all. */
static bool refused(void)
{
	const char *path = cuf_real.getenv ? cuf_real.getenv(CUF_NVTX_VARIABLE) : NULL;
	return path && !strcmp(path, "./.");
}

/* ---- doors ---- */

/* A hand-over to the file is waited for: NVTX asks each object once, and a no would be for ever. */
static bool records(void) { return cuf_state_is_on() || cuf_state_admit(); }

static const struct link_map *self_in_front(void)
{
	Dl_info info;
	struct link_map *self = NULL;
	if (!dladdr1((void *)cuf_nvtx_tool_path, &info, (void **)&self, RTLD_DL_LINKMAP) || !self)
		return NULL;
	for (const struct link_map *m = self->l_next; m; m = m->l_next)
		if (cuf_dso_is(m, "libc.so"))
			return self;
	return NULL;
}

const char *cuf_nvtx_tool_path(void)
{
	static const char *known;
	const struct link_map *self;
	if (!records() || refused())
		return NULL;
	if (!known && (self = self_in_front()) && self->l_name && *self->l_name)
		known = self->l_name;
	return known;
}

char *cuf_hook_getenv(const char *name)
{
	const char *path;
	if (__builtin_expect(!cuf_real.getenv, 0))
		cuf_real_resolve();
	if (__builtin_expect(name && name[0] == 'N' && !strcmp(name, CUF_NVTX_VARIABLE), 0) && (path = cuf_nvtx_tool_path()))
		return (char *)(uintptr_t)path;
	return cuf_real.getenv ? cuf_real.getenv(name) : NULL;
}

static any_fn *place(const struct callbacks *c, const struct row *row)
{
	any_fn **table = NULL;
	unsigned count = 0;
	if (!c->get_module_function_table(row->module, &table, &count) || !table || row->index >= count)
		return NULL;
	return table[row->index];
}

/* Several objects may come at once, each with a table of its own: `next` is filled by the first that has a tool behind it. */
static void take_place(any_fn *at, any_fn before, const struct row *row)
{
	any_fn other = *at == before ? NULL : *at, none = NULL;
	if (other && !__atomic_compare_exchange_n(row->next, &none, other, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE) && none != other)
		return;
	if (!other && __atomic_load_n(row->next, __ATOMIC_ACQUIRE))
		return;
	*at = row->own;
}

int cuf_hook_InitializeInjectionNvtx2(cuf_nvtx_export_fn exports)
{
	const struct callbacks *c = exports ? exports(TABLE_CALLBACKS) : NULL;
	any_fn before[ROWS], *at[ROWS];
	int (*other)(cuf_nvtx_export_fn);
	if (!c || c->bytes < sizeof *c || !records() || !self_in_front())
		return 0;
	for (unsigned i = 0; i < ROWS; i++) {
		at[i] = place(c, &rows[i]);
		before[i] = at[i] ? *at[i] : NULL;
	}
	other = (int (*)(cuf_nvtx_export_fn))function_of_other(open_other(), "InitializeInjectionNvtx2", (any_fn)cuf_hook_InitializeInjectionNvtx2);
	if (other && !other(exports))
		for (unsigned i = 0; i < ROWS; i++) /* it failed: whatever it wrote is not to be called */
			if (at[i])
				*at[i] = before[i];
	for (unsigned i = 0; i < ROWS; i++)
		if (at[i])
			take_place(at[i], before[i], &rows[i]);
	return 1;
}

/* Payloads and counters are no phases: they are the other tool's alone. With none, yes and nothing taken: a no would have
 * NVTX tell programs that their domains are disabled (nvtxDomainIsEnabled), and Python's package be silent. */
int cuf_hook_InitializeInjectionNvtxExtension(void *module)
{
	int (*other)(void *) = (int (*)(void *))function_of_other(open_other(), "InitializeInjectionNvtxExtension",
								   (any_fn)cuf_hook_InitializeInjectionNvtxExtension);
	return other ? other(module) : records() && self_in_front();
}
