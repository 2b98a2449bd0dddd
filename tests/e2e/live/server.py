#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A small server on the simulated device. Each line of its standard input is an order; when it is
done, the file truth.PID has what the server holds. Orders: NAME MIB (weights, kv, keep: allocates
there), drop MIB (frees a block of keep), fail (a request that cannot fit, which it handles), name
TEXT (of the main thread, as JSON), churn N (allocates and frees), serve KIND (requests without end,
which keep something for each request, as a leak or as keys and values, or nothing; fragmented: a
cache of PyTorch's allocator in which a few tensors pin every segment, so that large requests fail,
which it handles). Its device is that of the argument."""
import ctypes
import json
import os
import random
import sys
import time

cu = ctypes.CDLL('libcuda.so.1')
held = {'weights': [], 'kv': [], 'keep': []}


def allocate(mib):
	block = ctypes.c_uint64()
	if cu.cuMemAlloc_v2(ctypes.byref(block), ctypes.c_size_t(mib << 20)):
		return None
	return block.value


def load_weights(mib):
	held['weights'].append((allocate(mib), mib))


def append_kv_cache(mib):
	held['kv'].append((allocate(mib), mib))


def keep(mib):
	held['keep'].append((allocate(mib), mib))


def drop(mib):
	for block in held['keep']:
		if block[1] == mib:
			held['keep'].remove(block)
			cu.cuMemFree_v2(ctypes.c_uint64(block[0]))
			return


def churn(times):
	for _ in range(times):
		cu.cuMemFree_v2(ctypes.c_uint64(allocate(1)))


def fail():
	assert allocate(1 << 20) is None
	churn(64)  # it goes on


def rename(text):
	ctypes.CDLL(None).prctl(15, json.loads(text).encode(), 0, 0, 0)


def remember_session():
	held['keep'].append((allocate(2), 2))


def work(blocks):
	blocks = [allocate(4) for _ in range(blocks)]
	time.sleep(0.02)
	for block in blocks:
		cu.cuMemFree_v2(ctypes.c_uint64(block))


def serve(kind):
	chance = random.Random(7)
	while None not in (block for block, _ in held['keep'][-1:] + held['kv'][-1:]):
		work(chance.randrange(2, 200 if kind == 'healthy' and chance.random() < 0.1 else 8))
		if kind == 'leak':
			remember_session()
		elif kind == 'kv':
			append_kv_cache(2)


class TorchSettings(ctypes.Structure):  # tests/victims/torch/c10_cuda.h
	names = ('Alloc', 'Free', 'GetInfo')
	_fields_ = [(name, ctypes.c_void_p) for name in names] + [('vmm', ctypes.c_void_p * 6), ('era', ctypes.c_int),
		('expandable', ctypes.c_bool), ('silent', ctypes.c_bool), ('reserved_max', ctypes.c_size_t)]


def open_torch():
	library = ctypes.CDLL(os.environ['TORCH_ALLOCATOR'])
	library.torch_malloc.restype = ctypes.c_void_p
	library.torch_malloc.argtypes = [ctypes.c_size_t]
	library.torch_free.argtypes = [ctypes.c_void_p]
	settings = TorchSettings(*(ctypes.cast(getattr(cu, f'cuMem{name}_v2'), ctypes.c_void_p) for name in TorchSettings.names), era=2)
	library.torch_open(ctypes.byref(settings))
	return library


def cache_prefix(torch, mib):
	return torch.torch_malloc(mib << 20)


def run_attention(torch, mib):
	return torch.torch_malloc(mib << 20)


def serve_fragmented():
	torch = open_torch()
	prefixes = []
	while not prefixes or prefixes[-1]:  # a burst takes all there is
		prefixes.append(cache_prefix(torch, 5))
	for index, prefix in enumerate(prefixes[:-1]):
		if index % 4:
			torch.torch_free(prefix)
	while True:
		assert not run_attention(torch, 300)
		for _ in range(64):  # it goes on with small ones
			torch.torch_free(run_attention(torch, 4))
		time.sleep(0.1)


def obey(order, argument):
	orders = {'weights': load_weights, 'kv': append_kv_cache, 'keep': keep, 'drop': drop,
		  'churn': churn}
	if order in orders:
		orders[order](int(argument))
	elif order == 'fail':
		fail()
	elif order == 'serve' and argument == 'fragmented':
		serve_fragmented()
	elif order == 'serve':
		serve(argument)
	elif order == 'name':
		rename(argument)


def tell(number):
	free, total = ctypes.c_size_t(), ctypes.c_size_t()
	cu.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total))
	truth = {key: sum(mib for _, mib in blocks) << 20 for key, blocks in held.items()}
	truth.update(orders=number, free=free.value, total=total.value)
	name = f'truth.{os.getpid()}'
	with open(name + '.new', 'w') as file:
		json.dump(truth, file)
	os.rename(name + '.new', name)


def main():
	context = ctypes.c_void_p()
	assert not cu.cuInit(0)
	device = int(sys.argv[1]) if sys.argv[1:] else 0
	assert not cu.cuDevicePrimaryCtxRetain(ctypes.byref(context), device)
	assert not cu.cuCtxSetCurrent(context)
	tell(0)
	for number, line in enumerate(sys.stdin, 1):
		order, _, argument = line.strip().partition(' ')
		obey(order, argument)
		tell(number)


main()
