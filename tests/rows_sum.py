#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""rows_sum.py RECORDING...: one number a fact, in every output of each recording.

A table that has a head sums to it. A call site has the same bytes and blocks in the JSON, the long report, the page, the
tables and the other exports; a row of the screen is the sum of its call sites. What is largest has a row of its own.
BUILD names the build, SYSROOT where programs are. Prints a line for each exception, and exits 1 where there is one.
"""
import collections
import csv
import gzip
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), 'e2e', 'html'))
import page_data  # noqa: E402

CUFLIGHT = os.path.join(os.environ.get('BUILD', 'build'), 'cuflight')
SYSROOT = ['--sysroot=' + os.environ['SYSROOT']] if 'SYSROOT' in os.environ else []
TOTALS = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'e2e', 'export', 'totals.py')
UNITS = {'B': 1, 'KiB': 1 << 10, 'MiB': 1 << 20, 'GiB': 1 << 30, 'TiB': 1 << 40}
FIGURE = r'(~?)([0-9.,]+) (B|KiB|MiB|GiB|TiB)'
SCREEN_LINES = 21
EVERYTHING = 100000


def run(*arguments):
    environment = dict(os.environ, TZ='UTC', COLUMNS='80', LC_ALL='C')
    done = subprocess.run([CUFLIGHT, *arguments], capture_output=True, text=True, env=environment, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(arguments)}: {done.stderr.strip()}")
    return done.stdout


class Figure:
    """A printed number of bytes, and by how much its digits may be off."""

    def __init__(self, sampled, number, unit):
        digits = number.replace(',', '')
        fraction = digits.partition('.')[2]
        self.sampled = bool(sampled)
        self.bytes = float(digits) * UNITS[unit]
        self.off = 0.51 * 10.0 ** -len(fraction) * UNITS[unit]
        if unit == 'B':
            self.off = 0
        if sampled: # two digits, whatever is printed
            whole = digits.partition('.')[0]
            self.off = max(self.off, 0.51 * 10.0 ** (len(whole) - 2) * UNITS[unit])

    def is_near(self, number, more=0):
        return abs(self.bytes - number) <= self.off + more + 1


class Table:
    """"Who held ...": its head and rows."""

    def __init__(self, title, lines):
        self.title = title
        match = re.search(FIGURE + r'$', title)
        self.head = Figure(*match.groups()) if match else None
        self.rows = []
        for line in lines:
            match = re.match(r'^[> ] (.*?)  +' + FIGURE + r'(  |$)', line)
            if match:
                self.rows.append((match.group(1).strip(), Figure(*match.group(2, 3, 4)), line.startswith('>')))

    def inside(self):
        return [row for row in self.rows if 'not counted above' not in row[0]]


def tables_of(text):
    lines, found = text.splitlines(), []
    for n, line in enumerate(lines):
        if line.startswith('Who held'):
            end = n + 1
            while end < len(lines) and lines[end].strip():
                end += 1
            found.append(Table(line, lines[n + 1:end]))
    return found


def check_table(where, table):
    rows = table.inside()
    total = sum(figure.bytes for _, figure, _ in rows)
    if table.head and not table.head.is_near(total, sum(figure.off for _, figure, _ in rows)):
        yield f'{where}: rows sum to {total / (1 << 20):.1f} MiB, the head is {table.head.bytes / (1 << 20):.1f} MiB'


def check_fold(table, lines, widest):
    """What shares a row is less than each row of its own, but for the one that the cause is about. widest: the same table
    with all its rows."""
    rows = [(name, figure, suspect) for name, figure, suspect in table.inside() if name != 'free']
    kept = [(figure.bytes, suspect) for name, figure, suspect in rows if not name.startswith('other: ')]
    everyone = sorted((figure.bytes for name, figure, _ in widest.inside() if name != 'free'), reverse=True)
    if len(kept) == len(rows):
        return
    folded = everyone.copy()
    for bytes_, _ in kept:
        if bytes_ in folded: # else its figure is that of a row with callers
            folded.remove(bytes_)
    smallest = sorted(kept)[1 if sorted(kept)[0][1] else 0][0]
    if folded and folded[0] > smallest:
        yield f'screen: a row of {folded[0] / (1 << 20):.1f} MiB is folded, one of {smallest / (1 << 20):.1f} MiB is not'
    if folded and table.head and lines < SCREEN_LINES and folded[0] > table.head.bytes / 100:
        yield f'screen: a row of {folded[0] / (1 << 20):.1f} MiB is folded, {SCREEN_LINES - lines} lines are free'


def by_kind(rows):
    sums = collections.Counter()
    for kind, bytes_ in rows:
        sums[kind] += bytes_
    return +sums


def multiset(sites):
    return collections.Counter((site['kind'], site['bytes'], site['count']) for site in sites)


def check_json(report):
    for device in report['devices']:
        total = sum(row['bytes'] or 0 for row in device['owners'] if row.get('in_sum', True))
        if device['total_bytes'] is not None and total != device['total_bytes']:
            yield f"json: owners of GPU {device['id']} sum to {total}, not to {device['total_bytes']}"
    for process in report['processes']:
        resident = process.get('host', {}).get('resident', [])
        total = sum(row['bytes'] for row in resident)
        if resident and total != process['host']['rss_bytes']:
            yield f"json: resident parts of pid {process['pid']} sum to {total}, not to {process['host']['rss_bytes']}"


def check_full(text, report):
    """Lines of "By call site" are sums of call sites that read alike."""
    section = re.search(r'^By call site\n(.*?)\n\n', text + '\n\n', re.S | re.M)
    sites = [site for site in report['leaks'] if not site['holds_blocks'] and site['bytes'] is not None]
    if not section:
        if sites:
            yield 'full: no table of call sites'
        return
    total, off = 0, 0
    for line in section.group(1).splitlines()[1:]:
        match = re.match(r'^ *' + FIGURE + ' ', line)
        if match:
            figure = Figure(*match.groups())
            total, off = total + figure.bytes, off + figure.off
    told = sum(site['bytes'] for site in sites)
    if abs(total - told) > off + 1:
        yield f'full: lines by call site sum to {total:.0f}, those of the JSON to {told}'


ROLES = r'(?:activation\?? |(?:LEAK|weights|KV cache|gradients|optimizer|graphs?|library|comm\w*|workspace)\??  )'


def place_words(text):
    """"LEAK       run_attention (:86)" -> what both tables have of a name."""
    text = re.sub(r'^' + ROLES + r' *', '', text.strip())
    return re.split(r' [(<]', text)[0]


def sums_of_full(section):
    """By memory and name: figures of the long report's table."""
    found = collections.defaultdict(list)
    for line in section.splitlines()[1:]:
        match = re.match(r'^ *' + FIGURE + r' +~?[0-9.,]+ \w+ +~?[0-9,]+  (.*)$', line)
        rest = re.split(r' {2,}', match.group(4).strip())
        found[rest[0] in ('host', 'page-locked', 'pinned'), place_words(rest[-1])].append(Figure(*match.group(1, 2, 3)))
    return found


