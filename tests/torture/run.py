#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""run.py BUILD [--seconds N] [--seed N] [--programs N] [--log FILE]

Random programs, native and recorded, must not differ.

Each seed gives one random program (program.c) and one random way to record it: mode, size, Python
frames, an allocator that is preloaded in front or behind, a start in the middle, a limit of its
addresses or a memory cgroup. The program runs natively and recorded. Output, exit status, descriptors and errno must be equal, because the program
prints them. Every recording must be readable, and its live set must equal what the program wrote
down. Some seeds are a Python program that puts allocators over the interpreter's own
(python_layers.py). A difference is printed with the command that repeats it. Exit 1 when there was one.

--log FILE makes a long run resumable: each seed's result is added to it, and the next run goes on
behind the last one. The counts are those of the whole file."""
import argparse
import atexit
import glob
import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, 'tests'))
from recording import Recording # noqa: E402 (its folder is found first)

DEVICE_SPACE = 0 # CUF_SPACE_DEVICE of interpose/abi/format.h
STEPS = 25
LIMIT_S = 60 # of one run; a run takes a second or two
ROOM_BYTES = 1 << 30 # for one program's recordings: each of its processes has one of 64 MiB or less
ADDRESS_LIMITS = [1536 << 20, 4 << 30] # more than the threads' arenas of glibc take
GROUP_LIMITS = [128 << 20, 512 << 20]
PLUGINS = 4 # copies of the plugin, each an object of its own: OPENED / 2 of loaders.c
# the recorder's, and those of mimalloc 2.0 about sizes, whose halves come as its threads do
OTHERS_LINES = re.compile(r'cuflight: |(mimalloc: error: )*(\(mi_\)aligned_alloc requires the size|$)')
ALLOCATORS = ['libjemalloc.so.2', 'libtcmalloc_minimal.so.4', 'libmimalloc.so.2']


def find_allocators():
	"""Those of ALLOCATORS that are installed, by full path."""
	cache = subprocess.run(['/sbin/ldconfig', '-p'], capture_output=True, text=True).stdout
	paths = [line.split('=> ')[1] for line in cache.splitlines() if '=> ' in line]
	return [path for path in paths if os.path.basename(path) in ALLOCATORS]


def build_layers(folder):
	"""The extension module for python_layers.py. False where it cannot be built."""
	command = [os.environ.get('CC', 'cc'), '-O1', '-shared', '-fPIC',
	           '-I' + sysconfig.get_path('include'), os.path.join(HERE, 'layers.c'),
	           '-o', os.path.join(folder, 'layers.so')]
	done = subprocess.run(command, capture_output=True, text=True)
	if done.returncode:
		print(f'no Python programs: {done.stderr.splitlines()[0]}', file=sys.stderr)
	return not done.returncode


class Groups:
	"""Memory cgroups, one of each limit; none where this machine lets us make none."""

	SCRIPT = '. "$1/tests/memory_cgroup.bash"; memory_cgroup "$2" "$3" && echo "$group"'

	def __init__(self):
		self.paths = []
		for limit in GROUP_LIMITS:
			command = ['bash', '-c', self.SCRIPT, '-', ROOT, f'torture.{os.getpid()}.{limit}', str(limit)]
			made = subprocess.run(command, capture_output=True, text=True).stdout.strip()
			self.paths += [made] if made else []

	def remove(self):
		command = ['bash', '-c', '. "$1/tests/memory_cgroup.bash"; group=$2 remove_memory_cgroup']
		for path in self.paths:
			subprocess.run(command + ['-', ROOT, path])


def draw_limit(dice, groups):
	"""(limit of the addresses or None, folder of a cgroup or None)"""
	if dice.random() < 0.2:
		return dice.choice(ADDRESS_LIMITS), None
	if groups.paths and dice.random() < 0.2:
		return None, dice.choice(groups.paths)
	return None, None


def draw_setup(dice, build, allocators):
	"""How this seed is recorded: the preloads of both runs, and the recorder's options."""
	library = os.path.join(build, 'libcuflight.so')
	behind = allocators + [os.path.join(build, 'bench/null_interposer.so')]
	other = [dice.choice(behind)] if dice.random() < 0.4 else []
	preloads = [library] + other if dice.random() < 0.5 else other + [library]
	options = ['host=' + dice.choice(['sampled', 'full', 'full', 'off']),
	           'size=' + dice.choice(['4MiB', '16MiB', '64MiB'])]
	options.append('sample=' + dice.choice(['4KiB', '512KiB']))
	if dice.random() < 0.7:
		options.append('start=1')
	if dice.random() < 0.5:
		options.append('mmap=1')
	if dice.random() < 0.3:
		options.append('stack_depth=' + dice.choice(['2', '16', '256']))
	return other, preloads, ':'.join(options)


