/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where an HTML report goes without -o, and the browser that shows it.
 *
 * Contract: nothing is chosen unless stdout is a terminal. The browser is started only on a desktop
 * (DISPLAY or WAYLAND_DISPLAY), without waiting for it. html_place_show prints the path.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>

struct html_place { char path[PATH_MAX]; }; /* "": nothing was chosen */

/* For this recording or directory. False: stdout is no terminal. */
bool html_place_choose(struct html_place *place, const char *recording);
void html_place_show(const struct html_place *place);
