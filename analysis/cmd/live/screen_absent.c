/* SPDX-License-Identifier: Apache-2.0 */
/* A command that was built without ncursesw. */
#include "analysis/cmd/live/screen.h"

#include "analysis/cmd/cli/say.h"

int screen_run(struct watch *watch, const struct screen_options *options)
{
	(void)watch, (void)options;
	say_info("this build of cuflight has no interactive top: it was made without ncursesw. "
		 "Install libncurses-dev and run make again. Printing one frame");
	return -1;
}
