// SPDX-License-Identifier: Apache-2.0
// rmm_real INITIAL: plays lines as model_player.c does, on RMM's own pool.
#include <rmm/mr/device/cuda_memory_resource.hpp>
#include <rmm/mr/device/pool_memory_resource.hpp>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>

using cuda_resource = rmm::mr::cuda_memory_resource;
using pool_resource = rmm::mr::pool_memory_resource<cuda_resource>;

struct block {
	void *at;
	std::size_t bytes;
	rmm::cuda_stream_view stream;
};

int main(int argc, char **argv)
{
	std::size_t initial = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 0, free_bytes, total;
	cuda_resource upstream;
	cudaMemGetInfo(&free_bytes, &total);
	std::printf("capacity %zu\n", free_bytes);
	auto pool = std::make_unique<pool_resource>(&upstream, initial);
	std::map<unsigned, block> blocks;
	unsigned number, group;
	unsigned long long bytes;
	char line[128];
	while (std::fgets(line, sizeof line, stdin)) {
		const char *refused = "";
		if (*line == 'r') {
			blocks.clear();
			pool.reset();
			pool = std::make_unique<pool_resource>(&upstream, initial);
		} else if (std::sscanf(line, "a %u %llu %u", &number, &bytes, &group) == 3) {
			try {
				blocks[number] = {pool->allocate(bytes), bytes, rmm::cuda_stream_view{}};
			} catch (const rmm::out_of_memory &) {
				refused = " -";
			}
		} else if (std::sscanf(line, "f %u", &number) == 1) {
			auto found = blocks.find(number);
			if (found != blocks.end()) {
				pool->deallocate(found->second.at, found->second.bytes);
				blocks.erase(found);
			}
		}
		std::printf("%zu%s\n", pool->pool_size(), refused);
	}
	return 0;
}
