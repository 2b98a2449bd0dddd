/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sandboxes_itself eperm|kill: works, then has the kernel refuse every further opening of a file and
 * every question about a segment of System V, or kill the process for it, as sandboxes do. Then it
 * works on: a segment, 100 MiB in blocks, threads, and a device if one is already open.
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BLOCK_BYTES (1u << 20)
#define BLOCKS 100
#define SEGMENT_BYTES (1u << 20)

static void sandbox(uint32_t verdict)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_shmctl, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, verdict),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof code / sizeof *code, code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) {
		perror("sandboxes_itself");
		exit(2);
	}
}

static void *work(void *sum)
{
	static unsigned char *blocks[BLOCKS];

	for (unsigned i = 0; i < BLOCKS; i++) {
		blocks[i] = malloc(BLOCK_BYTES);
		memset(blocks[i], (int)i, BLOCK_BYTES);
		usleep(1000); /* long enough for whoever samples by time */
	}
	for (unsigned i = 0; i < BLOCKS; i++) {
		*(unsigned *)sum += blocks[i][i];
		free(blocks[i]);
	}
	return NULL;
}

/* Removed before the sandbox is entered, so that it goes with its last user. */
static char *attach(int id)
{
	char *at = shmat(id, NULL, 0);

	return at == (void *)-1 ? NULL : at;
}

int main(int argc, char **argv)
{
	int id = shmget(IPC_PRIVATE, SEGMENT_BYTES, 0600);
	char *segment = attach(id), *again;
	unsigned sum = 0;
	pthread_t thread;

	if (argc < 2 || !segment || shmctl(id, IPC_RMID, NULL))
		return 2;
	sandbox(strcmp(argv[1], "kill") == 0 ? SECCOMP_RET_KILL_PROCESS
	                                     : SECCOMP_RET_ERRNO | 1 /* EPERM */);
	again = attach(id);
	if (!again || shmdt(segment) || shmdt(again))
		return 2;
	pthread_create(&thread, NULL, work, &sum);
	pthread_join(thread, NULL);
	work(&sum);
	printf("worked on, sum %u\n", sum);
	return 3;
}
