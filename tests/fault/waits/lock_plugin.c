/* SPDX-License-Identifier: Apache-2.0 */
/* A plugin whose constructor takes the program's lock. */
extern void program_lock(void);
extern void program_unlock(void);

__attribute__((constructor)) static void start(void)
{
	program_lock();
	program_unlock();
}
