#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""run.py: torch_allocator (tests/victims/) under the recorder, in every mode and shape of report; prints TAP. The truth is
the allocator's own; check_blocks.py replays the recording."""
import atexit
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[4]
BUILD = pathlib.Path(os.environ.get('BUILD', ROOT / 'build')).resolve()
sys.path.insert(0, str(ROOT / 'tests'))
import check_blocks # noqa: E402
import recording as r # noqa: E402

WORK = pathlib.Path(tempfile.mkdtemp(prefix='torch_allocator.'))
atexit.register(shutil.rmtree, WORK, ignore_errors=True)
FEW = '--points=60'
OUT_OF_MEMORY = 2


def run(*args, victim='victims/torch_allocator', recorder=True):
    """What it said, and its recording."""
    where, truth = WORK / 'recording.cuf', WORK / 'truth'
    where.unlink(missing_ok=True)
    more = {'LD_LIBRARY_PATH': os.environ.get('SIMCUDA_LIB', str(BUILD / 'sim'))}
    if recorder:
        more |= {'CUFLIGHT_OUTPUT': str(where), 'LD_PRELOAD': str(BUILD / 'libcuflight.so')}
    done = subprocess.run([str(BUILD / victim), *args], capture_output=True, text=True, timeout=300, env={**os.environ, **more})
    truth.write_text(done.stdout)
    if done.returncode == 77:
        raise LookupError(done.stderr.strip())
    return done, r.Recording(where) if recorder else None


def line(done, subject):
    return next((text for text in done.stdout.splitlines() if text.startswith(subject + ' ')), None)


def books(*args, victim='victims/torch_allocator', points=60):
    done, recording = run(*args, victim=victim)
    assert done.returncode == 1, f'exit status {done.returncode}: {done.stderr[-300:]}'
    wrong, compared = check_blocks.check(WORK / 'truth', recording)
    assert not wrong, '; '.join(wrong[:5])
    assert compared >= 5 * points, f'{compared} compared'
    return done, recording, f'{compared} figures'


def serve(*args):
    done, recording, said = books(*args, points=1000)
    given_up = recording.incidents()[-1]
    assert given_up.kind == r.FRAMEWORK and given_up.outcome == 0 and given_up.result == OUT_OF_MEMORY, given_up
    assert given_up.attempt >= 1 and given_up.first < given_up.number, given_up
    assert "out of GPU memory: PyTorch's request(" in done.stderr, done.stderr
    return said


def native():
    """books at 1,000 points and where it gives up: segments of cudaMalloc"""
    return serve()


def native_again():
    """the same, another sequence"""
    return serve('--seed=20261121')


def expandable():
    """the same: expandable segments"""
    said = serve('--expandable')
    return said


def expandable_again():
    """the same, another sequence"""
    return serve('--expandable', '--seed=20261121')


def capped():
    """a memory fraction: it gives up although no CUDA call failed, and that is said"""
    done, recording, said = books('--mode=capped', points=1000)
    given_up, = recording.incidents()
    assert given_up.kind == r.FRAMEWORK and given_up.result == 0 and given_up.first == given_up.number, given_up
    return said


def retried():
    """a request that succeeds after the cache is released is recovered, and nothing was given up"""
    done, recording = run('--mode=retried')
    assert done.returncode == 0, done.stderr
    failed, = recording.incidents()
    assert failed.kind == r.DEVICE and failed.outcome == 1, failed
    assert recording.framework().get('backend') == 'native', recording.framework()


def shape(era, abi):
    done, recording, said = books(FEW, f'--era={era}')
    assert recording.framework().get('abi') == abi, recording.framework()
    return said


def signed():
    """reports of 1.10 to 1.13: signed totals"""
    return shape(1, 'Pvlll')


def unsigned():
    """reports with an unsigned request at the failure"""
    return shape(3, 'Pvlmm')


def oldest():
    """reports before 1.10 have no addresses: counted, none placed, and that is said"""
    done, recording = run(FEW, '--era=0')
    count = int(line(done, 'reported').split()[2])
    assert recording.framework_blind == recording.framework_events == count, (recording.framework_blind, recording.framework_events, count)
    assert not [e for e in recording.ring(r.FRAMEWORK_RING) if e.kind == r.FRAMEWORK]
    assert any('before 1.10' in note for note in recording.notes(r.NOTE_FRAMEWORK)), recording.notes(r.NOTE_FRAMEWORK)
    return f'{count} reports'


