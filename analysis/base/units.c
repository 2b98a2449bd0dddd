/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes, counts, times and percentages to text and back. No printing here. */
#include "analysis/base/units.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "both/sizes.h"

static const struct unit_text unknown = { "?" };
static const char *const scale_names[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };

/* The unit in which the figure, rounded to three digits, stays below 1024. */
static unsigned scale_of(double *figure)
{
	unsigned scale = 0;
	while (*figure >= (scale ? 1023.5 : 1024) &&
	       scale + 1 < sizeof scale_names / sizeof *scale_names) {
		*figure /= 1024;
		scale++;
	}
	return scale;
}

/* As many decimals as leave `digits` significant digits after rounding; whole bytes have none. */
static int decimals_of(double figure, unsigned scale, int digits)
{
	int decimals = digits - 1;
	if (!scale)
		return 0;
	for (double next = 10; decimals > 0 && figure >= next - 0.5 * pow(10, -decimals);
	     next *= 10)
		decimals--;
	return decimals;
}

static double round_to_two_digits(double figure)
{
	double step = 0.1;
	while (figure >= 99.5 * step)
		step *= 10;
	return round(figure / step) * step;
}

/* sign: printed in front, "" for none. */
static struct unit_text scaled(double figure, const char *sign, int digits)
{
	struct unit_text text;
	unsigned scale = scale_of(&figure);
	int decimals = decimals_of(figure, scale, digits);
	if (digits == 2 && scale)
		figure = round_to_two_digits(figure);
	snprintf(text.s, sizeof text.s, "%s%.*f %s", sign, decimals, figure, scale_names[scale]);
	return text;
}

struct unit_text units_bytes(uint64_t bytes)
{
	if (bytes == CUF_UNKNOWN)
		return unknown;
	return scaled((double)bytes, "", 3);
}

struct unit_text units_bytes_rough(uint64_t bytes)
{
	if (bytes == CUF_UNKNOWN)
		return unknown;
	return scaled((double)bytes, "~", 2);
}

struct unit_text units_bytes_signed(double bytes)
{
	if (isnan(bytes))
		return unknown;
	return scaled(fabs(bytes), bytes < 0 ? "-" : "+", 3);
}

struct unit_text units_count(uint64_t count)
{
	struct unit_text text;
	char digits[24];
	if (count == CUF_UNKNOWN)
		return unknown;
	int length = snprintf(digits, sizeof digits, "%llu", (unsigned long long)count), out = 0;
	for (int i = 0; i < length; i++) {
		if (i && (length - i) % 3 == 0)
			text.s[out++] = ',';
		text.s[out++] = digits[i];
	}
	text.s[out] = 0;
	return text;
}

struct unit_text units_percent(uint64_t part, uint64_t whole)
{
	struct unit_text text;
	if (part == CUF_UNKNOWN || whole == CUF_UNKNOWN || !whole)
		return unknown;
	snprintf(text.s, sizeof text.s, "%.1f%%", 100.0 * (double)part / (double)whole);
	return text;
}

/* Rounded down: a duration must not reach the next unit before it is over. */
struct unit_text units_duration(uint64_t duration_ns)
{
	struct unit_text text;
	uint64_t s = duration_ns / 1000000000;
	if (duration_ns == CUF_UNKNOWN)
		return unknown;
	if (duration_ns < 1000000)
		snprintf(text.s, sizeof text.s, "%.0f us", floor((double)duration_ns / 1e3));
	else if (duration_ns < 1000000000)
		snprintf(text.s, sizeof text.s, "%.0f ms", floor((double)duration_ns / 1e6));
	else if (s < 60)
		snprintf(text.s, sizeof text.s, "%.1f s", floor((double)duration_ns / 1e8) / 10);
	else if (s < 3600)
		snprintf(text.s, sizeof text.s, "%um%02us", (unsigned)(s / 60), (unsigned)(s % 60));
	else if (s < 86400)
		snprintf(text.s, sizeof text.s, "%uh%02um", (unsigned)(s / 3600),
			 (unsigned)(s / 60 % 60));
	else
		snprintf(text.s, sizeof text.s, "%llud%02uh", (unsigned long long)(s / 86400),
			 (unsigned)(s / 3600 % 24));
	return text;
}

static bool local_time(uint64_t epoch_ns, struct tm *tm)
{
	time_t seconds = (time_t)(epoch_ns / 1000000000);
	return epoch_ns != CUF_UNKNOWN && localtime_r(&seconds, tm);
}

struct unit_text units_wall(uint64_t epoch_ns)
{
	struct unit_text text;
	struct tm tm;
	if (!local_time(epoch_ns, &tm))
		return unknown;
	snprintf(text.s, sizeof text.s, "%02u:%02u:%02u.%03u", (unsigned)tm.tm_hour % 24,
		 (unsigned)tm.tm_min % 60, (unsigned)tm.tm_sec % 61,
		 (unsigned)(epoch_ns / 1000000 % 1000));
	return text;
}

struct unit_text units_date(uint64_t epoch_ns)
{
	struct unit_text text;
	struct tm tm;
	if (!local_time(epoch_ns, &tm) ||
	    !strftime(text.s, sizeof text.s, "%Y-%m-%d %H:%M:%S", &tm))
		return unknown;
	return text;
}

bool units_parse_count(const char *text, uint64_t *count)
{
	char *end;
	if (*text < '0' || *text > '9')
		return false;
	errno = 0;
	*count = strtoull(text, &end, 10);
	return !errno && !*end;
}

bool units_parse_bytes(const char *text, uint64_t *bytes)
{
	return sizes_read(text, strlen(text), bytes);
}

const char *uuid_text(const uint8_t uuid[16], char out[UUID_TEXT])
{
	static const uint8_t none[16];
	size_t used = (size_t)sprintf(out, "GPU-");

	if (!memcmp(uuid, none, sizeof none))
		return NULL;
	for (size_t i = 0; i < 16; i++)
		used += (size_t)sprintf(out + used, "%s%02x",
					i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", uuid[i]);
	return out;
}
