#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""page_data.py PAGE REPORT [OBJECT]: reads the data of an HTML page as analysis/view/html/DATA.md describes it, and compares it with the
JSON report of the same recording. Prints one line for each difference; exit 1 when there is one. OBJECT: a file that gets
the data as it is written, without the report."""
import base64, collections, gzip, html.parser, json, re, struct, sys

EXPECTED = {'html', 'head', 'meta', 'title', 'style', 'body', 'main', 'noscript', 'pre', 'script', 'div', 'p', 'h1', 'h2', 'section',
            'header', 'footer', 'nav', 'button'}


def read_column(columns, offset, length, count):
    values, at, value = [], offset, 0
    for _ in range(count):
        step = shift = 0
        while True:
            byte = columns[at]
            at += 1
            step |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                break
        value += (step >> 1) ^ -(step & 1)
        values.append(value)
    assert at == offset + length, 'a column ends where it says'
    return values


def unpack(page):
    """The object as it is written, and the bytes of its columns."""
    block, = re.findall(r'id="cuflight-data">([A-Za-z0-9+/=]*)</script>', page)
    data = gzip.decompress(base64.b64decode(block))
    assert data[:8] == b'CUFPAGE1', data[:8]
    size, = struct.unpack('<I', data[8:12])
    return json.loads(data[16:16 + size]), data[16 + size:]


def load(page):
    written, columns = unpack(page)

    def expand(item):
        if isinstance(item, list):
            return [expand(part) for part in item]
        if not isinstance(item, dict):
            return item
        if set(item) == {'column'}:
            return read_column(columns, *item['column'])
        return {key: expand(part) for key, part in item.items()}
    return expand(written)


class Elements(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.seen = collections.Counter()

    def handle_starttag(self, tag, attrs):
        self.seen[tag] += 1


def check_elements(page):
    parser = Elements()
    parser.feed(page)
    for tag in parser.seen:
        if tag not in EXPECTED:
            yield f'an element that nobody wrote: {tag}'


LARGE_BYTES = 65536 # from here on each block is recorded


def check_sites(data, report):
    sites, kinds = data['sites'], data['names']['kind']
    index = {process['pid']: n for n, process in enumerate(report['processes'])}
    shown, told = collections.Counter(), collections.Counter()
    for process, kind, live in zip(sites['process'], sites['kind'], sites['live_bytes']):
        shown[process, kinds[kind]] += live
    exact = collections.Counter()
    for process, kind, live, is_sampled in zip(sites['process'], sites['kind'], sites['live_bytes'], sites['sampled']):
        exact[process, kinds[kind]] += 0 if is_sampled else live
    for site in report['leaks']:
        told[index[site['pid']], site['kind']] += site['bytes']
        # a site of which some freed blocks were sampled is an estimate on the page, in time
        if site['basis'] == 'observed' and site['bytes'] >= LARGE_BYTES * site['count'] and not site['free_count']:
            exact[index[site['pid']], site['kind']] -= site['bytes']
    for key, rest in exact.items():
        if rest < 0:
            yield f'estimates of {key}: the page has {-rest} bytes less that are exact than the report'
    for key in set(shown) | set(told):
        if shown[key] != told[key] and key[1] != 'graph':
            yield f'live bytes of {key}: page {shown[key]}, report {told[key]}'


def check_moment(data):
    """The last value of each site up to the report's moment is what the site holds then. Processes that go on after an end are
    in the report with their own end."""
    values, sites, moment = data['values'], data['sites'], data['moment']
    at_ns, is_end = data['moments']['t'][moment], data['names']['moment'][data['moments']['kind'][moment]] == 'end'
    last = {}
    for site, at, bytes_ in zip(values['site'], values['moment'], values['bytes']):
        if at <= moment and at >= last.get(site, (-1, 0))[0]:
            last[site] = at, bytes_
    for site, live in enumerate(sites['live_bytes']):
        process = sites['process'][site]
        goes_on = process != data['focus']['process'] and (data['processes'][process]['end'] or at_ns) > at_ns
        if last.get(site, (0, 0))[1] != live and not (is_end and goes_on):
            yield f'site {site}: {last.get(site)} at the moment, {live} in its row'


def check_charts(data):
    for chart in data['charts']:
        for by, parts in chart['by'].items():
            for n in range(chart['count']):
                if sum(part['bytes'][n] for part in parts) != chart['sum'][n]:
                    yield f"{chart['title']} by {by}: parts do not add up at point {n}"
                    break
        span = chart['range']
        if span and chart['sum'] and max(chart['sum']) > max(span['high']):
            yield f"{chart['title']}: a sum is above the range"
        if span and chart['peak'] and chart['layer'] == 0 and max(span['high']) != chart['peak']['bytes']:
            yield f"{chart['title']}: highest {max(span['high'])}, peak {chart['peak']['bytes']}"


def check_ends(data):
    """A process that ended holds nothing afterwards; the moment of the report is of what it held last."""
    for chart in data['charts']:
        end = None if chart['process'] is None else data['processes'][chart['process']]['end']
        late = [n for n, t in enumerate(chart['t']) if end is not None and t > end and n != data['moment']]
        for n in late:
            if chart['sum'][n]:
                yield f"{chart['title']}: {chart['sum'][n]} bytes at {chart['t'][n]} ns, it ended at {end}"
                break


def check_names(data):
    """Two parts of a chart, or two moments, that read alike could not be told apart."""
    strings, sites, is_host = data['strings'], data['sites'], data['names']['layer'].index('host')
    for chart in data['charts']:
        for by, parts in chart['by'].items():
            names = collections.Counter()
            for part in parts:
                path = role = None
                if by == 'site' and part['site'] is not None:
                    role = sites['role'][part['site']]
                    path = None if chart['layer'] == is_host else sites['callers'][part['site']]
                names[part['label'], path, role] += 1
            yield from (f"{chart['title']} by {by}: {count} parts {name}" for name, count in names.items() if count > 1)
    moments = collections.Counter((strings[label], t) for label, t in zip(data['moments']['label'], data['moments']['t']) if strings[label])
    for (name, _), count in moments.items():
        if count > 1 or name == 'peak':
            yield f'{count} moments are called {name}'


def check_segments(data):
    """Whoever holds a framework's blocks has a part in the chart of the device; whoever made its segments has none."""
    sites, inside = data['sites'], set()
    for chart in data['charts']:
        if chart['layer'] == data['names']['layer'].index('framework'):
            inside |= {part['site'] for part in chart['by']['site'] if part['site'] is not None}
    for chart in data['charts']:
        parts = {part['site'] for part in chart['by']['site'] if part['site'] is not None}
        if chart['layer'] == data['names']['layer'].index('device') and inside:
            if not chart['inside'] or not inside & parts:
                yield f"{chart['title']}: no part is what lies inside the framework's segments"
            for site in parts:
                if sites['segment'][site]:
                    yield f"{chart['title']}: a part is a segment's: {data['strings'][sites['place'][site]]}"


def main():
    with open(sys.argv[1], encoding='utf-8') as file:
        page = file.read()
    with open(sys.argv[2], encoding='utf-8') as file:
        report = json.load(file)
    if len(sys.argv) > 3:
        with open(sys.argv[3], 'w', encoding='utf-8') as file:
            json.dump(unpack(page)[0] | {'report': {}}, file)
    data = load(page)
    wrong = [*check_elements(page), *check_sites(data, report), *check_moment(data), *check_charts(data),
             *check_ends(data), *check_names(data), *check_segments(data)]
    if data['report'] != report:
        wrong.append('the report inside of the page is another one')
    print('\n'.join(wrong[:20]))
    sys.exit(bool(wrong))


if __name__ == '__main__':
    main()
