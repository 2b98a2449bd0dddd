/* SPDX-License-Identifier: Apache-2.0 */
/* The text of live_page.html, which make looks at for changes. */
#include "analysis/view/live/frame.h"

__asm__(".section .rodata\n"
	".global live_page\n"
	"live_page: .incbin \"analysis/view/live/live_page.html\"\n"
	".byte 0\n"
	".previous\n");
