# SPDX-License-Identifier: Apache-2.0
"""Limits on the GPU and host memory of tests, recorded by cuflight."""
