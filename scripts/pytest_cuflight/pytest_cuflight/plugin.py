# SPDX-License-Identifier: Apache-2.0
"""pytest's hooks: a phase for each test, its limits judged after it, a table after the run."""
import gc

import pytest

from pytest_cuflight import recorder as recorders
from pytest_cuflight.limits import KINDS, LimitError, limit_of_mark, size_text

# the names that pytest-memray has, and names that it leaves to us
MARKS = {
	'limit_memory': 'memory',
	'limit_leaks': 'leaks',
	'cuflight_limit_memory': 'memory',
	'cuflight_limit_leaks': 'leaks',
}
ABOUT = {
	'memory': 'fail the test if live memory of this kind (%s) rises by more than the limit' % ', '.join(KINDS),
	'leaks': 'fail the test if one call site leaves more memory of this kind behind than the limit',
}
NAME_COLUMNS = 60


def pytest_addoption(parser):
	group = parser.getgroup('cuflight', 'memory of tests, recorded by cuflight')
	group.addoption('--cuflight-rows', type=int, default=10, metavar='N',
	                help='tests in the table of memory after the run, largest first; 0: no table')
	group.addoption('--cuflight-allow-inconclusive', action='store_true',
	                help='a limit that cannot be judged is a warning and does not fail the test')


def pytest_configure(config):
	for name, what in MARKS.items():
		config.addinivalue_line('markers', '%s(limit, kind="host"): %s (cuflight)' % (name, ABOUT[what]))
	recorder = recorders.attach()
	config.pluginmanager.register(Memory(config, recorder) if recorder else Nothing(), 'cuflight_memory')


class Nothing:
	"""No recorder: no hook of a test is wrapped."""

	def pytest_report_header(self):
		return "cuflight: not recording, limits are not judged; 'cuflight run --host=full -- pytest' records"


