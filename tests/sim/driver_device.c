/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The devices' bytes. With SIMCUDA_STATE they are in a file that all processes of a run share, else
 * in private memory. Bytes of a process that is gone, also by SIGKILL, are released at the next
 * access; a slot identifies its process by id and start time. The mutex is robust, so a process
 * killed inside it does no harm. Memory exported to other processes is counted once, in its own
 * table, until its last holder releases it or dies.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/sim/driver.h"

#define PROCESSES 64
#define EXPORTS 128
#define READY 0x53494d4355444131ull

struct process { uint64_t start_ticks; uint32_t pid; uint64_t used_bytes[DEVICES_MAX]; };
struct exported { uint64_t id, bytes; int device; uint32_t holders[PROCESSES]; };
struct shared {
	uint64_t ready, last_id;
	pthread_mutex_t mutex;
	struct process processes[PROCESSES];
	struct exported exports[EXPORTS];
};

static struct shared *shared;
static int slot = -1;

uint64_t process_start_ticks(pid_t pid)
{
	char path[64], text[1024];
	snprintf(path, sizeof path, "/proc/%d/stat", pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
	if (fd >= 0)
		close(fd);
	if (n <= 0)
		return 0;
	text[n] = 0;
	char *at = strrchr(text, ')'); /* the name may hold anything */
	if (!at || at[2] == 'Z' || at[2] == 'X')
		return 0; /* a zombie holds nothing */
	for (int field = 2; field < 22 && at; field++)
		at = strchr(at + 1, ' ');
	return at ? strtoull(at, NULL, 10) : 0;
}

bool process_alive(pid_t pid, uint64_t start_ticks)
{
	if (pid == getpid())
		return true;
	if (kill(pid, 0) && errno == ESRCH)
		return false;
	return process_start_ticks(pid) == start_ticks;
}

static void forget(int index)
{
	memset(&shared->processes[index], 0, sizeof shared->processes[index]);
	for (int i = 0; i < EXPORTS; i++) {
		struct exported *e = &shared->exports[i];
		uint64_t left = 0;
		e->holders[index] = 0;
		for (int p = 0; e->id && p < PROCESSES; p++)
			left += e->holders[p];
		if (!left)
			memset(e, 0, sizeof *e);
	}
}

static void shared_lock(void)
{
	if (pthread_mutex_lock(&shared->mutex) == EOWNERDEAD)
		pthread_mutex_consistent(&shared->mutex);
}

static void shared_unlock(void) { pthread_mutex_unlock(&shared->mutex); }

static void reap(void)
{
	for (int i = 0; i < PROCESSES; i++) {
		const struct process *p = &shared->processes[i];
		if (p->pid && i != slot && !process_alive((pid_t)p->pid, p->start_ticks))
			forget(i);
	}
}

static void shared_prepare(void)
{
	pthread_mutexattr_t how;
	pthread_mutexattr_init(&how);
	pthread_mutexattr_setpshared(&how, PTHREAD_PROCESS_SHARED);
	pthread_mutexattr_setrobust(&how, PTHREAD_MUTEX_ROBUST);
	pthread_mutex_init(&shared->mutex, &how);
	shared->ready = READY;
}

static bool shared_map(void)
{
	int fd = settings.state ? open(settings.state, O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;
	if (settings.state && fd < 0)
		return false;
	bool grown = fd < 0 || (!flock(fd, LOCK_EX) && !ftruncate(fd, sizeof *shared));
	int flags = fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
	shared = MAP_FAILED;
	if (grown)
		shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, flags, fd, 0);
	if (shared != MAP_FAILED && shared->ready != READY)
		shared_prepare();
	if (fd >= 0) {
		flock(fd, LOCK_UN); /* closing would not: the mapping keeps the open file */
		close(fd);
	}
	return shared != MAP_FAILED;
}

/* Takes a slot; an exec keeps pid and start time, and starts with nothing. */
bool device_join(void)
{
	uint64_t ticks = process_start_ticks(getpid());
	int found = -1;
	if (!shared && !shared_map())
		return false;
	shared_lock();
	reap();
	for (int i = 0; i < PROCESSES; i++) {
		bool own = shared->processes[i].pid == (uint32_t)getpid();
		if (own || (found < 0 && !shared->processes[i].pid))
			found = i;
		if (own)
			break;
	}
	if (found >= 0) {
		forget(found);
		shared->processes[found].pid = (uint32_t)getpid();
		shared->processes[found].start_ticks = ticks;
		slot = found;
	}
	shared_unlock();
	return found >= 0;
}

/* after the exit handlers, so that what they free is still counted */
__attribute__((destructor)) static void device_leave(void)
{
	if (!shared || slot < 0 || shared->processes[slot].pid != (uint32_t)getpid())
		return;
	shared_lock();
	forget(slot);
	shared_unlock();
	slot = -1;
}

static uint64_t used_bytes(int device)
{
	uint64_t used = 0;
	for (int i = 0; i < PROCESSES; i++)
		used += shared->processes[i].used_bytes[device];
	for (int i = 0; i < EXPORTS; i++)
		if (shared->exports[i].id && shared->exports[i].device == device)
			used += shared->exports[i].bytes;
	return used;
}

static uint64_t free_now(int device)
{
	uint64_t used = used_bytes(device) + settings.other_bytes + settings.tenant_bytes;
	return used < settings.total_bytes ? settings.total_bytes - used : 0;
}

bool device_take(int device, uint64_t bytes)
{
	if (slot < 0)
		return false;
	shared_lock();
	reap();
	bool fits = bytes <= free_now(device);
	if (fits)
		shared->processes[slot].used_bytes[device] += bytes;
	shared_unlock();
	return fits;
}

void device_give(int device, uint64_t bytes)
{
	if (slot < 0)
		return; /* after the end of the process's slot */
	shared_lock();
	shared->processes[slot].used_bytes[device] -= bytes;
	shared_unlock();
}

uint64_t device_free_bytes(int device)
{
	shared_lock();
	reap();
	uint64_t free_bytes = free_now(device);
	shared_unlock();
	return free_bytes;
}

bool device_look(void) { return shared || shared_map(); }

unsigned device_users(int device, struct device_user *users, unsigned max)
{
	unsigned count = 0;
	shared_lock();
	reap();
	for (int i = 0; i < PROCESSES; i++) {
		const struct process *p = &shared->processes[i];
		if (!p->pid || !p->used_bytes[device])
			continue;
		if (count < max)
			users[count] = (struct device_user){ .pid = p->pid, .bytes = p->used_bytes[device] };
		count++;
	}
	shared_unlock();
	for (int i = 0; i < settings.tenant_count; i++, count++)
		if (count < max)
			users[count] = (struct device_user){ .pid = settings.tenants[i].pid, .bytes = settings.tenants[i].bytes, .untold = settings.tenants[i].untold };
	return count;
}

int shared_export(int device, uint64_t bytes)
{
	int found = -1;
	shared_lock();
	for (int i = 0; i < EXPORTS && found < 0; i++)
		if (!shared->exports[i].id)
			found = i;
	if (found >= 0) {
		struct exported *e = &shared->exports[found];
		*e = (struct exported){.id = ++shared->last_id, .bytes = bytes, .device = device};
		e->holders[slot] = 1;
		shared->processes[slot].used_bytes[device] -= bytes;
	}
	shared_unlock();
	return found;
}

bool shared_import(int index, uint64_t id, uint64_t *bytes, int *device)
{
	bool found = false;
	shared_lock();
	reap();
	if (index >= 0 && index < EXPORTS && id && shared->exports[index].id == id) {
		shared->exports[index].holders[slot]++;
		*bytes = shared->exports[index].bytes;
		*device = shared->exports[index].device;
		found = true;
	}
	shared_unlock();
	return found;
}

void shared_release(int index)
{
	if (slot < 0)
		return;
	shared_lock();
	struct exported *e = &shared->exports[index];
	uint64_t left = 0;
	if (e->holders[slot])
		e->holders[slot]--;
	for (int p = 0; p < PROCESSES; p++)
		left += e->holders[p];
	if (!left)
		memset(e, 0, sizeof *e);
	shared_unlock();
}

uint64_t shared_id(int index) { return shared->exports[index].id; }
