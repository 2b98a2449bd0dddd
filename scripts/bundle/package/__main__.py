# SPDX-License-Identifier: Apache-2.0
"""python -m cuflight: the command."""
import os
import sys

from cuflight import command

path = command()
os.execv(path, [path] + sys.argv[1:])
