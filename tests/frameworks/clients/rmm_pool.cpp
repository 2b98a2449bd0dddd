// SPDX-License-Identifier: Apache-2.0
// rmm_pool pool|arena|async: RMM, which is headers alone up to 25.08, allocates through one of its resources and says what
// that one has, then asks for more than there is. A pool starts at 64 MiB, an arena of the whole device is no test of growth.
#include <rmm/mr/device/arena_memory_resource.hpp>
#include <rmm/mr/device/cuda_async_memory_resource.hpp>
#include <rmm/mr/device/cuda_memory_resource.hpp>
#include <rmm/mr/device/pool_memory_resource.hpp>

#include <cstdio>
#include <cstring>
#include <unistd.h>
#include <vector>

using cuda_resource = rmm::mr::cuda_memory_resource;

static constexpr std::size_t MiB = 1 << 20, requests[] = {1 * MiB, 3 * MiB, 7 * MiB, 20 * MiB, 100 * MiB}, refused = 20ull << 30;

// What the resource itself took from the driver, where it says so.
class counting final : public rmm::mr::device_memory_resource {
public:
	std::size_t bytes = 0;

private:
	cuda_resource upstream;
	void *do_allocate(std::size_t count, rmm::cuda_stream_view stream) override
	{
		void *at = upstream.allocate(count, stream);
		bytes += count;
		return at;
	}
	void do_deallocate(void *at, std::size_t count, rmm::cuda_stream_view stream) override
	{
		bytes -= count;
		upstream.deallocate(at, count, stream);
	}
};

// Ends the process with all that it holds, as a server that ran out of memory.
template <class Resource> [[noreturn]] static void use(Resource &resource, const counting *taken)
{
	std::vector<void *> held;
	std::size_t used = 0;
	for (std::size_t bytes : requests) {
		held.push_back(resource.allocate(bytes, rmm::cuda_stream_view{}));
		used += bytes;
	}
	resource.deallocate(held[2], requests[2], rmm::cuda_stream_view{});
	used -= requests[2];
	std::printf("books regions %zu used %zu\n", taken ? taken->bytes : used, used);
	try {
		resource.allocate(refused, rmm::cuda_stream_view{});
	} catch (const rmm::out_of_memory &) {
		std::printf("refused %zu\n", refused);
	}
	std::fflush(stdout);
	_exit(1);
}

int main(int argc, char **argv)
{
	counting upstream;
	if (argc > 1 && !std::strcmp(argv[1], "pool")) {
		rmm::mr::pool_memory_resource<counting> pool(&upstream, 64 * MiB);
		use(pool, &upstream);
	}
	if (argc > 1 && !std::strcmp(argv[1], "arena")) {
		rmm::mr::arena_memory_resource<counting> arena(&upstream, 256 * MiB);
		use(arena, &upstream);
	}
	if (argc > 1 && !std::strcmp(argv[1], "async")) {
		rmm::mr::cuda_async_memory_resource async;
		use(async, nullptr);
	}
	std::fprintf(stderr, "usage: rmm_pool pool|arena|async\n");
	return 2;
}
