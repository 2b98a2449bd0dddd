/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/symbols/library_names.h"

#include <stddef.h>
#include "analysis/base/paths.h"
#include "analysis/symbols/function_name.h"

/* One row for each language. */
static const struct named_library {
	const char *language;
	const char *functions[16]; /* how names begin; a return type and Rust's '<' are skipped */
	const char *modules[16];   /* how file names of modules begin */
	const char *files[6];      /* parts of paths of source files */
} libraries[] = {
	{ .language = "C",
	  .modules = { "libc.so", "libc-2.", "ld-linux", "ld-2.", "ld-musl", "libpthread",
		       "libjemalloc", "libmimalloc", "libtcmalloc", "libsnmalloc",
		       "libtbbmalloc" } },
	{ .language = "C++",
	  .functions = { "std::", "__gnu_cxx::", "operator new", "__cxxabiv1::" },
	  .modules = { "libstdc++", "libc++" },
	  .files = { "/include/c++/" } },
	/* crates named alloc and core are Rust's own, but a C++ program may have such namespaces */
	{ .language = "Rust",
	  .functions = { "alloc::alloc::", "alloc::raw_vec::", "alloc::vec::", "alloc::string::",
			 "alloc::boxed::", "alloc::collections::", "alloc::sync::", "alloc::rc::",
			 "core::ops::", "core::iter::", "core::ptr::", "hashbrown::", "__rust_",
			 "__rustc", "__rdl_" },
	  .files = { "/rustc/", "/rustlib/src/", "/.cargo/registry/", "/.cargo/git/" } },
	{ .language = "Go",
	  .functions = { "runtime.", "runtime/", "_cgo_", "x_cgo_", "crosscall", "internal/" },
	  .files = { "/pkg/mod/" } },
};

#define LIST(list) list, sizeof(list) / sizeof *(list)

bool is_c_library(const char *module)
{
	static const char *const names[] = { "libc.so", "libc-2.", "libpthread" };

	return module && text_begins_with_any(path_base_name(module), LIST(names));
}

bool is_library_code(const char *function, const char *module, const char *file)
{
	const char *name = function ? function_name_start(function) : NULL;

	for (size_t i = 0; i < sizeof libraries / sizeof *libraries; i++) {
		const struct named_library *library = &libraries[i];
		if (text_begins_with_any(name, LIST(library->functions)) ||
		    (module &&
		     text_begins_with_any(path_base_name(module), LIST(library->modules))) ||
		    text_has_any(file, LIST(library->files)))
			return true;
	}
	return false;
}
