/* SPDX-License-Identifier: Apache-2.0 */
/* What elfutils' configure would find in musl, without debuginfod, demangler, bzip2 and lzma. */
#pragma once

#define HAVE_DECL_MEMPCPY 1
#define HAVE_DECL_MEMRCHR 1
#define HAVE_DECL_POWEROF2 1
#define HAVE_DECL_RAWMEMCHR 0
#define HAVE_DECL_REALLOCARRAY 1
#define HAVE_DECL_STRERROR_R 1
#define HAVE_ERR_H 1
#define HAVE_FALLTHROUGH 1
#define HAVE_MREMAP 1
#define HAVE_PROCESS_VM_READV 1
#define HAVE_STDATOMIC_H 1
#define HAVE_STRERROR_R 1
#define HAVE_SYS_USER_REGS 1
#define HAVE_VISIBILITY 1
#define PACKAGE "elfutils"
#define PACKAGE_NAME "elfutils"
#define PACKAGE_VERSION "0.188"
#define VERSION "0.188"
#define SIZEOF_LONG 8
#define STDC_HEADERS 1
#define USE_ZLIB 1

#include <eu-config.h>

/* glibc's, which <string.h> of musl does not have */
#include <string.h>
static inline const char *last_part(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}
#define basename last_part
