/* SPDX-License-Identifier: Apache-2.0 */
/* Sixteen bytes to text. */
#include "analysis/device/uuid.h"

#include <stdio.h>
#include <string.h>

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