def check_same(text, widest, report):
    """Rows of one name have the same sum in the table of who held it and in that of call sites."""
    section = re.search(r'^By call site\n(.*?)\n\n', text + '\n\n', re.S | re.M)
    if not section:
        return
    full = sums_of_full(section.group(1))
    for table in widest:
        mine, host = collections.defaultdict(list), 'host' in table.title or 'page-locked' in table.title
        for name, figure, _ in table.inside():
            mine[place_words(name)].append(figure)
        for name, figures in mine.items():
            others = full[host, name]
            if not others or len(report['processes']) > 1 or len(report['devices']) > 1:
                continue
            if any(figure.sampled for figure in others): # those of few samples are one row of the table
                continue
            off = sum(figure.off for figure in figures + others)
            if abs(sum(f.bytes for f in figures) - sum(f.bytes for f in others)) > off + 1:
                yield f'full: {name} is {sum(f.bytes for f in figures):.0f} and {sum(f.bytes for f in others):.0f}'


def check_screen(screens, widest):
    """Each row of the screen is a row of the long report."""
    for table in screens:
        wide = next((other for other in widest if other.title == table.title), None)
        if not wide:
            yield f'full: no table "{table.title}"'
            continue
        known = {figure.bytes for _, figure, _ in wide.inside()}
        for name, figure, _ in table.inside():
            if figure.bytes not in known and not name.startswith('other: '):
                yield f'screen and full: no row of {figure.bytes:.0f} is in both: {name}'


