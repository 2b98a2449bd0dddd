/* SPDX-License-Identifier: Apache-2.0 */
/* The commands, in the order of the help. */
#include "analysis/cmd/cmd.h"

const struct cmd *const cmd_table[] = {
	&cmd_run,
	&cmd_report,
	&cmd_what_if,
	&cmd_top,
	&cmd_serve,
	&cmd_watch,
	&cmd_rules,
	&cmd_list,
	&cmd_pack,
	&cmd_clean,
	&cmd_check,
	&cmd_baseline,
	&cmd_diff,
	&cmd_phases,
	&cmd_export,
	&cmd_doctor,
	&cmd_env,
	&cmd_install,
	&cmd_help,
	NULL,
};
