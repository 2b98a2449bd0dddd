/* SPDX-License-Identifier: Apache-2.0 */
#include "analysis/cmd/target/embedded.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

bool embedded_is_empty(const char *begin, const char *end) { return begin == end; }

int embedded_write(int fd, const char *begin, const char *end)
{
	while (begin < end) {
		ssize_t n = write(fd, begin, (size_t)(end - begin));

		if (n > 0)
			begin += n;
		else if (errno != EINTR)
			return -1;
	}
	return 0;
}

int embedded_file(const char *name, const char *begin, const char *end)
{
	int fd = memfd_create(name, MFD_CLOEXEC);

	if (fd < 0 || !embedded_write(fd, begin, end))
		return fd;
	close(fd);
	return -1;
}