def draw_python(dice):
	"""The options of a Python program whose objects are recorded too, often from the start."""
	options = ['host=' + dice.choice(['sampled', 'sampled', 'full']),
	           'sample=' + dice.choice(['4KiB', '64KiB', '512KiB']),
	           'start=' + dice.choice(['0', '1'])]
	if dice.random() < 0.7:
		options.append('python_objects=start')
	return ':'.join(options)


def print_stacks(session):
	"""Of all processes of a session that hangs, where gdb is installed."""
	if not shutil.which('gdb'):
		return
	found = subprocess.run(['ps', '-s', str(session), '-o', 'pid='], capture_output=True, text=True)
	for pid in found.stdout.split():
		subprocess.run(['gdb', '-q', '-batch', '-p', pid, '-ex', 'thread apply all bt 30'],
		               stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=LIMIT_S)


class Case:
	"""One seed: a program, and how it is recorded. folder: has the plugins. layers: also the
	Python module."""

	def __init__(self, seed, build, allocators, groups, folder, layers):
		dice = random.Random(seed)
		self.seed, self.build = seed, build
		self.other, self.preloads, self.options = draw_setup(dice, build, allocators)
		self.plugin = os.path.join(folder, 'plugin.so')
		self.layers = folder if dice.random() < 0.1 and layers else None
		if self.layers:
			self.options = draw_python(dice)
		self.addresses, self.group = draw_limit(dice, groups)
		self.folder = tempfile.mkdtemp(prefix='torture.')

	def command(self, truth):
		if self.layers:
			return [sys.executable, os.path.join(HERE, 'python_layers.py'),
			        str(self.seed), str(STEPS)]
		return [os.path.join(self.build, 'torture/program'), str(self.seed), str(STEPS),
		        truth, self.plugin]

	def limit(self):
		"""In the child, before it becomes the program."""
		if self.addresses:
			resource.setrlimit(resource.RLIMIT_AS, (self.addresses, self.addresses))
		if self.group:
			with open(os.path.join(self.group, 'cgroup.procs'), 'w') as processes:
				processes.write(str(os.getpid()))

	def setup(self):
		"""For a person who reads about a difference."""
		words = [self.options, ' '.join(map(os.path.basename, self.preloads))]
		words += [f'ulimit -v {self.addresses >> 10}'] if self.addresses else []
		return '; '.join(words + [self.group] if self.group else words)

	def run(self, name, preloads, **more):
		"""Returns its status, its output, and its errors without lines of the recorder."""
		truth = os.path.join(self.folder, name + '.truth')
		command = [os.path.join(ROOT, 'scripts/simcuda'), *self.command(truth)]
		environment = dict(os.environ, **more, SIMCUDA_LIB=os.path.join(self.build, 'sim'))
		if self.layers:
			environment.update(PYTHONPATH=self.layers, PYTHONDONTWRITEBYTECODE='1')
		if preloads: # only for the program: simcuda is a shell script
			command[1:1] = ['env', 'LD_PRELOAD=' + ':'.join(preloads)]
		with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
		                      stderr=subprocess.PIPE, env=environment, cwd=self.folder,
		                      start_new_session=True, preexec_fn=self.limit) as process:
			try:
				output, errors = process.communicate(timeout=LIMIT_S)
			except subprocess.TimeoutExpired:
				print_stacks(process.pid)
				os.killpg(process.pid, signal.SIGKILL)
				raise
		errors = [re.sub(r'0x[0-9a-f]+', '0x...', line) # of an allocator that ends the program
		          for line in errors.decode(errors='replace').splitlines()
		          if not OTHERS_LINES.match(line)]
		return process.returncode, output.decode(errors='replace'), errors

	def compare(self):
		"""Yields one sentence for each difference."""
		output = os.path.join(self.folder, 'recordings') + '/'
		os.mkdir(output)
		try:
			native = self.run('native', self.other)
		except subprocess.TimeoutExpired:
			yield 'the native run hangs: the random program is wrong'
			return
		try:
			recorded = self.run('recorded', self.preloads, CUFLIGHT_OUTPUT=output,
			                    CUFLIGHT_OPTIONS=self.options)
		except subprocess.TimeoutExpired:
			yield 'the recorded run hangs'
			return
		parts = ['exit status', 'output', 'errors']
		for what, before, after in zip(parts, native, recorded):
			if before != after:
				yield (f'{what} differs:\n  native:   {shorten(before, after)}\n'
				       f'  recorded: {shorten(after, before)}')
		yield from self.check_recordings(output)

	def check_recordings(self, output):
		for path in glob.glob(output + '*.cuf'):
			command = [os.path.join(self.build, 'cuflight'), 'report', '--json', path]
			done = subprocess.run(command, capture_output=True)
			if done.returncode:
				name = os.path.basename(path)
				yield f'{name} cannot be read: {done.stderr.decode()}'
			else:
				json.loads(done.stdout)
		truth = os.path.join(self.folder, 'recorded.truth')
		if os.path.exists(truth):
			yield from self.check_device(truth, output)
		if os.path.exists(truth) and self.sees_malloc():
			yield from self.check_host(truth, output)

	def sees_malloc(self):
		"""False where another preload in front of the recorder serves calls itself."""
		return 'host=off' not in self.options and self.preloads[0].endswith('libcuflight.so')

	def check_host(self, truth, output):
		with open(truth) as lines:
			command = [os.path.join(self.build, 'fault/host_truth'), output, 'some']
			done = subprocess.run(command, stdin=lines, capture_output=True, text=True)
		if done.returncode and ' 0 sizes compared, 0 differences' not in done.stdout:
			yield 'the live host blocks differ:\n' + done.stdout

	def check_device(self, truth, output):
		pid = 0
		for line in open(truth):
			word, *rest = line.split()
			pid = int(rest[1]) if word == 'process' else pid
			paths = glob.glob(f'{output}*.{pid}.cuf')
			if word == 'device' and paths:
				held = sum(Recording(paths[0]).ledger(DEVICE_SPACE).values())
				if held != int(rest[0]):
					yield (f'process {pid} holds {rest[0]} device bytes, '
					       f'{held} are recorded')

	def repeat(self):
		script, build = os.path.relpath(__file__), os.path.relpath(self.build)
		return f'{script} {build} --seed {self.seed} --programs 1'