class Memory:
	def __init__(self, config, recorder):
		self.config = config
		self.recorder = recorder
		self.phases = {}        # id of a phase: the test
		self.failures = {}      # a test: why it exceeds its limits
		self.rows = []          # (test, {kind: bytes needed}), of all workers
		self.recordings = {}    # a worker of xdist: its recording
		self.troubles = []

	def is_worker(self):
		return hasattr(self.config, 'workerinput')

	def pytest_report_header(self):
		return 'cuflight: recording to %s' % (self.recorder.recording() or 'a file that the first test creates')

	# ---- one test ----

	@pytest.hookimpl(hookwrapper=True, trylast=True)
	def pytest_runtest_call(self, item):
		try:
			limits = limits_of(item)
		except LimitError as error:
			limits = []
			self.failures[item.nodeid] = str(error)
		collects = any(limit.what == 'leaks' for limit in limits)
		if collects:
			gc.collect()
		phase = self.recorder.begin(item.nodeid)
		outcome = yield
		if collects:
			gc.collect()
		self.recorder.end(phase)
		self.phases[phase] = item.nodeid
		if limits and outcome.excinfo is None:
			self.judge(item, phase, limits)

	def judge(self, item, phase, limits):
		if not phase:
			self.doubt(item, 'the recorder left it out')
			return
		try:
			use = self.recorder.phases(phase)[0]
			if any(limit.needs_sites(use) for limit in limits):
				use = self.recorder.phases(phase, sites=True)[0]
		except recorders.CommandError as error:
			self.doubt(item, str(error))
			return
		lines = []
		for limit in limits:
			doubts = limit.doubts(use)
			if doubts:
				self.doubt(item, doubts)
				continue
			excess = limit.excess(use)
			if excess:
				lines += [excess] + list(limit.site_lines(use))
		if lines:
			self.failures[item.nodeid] = '\n'.join(lines)

	def doubt(self, item, why):
		sentence = 'The memory limit of this test cannot be judged: %s' % why
		if self.config.getoption('cuflight_allow_inconclusive'):
			item.warn(pytest.PytestWarning(sentence))
		else:
			self.failures.setdefault(item.nodeid, sentence)

	@pytest.hookimpl(hookwrapper=True)
	def pytest_runtest_makereport(self, item, call):
		outcome = yield
		report = outcome.get_result()
		report.cuflight_recording = self.recorder.recording()
		if call.when == 'call' and report.passed and item.nodeid in self.failures:
			report.outcome = 'failed'
			report.longrepr = self.failures[item.nodeid]

	# ---- the run ----

	def pytest_sessionfinish(self):
		if not self.phases:
			return
		try:
			rows = [(self.phases[use['id']], needs_of(use)) for use in self.recorder.phases()
			        if use['id'] in self.phases]
		except recorders.CommandError as error:
			self.troubles.append(str(error))
			rows = []
		if self.is_worker():
			self.config.workeroutput['cuflight'] = {'rows': [list(row) for row in rows],
			                                        'troubles': self.troubles}
		else:
			self.rows += rows

	def pytest_terminal_summary(self, terminalreporter):
		count = self.config.getoption('cuflight_rows')
		if self.is_worker() or count <= 0 or not (self.rows or self.troubles):
			return
		terminalreporter.section('memory of tests (cuflight)')
		for trouble in self.troubles:
			terminalreporter.write_line('cannot be read: ' + trouble)
		for line in table(self.rows, count):
			terminalreporter.write_line(line)

	# ---- workers of pytest-xdist; only the controller has these hooks ----

	def pytest_runtest_logreport(self, report):
		node, recording = getattr(report, 'node', None), getattr(report, 'cuflight_recording', None)
		if node is not None and recording:
			self.recordings[node] = recording

	@pytest.hookimpl(optionalhook=True)
	def pytest_testnodedown(self, node, error):
		output = getattr(node, 'workeroutput', None) or {}
		if 'cuflight' in output:
			self.rows += [tuple(row) for row in output['cuflight']['rows']]
			self.troubles += output['cuflight']['troubles']
		elif node in self.recordings:
			self.read_crashed(self.recordings[node])

	def read_crashed(self, recording):
		"""The worker cannot report its tests any more, but its recording can."""
		try:
			uses = recorders.read_phases(recorders.find_command() or 'cuflight', recording)
		except recorders.CommandError as error:
			self.troubles.append(str(error))
			return
		self.rows += [(use['name'], needs_of(use)) for use in uses if use['sort'] == 'phase' and '::' in use['name']]

	@pytest.hookimpl(optionalhook=True)
	def pytest_handlecrashitem(self, report):
		recording = self.recordings.get(getattr(report, 'node', None))
		if recording:
			report.sections.append(('cuflight', 'cuflight report %s' % recording))


def limits_of(item):
	return [limit_of_mark(what, mark) for name, what in MARKS.items() for mark in item.iter_markers(name)]


def needs_of(use):
	return {kind: use['memory'][kind]['need_bytes'] for kind in KINDS
	        if use['memory'][kind]['need_bytes'] or use['memory'][kind]['basis'] is None}


def table(rows, count):
	"""Lines: a column for each kind that any test needed, the largest tests first."""
	kinds = [kind for kind in KINDS if any(kind in needs for _, needs in rows)]
	if not kinds:
		yield 'no test needed memory'
		return
	rows = sorted(rows, key=lambda row: (-max([need or 0 for need in row[1].values()], default=0), row[0]))
	yield ''.join('%12s' % kind for kind in kinds) + '  test'
	for test, needs in rows[:count]:
		figures = [size_text(needs[kind]) if kind in needs else '-' for kind in kinds]
		yield ''.join('%12s' % figure for figure in figures) + '  ' + shortened(test)
	if len(rows) > count:
		yield '%d more tests; --cuflight-rows=N lists more' % (len(rows) - count)


def shortened(test):
	return test if len(test) <= NAME_COLUMNS else '...' + test[3 - NAME_COLUMNS:]
