# SPDX-License-Identifier: Apache-2.0
"""Tests with limits. A test whose name ends in `exceeds` or `leaks` must fail by its limit."""
import ctypes

import pytest

cudart = ctypes.CDLL('libcudart.so.13')
kept = []


def hold_device(count):
	at = ctypes.c_void_p()
	assert cudart.cudaMalloc(ctypes.byref(at), ctypes.c_size_t(count)) == 0
	return at


def free_device(at):
	assert cudart.cudaFree(at) == 0


def hold_host(count):
	return bytearray(count)


@pytest.mark.limit_memory('10 MiB', kind='device')
def test_device_fits():
	free_device(hold_device(9 << 20))


@pytest.mark.limit_memory('10 MiB', kind='device')
def test_device_exceeds():
	free_device(hold_device(12 << 20))


@pytest.mark.limit_leaks('1 MiB', kind='device')
def test_device_leaks():
	kept.append(hold_device(2 << 20))


@pytest.mark.limit_leaks('1 MiB', kind='device')
def test_device_is_freed():
	free_device(hold_device(2 << 20))


@pytest.mark.limit_memory('1 B', kind='device')
def test_own_failure_counts_first():
	free_device(hold_device(1 << 20))
	assert False, 'its own failure'


@pytest.mark.limit_memory('2 MB')
def test_host_fits():
	hold_host(1 << 20)


@pytest.mark.limit_memory('2 MB')
def test_host_exceeds():
	hold_host(3 << 20)


@pytest.mark.limit_leaks('1 MB')
def test_host_leaks():
	kept.append(hold_host(5 << 20))


@pytest.mark.limit_leaks('1 MB')
def test_cycles_are_collected():
	cycle = [hold_host(5 << 20)]
	cycle.append(cycle)


@pytest.mark.limit_memory('100 MiB', kind='device')
@pytest.mark.limit_memory('6 MiB', kind='python')
def test_two_limits_exceeds():
	hold_host(7 << 20)


@pytest.mark.limit_memory('1 parsec')
def test_bad_mark():
	pass


@pytest.mark.parametrize('mebibytes', [1, 2, 3])
@pytest.mark.limit_memory('2.5 MiB')
def test_parameters(mebibytes):
	hold_host(mebibytes << 20)


def test_unlimited():
	hold_host(4 << 20)
