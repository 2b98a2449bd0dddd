/* SPDX-License-Identifier: Apache-2.0 */
/* The alert rules. */
#include "analysis/view/live/rules.h"

#define CAUSE \
	"{{ range query (printf \"cuflight_cause{process=%q}\" $labels.process) }}" \
	"{{ .Labels.cause }} at {{ .Labels.site }}{{ end }}"
#define GPU "process=\"p\",gpu=\"0\",UUID=\"GPU-0\""
#define TOTAL "cuflight_gpu_memory_total_bytes{gpu=\"0\",UUID=\"GPU-0\"}"
#define OOM "cuflight_time_to_oom_seconds{" GPU ",resource=\"gpu\",bound="

/* MIB: mebibytes as PromQL has them */
#define MIB "1024 * 1024"

const struct alert_rule alert_rules[] = {
	{ "CuflightOutOfMemoryPredicted",
	  "cuflight_time_to_oom_seconds{bound=\"expected\"} < 3600", "5m", "warning",
	  "{{ $labels.process }} runs out of {{ $labels.resource }} memory in "
	  "{{ $value | humanizeDuration }}",
	  CAUSE, "cuflight", OOM "\"expected\"} => 3000x20", 6 },
	{ "CuflightOutOfMemoryImminent",
	  "cuflight_time_to_oom_seconds{bound=\"latest\"} < 600", "1m", "critical",
	  "{{ $labels.process }} runs out of {{ $labels.resource }} memory in at most "
	  "{{ $value | humanizeDuration }}",
	  CAUSE, "cuflight", OOM "\"latest\"} => 500x20", 2 },
	{ "CuflightNoHeadroom", "cuflight_gpu_memory_headroom_bytes <= 0", "10m", "warning",
	  "The largest work of {{ $labels.process }} so far would fail now on GPU "
	  "{{ $labels.gpu }}",
	  "{{ $value | humanize1024 }}B of headroom", "cuflight",
	  "cuflight_gpu_memory_headroom_bytes{" GPU "} => -1x20", 11 },
	{ "CuflightAllocationRecovered",
	  "increase(cuflight_allocation_failures_total{outcome=\"recovered\"}[10m]) > 0", "",
	  "warning", "A request of {{ $labels.process }} failed, and a retry served it",
	  "The earliest sure sign, and a latency spike. " CAUSE, "cuflight",
	  "cuflight_allocation_failures_total{" GPU ",outcome=\"recovered\"} => 0 0 1x10", 4 },
	{ "CuflightOutOfMemory",
	  "increase(cuflight_allocation_failures_total{outcome=~\"fatal|handled\"}[10m]) > 0", "",
	  "critical", "{{ $labels.process }} ran out of memory ({{ $labels.outcome }})", CAUSE,
	  "cuflight", "cuflight_allocation_failures_total{" GPU ",outcome=\"fatal\"} => 0 0 1x10",
	  4 },
	{ "CuflightLeak", "sum by (process, site) (cuflight_leak_bytes) > 64 * " MIB, "15m",
	  "warning", "{{ $labels.process }} leaks {{ $value | humanize1024 }}B",
	  "{{ $labels.site }}", "cuflight",
	  "cuflight_leak_bytes{" GPU ",site=\"f (f.c:1)\",memory=\"device\"} => 100000000x30", 16 },
	{ "CuflightFragmentation",
	  "(cuflight_framework_reserved_bytes - cuflight_framework_allocated_bytes) / on (UUID) "
	  "group_left () cuflight_gpu_memory_total_bytes > 0.2 and on (UUID, process) "
	  "cuflight_gpu_memory_free_bytes / on (UUID) group_left () "
	  "cuflight_gpu_memory_total_bytes < 0.1", "15m", "warning",
	  "{{ $labels.framework }} of {{ $labels.process }} holds memory that it cannot use",
	  "{{ $value | humanizePercentage }} of GPU {{ $labels.gpu }}", "cuflight",
	  "cuflight_framework_reserved_bytes{" GPU ",framework=\"PyTorch\"} => 90x30\n"
	  "cuflight_framework_allocated_bytes{" GPU ",framework=\"PyTorch\"} => 50x30\n"
	  "cuflight_gpu_memory_free_bytes{" GPU "} => 5x30\n" TOTAL " => 100x30", 16 },
	{ "CuflightOtherProcessGrows",
	  "deriv(cuflight_gpu_memory_bytes{owner=\"other_processes\"}[30m]) * 3600 > 2048 * " MIB,
	  "15m", "warning", "A process that is not recorded grows on GPU {{ $labels.gpu }}",
	  "{{ $value | humanize1024 }}B an hour", "cuflight",
	  "cuflight_gpu_memory_bytes{gpu=\"0\",UUID=\"GPU-0\",owner=\"other_processes\"} => "
	  "0+100000000x40", 18 },
	{ "CuflightHostNearLimit",
	  "cuflight_cgroup_memory_working_bytes / cuflight_cgroup_memory_limit_bytes > 0.95", "5m",
	  "warning",
	  "{{ $labels.process }} is at {{ $value | humanizePercentage }} of its cgroup",
	  CAUSE, "cuflight",
	  "cuflight_cgroup_memory_working_bytes{process=\"p\"} => 96x20\n"
	  "cuflight_cgroup_memory_limit_bytes{process=\"p\"} => 100x20", 6 },
	{ "CuflightKvCachePressure",
	  "max by (pod) (vllm:kv_cache_usage_perc or vllm:gpu_cache_usage_perc) > 0.95 and "
	  "on (pod) sum by (pod) (rate(vllm:num_preemptions_total[5m])) > 0", "10m", "warning",
	  "The KV cache of {{ $labels.pod }} is full, and requests are preempted",
	  "{{ $value | humanizePercentage }}", "cuflight-vllm",
	  "vllm:kv_cache_usage_perc{pod=\"p\"} => 0.99x30\n"
	  "vllm:num_preemptions_total{pod=\"p\"} => 0+1x30", 14 },
	{ "CuflightIncomplete", "rate(cuflight_recorder_lost_events_total[10m]) > 0", "10m", "info",
	  "The recording of {{ $labels.process }} has no room for everything",
	  "Table {{ $labels.table }}: record with a larger size=", "cuflight",
	  "cuflight_recorder_lost_events_total{process=\"p\",table=\"ring\"} => 0+1x30", 14 },
	{ "CuflightNotRecorded",
	  "cuflight_up == 0 or time() - cuflight_analysis_timestamp_seconds > 300", "5m", "warning",
	  "{{ $labels.process }}{{ $labels.recording }} is not analysed",
	  "See what cuflight serve prints", "cuflight",
	  "cuflight_up{recording=\"x.cuf\"} => 0x20", 6 },
};
const size_t alert_rule_count = sizeof alert_rules / sizeof *alert_rules;
