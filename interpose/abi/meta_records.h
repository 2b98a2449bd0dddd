/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The records of section META: texts and facts that are written once. FORMAT.md lists the keys of
 * key=value lines. Contract: as format.h, of which this is a part. On disk: never reuse a number.
 */
#pragma once

#include <stdint.h>

/* META: 8-byte aligned records, one after another. A reader stops at type 0 or meta_used. */
enum cuf_meta_type {
	CUF_META_EXE = 1,        /* text: /proc/self/exe */
	CUF_META_CMDLINE = 2,    /* text: arguments joined by blanks, secrets redacted */
	CUF_META_HOSTNAME = 3,   /* text */
	CUF_META_ENV = 4,        /* text: NAME=value; only names of an allow-list */
	CUF_META_CGROUP = 5,     /* text: cgroup v2 path (or v1 memory path) */
	CUF_META_HOOK = 6,       /* number = hook id; text = name of the function */
	CUF_META_MODULE = 7,     /* struct cuf_meta_module follows in place of text */
	CUF_META_MODULE_END = 8, /* number = id of the unloaded module; time = when */
	CUF_META_FUNCTION = 9,   /* number = return address; text = symbol[+0xoffset], for files */
				 /* that vanish */
	CUF_META_UNHOOKED = 10,  /* text: a function that may allocate was looked up and is not */
				 /* hooked; number = its version */
	CUF_META_STATIC_CUDART = 11, /* text: path of an object that embeds its own runtime */
	CUF_META_NOTE = 12,      /* number = enum cuf_note; text = detail for people */
	CUF_META_PHASE = 13,     /* number = id of the name, from 1; text = name of a phase, */
				 /* range or mark, "domain: name" when it has a domain */
	CUF_META_ALLOCATOR = 14, /* text: key=value lines: an allocator and its statistics; */
				 /* number = enum cuf_moment */
	CUF_META_LIMITS = 15,    /* text: key=value lines: cgroup memory.max, MemTotal, RLIMIT_AS */
	CUF_META_MEMORY = 16,    /* text: key=value lines: resident memory by kind of mapping; */
				 /* number = enum cuf_moment */
	CUF_META_WAIT = 17,      /* text: key=value lines: the end as `cuflight run` saw it, */
				 /* which appends it afterwards */
	CUF_META_CODE = 18,      /* number = id of a Python code object, from 1; text: qualified */
				 /* name, file, first line, each ended by a newline */
	CUF_META_FRAMEWORK = 19, /* text: key=value lines: framework=PyTorch version= backend= */
				 /* abi= streams= ... as they become known; later lines win */
	CUF_META_SAMPLE = 20,    /* number = mean of the host sampler from now on, set by the */
				 /* program; text: birth time (cuf_birth_encode) of the first */
				 /* such blocks */
	CUF_META_GPU_PROCESSES = 21 /* struct cuf_meta_gpu_processes (gpu_processes.h) in place */
				    /* of text: which processes hold a device; number = incident */
};

/* When statistics were read. */
enum cuf_moment {
	CUF_MOMENT_START = 1,    /* which allocator it is, without figures */
	CUF_MOMENT_INCIDENT = 2, /* after a failed request */
	CUF_MOMENT_END = 3,      /* before exit handlers */
	CUF_MOMENT_RUNNING = 4   /* live memory had changed */
};

enum cuf_note {
	CUF_NOTE_OFF = 1,        /* text = why the recorder switched itself off */
	CUF_NOTE_DEEPBIND = 2,   /* text = object loaded with RTLD_DEEPBIND: its calls bypass us */
	CUF_NOTE_DLMOPEN = 3,    /* text = object loaded into another namespace */
	CUF_NOTE_RESERVED_4 = 4, /* never written */
	CUF_NOTE_NO_UNWINDER = 5, /* libunwind not found; of older writers: no fallback is needed */
	CUF_NOTE_OTHER_PRELOAD = 6, /* text = LD_PRELOAD, when it contains other libraries */
	CUF_NOTE_CHECKPOINT = 7, /* device memory was moved to the host or back by a checkpoint */
	CUF_NOTE_RESERVED_8 = 8, /* never written */
	CUF_NOTE_FORK = 9,       /* text = pid of the parent, in decimal: this process was */
				 /* forked, not executed */
	CUF_NOTE_PYTHON = 10,    /* text = why there are no Python frames */
	CUF_NOTE_FRAMEWORK = 11  /* text = why a framework's blocks are not seen */
};

struct cuf_meta {
	uint16_t type;           /* [commit] enum cuf_meta_type */
	uint16_t reserved;
	uint32_t bytes;          /* the whole record, a multiple of 8; stored before type */
	uint64_t time_ns;
	uint64_t number;
	/* text, not NUL-terminated; its length is text_bytes */
	uint32_t text_bytes;
	uint32_t reserved2;
};

struct cuf_meta_module {
	struct cuf_meta meta;    /* number = module id, from 1 */
	uint64_t base;           /* load bias: run-time address - ELF address */
	uint64_t start, end;     /* mapped range, run-time addresses */
	uint32_t build_id_bytes; /* 0: none */
	uint8_t build_id[20];    /* the first 20 bytes of longer ids */
	uint32_t path_bytes;
	uint32_t reserved;
	/* path, not NUL-terminated */
};

_Static_assert(sizeof(struct cuf_meta) == 32, "header of a record");