def shorten(text, other):
	"""The first lines in which two outputs differ."""
	if isinstance(text, int):
		return text
	lines = text if isinstance(text, list) else text.splitlines()
	others = other if isinstance(other, list) else other.splitlines()
	first = next((i for i, pair in enumerate(zip(lines, others)) if pair[0] != pair[1]),
	             min(len(lines), len(others)))
	return f'from line {first + 1}: {lines[first:first + 3]}'


def need_room():
	"""On a full disk the recorder has no file, and the program's own writes fail."""
	folder = tempfile.gettempdir()
	if shutil.disk_usage(folder).free < ROOM_BYTES:
		sys.exit(f'stopped: {folder} has no room for recordings '
		         f'({ROOM_BYTES >> 20} MiB are needed)')


def find_difference(case):
	"""Prints each. True: there is one."""
	found = list(case.compare())
	for difference in found:
		print(f'seed {case.seed} ({case.setup()}): {difference}\n  repeat: {case.repeat()}', flush=True)
	shutil.rmtree(case.folder)
	return bool(found)


def prepare(build):
	"""A folder with what the programs open, and whether the Python module is in it."""
	folder = tempfile.mkdtemp(prefix='torture.')
	for copy in ['', *(f'.{i}' for i in range(PLUGINS))]:
		shutil.copy(os.path.join(build, 'torture/plugin.so'),
		            os.path.join(folder, 'plugin.so' + copy))
	return folder, build_layers(folder)


def main():
	parser = argparse.ArgumentParser(description=__doc__,
	                                 formatter_class=argparse.RawDescriptionHelpFormatter)
	parser.add_argument('build')
	parser.add_argument('--seconds', type=float, default=60)
	parser.add_argument('--seed', type=int, default=int(time.time()))
	parser.add_argument('--programs', type=int, default=sys.maxsize)
	parser.add_argument('--log')
	asked = parser.parse_args()
	build, allocators, groups = os.path.realpath(asked.build), find_allocators(), Groups()
	folder, layers = prepare(build)
	atexit.register(groups.remove)
	atexit.register(shutil.rmtree, folder)
	signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
	results = {} # seed: 1 where it differed
	if asked.log and os.path.exists(asked.log):
		with open(asked.log) as lines:
			results = dict(map(int, line.split()) for line in lines)
	seed, until = max(results, default=asked.seed - 1) + 1, time.monotonic() + asked.seconds
	while time.monotonic() < until and len(results) < asked.programs:
		need_room()
		results[seed] = find_difference(Case(seed, build, allocators, groups, folder, layers))
		if asked.log:
			with open(asked.log, 'a') as lines:
				print(seed, int(results[seed]), file=lines)
		seed += 1
	wrong = sum(results.values())
	print(f'{len(results)} random programs from seed {min(results, default=seed)}, {wrong} differ')
	return wrong != 0 or not results


sys.exit(main())
