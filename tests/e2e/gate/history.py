#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tests/e2e/gate/history.py: does the gate catch each regression of a history at its commit, and nothing else?

`build/victims/model_server --commit=N` behaves like its N-th commit, and prints who is to blame, or that it is clean. Each
commit is judged against a baseline of five runs of the last good commit before it, with the limits that hold when none is
given. Every run must get the same answer, and every exceeded limit must name the guilty call site first.

GATE_RUNS=3: judged runs of each commit; 40 make 320 clean ones. Results are in tests/e2e/README.md."""
import json
import os
import subprocess
import sys
import tempfile

ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), '../../..'))
BUILD = os.path.realpath(os.environ.get('BUILD', os.path.join(ROOT, 'build')))
CUFLIGHT = os.path.join(BUILD, 'cuflight')
RUNS = int(os.environ.get('GATE_RUNS', '3'))
BASELINE_RUNS, COMMITS = 5, 12


def record(commit, run, path):
	"""Returns the truth: the guilty function, or None."""
	command = [os.path.join(ROOT, 'scripts/simcuda'), CUFLIGHT, 'run', '-q', '--size=4MiB', '-o', path, '--',
	           os.path.join(BUILD, 'victims/model_server'), f'--commit={commit}', f'--run={commit * 1000 + run}']
	truth = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split('\n')
	for line in truth:
		if line.startswith('guilty '):
			return line.split()[1]
	if 'clean' not in truth:
		sys.exit(f'commit {commit} printed no truth')
	return None


def judge(path, baseline):
	"""The exit status, and for each exceeded limit the functions of the call site that it names first."""
	done = subprocess.run([CUFLIGHT, 'check', '--json', '-b', baseline, path], check=False, capture_output=True, text=True)
	if done.returncode not in (0, 1, 3):
		sys.exit(done.stderr)
	exceeded = [finding for finding in json.loads(done.stdout)['findings'] if finding['status'] == 'exceeded']
	named = {finding['measure']: [frame['function'] for site in finding['sites'][:1] for frame in site['stack']]
	         for finding in exceeded}
	return done.returncode, named


def make_baseline(work, commit):
	paths = [os.path.join(work, f'base-{commit}-{run}.cuf') for run in range(BASELINE_RUNS)]
	for run, path in enumerate(paths):
		record(commit, run, path)
	baseline = os.path.join(work, f'{commit}.json')
	subprocess.run([CUFLIGHT, 'baseline', '-qf', *paths, '-o', baseline], check=True)
	for path in paths:
		os.unlink(path)
	return baseline


def judge_commit(work, commit, baseline):
	"""The truth, how many runs were right, and what was wrong."""
	right, wrong, guilty = 0, [], None
	for run in range(BASELINE_RUNS, BASELINE_RUNS + RUNS):
		path = os.path.join(work, f'run-{commit}-{run}.cuf')
		guilty = record(commit, run, path)
		status, named = judge(path, baseline)
		expected = 1 if guilty else 0
		if status == expected and all(guilty in functions for functions in named.values()):
			right += 1
		else:
			wrong.append(f'run {run}: status {status}, {named}')
		os.unlink(path)
	return guilty, right, wrong


def main():
	matrix = {True: [0, 0], False: [0, 0]}
	failed = False
	with tempfile.TemporaryDirectory(prefix='history.') as work:
		baseline = make_baseline(work, 1)
		for commit in range(1, COMMITS + 1):
			guilty, right, wrong = judge_commit(work, commit, baseline)
			what = f'guilty {guilty}' if guilty else 'clean'
			print(f'commit {commit}, {what}: {right} of {RUNS} right')
			for line in wrong:
				print(f'  {line}')
			matrix[bool(guilty)][0] += right
			matrix[bool(guilty)][1] += len(wrong)
			failed |= bool(wrong)
			if not guilty:
				baseline = make_baseline(work, commit)
			sys.stdout.flush()
	print(f'regressions: caught and named {matrix[True][0]}, missed or misnamed {matrix[True][1]}; '
	      f'clean: passed {matrix[False][0]}, false alarms {matrix[False][1]}')
	sys.exit(failed)


main()
