/* SPDX-License-Identifier: Apache-2.0 */
/*
 * malloc said no: an incident, as when the driver does, with what is resident and the limits at that moment. Few programs
 * live through one; some ask for the impossible again and again to see how much there is, so incidents keep a distance.
 */
#include <errno.h>
#include "interpose/platform/clock.h"
#include "interpose/store/hook_names.h"
#include "interpose/record/host.h"
#include "interpose/platform/options.h"
#include "interpose/record/recorder.h"
#include "interpose/record/state.h"
#include "interpose/platform/laws.h"

#define APART_NS 100000000ull

static uint64_t last_ns;

/* True for one caller each time. */
static bool is_due(void)
{
	uint64_t now = cuf_clock_ns(CLOCK_MONOTONIC), last = __atomic_load_n(&last_ns, __ATOMIC_RELAXED);
	return (!last || now - last >= APART_NS) && __atomic_compare_exchange_n(&last_ns, &last, now, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

void cuf_host_refused(size_t bytes, unsigned hook, void *frame)
{
	struct cuf_request request = { .bytes = bytes, .kind = CUF_KIND_HOST, .device = CUF_DEVICE_NONE };
	struct cuf_driver_view nobody = { .free_bytes = CUF_UNKNOWN, .total_bytes = CUF_UNKNOWN, .probed_bytes = CUF_UNKNOWN };
	struct cuf_call call;
	int saved = errno;
	if (!cuf_options.host || !is_due())
		return;
	if (cuf_call_begin(&call, hook, frame)) {
		cuf_hook_names_write();
		cuf_state_want_file();
		cuf_request_failed(&call, &request, ENOMEM, &nobody);
		cuf_host_mark_time(call.thread);
	}
	cuf_call_end();
	errno = saved;
}
