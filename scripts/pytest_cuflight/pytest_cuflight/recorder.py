# SPDX-License-Identifier: Apache-2.0
"""The recorder in this process, and the command that reads its recording.

The recorder is libcuflight.so, which is preloaded or absent. Its functions are those of cuflight.h.
"""
import ctypes
import json
import os
import shutil
import subprocess

NAME_BYTES = 119  # longer names are cut by the recorder
MAGIC = b'CUFLIGHT'
COMMAND_SECONDS = 120


class CommandError(Exception):
	"""The command could not read the recording; the text is its reason."""


def _functions():
	library = ctypes.CDLL(None)
	try:
		active = library.cuflight_1_active
		start = library.cuflight_1_phase_start
		end = library.cuflight_1_phase_end
	except AttributeError:
		return None
	active.restype = ctypes.c_int
	start.argtypes, start.restype = [ctypes.c_char_p], ctypes.c_uint64
	end.argtypes, end.restype = [ctypes.c_uint64], None
	return active, start, end


def phase_name(test):
	"""A name that fits. The end of a long one distinguishes tests better than its begin."""
	name = test.encode('utf-8', 'replace').replace(b'\0', b'')
	if len(name) > NAME_BYTES:
		name = b'...' + name[3 - NAME_BYTES:]
	return name


def _mappings():
	"""Paths of the files mapped into this process, with whether the mapping is shared."""
	with open('/proc/self/maps', 'rb') as maps:
		for line in maps:
			fields = line.split(None, 5)
			if len(fields) == 6 and fields[5].startswith(b'/'):
				path = fields[5].rstrip(b'\n').replace(b'\\012', b'\n')
				yield os.fsdecode(path), b's' in fields[1]


def find_recording():
	"""The file that the recorder of this process writes. None: there is none yet."""
	seen = set()
	for path, shared in _mappings():
		if not shared or path in seen:
			continue
		seen.add(path)
		try:
			with open(path, 'rb') as file:
				if file.read(len(MAGIC)) == MAGIC:
					return path
		except OSError:
			continue
	return None


def find_command():
	"""The command of the same installation as the library, else that of PATH. None: not found."""
	for path, _ in _mappings():
		if os.path.basename(path) == 'libcuflight.so':
			folder = os.path.dirname(path)
			for place in (folder, os.path.join(folder, '..', 'bin'), os.path.join(folder, '..', '..', 'bin')):
				command = os.path.join(place, 'cuflight')
				if os.access(command, os.X_OK) and os.path.isfile(command):
					return os.path.normpath(command)
			break
	return shutil.which('cuflight')


def read_phases(command, recording, phase=None, sites=False):
	"""The rows of `cuflight phases`; with a phase: only that one, also with its call sites."""
	line = [command, 'phases', '--json']
	if phase:
		line.append('--id=%d' % phase)
	if sites:
		line.append('--sites')
	environment = {name: value for name, value in os.environ.items()
	               if name != 'LD_PRELOAD' and not name.startswith('CUFLIGHT_')}
	try:
		done = subprocess.run(line + ['--', recording], env=environment, stdin=subprocess.DEVNULL,
		                      stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=COMMAND_SECONDS)
	except (OSError, subprocess.TimeoutExpired) as error:
		raise CommandError('cannot run %s: %s' % (command, error)) from error
	if done.returncode:
		raise CommandError(done.stderr.decode('utf-8', 'replace').strip() or
		                   '%s ended with status %d' % (command, done.returncode))
	return json.loads(done.stdout.decode('utf-8', 'replace'))['phases']


class Recorder:
	"""Marks phases in the recording of this process, and reads them."""

	def __init__(self, functions):
		self._active, self._start, self._end = functions
		self._recording = None
		self._pid = os.getpid()

	def begin(self, test):
		"""Begins a phase of the whole process. Its id; 0: it is not recorded."""
		return self._start(phase_name(test))

	def end(self, phase):
		self._end(phase)

	def is_active(self):
		return bool(self._active())

	def recording(self):
		"""A forked child has its own recording, or none."""
		if self._recording is None or self._pid != os.getpid():
			self._recording, self._pid = find_recording(), os.getpid()
		return self._recording

	def phases(self, phase=None, sites=False):
		recording, command = self.recording(), find_command()
		if not recording:
			raise CommandError('no recording of this process was found')
		if not command:
			raise CommandError('the command cuflight was not found; put it into PATH')
		return read_phases(command, recording, phase, sites)


def attach():
	"""The recorder of this process. None: there is none, or it is switched off."""
	functions = _functions()
	if functions is None or not functions[0]():
		return None
	return Recorder(functions)
