# SPDX-License-Identifier: Apache-2.0
"""Limits of a test, and what a phase of the recording tells about them."""
import re

KINDS = ('device', 'pinned', 'managed', 'framework', 'host', 'python')
UNITS = {'': 1, 'K': 1 << 10, 'M': 1 << 20, 'G': 1 << 30, 'T': 1 << 40}
SIZE = re.compile(r'\s*(\d+(?:\.\d+)?)\s*([KMGT]?)(?:I?B)?\s*', re.I)
SITES_SHOWN = 5
RUNNER = 'pytest_pyfunc_call'  # callers from here on are the same for every test


class LimitError(Exception):
	"""A mark that cannot be read; the text is the reason."""


def parse_size(text):
	"""Bytes of "2 GiB", "24 MB", "100": units are powers of 1024, as in pytest-memray."""
	match = SIZE.fullmatch(text if isinstance(text, str) else str(text))
	if not match:
		raise LimitError('cannot read the size %r; expected one like "2 GiB"' % (text,))
	return int(float(match.group(1)) * UNITS[match.group(2).upper()])


def size_text(count):
	if count is None:
		return '?'
	for unit, name in ((1 << 30, 'GiB'), (1 << 20, 'MiB'), (1 << 10, 'KiB')):
		if abs(count) >= unit:
			return '%.2f %s' % (count / unit, name)
	return '%d B' % count


class Limit:
	"""One mark: "memory" limits what is needed, "leaks" what one call site leaves behind."""

	def __init__(self, what, limit, kind='host'):
		if kind not in KINDS:
			raise LimitError('unknown kind %r; expected one of %s' % (kind, ', '.join(KINDS)))
		self.what, self.kind, self.bytes = what, kind, parse_size(limit)

	@property
	def moment(self):
		return 'peak' if self.what == 'memory' else 'end'

	def doubts(self, phase):
		"""Why this limit cannot be judged. None: it can."""
		amount = phase['memory'][self.kind]
		if amount['basis'] is None:
			return amount['why']
		if amount['basis'] != 'observed':
			return 'host memory was sampled; record with cuflight run --host=full'
		return None

	def sites(self, phase):
		return [site for site in phase['sites'] if site['kind'] == self.kind and site['moment'] == self.moment]

	def needs_sites(self, phase):
		"""Finding call sites takes longer: only for what may exceed its limit."""
		amount = phase['memory'][self.kind]
		return self.what == 'leaks' or (amount['need_bytes'] or 0) > self.bytes

	def excess(self, phase):
		"""A sentence if the limit is exceeded, else None."""
		if self.what == 'memory':
			need = phase['memory'][self.kind]['need_bytes']
			if need <= self.bytes:
				return None
			return 'Test was limited to %s of %s memory but needed %s' % (
				size_text(self.bytes), self.kind, size_text(need))
		most = max((site['bytes'] for site in self.sites(phase)), default=0)
		if most <= self.bytes:
			return None
		return 'Test was allowed to leak %s of %s memory from one call site but left %s' % (
			size_text(self.bytes), self.kind, size_text(most))

	def site_lines(self, phase):
		"""The largest call sites; those below a hundredth of the largest explain nothing."""
		sites = self.sites(phase)
		for site in sites[:SITES_SHOWN]:
			if site['bytes'] * 100 < sites[0]['bytes']:
				break
			place = site['function']
			if place == '?':  # the recorder's table of call stacks was full
				place = 'call stacks that did not fit; record with a larger --size'
			if site['file']:
				place += ' (%s:%s)' % (site['file'], site['line'] or '?')
			callers = (site['callers'] or '').split(' < ')
			if RUNNER in callers:
				callers = callers[:callers.index(RUNNER)]
			place = ' < '.join([place] + [caller for caller in callers if caller])
			yield '%10s in %d block%s: %s' % (size_text(site['bytes']), site['count'],
			                                  '' if site['count'] == 1 else 's', place)


def limit_of_mark(what, mark):
	arguments = dict(mark.kwargs)
	names = {'memory': ('limit', 'memory_limit'), 'leaks': ('limit', 'location_limit')}[what]
	values = list(mark.args) + [arguments.pop(name) for name in names if name in arguments]
	kind = arguments.pop('kind', 'host')
	if not arguments.get('current_thread_only'):  # what pytest-memray does unless asked
		arguments.pop('current_thread_only', None)
	if arguments or len(values) != 1:
		raise LimitError('%s: expected (limit, kind="host"); not supported: %s' % (
			mark.name, ', '.join(sorted(arguments)) or 'a number of limits other than one'))
	return Limit(what, values[0], kind)
