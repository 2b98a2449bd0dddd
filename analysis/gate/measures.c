/* SPDX-License-Identifier: Apache-2.0 */
/* The table of measures. Man pages and --help list it, so a new measure is a row here. */
#include "analysis/gate/measures.h"

#include <string.h>
#include "interpose/abi/format.h"

const char *const gate_group_names[GROUP_MAX] = {
	"device", "pinned", "managed", "framework", "host", "python",
};

#define FLOOR_BYTES ((uint64_t)1 << 20)
/* Rounding to pages of 2 MiB changes by up to a page with each block. */
#define FLOOR_OF_PAGES ((uint64_t)8 << 20)
#define FLOOR_OF_REQUEST ((uint64_t)64 << 10)
#define PERCENT 3.0
#define PERCENT_OF_PAGES 10.0

#define PEAK(GROUP, name, memory, which)                                                           \
	[MEASURE_##GROUP##_PEAK] = { name ".peak", GATE_BYTES,  GROUP_##GROUP,                     \
				     PERCENT,      FLOOR_BYTES, "peak " memory,                    \
				     "highest live bytes " which }
#define END(GROUP, name, memory, which)                                                            \
	[MEASURE_##GROUP##_END] = { name ".end", GATE_BYTES,  GROUP_##GROUP,                       \
				    PERCENT,     FLOOR_BYTES, memory " at the end",                \
				    "live bytes at the end " which }

const struct gate_measure gate_measures[MEASURE_MAX] = {
	PEAK(DEVICE, "device", "GPU memory", "of all GPUs"),
	PEAK(PINNED, "pinned", "page-locked memory", "of page-locked host memory"),
	PEAK(MANAGED, "managed", "managed memory", "of managed memory"),
	PEAK(FRAMEWORK, "framework", "memory of the framework",
	     "that a framework allocated in its segments"),
	PEAK(HOST, "host", "host memory", "of host memory (malloc and maps)"),
	PEAK(PYTHON, "python", "host memory of Python code",
	     "of host memory that Python code allocated"),
	END(DEVICE, "device", "GPU memory", "of all GPUs"),
	END(PINNED, "pinned", "page-locked memory", "of page-locked host memory"),
	END(MANAGED, "managed", "managed memory", "of managed memory"),
	END(FRAMEWORK, "framework", "memory of the framework",
	    "that a framework allocated in its segments"),
	END(HOST, "host", "host memory", "of host memory (malloc and maps)"),
	END(PYTHON, "python", "host memory of Python code",
	    "of host memory that Python code allocated"),
	[MEASURE_DEVICE_LEAK] = { "device.leak", GATE_BYTES, GROUP_DEVICE, PERCENT, FLOOR_BYTES,
				  "leaked GPU memory", "bytes of proven leaks of GPU memory" },
	[MEASURE_HOST_LEAK] = { "host.leak", GATE_BYTES, GROUP_HOST, PERCENT, FLOOR_BYTES,
				"leaked host memory",
				"bytes of proven leaks of host and page-locked memory" },
	[MEASURE_REQUEST_GROWTH] = { "request.growth", GATE_BYTES, GROUP_DEVICE,
				     PERCENT, FLOOR_OF_REQUEST,
				     "GPU memory that stays after each request",
				     "bytes that stay after each marked request" },
	[MEASURE_DEVICE_UNUSED] = { "device.unused", GATE_BYTES, GROUP_DEVICE,
				    PERCENT_OF_PAGES, FLOOR_OF_PAGES,
				    "GPU memory that is reserved but unused",
				    "reserved but unused bytes in pages, pools and segments, at "
				    "the peak or at the end" },
	[MEASURE_DEVICE_HOLE] = { "device.hole", GATE_BYTES, GROUP_DEVICE, 0, 0,
				  "largest hole between blocks of GPU memory",
				  "largest hole in pages, pools and segments, at the peak or at "
				  "the end" },
	[MEASURE_INCIDENTS_FATAL] = { "incidents.fatal", GATE_COUNT, GROUP_MAX, 0, 0,
				      "fatal failures",
				      "failed requests that ended the program, and kills by the "
				      "kernel because memory ran out" },
	[MEASURE_INCIDENTS_RECOVERED] = { "incidents.recovered", GATE_COUNT, GROUP_MAX, 0, 0,
					  "requests that failed and were survived",
					  "failed requests that the program survived" },
	[MEASURE_DEVICE_ALLOCATIONS] = { "device.allocations", GATE_COUNT, GROUP_MAX, 0, 0,
					 "allocations of GPU memory",
					 "allocations of GPU and page-locked memory" },
	[MEASURE_HOST_ALLOCATIONS] = { "host.allocations", GATE_COUNT, GROUP_MAX, 0, 0,
				       "allocations of host memory",
				       "calls that allocated host memory (--host=full)" },
};

const struct gate_measure *gate_measure_find(const char *name, size_t length)
{
	for (size_t i = 0; i < MEASURE_MAX; i++)
		if (strlen(gate_measures[i].name) == length &&
		    !strncmp(gate_measures[i].name, name, length))
			return &gate_measures[i];
	return NULL;
}
