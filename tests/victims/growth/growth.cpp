// SPDX-License-Identifier: Apache-2.0
// growth_cpp NAME [SECONDS]: one program of programs.txt. A leak keeps 20 MB a second, one request
// every 10 ms; the line that allocates what is kept ends with a comment that names the program.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

namespace {

// What a program keeps is still there at its end; its destructors come later.
constexpr std::size_t block = 2000, each = 100;
double seconds = 8;
std::minstd_rand chance;

// Each request also allocates something that it frees.
template <class Request> void serve(Request request)
{
	for (int left = int(seconds * 80); left > 0; left--) {
		std::vector<std::string> scratch(50, std::string(3000, 's'));
		for (std::size_t i = 0; i < each; i++)
			request();
		scratch.clear();
		std::this_thread::sleep_for(std::chrono::milliseconds(10));
	}
}

struct message { char text[block]; };

std::vector<std::unique_ptr<message>> kept;

void messages_kept()
{
	serve([&] {
		kept.push_back(std::make_unique<message>()); // leak: messages_kept
	});
}

struct node {
	std::shared_ptr<node> me;
	char body[block];
};

void shared_cycles()
{
	serve([] {
		auto fresh = std::make_shared<node>(); // leak: shared_cycles
		fresh->me = fresh;
	});
}

std::map<unsigned long, std::string> names;

void names_in_a_map()
{
	unsigned long number = 0;
	serve([&] {
		names[number++].assign(block, 'n'); // leak: names_in_a_map
	});
}

std::unordered_map<unsigned, std::string> answers;

void answers_by_key()
{
	serve([&] {
		unsigned key = static_cast<unsigned>(chance()) % 7000; // nearly full after two seconds
		if (!answers.count(key))
			answers.emplace(key, std::string(4 * block, 'a'));
	});
}

std::deque<std::unique_ptr<message>> queue;

void bounded_queue()
{
	serve([&] {
		queue.push_back(std::make_unique<message>());
		if (queue.size() > 8000)
			queue.pop_front();
	});
}

std::list<std::string> cache;

void least_recently_used()
{
	serve([&] {
		cache.emplace_front(block, 'c');
		if (cache.size() > 10000)
			cache.pop_back();
	});
}

std::vector<std::string> rows;

void sort_and_end()
{
	for (unsigned i = 0; i < 100000; i++)
		rows.push_back(std::to_string(chance()) + std::string(1000, 'r'));
	std::sort(rows.begin(), rows.end());
	std::printf("%zu\n", rows.size());
}

const std::map<std::string, void (*)()> programs{
	{ "messages_kept", messages_kept },
	{ "shared_cycles", shared_cycles },
	{ "names_in_a_map", names_in_a_map },
	{ "answers_by_key", answers_by_key },
	{ "bounded_queue", bounded_queue },
	{ "least_recently_used", least_recently_used },
	{ "sort_and_end", sort_and_end },
};

}

int main(int argc, char **argv)
{
	if (argc > 2)
		seconds = std::strtod(argv[2], nullptr);
	auto found = argc > 1 ? programs.find(argv[1]) : programs.end();
	if (found == programs.end())
		return 2;
	found->second();
}
