# SPDX-License-Identifier: Apache-2.0
"""A process that dies in the middle of its tests."""
import os
import signal


def test_before():
	bytearray(2 << 20)


def test_crashes():
	os.kill(os.getpid(), signal.SIGKILL)


def test_after():
	bytearray(3 << 20)
