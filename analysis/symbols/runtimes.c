/* SPDX-License-Identifier: Apache-2.0 */
/* The table, and look-ups in it. */
#include "analysis/symbols/runtimes.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include "analysis/base/paths.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define MIB ((uint64_t)1 << 20)

#define HEAP(function_, owner_) { .function = function_, .owner = owner_, .is_heap = true }
#define OTHER(function_, owner_) { .function = function_, .owner = owner_ }

/* Sources: OpenJDK os_linux.cpp and virtualspace.cpp; V8 memory-allocator.cc; Go malloc.go and
 * mheap.go; .NET gcenv.unix.cpp; CRuby gc.c; PHP zend_alloc.c; Erlang erl_mmap.c. */
static const struct runtime runtimes[] = {
	{ .name = "Java",
	  .heap = "Java heap",
	  .itself = "the JVM itself",
	  .modules = { "libjvm", "java", "libjava", "libjli", "libnio", "libnet", "libzip",
		       "libjimage", "libverify", "libmanagement", "libinstrument" },
	  .maps = { "commit_memory", "reserve_memory" },
	  .parts = { OTHER("Unsafe_AllocateMemory", "Java direct buffers"),
		     OTHER("Unsafe_ReallocateMemory", "Java direct buffers"),
		     OTHER("etaspace", "Java classes (metaspace)"),
		     OTHER("CodeHeap::", "Java compiled code"),
		     OTHER("CodeCache::", "Java compiled code"),
		     OTHER("CardTable", "the JVM itself"),
		     OTHER("BlockOffset", "the JVM itself"),
		     OTHER("G1CMMarkStack", "the JVM itself"),
		     HEAP("G1PageBasedVirtualSpace", "Java heap"),
		     HEAP("Generation::", "Java heap"), HEAP("PSVirtualSpace", "Java heap"),
		     HEAP("PhysicalMemory", "Java heap"), HEAP("ShenandoahHeap", "Java heap"),
		     HEAP("EpsilonHeap", "Java heap") },
	  .limits = { { "-Xmx", 1 }, { "-XX:MaxHeapSize=", 1 } } },
	{ .name = "Node.js",
	  .heap = "V8 heap",
	  .itself = "Node.js itself",
	  .modules = { "node", "nodejs", "libnode", "libv8", "electron", "deno", "chrome",
		       "chromium" },
	  .maps = { "v8::base::OS::" },
	  .parts = { OTHER("BackingStore", "Node.js buffers"),
		     OTHER("ArrayBuffer", "Node.js buffers"),
		     OTHER("node::Buffer", "Node.js buffers"),
		     HEAP("v8::internal::MemoryAllocator", "V8 heap"),
		     HEAP("v8::internal::VirtualMemory", "V8 heap"),
		     HEAP("v8::base::BoundedPageAllocator", "V8 heap"),
		     HEAP("v8::base::OS::", "V8 heap") },
	  .limits = { { "--max-old-space-size=", MIB }, { "--max_old_space_size=", MIB },
		      { "--max-heap-size=", MIB } } },
	{ .name = "Go",
	  .heap = "Go heap",
	  .itself = "the Go runtime itself",
	  .functions = { "runtime.", "runtime/", "_cgo_", "x_cgo_" },
	  .maps = { "x_cgo_mmap", "Mmap" },
	  .parts = { OTHER("_Cfunc__Cmalloc", "C.malloc called from Go"),
		     OTHER("_Cfunc_CString", "C.CString called from Go"),
		     HEAP("runtime.(*mheap)", "Go heap"), HEAP("runtime.sysMap", "Go heap") },
	  .limits = { { "GOMEMLIMIT=", 1 } } },
	{ .name = ".NET",
	  .heap = ".NET heap",
	  .itself = ".NET itself",
	  .modules = { "libcoreclr", "libclrgc", "libclrjit", "libmono", "libmonosgen", "dotnet" },
	  .maps = { "VirtualCommit", "VirtualReserve", "sgen_alloc_os" },
	  .parts = { OTHER("ExecutableAllocator", ".NET compiled code"),
		     HEAP("GCToOSInterface", ".NET heap"), HEAP("gc_heap::", ".NET heap"),
		     HEAP("sgen_", ".NET heap") },
	  .limits = { { "DOTNET_GCHeapHardLimit=0x", 0 }, { "DOTNET_GCHeapHardLimit=", 0 } } },
	{ .name = "Ruby",
	  .heap = "Ruby heap",
	  .itself = "Ruby: strings, arrays and what else it allocates",
	  .modules = { "ruby", "libruby" },
	  .parts = { HEAP("heap_page_allocate", "Ruby heap"), HEAP("heap_assign", "Ruby heap"),
		     HEAP("rb_aligned_malloc", "Ruby heap") } },
	{ .name = "PHP",
	  .heap = "PHP heap",
	  .itself = "PHP itself",
	  .modules = { "php", "libphp", "mod_php", "php-fpm" },
	  .parts = { HEAP("zend_mm_chunk_alloc", "PHP heap"), HEAP("zend_mm_", "PHP heap") },
	  .limits = { { "memory_limit=", 1 } } },
	{ .name = "Erlang",
	  .heap = "Erlang heap",
	  .itself = "Erlang's VM itself",
	  .modules = { "beam" },
	  .parts = { HEAP("erts_mmap", "Erlang heap"), HEAP("erts_mseg", "Erlang heap"),
		     HEAP("mbc_alloc", "Erlang heap"), HEAP("create_carrier", "Erlang heap") } },
	{ .name = "Lua",
	  .heap = "Lua heap",
	  .itself = "Lua itself",
	  .modules = { "luajit", "libluajit", "lua", "liblua" },
	  .parts = { HEAP("lj_alloc", "Lua heap"), HEAP("l_alloc", "Lua heap") } },
};

