/* SPDX-License-Identifier: Apache-2.0 */
/* Who holds the bytes of a device, as a table whose rows sum to the driver's total, and says so. */
#include "analysis/view/text/text.h"

#include <stdlib.h>
#include <string.h>
#include "analysis/base/xalloc.h"
#include "analysis/view/text/table.h"
#include "analysis/view/units.h"

static const char *const words[OWNER_MAX] = {
	[OWNER_DEVICE] = "cudaMalloc blocks", [OWNER_ARRAY] = "CUDA arrays", [OWNER_ASYNC] = "stream-ordered blocks",
	[OWNER_GRAPH] = "CUDA graphs", [OWNER_VMM] = "VMM handles", [OWNER_IMPORTED] = "imported memory",
	[OWNER_PAGE_ROUNDING] = "rounding to 2 MiB pages", [OWNER_POOL_SLACK] = "pools, reserved unused",
	[OWNER_FRAMEWORK_SLACK] = "framework, reserved unused", [OWNER_OTHER_PROCESSES] = "other processes",
	[OWNER_CONTEXT] = "CUDA context and modules", [OWNER_UNEXPLAINED] = "unexplained", [OWNER_FREE] = "free",
	[OWNER_MANAGED] = "managed (beside the sum)",
};

/* Beside a role there is no room for more. */
static const char *const short_words[OWNER_MAX] = {
	[OWNER_DEVICE] = "cudaMalloc", [OWNER_ARRAY] = "arrays", [OWNER_ASYNC] = "stream-ordered", [OWNER_VMM] = "VMM", [OWNER_IMPORTED] = "imported",
};

/* A row is shown when it holds something; free always. What cannot be known lies in the unexplained, whose row says so. */
static bool is_shown(const struct fact_owner_row *row) { return (row->bytes != 0 && row->bytes != CUF_UNKNOWN) || row->kind == OWNER_FREE; }

/* "unexplained: context, other processes": the unknown rows that may be in it. */
static void unexplained_name(const struct fact_device *device, char *out, size_t bytes)
{
	static const char *const parts[OWNER_MAX] = { [OWNER_CONTEXT] = "context", [OWNER_OTHER_PROCESSES] = "others", [OWNER_POOL_SLACK] = "pools" };
	int used = snprintf(out, bytes, "unexplained");
	bool any = false;
	for (size_t i = 0; i < device->owner_count && used > 0 && (size_t)used < bytes; i++) {
		const struct fact_owner_row *row = &device->owners[i];
		if (row->bytes != CUF_UNKNOWN || !parts[row->kind])
			continue;
		used += snprintf(out + used, bytes - (size_t)used, "%s%s", any ? ", " : " (", parts[row->kind]);
		any = true;
	}
	if (any && used > 0 && (size_t)used < bytes)
		snprintf(out + used, bytes - (size_t)used, ")");
}

/* pid: of the process that the device's rows itemise; it goes without saying. */
static void row_name(const struct fact_device *device, const struct fact_owner_row *row, uint32_t pid, char *out, size_t bytes)
{
	int used;
	if (row->kind == OWNER_UNEXPLAINED) {
		unexplained_name(device, out, bytes);
		return;
	}
	if (row->name) {
		snprintf(out, bytes, "other: %s, pid %u", row->name, row->pid);
		return;
	}
	used = row->role ? snprintf(out, bytes, "%s%s, %s", row->role_basis == BASIS_INFERRED ? "likely " : "", row->role,
						short_words[row->kind] ? short_words[row->kind] : words[row->kind]) :
		snprintf(out, bytes, "%s", words[row->kind]);
	if (row->pid && row->pid != pid && used > 0 && (size_t)used < bytes)
		used += snprintf(out + used, bytes - (size_t)used, ", pid %u", row->pid);
	if (!row->in_sum && row->kind != OWNER_MANAGED && used > 0 && (size_t)used < bytes)
		snprintf(out + used, bytes - (size_t)used, " (beside the sum)");
}

