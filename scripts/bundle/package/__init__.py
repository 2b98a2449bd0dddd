# SPDX-License-Identifier: Apache-2.0
"""The command cuflight and its recorder, as files of this package."""
import os
import sysconfig


def library():
    """The path of libcuflight.so, for LD_PRELOAD."""
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), 'libcuflight.so')


def command():
    """The path of the command, in whichever scheme it was installed."""
    here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    user = sysconfig.get_preferred_scheme('user') if hasattr(sysconfig, 'get_preferred_scheme') else 'posix_user'
    folders = [os.path.join(here, 'bin'),  # pip install --target
               os.path.join(here, '..', '..', '..', 'bin'),  # a virtual environment, --prefix
               sysconfig.get_path('scripts'), sysconfig.get_path('scripts', user)]
    for folder in folders:
        path = os.path.join(folder, 'cuflight')
        if os.access(path, os.X_OK):
            return os.path.normpath(path)
    raise FileNotFoundError('cannot find the command cuflight in ' + ', '.join(folders))
