#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tests/bench/programs.py BUILD [ROUNDS [NAME...]]: CPU time of real programs, servers with their children: native, with the
library and host=off, with a plain preload, and recorded from the start. The four run in turn, in the other order each time;
printed are the medians by native. Packages that are not installed may be unpacked in BUILD/programs/root (dpkg -x); a program
that is not there is named."""
import http.client
import os
import pathlib
import resource
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
READY_SECONDS = 60
JAVA = """import java.util.*;
public class Work { public static void main(String[] a) { Map<Integer, String> m = new HashMap<>();
 for (int i = 0; i < 3000000; i++) m.put(i % 200000, "v" + i); System.out.println(m.size()); } }
"""
NODE = """const kept = []; for (let i = 0; i < 400; i++) { const rows = Array.from({length: 2000}, (_, k) => ({k, name: 'n' + k}));
kept.push(Buffer.from(JSON.stringify(rows))); if (kept.length > 50) kept.shift(); } console.log(kept.length);
"""


class Programs:
    """Each method runs one program once, with these variables."""

    def __init__(self, build, work):
        self.build, self.work = build, work
        self.unpacked = build / 'programs/root'
        self.port = 20000 + os.getpid() % 20000

    def find(self, name):
        places = [self.unpacked / 'usr/bin', self.unpacked / 'usr/sbin', *pathlib.Path('/usr/lib/postgresql').glob('*/bin')]
        found = shutil.which(name) or shutil.which(name, path=os.pathsep.join(map(str, places)))
        if not found:
            raise FileNotFoundError(name)
        return found

    def run(self, variables, *command):
        subprocess.run(command, env=variables, cwd=self.work, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def serve(self, variables, command, drive, end=signal.SIGTERM, user=None, is_ready=None):
        """A server in the foreground, until drive has returned."""
        with subprocess.Popen(command, env=variables, cwd=self.work, user=user, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL) as server:
            try:
                until = time.monotonic() + READY_SECONDS
                while not (is_ready or self.answers)():
                    if server.poll() is not None or time.monotonic() > until:
                        raise RuntimeError(f'{command[0]} did not begin to listen')
                    time.sleep(0.01)
                drive()
            finally:
                server.send_signal(end)
        if server.returncode not in (0, -end):
            raise RuntimeError(f'{command[0]} ended with {server.returncode}')

    def answers(self):
        with socket.socket() as end:
            return not end.connect_ex(('127.0.0.1', self.port))

    def redis(self, variables):
        libraries = dict(variables, LD_LIBRARY_PATH=str(self.unpacked / 'usr/lib/x86_64-linux-gnu'))
        load = [self.find('redis-benchmark'), '-p', str(self.port), '-n', '20000', '-q', '-t', 'set,get,lpush,lrange_100']
        self.serve(libraries, [self.find('redis-server'), '--port', str(self.port), '--save', ''],
                   lambda: self.client(load))

    def nginx(self, variables):
        (self.work / 'page.html').write_text('x' * 20000)
        folders = ' '.join(f'{kind}_temp_path {self.work}/{kind};' for kind in ('client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'))
        (self.work / 'nginx.conf').write_text(f"""daemon off; pid {self.work}/pid; error_log /dev/null; worker_processes 1;
