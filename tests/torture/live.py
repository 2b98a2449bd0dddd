#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""live.py BUILD [--seconds N] [--seed N] [--readings N] [--log FILE]

Random programs (program.c) are recorded, and their recordings are read while they are written, up to
20 times a program, which is then killed at a random moment. Half of them are read from another pid
namespace. Each reading ends within half a minute, its tables sum, a process that lives is never
called killed, and one that is dead is never called running. A reading that begins before a file does
may be refused. What is wrong is printed. Exit 1 when anything was.

--log FILE makes a long run resumable: each seed's figures are added to it, and the next run goes on
behind the last one. The counts are those of the whole file."""
import argparse
import glob
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
STEPS, READINGS, LIMIT_S = 4000, 20, 30
OTHER_NAMESPACE = ['unshare', '--user', '--map-root-user', '--pid', '--fork', '--kill-child',
                   '--mount-proc']


def lives(pid):
	"""Who has no memory any more is on its way out, whatever its state is."""
	try:
		with open(f'/proc/{pid}/stat') as stat:
			fields = stat.read().rpartition(')')[2].split()
			return fields[0] not in 'ZX' and int(fields[20]) > 0
	except OSError:
		return False


def behind_the_reader():
	"""A group of its own, to be killed; with less of the processor, so that there are readings."""
	os.setpgid(0, 0)
	os.nice(9)


def pid_of(path):
	return int(path.rsplit('.', 2)[1])


class Program:
	"""One seed; what was counted of it is in readings, refused, kills and wrong."""

	def __init__(self, seed, build):
		self.seed, self.build, self.dice = seed, build, random.Random(seed)
		self.reader = OTHER_NAMESPACE if self.dice.random() < 0.5 else []
		self.readings = self.refused = self.kills = self.wrong = 0
		self.folder = tempfile.mkdtemp(prefix='torture.live.')

	def start(self):
		options = ['start=1', 'host=' + self.dice.choice(['sampled', 'full']), 'size=4MiB']
		environment = dict(os.environ, SIMCUDA_LIB=os.path.join(self.build, 'sim'),
		                   CUFLIGHT_OUTPUT=self.folder + '/rec/', CUFLIGHT_OPTIONS=':'.join(options))
		command = [os.path.join(ROOT, 'scripts/simcuda'), 'env',
		           'LD_PRELOAD=' + os.path.join(self.build, 'libcuflight.so'),
		           os.path.join(self.build, 'torture/program'), str(self.seed), str(STEPS),
		           self.folder + '/truth', os.path.join(self.build, 'torture/plugin.so')]
		return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
		                        stderr=subprocess.DEVNULL, env=environment, cwd=self.folder,
		                        preexec_fn=behind_the_reader)

	def complain(self, path, what):
		self.wrong += 1
		print(f'seed {self.seed}, {os.path.basename(path)}: {what}', flush=True)

	def read(self, path):
		"""The state that the report has; None: there is no report."""
		command = self.reader + [os.path.join(self.build, 'cuflight'), 'report', '--json', path]
		try:
			done = subprocess.run(command, capture_output=True, timeout=LIMIT_S)
		except subprocess.TimeoutExpired:
			self.complain(path, 'the report hangs')
			return None
		if done.returncode == 2:
			self.refused += 1
			return None
		if done.returncode:
			self.complain(path, f'status {done.returncode}: {done.stderr.decode()[-300:]}')
			return None
		report = json.loads(done.stdout)
		for device in report['devices']:
			rows = [owner['bytes'] for owner in device['owners']]
			# before the driver was asked, some rows and the total are unknown
			if rows and None not in rows and sum(rows) != device['total_bytes']:
				self.complain(path, f'owners sum to {sum(rows)} of {device["total_bytes"]}')
		return report['capture']['end_state']

	def check(self, path):
		pid = pid_of(path)
		before = lives(pid)
		state = self.read(path)
		if before and state and lives(pid):
			self.readings += 1
			if state in ('killed', 'oom_killed'):
				self.complain(path, f'pid {pid} lives, and is called {state}')
		if not before and state == 'running' and not self.is_told_soon(path):
			self.complain(path, f'pid {pid} is dead, and is called running a second later')

	def is_told_soon(self, path):
		"""A zombie's other threads, and a child that was forked a moment ago, still map the file."""
		until = time.monotonic() + 1
		while self.read(path) == 'running':
			if time.monotonic() > until:
				return False
		return True

	def living(self):
		"""The recordings of who lives; programs have hundreds of children that end at once."""
		return [path for path in glob.glob(self.folder + '/rec/*.cuf') if lives(pid_of(path))]

	def kill(self, process):
		paths = self.living()
		os.killpg(process.pid, signal.SIGKILL)
		process.wait()
		until = time.monotonic() + 5 # the kernel takes its time with the memory of its threads
		while any(lives(pid_of(path)) for path in paths) and time.monotonic() < until:
			time.sleep(0.005)
		for path in paths:
			self.check(path)
		self.kills += 1

	def run(self):
		process, readings = self.start(), self.dice.randint(0, READINGS)
		try:
			while process.poll() is None and self.readings < readings:
				for path in self.living():
					self.check(path)
			time.sleep(self.dice.uniform(0, 0.1))
			if process.poll() is None:
				self.kill(process)
			elif process.returncode:
				self.complain('the program', f'status {process.returncode}')
		finally:
			try:
				os.killpg(process.pid, signal.SIGKILL)
			except ProcessLookupError:
				pass
			shutil.rmtree(self.folder, ignore_errors=True)


def main():
	parser = argparse.ArgumentParser(description=__doc__,
	                                 formatter_class=argparse.RawDescriptionHelpFormatter)
	parser.add_argument('build')
	parser.add_argument('--seconds', type=float, default=60)
	parser.add_argument('--seed', type=int, default=int(time.time()))
	parser.add_argument('--readings', type=int, default=10000)
	parser.add_argument('--log')
	asked = parser.parse_args()
	for needed in 'cuflight', 'libcuflight.so', 'sim', 'torture/program', 'torture/plugin.so':
		if not os.path.exists(os.path.join(asked.build, needed)):
			parser.error(f'{asked.build} has no {needed}: make all tests')
	if subprocess.run(OTHER_NAMESPACE + ['true'], stderr=subprocess.DEVNULL).returncode:
		OTHER_NAMESPACE.clear()
		print('this machine allows no other pid namespace: all are read from this one')
	rows = []
	if asked.log and os.path.exists(asked.log):
		with open(asked.log) as lines:
			rows = [[int(word) for word in line.split()] for line in lines]
	seed, until = max([row[0] + 1 for row in rows] + [asked.seed]), time.monotonic() + asked.seconds
	while time.monotonic() < until and sum(row[1] for row in rows) < asked.readings:
		program = Program(seed, os.path.realpath(asked.build))
		program.run()
		rows.append([seed, program.readings, program.refused, program.kills, program.wrong])
		if asked.log:
			with open(asked.log, 'a') as lines:
				print(*rows[-1], file=lines)
		seed += 1
	_, readings, refused, kills, wrong = map(sum, zip(*rows))
	print(f'{len(rows)} random programs: {readings} live readings, {refused} refused, '
	      f'{kills} kills, {wrong} wrong')
	return wrong != 0 or not readings


sys.exit(main())
