# SPDX-License-Identifier: Apache-2.0
"""A program whose names are markup: of the file, the function, the argument and a variable."""
import sys

NAME = '</pre></script><script>boom()</script>"\'><img src=x onerror=boom()>'
SOURCE = 'def attack(kept):\n\tfor _ in range(40):\n\t\tkept.append(bytearray(1 << 20))\n'

space = {}
exec(compile(SOURCE, NAME + '.py', 'exec'), space)
code = space['attack'].__code__
names = {'co_name': NAME}
if hasattr(code, 'co_qualname'):
    names['co_qualname'] = NAME
kept = []
attack = type(space['attack'])(code.replace(**names), space, NAME)
attack(kept)
sys.exit(0)