static void add_row(struct table *table, const struct fact_device *device, const struct fact_owner_row *row, uint32_t pid)
{
	const char *basis = row->by_nvml && row->basis == BASIS_OBSERVED ? "NVML" : basis_names[row->basis];
	char name[96], count[48] = "";
	row_name(device, row, pid, name, sizeof name);
	if (row->count != CUF_UNKNOWN && row->count)
		snprintf(count, sizeof count, "%s %s", units_count(row->count).s, row->count == 1 ? "block" : "blocks");
	table_row(table, (const char *[]){ name, units_bytes(row->bytes).s, row->in_sum ? units_percent(row->bytes, device->total_bytes).s : "",
		count, basis });
}

/* The limit below which rows are summed up, so that at most `rows` remain; free always stays. */
static uint64_t smallest_shown(const struct fact_device *device, unsigned rows)
{
	uint64_t limit = 0;
	for (;;) {
		uint64_t next = UINT64_MAX;
		unsigned shown = limit ? 1 : 0;
		for (size_t i = 0; i < device->owner_count; i++) {
			const struct fact_owner_row *row = &device->owners[i];
			if (!is_shown(row) || (row->bytes < limit && row->kind != OWNER_FREE))
				continue;
			shown++;
			if (row->kind != OWNER_FREE && row->bytes < next)
				next = row->bytes;
		}
		if (shown <= rows || next == UINT64_MAX)
			return limit;
		limit = next + 1;
	}
}

static void add_rest(struct table *table, const struct fact_device *device, uint64_t limit)
{
	uint64_t bytes = 0, count = 0;
	char name[64];
	for (size_t i = 0; i < device->owner_count; i++) {
		const struct fact_owner_row *row = &device->owners[i];
		if (!is_shown(row) || row->bytes >= limit || row->kind == OWNER_FREE || !row->in_sum)
			continue;
		bytes += row->bytes;
		count++;
	}
	if (!count)
		return;
	snprintf(name, sizeof name, "%u smaller rows", (unsigned)count);
	table_row(table, (const char *[]){ name, units_bytes(bytes).s, units_percent(bytes, device->total_bytes).s, "", "" });
}

unsigned text_owners(const struct text *text, const struct fact_device *device, unsigned rows)
{
	static const struct table_column columns[] = {
		{ NULL, TABLE_FLEX }, { NULL, TABLE_RIGHT }, { NULL, TABLE_RIGHT }, { NULL, TABLE_RIGHT }, { NULL, TABLE_LEFT },
	};
	struct table *table = table_new(text->style, columns, 5);
	uint64_t limit = smallest_shown(device, rows), sum = 0;
	uint32_t pid = device->focus < text->facts->process_count ? text->facts->processes[device->focus].pid : 0;
	unsigned lines = 1;
	char says[64];
	for (size_t i = 0; i < device->owner_count; i++) {
		const struct fact_owner_row *row = &device->owners[i];
		if (row->in_sum && row->bytes != CUF_UNKNOWN)
			sum += row->bytes;
		if (row->kind == OWNER_FREE && limit)
			add_rest(table, device, limit), lines++;
		if (!is_shown(row) || (row->bytes < limit && row->kind != OWNER_FREE))
			continue;
		add_row(table, device, row, pid);
		lines++;
	}
	if (device->total_bytes == CUF_UNKNOWN)
		snprintf(says, sizeof says, "driver's total unknown");
	else if (sum == device->total_bytes)
		snprintf(says, sizeof says, "= driver total");
	else
		snprintf(says, sizeof says, "driver says %s", units_bytes(device->total_bytes).s);
	table_row(table, (const char *[]){ "sum", units_bytes(sum).s, units_percent(sum, device->total_bytes).s, "", says });
	table_tone(table, STYLE_HEAD);
	table_print(table, text->out, 2);
	table_free(table);
	return lines;
}
