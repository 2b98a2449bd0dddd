// SPDX-License-Identifier: Apache-2.0
// Keeps events in a std::vector, whose code is compiled into it. grows MIB: up to so much. Prints
// "holds BYTES at grows.cpp:LINE" every MiB.
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <unistd.h>
#include <vector>

struct Event {
	std::string name;
	std::vector<char> body;
};

template <typename Kind> class EventLog {
	std::vector<Kind> events;
	std::map<std::pair<int, std::string>, std::string> names;

public:
	__attribute__((noinline)) int record(int n)
	{
		events.push_back({ std::string(40, 'x'), {} });
		events.back().body.resize(1 << 17, 1); int line = __LINE__;
		names[{ n, "event" }] = std::string(64, 'y');
		return line;
	}
	size_t bytes() const { return events.size() << 17; }
};

int main(int count, char **words)
{
	long most = count > 1 ? atol(words[1]) : 1 << 20;
	auto *log = new EventLog<Event>;
	for (long n = 0; n < most * 8; n++) {
		int line = log->record((int)n);
		if (n % 8 != 7)
			continue;
		printf("holds %zu at grows.cpp:%d\n", log->bytes(), line);
		fflush(stdout);
		usleep(2000);
	}
	return 0;
}