def check_exports(recording, report, at, folder):
    live = [site for site in report['leaks'] if site['kind'] != 'framework']
    told = by_kind((site['kind'], site['bytes']) for site in live)
    several = report['capture']['processes'] > 1
    found = collections.Counter()
    for line in run('export', '--to=folded', *at, *SYSROOT, recording).splitlines():
        stack, _, number = line.rpartition(' ')
        found[stack.split(';')[several].split(' ')[0].rstrip(':')] += int(number)
    found = +found
    found.pop('framework', None)
    if found != told:
        yield f'folded: by kind {dict(found)}, the report has {dict(told)}'
    rows = [(row['kind'], int(row['bytes']), int(row['count'])) for row in rows_of('sites', recording, at, folder) if int(row['bytes'])]
    said, wanted = collections.Counter(rows), multiset(site for site in report['leaks'] if site['bytes'])
    if said != wanted:
        yield f'tables: sites {dict(said - wanted)} where the report has {dict(wanted - said)}'
    yield from check_blocks(recording, report, at, folder)
    if shutil.which('go'):
        profile, document = os.path.join(folder, 'pprof'), os.path.join(folder, 'report.json')
        run('export', '--to=pprof', '-o', profile, *at, *SYSROOT, recording)
        with open(document, 'w', encoding='utf-8') as file:
            json.dump(report, file)
        done = subprocess.run([sys.executable, TOTALS, document, 'pprof', profile], capture_output=True, text=True, check=False)
        yield from (f'pprof: {line}' for line in (done.stdout + done.stderr).splitlines())


def rows_of(table, recording, at, folder):
    path = os.path.join(folder, f'{table}.csv')
    run('export', '--to=csv', '-o', path, *at, *SYSROOT, f'--table={table}', recording)
    with open(path, encoding='utf-8', newline='') as file:
        return list(csv.DictReader(file))


def check_blocks(recording, report, at, folder):
    """The rows of blocks that live at a moment, and of owners."""
    fatal = [incident['id'] for incident in report['incidents'] if incident['fatal']]
    moment = at or [f'--at=#{fatal[-1]}' if fatal else '--at=end']
    found = by_kind((row['kind'], int(row['weight_bytes'])) for row in rows_of('blocks', recording, moment, folder))
    told = by_kind((site['kind'], site['bytes']) for site in report['leaks'])
    if found != told:
        yield f'tables: blocks by kind {dict(found)}, the report has {dict(told)}'
    held = collections.Counter() # each process has rows of its own
    for row in rows_of('owners', recording, at, folder):
        held[row['process'], int(row['device'])] += int(row['bytes'] or 0) * (row['in_sum'] == 'true')
    totals = {device['id']: device['total_bytes'] for device in report['devices']}
    for (process, device), total in held.items():
        if totals.get(device) is not None and total != totals[device]:
            yield f"tables: owners of GPU {device} sum to {total} in {process}, not to {totals[device]}"


def check(recording):
    at = [] # a finished program is shown at its peak as text
    try:
        screen = run('report', *SYSROOT, recording)
        if re.search(r'^Who held .* the peak ', screen, re.M):
            at = ['--at=peak']
        report = json.loads(run('report', '--json', *at, *SYSROOT, recording))
        text = run('report', '--full', f'--top={EVERYTHING}', *at, *SYSROOT, recording)
        page = run('report', '--html', *at, *SYSROOT, recording)
    except RuntimeError as error:
        yield str(error)
        return
    screens, widest = tables_of(screen), tables_of(text)
    lines = len(screen.splitlines())
    if lines > SCREEN_LINES:
        yield f'screen: {lines} lines'
    for table in screens:
        yield from check_table('screen', table)
    for table in widest:
        yield from check_table('full', table)
    yield from check_screen(screens, widest)
    for table in screens[:1]:
        yield from check_fold(table, lines, next(wide for wide in widest if wide.title == table.title))
    yield from check_json(report)
    yield from check_full(text, report)
    yield from check_same(text, widest, report)
    data = page_data.load(page)
    yield from (f'page: {line}' for line in [*page_data.check_sites(data, report), *page_data.check_charts(data),
                                             *page_data.check_moment(data)])
    with tempfile.TemporaryDirectory() as folder:
        yield from check_exports(recording, report, at, folder)


def main():
    count = 0
    for recording in sys.argv[1:]:
        for line in check(recording):
            print(f'{os.path.basename(recording)}: {line}')
            count += 1
    sys.exit(count > 0)


if __name__ == '__main__':
    main()
