/* SPDX-License-Identifier: Apache-2.0 */
/* make names the file that was built, PLAYER_FILE. */
#include "analysis/what_if/host/player_image.h"

__asm__(".section .rodata\n"
	".global player_image, player_image_end\n"
	"player_image:\n"
	".incbin \"" PLAYER_FILE "\"\n"
	"player_image_end:\n"
	".byte 0\n"
	".previous\n");
