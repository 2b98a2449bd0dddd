/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The player as an executable file, inside the command: player/player.c, which make builds first.
 *
 * It is no part of the command, because its allocations must be the history's and nobody else's:
 * the command's libraries allocate before main, and a block of 70 KB that they keep moves what an
 * allocator does later (mimalloc had 55.2 MiB with it and 62.7 MiB without).
 *
 * Contract: constant bytes from player_image to player_image_end. Its arguments: player/player.c.
 */
#ifndef ANALYSIS_WHAT_IF_HOST_PLAYER_IMAGE_H
#define ANALYSIS_WHAT_IF_HOST_PLAYER_IMAGE_H

extern const char player_image[], player_image_end[];

#endif
