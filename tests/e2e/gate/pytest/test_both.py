# SPDX-License-Identifier: Apache-2.0
"""Marks that pytest-memray and this plugin read alike, and one that pytest-memray leaves to us."""
import pytest


@pytest.mark.limit_memory('24 MB')
def test_fits():
	bytearray(2 << 20)


@pytest.mark.limit_memory('1 MB')
def test_exceeds():
	bytearray(3 << 20)


@pytest.mark.limit_leaks('1 MB')
def test_frees():
	bytearray(3 << 20)


@pytest.mark.cuflight_limit_memory('1 MB', kind='python')
def test_ours_exceeds():
	bytearray(3 << 20)