/* "node" and "node20", "libruby-3.1.so.3.1"; not the add-on "node_sqlite3.node". */
static bool is_file(const char *file, const char *name)
{
	const char *rest = file + strlen(name);

	if (!text_begins_with(file, name))
		return false;
	rest += *rest == '-';
	return isdigit((unsigned char)*rest) || (rest[-1] != '-' && (!*rest || *rest == '.'));
}

const struct runtime *runtime_of_module(const char *path)
{
	const char *file = path_base_name(path);

	for (size_t i = 0; i < COUNT(runtimes); i++)
		for (size_t m = 0; m < COUNT(runtimes[i].modules) && runtimes[i].modules[m]; m++)
			if (is_file(file, runtimes[i].modules[m]))
				return &runtimes[i];
	return NULL;
}

static const struct runtime *runtime_of_function(const char *function)
{
	for (size_t i = 0; i < COUNT(runtimes); i++)
		if (text_begins_with_any(function, runtimes[i].functions,
					 COUNT(runtimes[i].functions)))
			return &runtimes[i];
	return NULL;
}

const struct runtime *runtime_named(const char *name)
{
	for (size_t i = 0; i < COUNT(runtimes); i++)
		if (!strcmp(runtimes[i].name, name))
			return &runtimes[i];
	return NULL;
}

/* NULL: the function shows nothing. */
static const struct runtime_part *shown_part(const struct runtime *runtime, const char *function)
{
	for (size_t i = 0; i < COUNT(runtime->parts) && runtime->parts[i].function; i++)
		if (strstr(function, runtime->parts[i].function))
			return &runtime->parts[i];
	return NULL;
}

void runtime_look_at(struct runtime_look *look, const char *function, const char *module,
		     bool is_library)
{
	const struct runtime *runtime = module ? runtime_of_module(module) : NULL;
	const struct runtime_part *part;

	if (look->is_own)
		return;
	if (!runtime && function)
		runtime = runtime_of_function(function);
	if (!runtime) {
		look->is_own = !is_library;
		return;
	}
	if (!look->runtime)
		look->runtime = runtime;
	if (!function)
		return;
	look->is_named = true;
	look->is_map |= text_has_any(function, look->runtime->maps, COUNT(look->runtime->maps));
	part = shown_part(look->runtime, function);
	if (part && (!look->part || part < look->part))
		look->part = part;
}

const char *runtime_owner(const struct runtime_look *look, bool *is_heap)
{
	*is_heap = false;
	if (!look->runtime)
		return NULL;
	*is_heap = look->part ? look->part->is_heap : !look->is_named;
	/* a collector has its own data in malloc */
	*is_heap &= !look->is_named || look->is_map || !look->runtime->maps[0];
	if (look->is_own && !*is_heap)
		return NULL;
	if (look->part && look->part->is_heap == *is_heap)
		return look->part->owner;
	return *is_heap ? look->runtime->heap : look->runtime->itself;
}

/* "512m", "2GiB", "4096"; unit 0: hexadecimal bytes. */
static uint64_t heap_bytes_of(const char *text, uint64_t unit)
{
	static const char suffixes[] = "kmgt";
	char *end;
	uint64_t number = strtoull(text, &end, unit ? 10 : 16), scale = unit ? unit : 1;
	const char *suffix = *end ? strchr(suffixes, tolower((unsigned char)*end)) : NULL;

	if (end == text || *text == '-')
		return 0;
	if (suffix && unit)
		scale = (uint64_t)1 << (10 * (suffix - suffixes + 1));
	return number > UINT64_MAX / 2 / scale ? 0 : number * scale;
}

uint64_t runtime_limit(const struct runtime *runtime, const char *text)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < COUNT(runtime->limits) && runtime->limits[i].option; i++) {
		const char *option = runtime->limits[i].option;
		/* the last one counts; it may stand in NODE_OPTIONS=..., too */
		for (const char *at = text; (at = strstr(at, option)); at += strlen(option))
			if (at == text || at[-1] == ' ' || at[-1] == '=')
				bytes = heap_bytes_of(at + strlen(option), runtime->limits[i].unit);
	}
	return bytes;
}