events {{}} http {{ {folders} access_log off; gzip on; gzip_types *; server {{ listen {self.port}; root {self.work}; }} }}""")
        self.serve(variables, [self.find('nginx'), '-p', str(self.work), '-c', str(self.work / 'nginx.conf')], self.fetch_pages)

    def fetch_pages(self):
        connection = http.client.HTTPConnection('127.0.0.1', self.port)
        for _ in range(8000):
            connection.request('GET', '/page.html', headers={'Accept-Encoding': 'gzip'})
            connection.getresponse().read()

    def postgres(self, variables):
        """Each transaction has a connection, so a process, of its own."""
        data, owner = self.work / 'data', 'postgres' if os.getuid() == 0 else None
        if not data.exists():
            data.mkdir()
            shutil.chown(data, owner)
            subprocess.run([self.find('initdb'), '-D', data, '-A', 'trust', '-U', 'postgres'], user=owner, cwd=data, check=True,
                           stdout=subprocess.DEVNULL)
        load = [self.find('pgbench'), '-h', '127.0.0.1', '-p', str(self.port), '-U', 'postgres', 'postgres']
        first = [] if (data / 'filled').exists() else [load + ['-i', '-q']]
        self.serve(variables, [self.find('postgres'), '-D', str(data), '-p', str(self.port), '-k', '', '-F'],
                   lambda: [self.client(each) for each in first + [load + ['-n', '-S', '-C', '-t', '100']]], signal.SIGINT, owner,
                   lambda: (data / 'postmaster.pid').exists() and 'ready' in (data / 'postmaster.pid').read_text())
        (data / 'filled').touch()

    def client(self, command):
        """Its CPU time is not the server's: a shell in a session of its own waits for it."""
        libraries = dict(os.environ, LD_LIBRARY_PATH=str(self.unpacked / 'usr/lib/x86_64-linux-gnu'))
        done = self.work / 'done'
        done.unlink(missing_ok=True)
        pid = os.fork()
        if not pid:
            if not os.fork():
                status = subprocess.run(command, env=libraries, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
                (self.work / 'part').write_text(str(status.returncode))
                (self.work / 'part').rename(done)
            os._exit(0)
        os.waitpid(pid, 0)
        while not done.exists():
            time.sleep(0.01)
        if done.read_text() != '0':
            raise RuntimeError(f'{command[0]} failed')

    def node(self, variables):
        self.run(variables, self.find('node'), '-e', NODE)

    def java(self, variables):
        if not (self.work / 'Work.class').exists():
            (self.work / 'Work.java').write_text(JAVA)
            self.run(None, self.find('javac'), 'Work.java')
        self.run(variables, self.find('java'), '-Xmx256m', 'Work')

    def compile_50_files(self, variables):
        for number in range(50):
            (self.work / f'{number}.c').write_text(f'#include <stdio.h>\n#include <stdlib.h>\nint f{number}(int n)\n'
                                                   '{ int s = 0; for (int i = 0; i < n; i++) s += i ^ n; return s; }\n')
        self.run(variables, 'sh', '-c', 'for f in [0-9]*.c; do cc -O2 -c $f -o /dev/null || exit; done')

    def agent(self, variables, framework, script):
        python = self.build / 'frameworks' / framework / 'bin/python'
        if not python.exists():
            raise FileNotFoundError(python)
        self.run(dict(variables, HOME=str(self.work)), python, '-W', 'ignore', ROOT / f'tests/frameworks/agents/{framework}_{script}.py',
                 'fixed', '32')


def all_programs(programs):
    agents = {'langchain': 'history', 'langgraph': 'checkpoints', 'autogen': 'tools', 'crewai': 'context'}
    named = {name: getattr(programs, name) for name in ('redis', 'nginx', 'postgres', 'node', 'java', 'compile_50_files')}
    for framework, script in agents.items():
        named[framework] = lambda variables, f=framework, s=script: programs.agent(variables, f, s)
    return named


def ways_of(build, work):
    bare = {k: v for k, v in os.environ.items() if k != 'LD_PRELOAD' and not k.startswith('CUFLIGHT_')}
    preload = dict(bare, LD_PRELOAD=f'{build}/libcuflight.so', CUFLIGHT_OUTPUT=f'{work}/')
    return {'native': bare, 'off': dict(preload, CUFLIGHT_OPTIONS='host=off'), 'plain': preload,
            'recorded': dict(preload, CUFLIGHT_OPTIONS='start=1')}


def cpu_of(run, variables):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run(variables)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measure(run, ways, rounds, recordings):
    times = {way: [] for way in ways}
    run(ways['native'])  # files that it reads are in memory, and its data are made
    for number in range(rounds):
        for way in list(ways)[::-1 if number % 2 else 1]:
            times[way].append(cpu_of(run, ways[way]))
            for path in recordings.glob('*.cuf'):
                path.unlink()
    return {way: statistics.median(all_of) for way, all_of in times.items()}


def main():
    build, rounds = pathlib.Path(sys.argv[1]).resolve(), int(sys.argv[2]) if sys.argv[2:] else 5
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as recordings:
        for path in (folder, recordings):
            os.chmod(path, 0o777)
        ways, names = ways_of(build, recordings), sys.argv[3:]
        print('%-18s %9s %s' % ('CPU time, s', 'native', ' '.join('%9s' % way for way in list(ways)[1:])))
        for name, run in all_programs(Programs(build, pathlib.Path(folder))).items():
            if names and name not in names:
                continue
            try:
                medians = measure(run, ways, rounds, pathlib.Path(recordings))
            except FileNotFoundError as absent:
                print(f'{name:18} is not there: {absent}')
                continue
            native = medians['native']
            print('%-18s %9.3f %s' % (name, native, ' '.join('%9.3f' % (medians[way] / native) for way in list(ways)[1:])), flush=True)


main()
