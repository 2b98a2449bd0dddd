/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Everything a report needs, worked out of one recording or of a directory of recordings (one run): plain data, no
 * printing, no symbols. The views format it, causes.h judges it, symbols.h names its addresses.
 *
 * Contract. facts_build returns 0 and a struct facts that owns everything reachable from it (one facts_free frees all;
 * pointers into it are borrowed, also the stacks' addresses, which lie in the mapped recording); or a negative
 * enum reader_error_code and a filled struct reader_error, and *out is NULL. A structure is never changed after it was
 * built, so any number of threads may read it. Arrays have a count beside them; an empty array may be NULL; strings are
 * NUL-terminated UTF-8-or-whatever-the-kernel-said and never NULL unless said.
 * Units: bytes, counts; times `_ns` are CLOCK_REALTIME nanoseconds (UNIX epoch), so recordings of several hosts line
 * up; durations are `_s` (double) or `_ms`. Unknown is CUF_UNKNOWN for 64-bit quantities and times, NAN for doubles;
 * it is never 0. Devices are indices into facts.devices, processes into facts.processes; FACT_NONE is "none".
 */
#ifndef ANALYSIS_FACTS_FACTS_H
#define ANALYSIS_FACTS_FACTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "analysis/recording/reader_error.h"
#include "interpose/abi/format.h"

#define FACT_NONE UINT32_MAX

/* How a figure was come by. BASIS_NONE goes with unknown figures. */
enum fact_basis { BASIS_NONE, BASIS_OBSERVED, BASIS_INFERRED, BASIS_ESTIMATED, BASIS_MAX };
extern const char *const basis_names[BASIS_MAX]; /* "", "observed", "inferred", "estimated" */

/* A call stack as recorded: return addresses, innermost first, the caller of the interposed function first. */
struct fact_stack {
	uint32_t process;         /* whose modules name it; FACT_NONE: no stack */
	uint32_t id;              /* in that process's recording; 0: unknown, depth is 0 */
	uint32_t depth;
	uint8_t stop;             /* enum cuf_stop: why it ends */
	const uint64_t *addrs;    /* borrowed; NULL when depth is 0 */
	uint64_t time_ns;         /* when it was in use: chooses among modules that shared an address */
};

/* A loaded object; an address belongs to it when start <= address < end and loaded_ns <= time < unloaded_ns. */
struct fact_module {
	uint32_t id;
	const char *path;
	uint64_t base;            /* load bias: address - base is the ELF address */
	uint64_t start, end;
	uint64_t loaded_ns;
	uint64_t unloaded_ns;     /* CUF_UNKNOWN: still loaded */
	uint32_t build_id_bytes;  /* 0: none */
	uint8_t build_id[20];
};

/* A name that the recorder noted for a return address, for code whose file may be gone: "symbol" or "symbol+0x1f". */
struct fact_function { uint64_t addr; const char *name; };

enum fact_end { END_RUNNING, END_EXIT, END_SIGNAL, END_KILLED, END_OOM_KILLED, END_EXEC, END_MAX };
extern const char *const end_names[END_MAX]; /* running exit signal killed oom_killed exec */

struct fact_meta_text { uint32_t type; uint64_t number; uint64_t time_ns; const char *text; }; /* enum cuf_meta_type */

/* One class of sizes of what an allocator has free. */
struct fact_free_class { uint64_t from_bytes, count, bytes; };
/* Slabs of one block size: jemalloc. */
struct fact_slab { uint64_t block_bytes, used_count, all_count; };

enum fact_allocator_role { ALLOCATOR_PROCESS, ALLOCATOR_PRIVATE, ALLOCATOR_IN_FRONT, ALLOCATOR_ROLE_MAX };
extern const char *const allocator_role_names[ALLOCATOR_ROLE_MAX]; /* process private in_front */

/* A figure of one layer; words says what kind of figure: "upper bound", "measured", "exact", "lower bound", ... */
struct fact_layer { uint64_t bytes; const char *words; };

/* An allocator and its own books; without books all figures are CUF_UNKNOWN. */
struct fact_allocator {
	const char *name, *version;       /* "" unknown */
	const char *object;               /* the file that has it */
	enum fact_allocator_role role;    /* behind our hooks; of one object alone, unseen; in front of our hooks, unseen */
	uint64_t time_ns;                 /* of the books; CUF_UNKNOWN: none */
	uint64_t system_bytes;            /* taken from the kernel */
	uint64_t live_bytes;              /* handed out, with its rounding and what its threads' caches hold */
	uint64_t cached_bytes;            /* free, in whole pages: could be given back */
	uint64_t fragmented_bytes;        /* free, in pages that live blocks hold open */
	enum fact_basis split_basis;      /* of the two above */
	uint64_t own_bytes;               /* its bookkeeping */
	uint64_t retained_bytes;          /* given back, addresses kept */
	uint64_t thread_cached_bytes;
	uint64_t mapped_bytes;            /* of live_bytes: blocks with a map of their own */
	uint64_t top_bytes;               /* of cached_bytes: the heap's end */
	uint64_t arena_count;
	struct fact_layer largest_free;
	const struct fact_free_class *free; size_t free_count;
	const struct fact_slab *slabs; size_t slab_count;
};

/* What resident memory is made of. */
enum fact_host_part {
	PART_LIVE, PART_FRAGMENTED, PART_CACHED, PART_ALLOCATOR, PART_PYTHON, PART_MAPS, PART_OTHER, PART_STACK, PART_FILES,
	PART_FILES_PRIVATE, PART_SHARED, PART_RECORDER, PART_MAX
};
extern const char *const host_part_names[PART_MAX]; /* malloc_live fragmented cached allocator python_arenas maps ... */
struct fact_host_row { enum fact_host_part part; uint64_t bytes; enum fact_basis basis; };

/* A site whose blocks hold the allocator's pages open. */
struct fact_host_pin { struct fact_stack stack; uint64_t open_bytes, bytes, count; enum fact_basis basis; };

enum fact_host_verdict { HOST_UNKNOWN, HOST_FINE, HOST_FRAGMENTED, HOST_CACHED, HOST_VERDICT_MAX };
extern const char *const host_verdict_names[HOST_VERDICT_MAX]; /* "" fine fragmented cached */
enum fact_host_fix { FIX_TRIM, FIX_ARENAS, FIX_SEPARATE, FIX_JEMALLOC, FIX_DECAY, FIX_MAX };
extern const char *const host_fix_names[FIX_MAX]; /* malloc_trim MALLOC_ARENA_MAX separate jemalloc decay */
struct fact_host_advice { enum fact_host_fix fix; uint64_t bytes; /* at most gained; CUF_UNKNOWN */ };

struct fact_maps {                        /* with mmap=1; CUF_UNKNOWN without */
	uint64_t anonymous_bytes, anonymous_count, file_bytes, file_count;
	uint64_t python_bytes, python_count; /* of the anonymous ones: by size and by who made them */
	uint64_t given_back_bytes;        /* by madvise, over all time */
};

struct fact_host {                /* one process */
	uint64_t rss_bytes;               /* last sample at or before the moment */
	uint64_t rss_peak_bytes;
	uint64_t malloc_live_bytes;       /* exact in full mode, estimated in sampled mode */
	uint64_t malloc_live_count;
	enum fact_basis malloc_basis;
	uint64_t malloc_low_bytes, malloc_high_bytes; /* 95 % interval; equal to the figure in full mode */
	uint64_t malloc_low_count, malloc_high_count; /* CUF_UNKNOWN: nothing was sampled, so the blocks may be of any size */
	uint64_t pinned_bytes;            /* live pinned + registered */
	uint64_t mapped_file_bytes;       /* CUF_UNKNOWN: not recorded */
	uint64_t cgroup_bytes, cgroup_max_bytes; /* memory.current, memory.max; CUF_UNKNOWN: none or no limit */
	uint64_t memory_total_bytes;      /* the machine */
	const char *allocator;            /* "glibc 2.36"; NULL unknown */
	const struct fact_allocator *allocators; size_t allocator_count; /* the one behind our hooks first, if it is known */
	const struct fact_host_row *rows; size_t row_count; /* sum to rss_bytes; none: not recorded */
	uint64_t swap_bytes;              /* CUF_UNKNOWN */
	enum fact_host_verdict verdict;
	const struct fact_host_advice *advice; size_t advice_count;
	const struct fact_host_pin *pins; size_t pin_count; /* by open_bytes, descending; where fragmented */
	struct fact_maps maps;
	uint64_t alloc_count, free_count; /* calls; CUF_UNKNOWN where they were not all seen: sampled, off */
	uint64_t recorded_alloc_count, recorded_free_count; /* in the ring once, however many were not sampled */
	uint64_t alloc_bytes;             /* of all calls, as malloc_basis has it; CUF_UNKNOWN: off */
};

/* Memory over time, as sampled by the recorder. */
struct fact_sample {
	uint64_t time_ns, seq;
	uint64_t rss_bytes, cgroup_bytes, host_live_bytes, pinned_bytes;
	uint64_t rss_shared_bytes;        /* of rss_bytes: files and shared memory */
	uint64_t device_live_bytes[CUF_DEVICES_MAX], device_free_bytes[CUF_DEVICES_MAX]; /* by the driver's ordinal */
};

/* Who says so: the program (cuflight.h), a library or the program by NVTX, or we by what its memory did. */
enum fact_phase_source { PHASE_MARK, PHASE_NVTX, PHASE_INFERRED, PHASE_SOURCE_MAX };
extern const char *const phase_source_names[PHASE_SOURCE_MAX]; /* mark nvtx inferred */

/* Bytes followed through a stretch of time: device blocks, or what a framework has allocated in its segments where one
 * reports (fact_process.work_layer). All CUF_UNKNOWN where the events are gone. */
struct fact_stretch { uint64_t start_bytes, floor_bytes, peak_bytes, end_bytes; };

/* A stretch of a process's work. Begin and end are right after the events of these numbers. */
struct fact_phase {
	const char *name;
	enum fact_phase_source source;
	enum fact_basis basis;
	const char *why;                  /* inferred: the clause that tells how; else "" */
	uint32_t process;
	uint32_t tid;                     /* whose; 0: of the whole process */
	uint32_t depth;                   /* enclosing phases of its thread */
	uint64_t begin_ns, end_ns;        /* end: CUF_UNKNOWN: open when the recording ended, or its end was not seen */
	uint64_t begin_seq, end_seq;      /* end: CUF_UNKNOWN */
	bool is_mark;                     /* a moment: the end is the begin */
	bool is_request;
	uint64_t request_id;              /* CUF_UNKNOWN: no request */
	struct fact_stretch work;
};

/* All phases of one name and source. */
struct fact_phase_group {
	const char *name;
	enum fact_phase_source source;
	bool is_mark, is_request;
	uint64_t count, open;             /* of those, without an end */
	uint64_t total_ns, longest_ns;    /* of those with one */
	uint64_t peak_bytes;              /* the highest; CUF_UNKNOWN */
	uint64_t rise_bytes;              /* the largest peak over its start; CUF_UNKNOWN */
	uint64_t first_ns;
};

/* Units of the program's work: marked (cuflight.h), or the ups and downs of its memory. */
struct fact_requests {
	uint64_t count;                   /* finished ones; 0: none were seen */
	uint64_t open;
	const char *name;                 /* of most of them; "" inferred */
	enum fact_basis basis;            /* observed: marked; inferred: found in the ups and downs */
	const char *why;                  /* one clause */
	uint64_t concurrency_max;         /* open at the same time; CUF_UNKNOWN */
	uint64_t median_peak_bytes;       /* peak over what was live when it began; CUF_UNKNOWN */
	uint64_t largest_peak_bytes;
	uint64_t largest_id;              /* of the request with that peak; CUF_UNKNOWN */
	uint64_t largest_ns;              /* when that began */
	double floor_slope_bytes;         /* what stays after each, with its 95 % interval; NAN: too few */
	double floor_low_bytes, floor_high_bytes;
	double per_s;                     /* NAN */
};

struct fact_process {
	uint32_t pid, ppid;
	uint32_t parent;                  /* index; FACT_NONE: not recorded */
	uint32_t exec_of;                 /* the recording this image replaced (same pid); FACT_NONE */
	const char *rank;                 /* as the launcher of a distributed run numbered it; NULL */
	uint32_t ended_by;                /* the process whose failure ended this one (inferred: facts.crowd); FACT_NONE */
	uint64_t held_bytes;              /* device memory when the run's first failure was, else its peak; CUF_UNKNOWN: used none */
	const char *path;                 /* the recording */
	const char *exe, *cmdline, *hostname;
	uint64_t start_ns;                /* recorder started */
	uint64_t end_ns;                  /* end record, else the last thing recorded; running: now */
	enum fact_end end;
	uint64_t end_status;              /* exit status or signal number; CUF_UNKNOWN */
	enum fact_basis end_basis;
	const char *end_why;              /* one clause: what tells of an end without a record; "" */
	bool complete;                    /* false: the file is cut, see coverage */
	bool switched_off;                /* the recorder stopped recording before the end */
	uint64_t driver_version;          /* 13000 = 13.0; 0 before CUDA was seen */
	uint64_t first_cuda_ns;
	uint32_t host_mode;               /* enum cuf_host_mode */
	uint64_t sample_mean_bytes;
	uint64_t stack_depth;
	uint64_t events_recorded;         /* device and host events ever counted */
	uint64_t events_overwritten;      /* of those, no longer in the rings */
	uint64_t events_lost;             /* never held by any table */
	struct fact_host host;
	const struct fact_module *modules; size_t module_count;
	const struct fact_function *functions; size_t function_count; /* sorted by addr */
	const struct fact_meta_text *texts; size_t text_count; /* ENV, PHASE, NOTE, LIMITS ... in order of time */
	const struct fact_sample *timeline; size_t timeline_count; /* ascending time */
	uint64_t fatal_incident;          /* id; 0 none */
	/* what it said of its work, and what was inferred; by begin; marked and NVTX ones cut to the first and the longest */
	const struct fact_phase *phases; size_t phase_count;
	uint64_t phases_seen;             /* before the cut */
	uint64_t phases_left_out;         /* not written by the recorder: too fast, too deep */
	const struct fact_phase_group *phase_groups; size_t phase_group_count; /* of all seen, by total time, descending */
	struct fact_requests requests;
	const char *work_layer;           /* what phases and requests are measured in: "device", "framework" */
	/* names that the recording gives to hook ids: hook_names[id], NULL unknown */
	const char *const *hook_names; size_t hook_name_count;
};

/* The moment that devices, owners, fragmentation, host and leaks describe. */
enum fact_moment_kind { MOMENT_INCIDENT, MOMENT_END, MOMENT_AT, MOMENT_NOW, MOMENT_MAX };
extern const char *const moment_names[MOMENT_MAX]; /* incident end at now */
struct fact_moment {
	enum fact_moment_kind kind;
	uint64_t time_ns;
	uint32_t process;                 /* whose moment it is */
	uint64_t seq;                     /* in that process's recording */
	uint64_t incident;                /* id; 0 unless kind is MOMENT_INCIDENT */
	enum fact_basis basis;            /* estimated: events that undo the time since then were overwritten */
};

enum fact_owner {
	OWNER_DEVICE, OWNER_ARRAY, OWNER_ASYNC, OWNER_GRAPH, OWNER_VMM, OWNER_IMPORTED, OWNER_PAGE_ROUNDING, OWNER_POOL_SLACK,
	OWNER_FRAMEWORK_SLACK, OWNER_OTHER_PROCESSES, OWNER_CONTEXT, OWNER_UNEXPLAINED, OWNER_FREE, OWNER_MANAGED, OWNER_MAX
};
extern const char *const owner_names[OWNER_MAX]; /* device array async graph vmm imported page_rounding ... */

struct fact_owner_row {
	enum fact_owner kind;
	const char *role;                 /* weights, kv ...; NULL unknown */
	enum fact_basis role_basis;       /* how the role was come by; NONE without one */
	uint64_t bytes;                   /* CUF_UNKNOWN: this row cannot be known; it counts 0 in the sum */
	uint64_t count;                   /* blocks; CUF_UNKNOWN where it makes no sense */
	enum fact_basis basis;
	uint32_t pid;                     /* 0: nobody's */
	const char *name;                 /* of another process, as NVML's reader saw it; NULL unknown */
	bool by_nvml;                     /* as NVML says at the moment's incident, or worked out of that */
	bool recorded;                    /* of another process: it has a recording in this run */
	bool in_sum;                      /* false: listed beside (managed; imported from a process of this run) */
};

struct fact_pool {
	uint32_t process;
	uint64_t pool;                    /* handle; 0: the graph pool */
	uint64_t reserved_bytes, used_bytes, threshold_bytes; /* CUF_UNKNOWN */
	uint64_t live_bytes, live_count;  /* our blocks in it */
	uint64_t largest_gap_bytes;       /* between live blocks; CUF_UNKNOWN: fewer than two blocks */
	enum fact_basis basis;
};

/* A device block, or a mapped run of addresses, that a framework's allocator cuts into blocks. */
struct fact_segment {
	uint32_t process;
	uint64_t addr, bytes;
	uint64_t live_bytes, live_count;  /* blocks inside */
	uint64_t largest_hole_bytes, hole_count;
	uint64_t serves_least_bytes, serves_most_bytes; /* requests that its pool serves; CUF_UNKNOWN: no upper bound, or not known */
	bool expandable;                  /* mapped piece by piece: it can grow at its end */
	uint64_t born_ns;
	struct fact_stack stack;          /* who asked for it */
};

struct fact_framework {                   /* one framework's allocator on one device */
	uint32_t process;
	const char *name, *version, *backend; /* "PyTorch", "2.9.0", "native"; "" unknown */
	uint64_t allocated_bytes, reserved_bytes; /* as it reported last before the moment */
	uint64_t placed_bytes;            /* live blocks that lie in a segment we know; the rest of allocated is elsewhere */
	enum fact_basis basis;
	const struct fact_segment *segments; size_t segment_count; /* by free bytes, descending */
	const struct fact_pin *pins; size_t pin_count; /* sites whose blocks keep segments from being given back, by open_bytes */
	struct fact_layer largest_hole;   /* over the segments that could serve the moment's failed request, else over all */
	uint64_t emptyable_bytes;         /* segments used by less than a tenth: what would be free if their blocks were not there */
	uint64_t empty_bytes;             /* segments without a block: the framework could give them back as they are */
};

struct fact_vmm {                         /* one reservation of addresses */
	uint32_t process;
	uint64_t addr, bytes;
	uint64_t mapped_bytes, map_count;
	uint64_t largest_unmapped_bytes;  /* tail included */
	struct fact_stack stack;
};

struct fact_pin {                         /* a site whose blocks hold pages open */
	struct fact_stack stack;
	uint64_t pages;                   /* pages it shares in holding */
	uint64_t open_bytes;              /* free bytes in those pages */
	uint64_t bytes, count;            /* its blocks in them */
};

#define FACT_HOLE_CLASSES 13 /* class i: holes of [512 << i, 1024 << i) bytes, the first also smaller, the last also larger */
struct fact_fragmentation {               /* of one device, this process's blocks */
	uint64_t pages;                   /* 2 MiB pages that hold a small block or the tail of a large one */
	uint64_t pages_partial;           /* of those, not full */
	uint64_t pages_sparse;            /* of those, used by less than a tenth */
	uint64_t page_free_bytes;         /* free bytes in them */
	uint64_t page_largest_hole_bytes;
	uint64_t hole_count[FACT_HOLE_CLASSES], hole_bytes[FACT_HOLE_CLASSES];
	const struct fact_pin *pins; size_t pin_count; /* by open_bytes, descending */
	const struct fact_pool *pools; size_t pool_count;
	const struct fact_vmm *vmm; size_t vmm_count;
	uint64_t vmm_held_bytes;          /* physical, mapped or not */
	uint64_t vmm_mapped_bytes;
	uint64_t vmm_unmapped_bytes;      /* physical held but nowhere mapped */
	const struct fact_framework *frameworks; size_t framework_count;
	enum fact_basis basis;
};

enum fact_layer_id { LAYER_DEVICE, LAYER_MEASURED, LAYER_PAGE, LAYER_POOL, LAYER_VMM, LAYER_SEGMENT, LAYER_HOST, LAYER_MAX };
extern const char *const layer_names[LAYER_MAX]; /* device_upper_bound_bytes measured_bytes page_hole_bytes ... */

enum fact_tristate { FACT_NO = 0, FACT_YES = 1, FACT_CANNOT_TELL = 2 };

struct fact_device {
	uint32_t ordinal;                 /* the driver's index (of the focus process) */
	uint8_t uuid[16];
	const char *name, *pci;
	uint64_t total_bytes;
	uint64_t free_bytes;              /* at the moment */
	uint64_t peak_bytes, peak_ns;     /* recorded peak of live blocks (of several processes: at one instant, by the timelines; else the sum) */
	enum fact_basis peak_basis;
	uint64_t granularity_bytes;
	uint64_t alloc_count, free_count, fail_count;
	struct fact_moment moment;
	uint32_t focus;                   /* process whose rows are itemised; the others are OWNER_OTHER_PROCESSES rows */
	struct fact_owner_row *owners; size_t owner_count; /* rows with in_sum sum to total_bytes, if that is known */
	struct fact_layer largest_free[LAYER_MAX]; /* at the moment */
	struct fact_fragmentation fragmentation;
};

enum fact_outcome { OUTCOME_FATAL, OUTCOME_RECOVERED, OUTCOME_HANDLED, OUTCOME_UNKNOWN, OUTCOME_MAX };
extern const char *const outcome_names[OUTCOME_MAX]; /* fatal recovered handled unknown */

struct fact_attempt {
	uint64_t number;                  /* in the recording */
	uint64_t time_ns, seq;
	uint64_t requested_bytes;         /* CUF_UNKNOWN: not sized */
	uint64_t free_bytes, total_bytes;
	uint32_t result;                  /* CUresult */
	const char *api, *driver_api;
};

struct fact_live_site { struct fact_stack stack; uint32_t kind; uint64_t bytes, count; };

/* One line of a cause's evidence. Its events exist in the recording of `process`: seqs and, for samples, times. */
struct fact_evidence {
	const char *text;                 /* a clause with its figures, for people */
	bool against;                     /* speaks against the cause */
	uint32_t process;
	uint64_t seqs[4]; size_t seq_count;
	uint64_t time_ns;                 /* CUF_UNKNOWN */
	struct fact_stack stack;          /* the site that it is about; process FACT_NONE: none */
};

/* One thing to change. */
struct fact_fix {
	const char *text;                 /* a sentence: what, in which direction, to what value */
	const char *knob;                 /* "gpu_memory_utilization", "n_ctx", "PYTORCH_CUDA_ALLOC_CONF"; NULL: code, not a setting */
	uint64_t value;                   /* the value that would fit, in `unit`; CUF_UNKNOWN */
	const char *unit;                 /* bytes, count, percent; "" without a value */
	uint64_t by_bytes;                /* how much it must give at least; CUF_UNKNOWN */
};

/* Why memory ran out, or what grows. See causes.h for the table and its rules. */
struct fact_cause {
	const char *id;                   /* S0 .. S9 with a sub-type: "S2a", "S6.F1", "S9.H2"; "" inconclusive */
	const char *name_id;              /* the same as a word to type: "kv-cache-grew"; "" inconclusive */
	const char *name;                 /* a few words */
	const char *summary;              /* one sentence with its figures */
	double confidence;                /* 0 .. 1; high >= 0.8, medium >= 0.5, else low */
	const struct fact_evidence *evidence; size_t evidence_count; /* strongest first */
	const struct fact_fix *fixes; size_t fix_count;              /* best first */
	struct fact_stack site;           /* the place in the program that the verdict is about; depth 0: the failing call, or none */
	const char *runner_up_id, *runner_up_name_id, *runner_up_name; /* NULL none */
	double runner_up_confidence;
	const char *separates;            /* one clause: what tells the two apart, or which missing data would; "" */
	const char *const *lacks; size_t lack_count; /* what could not be seen and lowered the confidence */
	uint32_t process, device;         /* whose; FACT_NONE */
};

struct fact_incident {                    /* a ladder of retries; figures are those of the last attempt */
	uint64_t id;                      /* in the run, from 1, by time */
	enum fact_outcome outcome;
	const char *outcome_why;          /* one clause: the rule that decided */
	uint64_t time_ns;
	uint32_t process, pid, tid;
	uint32_t device;                  /* index; FACT_NONE: host */
	uint32_t kind;                    /* enum cuf_kind wanted */
	bool is_request;                  /* false: a launch or a load, not sized */
	const char *api;                  /* as the program called it: runtime name when it came that way */
	const char *driver_api;
	uint32_t result;
	uint64_t seq;
	uint64_t requested_bytes;         /* first attempt: what was wanted before the ladder shrank it */
	uint64_t free_bytes, total_bytes;
	struct fact_attempt *attempts; size_t attempt_count; /* the first try included */
	struct fact_layer largest_free[LAYER_MAX];
	enum fact_tristate fits_if_packed;
	uint64_t packed_bytes;            /* what packing would give at most; CUF_UNKNOWN */
	struct fact_stack stack;
	struct fact_owner_row *owners; size_t owner_count; /* of its device, at that moment */
	uint64_t live_bytes[16], live_count[16]; /* by enum cuf_kind, as the recorder counted */
	const struct fact_live_site *sites; size_t site_count; /* largest live sites at that moment */
	uint64_t rss_bytes, cgroup_bytes, cgroup_max_bytes, host_live_bytes;
	uint64_t resolved_ns;             /* when a retry served it; CUF_UNKNOWN */
	enum fact_basis basis;            /* of the figures worked out by replay */
	uint64_t settled_seq;             /* the moment that is judged: after what the failed request itself gave back; seq, mostly */
	uint64_t framework_requested_bytes; /* what the framework's caller wanted, where it was reported; CUF_UNKNOWN */
	uint64_t framework_allocated_bytes, framework_reserved_bytes; /* CUF_UNKNOWN */
	uint64_t least_requested_bytes;   /* of a request made of chunks, one of which failed: those given back, and that one; CUF_UNKNOWN */
	uint64_t number;                  /* in the recording: of the record that describes the moment, the last attempt's or the framework's */
	const char *phase, *request_phase; /* innermost named phase and open request of its thread, else of the process; NULL */
	uint64_t request_id;              /* CUF_UNKNOWN */
	enum fact_phase_source phase_source;
	enum fact_basis phase_basis;
	const struct fact_cause *cause;   /* NULL: not judged */
};

enum fact_class { CLASS_LEAK, CLASS_LIVE, CLASS_BOUNDED_CACHE, CLASS_RETAINED, CLASS_MAX };
extern const char *const class_names[CLASS_MAX]; /* leak live bounded_cache retained */
enum fact_shape { SHAPE_NONE, SHAPE_LINEAR, SHAPE_GEOMETRIC, SHAPE_QUADRATIC, SHAPE_PLATEAU, SHAPE_MAX };
extern const char *const shape_names[SHAPE_MAX]; /* "" linear geometric quadratic plateau */

/* What one call stack holds, and how that went over time. */
struct fact_site {
	struct fact_stack stack;
	uint32_t process, pid;
	uint32_t device;                  /* index; FACT_NONE: host */
	uint32_t kind;                    /* enum cuf_kind */
	const char *api;                  /* of its blocks; NULL unknown */
	const char *role;                 /* weights, kv ...; NULL unknown */
	enum fact_basis role_basis;       /* how the role is known; NONE without one */
	enum fact_class class;
	enum fact_shape shape;
	bool holds_blocks;                /* a framework's blocks lie in its blocks: they have rows of their own (kind FRAMEWORK), the same bytes once more */
	uint64_t bytes, count;            /* live at the moment */
	enum fact_basis basis;            /* of bytes and count */
	uint64_t low_bytes, high_bytes;   /* 95 % interval of bytes; equal to them where they are observed */
	double interval[2];               /* 95 % of slope_bytes_per_s */
	double slope_bytes_per_s;         /* of the floor; NAN unknown */
	uint64_t per_request_bytes;       /* added each cycle, median; CUF_UNKNOWN */
	uint64_t cycles;                  /* of the program's own work that were seen; 0 none */
	enum fact_basis cycles_basis;     /* observed: requests that the program marked; inferred: ups and downs of its memory */
	uint64_t peak_bytes;
	uint64_t alloc_count, alloc_bytes, free_count; /* over the events that were kept */
	uint64_t first_ns, last_ns;       /* birth of the oldest and the youngest live block */
	double grown_bytes;               /* over the time observed */
};

struct fact_text {
	const char *text;
	uint32_t process;                 /* FACT_NONE: of the run */
	bool minor;                       /* could not change who holds what and why */
};
struct fact_loss { const char *what; uint64_t count; uint32_t process; };

struct fact_coverage {
	const char *const *hooked; size_t hooked_count;     /* interposed functions that were called */
	const char *const *unhooked; size_t unhooked_count; /* allocation-like names resolved and not hooked */
	const char *const *static_cudart; size_t static_cudart_count;
	const struct fact_loss *lost; size_t lost_count;    /* tables that overflowed; only non-zero ones */
	const struct fact_text *blind; size_t blind_count;  /* whole sentences, most important first */
	uint64_t stack_stops[CUF_STOP_MAX];
	uint64_t unknown_frees, replaced, undone_frees;
	uint64_t recorder_ns;                               /* CPU time in device paths, a duration */
	bool complete;                                      /* nothing lost, nothing cut, nothing overwritten */
};

/* Several processes as one run; leader and outlier are FACT_NONE where there are none. */
struct fact_crowd {
	uint32_t leader;                  /* whose failure came first */
	uint64_t failed_count;            /* processes with a fatal incident of their own, the leader included */
	uint64_t ended_count;             /* ended by the leader's failure: see fact_process.ended_by */
	uint64_t peer_count;              /* processes that held device memory and do the same work (same program) */
	uint64_t median_bytes;            /* of what the peers held */
	uint32_t outlier;                 /* the peer that held most, if it stands out */
};

struct facts {
	const char *path;                 /* as asked for */
	struct fact_process *processes; size_t process_count;   /* by start */
	struct fact_device *devices; size_t device_count;       /* by ordinal */
	struct fact_incident *incidents; size_t incident_count; /* by time */
	struct fact_site *leaks; size_t leak_count;    /* live sites, verdict CLASS_LEAK first, then by bytes descending */
	struct fact_site *growth; size_t growth_count; /* sites that grew, by grown_bytes descending */
	struct fact_coverage coverage;
	uint32_t focus;                   /* the process the first screen is about */
	uint64_t fatal_incident;          /* id of the last fatal one of the process that failed first; 0 none */
	struct fact_crowd crowd;
	const struct fact_cause *cause;   /* of the run: its fatal incident's, else of how it ended or what grows; NULL: nothing wrong found */
	uint64_t events_recorded, events_overwritten, events_lost;
	struct facts_store *store;        /* private */
};

enum facts_at { FACTS_AT_AUTO, FACTS_AT_NOW, FACTS_AT_PEAK, FACTS_AT_INCIDENT, FACTS_AT_TIME };
struct facts_options {
	enum facts_at at;
	uint64_t at_value;                /* INCIDENT: id; TIME: ns since the run's first process started */
	size_t sites_max;                 /* rows of leaks and growth each; 0: 1000 */
	struct symbols *symbols;          /* borrowed: names of native functions tell what blocks are for; NULL: the recording's own notes alone */
};

/* path: a recording, or a directory whose *.cuf files are one run (unreadable ones are told in coverage.blind, unless
 * none is readable). options may be NULL. error may be NULL. */
int facts_build(const char *path, const struct facts_options *options, struct facts **out, struct reader_error *error);
/* The same over one recording in memory, which must outlive the facts. */
int facts_build_memory(const void *data, size_t bytes, const struct facts_options *options, struct facts **out, struct reader_error *error);
void facts_free(struct facts *facts); /* NULL is fine */

/* The module that held this address at this time; NULL: none known. */
const struct fact_module *fact_module_at(const struct fact_process *process, uint64_t addr, uint64_t time_ns);
/* The recorder's own name for a return address; NULL: none. */
const char *fact_function_at(const struct fact_process *process, uint64_t addr);

#endif
