/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The player: a process that does nothing except play a history of malloc and free. The allocator
 * is whatever LD_PRELOAD and the environment have made it.
 *
 * Contract: player_main is called first in main with its arguments (argv[1] is PLAY_WORD) and
 * returns the exit status. It reads the history from the descriptor in argv[2], writes one struct
 * play_answer to that in argv[3], and takes its limits from argv[4..6]. Threads run one after
 * another, so that the same history gives the same answer. Its own tables are shared memory, which
 * is not counted.
 */
#ifndef ANALYSIS_WHAT_IF_HOST_PLAYER_H
#define ANALYSIS_WHAT_IF_HOST_PLAYER_H

int player_main(int argc, char **argv);

#endif
