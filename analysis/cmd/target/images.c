/* SPDX-License-Identifier: Apache-2.0 */
/* make names the files that were built. A command that is not shipped has no recorder inside. */
#include "analysis/cmd/target/ask.h"
#include "analysis/cmd/target/library.h"

#define IMAGE(name, bytes) \
	__asm__(".section .rodata\n" \
		".global " name ", " name "_end\n" name ":\n" bytes "\n" name "_end:\n" \
		".byte 0\n" \
		".previous\n")

IMAGE("asker_image", ".incbin \"" ASKER_FILE "\"");
#ifdef RECORDER_FILE
IMAGE("recorder_image", ".incbin \"" RECORDER_FILE "\"");
#else
IMAGE("recorder_image", "");
#endif