def silent():
    """a back-end that reports nothing: that is said"""
    done, recording = run('--mode=silent')
    assert done.returncode == 0, done.stderr
    assert any('has reported no block' in note for note in recording.notes(r.NOTE_FRAMEWORK)), recording.notes(r.NOTE_FRAMEWORK)


def handed_on():
    """every report reaches the function behind the hook, with its arguments"""
    for era in range(4):
        plain, _ = run(FEW, f'--era={era}', recorder=False)
        seen, _ = run(FEW, f'--era={era}')
        want, have = line(plain, 'reported').split(), line(seen, 'reported').split()
        # before 1.10 the addresses are those of malloc, which differ from run to run
        until = want.index('mixed') if era == 0 else None
        assert have[:until] == want[:until], f'era {era}: {have} in place of {want}'


def doors():
    """the same through the driver's doors, and linked"""
    for victim, args in (('torch_allocator', ['--door=gpa5']), ('torch_allocator', ['--door=dlsym']), ('linked/torch_allocator', [])):
        books(FEW, *args, victim=f'victims/{victim}')
        books(FEW, '--expandable', *args, victim=f'victims/{victim}')


def stacks():
    """sites: blocks of 1 MiB and more all have a stack, and of smaller ones those that are marked as a sample"""
    _, recording, _ = books(FEW)
    for event in recording.ring(r.FRAMEWORK_RING):
        if event.kind == r.FRAMEWORK and event.op == r.ALLOC:
            large, sampled = event.bytes >= 1 << 20, bool(event.flags & r.SAMPLED)
            assert bool(event.stack) == (large or sampled) and not (large and sampled), event


def killed():
    """killed in the middle: the recording holds every block up to that moment"""
    where, more = WORK / 'recording.cuf', {'LD_LIBRARY_PATH': os.environ.get('SIMCUDA_LIB', str(BUILD / 'sim'))}
    where.unlink(missing_ok=True)
    more |= {'CUFLIGHT_OUTPUT': str(where), 'LD_PRELOAD': str(BUILD / 'libcuflight.so')}
    with subprocess.Popen([str(BUILD / 'victims/torch_allocator'), '--points=100000'], stdout=subprocess.PIPE, text=True, env={**os.environ, **more}) as victim:
        said = [victim.stdout.readline() for _ in range(300)]
        victim.kill()
        said += victim.stdout.read().splitlines(True)
    points = [text for text in said if text.startswith('point ') and text.endswith('\n')]
    (WORK / 'truth').write_text(''.join(points))
    recording = r.Recording(where)
    wrong, compared = check_blocks.check(WORK / 'truth', recording, ended=False)
    assert not wrong, '; '.join(wrong[:5])
    assert compared >= 5 * 290, compared
    live = {}
    for event in recording.events():
        if event.kind == r.FRAMEWORK and event.op == r.ALLOC:
            live[event.addr] = event.bytes
        elif event.kind == r.FRAMEWORK and event.op == r.FREE:
            live.pop(event.addr)
    ledger = recording.ledger(r.SPACE_FRAMEWORK)
    # the last report may have been in the making
    assert len(set(live.items()) ^ set(ledger.items())) <= 1, set(live.items()) ^ set(ledger.items())
    return f'{compared} figures'


def roles():
    """what NCCL, cuBLAS and cuDNN take while their handles are made has its role, and nothing else has one"""
    done, recording, _ = books(FEW)
    names = {r.ROLE_COMMUNICATION: 'communication', r.ROLE_LIBRARY: 'library'}
    want = {words[1]: int(words[3]) for words in map(str.split, done.stdout.splitlines()) if words[0] == 'role'}
    have = dict.fromkeys(want, 0)
    for event in recording.ring(r.FRAMEWORK_RING):
        if event.op == r.ROLE:
            assert event.kind == r.DEVICE, event
            have[names[event.extra]] += event.bytes
    assert have == want and len(want) == 2, (have, want)
    assert recording.roles() == {role: want[name] for role, name in names.items()}, recording.roles()


TESTS = native, native_again, expandable, expandable_again, capped, retried, signed, unsigned, oldest, silent, handed_on, doors, stacks, killed, roles


def main():
    print(f'1..{len(TESTS)}')
    for number, test in enumerate(TESTS, 1):
        try:
            remark = test()
            print(f'ok {number} - {test.__doc__}' + (f' ({remark})' if remark else ''), flush=True)
        except LookupError as why:
            print(f'ok {number} - {test.__doc__} # SKIP {why}', flush=True)
        except (AssertionError, ValueError, OSError, subprocess.SubprocessError) as why:
            print(f'not ok {number} - {test.__doc__}\n# {why}', flush=True)


main()
