/* SPDX-License-Identifier: Apache-2.0 */
/*
 * malloc failed: an incident, as when the driver fails, with what is resident and the limits at
 * that moment. Few programs survive one. Some request the impossible again and again to learn how
 * much there is, so incidents keep a distance.
 */
#include <errno.h>
#include <sys/resource.h>
#include "interpose/platform/clock.h"
#include "interpose/platform/options.h"
#include "interpose/process/cgroup.h"
#include "interpose/process/handover.h"
#include "interpose/process/size_limit.h"
#include "interpose/record/host.h"
#include "interpose/record/recorder.h"
#include "interpose/store/hook_names.h"
#include "interpose/platform/laws.h"

#define APART_NS 100000000ull

static uint64_t last_ns;

/* True for one caller each time. */
static bool is_due(void)
{
	uint64_t now_ns = cuf_clock_ns(CLOCK_MONOTONIC);
	uint64_t before_ns = __atomic_load_n(&last_ns, __ATOMIC_RELAXED);
	if (before_ns && now_ns - before_ns < APART_NS)
		return false;
	return __atomic_compare_exchange_n(&last_ns, &before_ns, now_ns, false, __ATOMIC_RELAXED,
					   __ATOMIC_RELAXED);
}

static bool is_beyond(uint64_t used, uint64_t bytes, int resource)
{
	uint64_t limit = cuf_limit_bytes(resource);

	return limit != CUF_UNKNOWN && used != CUF_UNKNOWN && used + bytes > limit;
}

/*
 * The number of threads is limited, too, with the same error. So it was the memory of its stack
 * where the limits leave less. Unless it is set, that has the size of the first thread's, as far as
 * that is limited. Returns the size; 0: there was memory.
 */
static size_t refused_stack(size_t bytes)
{
	enum { WITHOUT_LIMIT = 2 << 20 };
	uint64_t first = cuf_limit_bytes(RLIMIT_STACK);
	struct cuf_process_memory memory;

	if (cuf_options.host == CUF_HOST_OFF || !cuf_host_may_refuse())
		return 0;
	if (!bytes)
		bytes = first == CUF_UNKNOWN ? WITHOUT_LIMIT : first;
	cuf_process_memory(&memory);
	return is_beyond(memory.address_bytes, bytes, RLIMIT_AS) ||
			       is_beyond(memory.data_bytes, bytes, RLIMIT_DATA)
		       ? bytes : 0;
}

bool cuf_host_refused(size_t bytes, unsigned hook, int error, void *frame)
{
	const bool is_thread = error == EAGAIN;
	const struct cuf_request request = {
		.bytes = is_thread ? refused_stack(bytes) : bytes,
		.kind = CUF_KIND_HOST, .device = CUF_DEVICE_NONE
	};
	const struct cuf_driver_view no_driver = {
		.free_bytes = CUF_UNKNOWN, .total_bytes = CUF_UNKNOWN, .probed_bytes = CUF_UNKNOWN
	};
	struct cuf_call call;
	int saved_errno = errno;
	bool is_recorded;
	if (cuf_options.host == CUF_HOST_OFF || (error != ENOMEM && !is_thread) ||
	    (is_thread && !request.bytes) || !is_due())
		return false;
	cuf_thread_may_take_spare(true);
	is_recorded = cuf_call_begin(&call, hook, frame);
	cuf_thread_may_take_spare(false);
	if (is_recorded) {
		cuf_hook_names_write();
		cuf_handover_to_file();
		cuf_request_failed(&call, &request, ENOMEM, &no_driver);
		cuf_host_mark_time(call.thread);
	} else {
		__atomic_store_n(&last_ns, 0, __ATOMIC_RELAXED); /* of another thread, perhaps */
	}
	cuf_call_end();
	errno = saved_errno;
	return is_recorded;
}

bool cuf_host_may_refuse(void)
{
	return cuf_limit_bytes(RLIMIT_AS) != CUF_UNKNOWN ||
	       cuf_limit_bytes(RLIMIT_DATA) != CUF_UNKNOWN;
}
