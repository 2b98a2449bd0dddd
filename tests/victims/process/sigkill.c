/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the truth and is killed immediately: nothing can be flushed any more. */
#include <signal.h>

#include "tests/victims/doors.h"

int main(int argc, char **argv)
{
	size_t held = 0;
	door_open(argc, argv);
	for (size_t i = 1; i <= 30; i++) {
		CUdeviceptr scratch = take(i * 100 * KiB);
		take(i * MiB);
		held += i * MiB;
		MUST(cu.release(scratch));
	}
	say("live kind device bytes %zu count 30", held);
	say("clean incidents");
	say("end state killed");
	say_device();
	kill(getpid(), SIGKILL);
	return BROKEN;
}
