#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""artifacts.py --arch ARCH --version VERSION --build BUILD --sources TABLE: from the command and the recorder in
BUILD, into BUILD/dist: a wheel, that of the plugin of pytest, a .deb, a tar, the tree of an init image with its
Dockerfile, an SBOM, SHA256SUMS. Names are sorted and dates are SOURCE_DATE_EPOCH, so that the same files give the same bytes."""
import argparse
import ast
import base64
import glob
import gzip
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import tarfile
import time
import zipfile

DEBIAN = {'x86_64': 'amd64', 'aarch64': 'arm64'}
SUMMARY = 'A flight recorder for GPU and host memory'
DATE = int(os.environ['SOURCE_DATE_EPOCH'])


def read(path):
    with open(path, 'rb') as file:
        return file.read()


def write(path, data):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, 'wb') as file:
        file.write(data)


def sbom(options):
    """CycloneDX: what sources.txt names."""
    parts = []
    for line in read(options.sources).decode().splitlines():
        if line and not line.startswith('#'):
            name, origin, package, file, digest, licence = line.split()
            version = package.replace('==', '=').replace('@', '=').split('=', 1)[1]
            parts.append({'type': 'application' if name == 'zig' else 'library', 'name': name, 'version': version,
                          'scope': 'excluded' if name == 'zig' else 'required',
                          'hashes': [{'alg': 'SHA-256', 'content': digest}], 'licenses': [{'license': {'id': licence}}],
                          'properties': [{'name': 'cuflight:file', 'value': file}]})
    if not parts:
        raise SystemExit('artifacts: sources.txt names nothing')
    document = {'bomFormat': 'CycloneDX', 'specVersion': '1.5', 'version': 1, 'components': parts,
                'metadata': {'timestamp': time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime(DATE)),
                             'component': {'type': 'application', 'name': 'cuflight', 'version': options.version,
                                           'licenses': [{'license': {'id': 'Apache-2.0'}}]}}}
    return (json.dumps(document, indent=1) + '\n').encode()


def texts(options):
    return {'LICENSE': read('LICENSE'), 'THIRD_PARTY': read(f'{options.build}/THIRD_PARTY'),
            'cuflight.cdx.json': sbom(options)}


def write_wheel(path, info, metadata, tags, files):
    """No build backend: a zip with a RECORD."""
    files[f'{info}/METADATA'] = metadata.encode()
    files[f'{info}/WHEEL'] = ('Wheel-Version: 1.0\nGenerator: cuflight\n'
                              f'Root-Is-Purelib: {str(tags[0].endswith("-any")).lower()}\n'
                              + ''.join(f'Tag: {tag}\n' for tag in tags)).encode()
    record = ''
    for name, data in sorted(files.items()):
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b'=').decode()
        record += f'{name},sha256={digest},{len(data)}\n'
    files[f'{info}/RECORD'] = f'{record}{info}/RECORD,,\n'.encode()
    with zipfile.ZipFile(path, 'w', zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, data in sorted(files.items()):
            entry = zipfile.ZipInfo(name, time.gmtime(max(DATE, 315532800))[:6])
            entry.external_attr = (0o100755 if '/scripts/' in name else 0o100644) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, data)


def metadata(name, version, summary, about, *lines):
    return '\n'.join(['Metadata-Version: 2.4', f'Name: {name}', f'Version: {version}', f'Summary: {summary}',
                      'License-Expression: Apache-2.0', *lines, 'Description-Content-Type: text/markdown', '',
                      read(about).decode()])


def wheel(options, command, recorder):
    info = f'cuflight-{options.version}.dist-info'
    tag = f'py3-none-manylinux_2_17_{options.arch}.manylinux2014_{options.arch}'
    tags = [f'py3-none-{platform}' for platform in tag.split('-')[2].split('.')]
    files = {'cuflight/libcuflight.so': recorder,
             f'cuflight-{options.version}.data/scripts/cuflight': command}
    for path in sorted(glob.glob('scripts/bundle/package/*.py')):
        files['cuflight/' + os.path.basename(path)] = read(path)
    for name, data in texts(options).items():
        files[f'{info}/sboms/{name}' if name.endswith('.json') else f'{info}/licenses/{name}'] = data
    write_wheel(f'{options.build}/dist/cuflight-{options.version}-{tag}.whl', info,
                metadata('cuflight', options.version, SUMMARY, 'README.md', 'License-File: LICENSE',
                         'License-File: THIRD_PARTY', 'Requires-Python: >=3.6'), tags, files)


def plugin_wheel(options):
    """The plugin of pytest, as its pyproject.toml describes it."""
    source = 'scripts/pytest_cuflight'
    project = read(f'{source}/pyproject.toml').decode()

    def field(name):
        return ast.literal_eval(re.search(rf'^{name} = (.*)$', project, re.MULTILINE)[1])
    if field('version') != options.version:
        raise SystemExit(f'artifacts: {source} is of version {field("version")}: make gen')
    info = f'pytest_cuflight-{options.version}.dist-info'
    points = re.search(r'^\[project\.entry-points\.(.*)\]\n((?:\w.*\n)+)', project, re.MULTILINE)
    files = {path.removeprefix(f'{source}/'): read(path) for path in glob.glob(f'{source}/pytest_cuflight/*.py')}
    files[f'{info}/entry_points.txt'] = f'[{points[1]}]\n{points[2]}'.replace('"', '').encode()
    files[f'{info}/licenses/LICENSE'] = read('LICENSE')
    write_wheel(f'{options.build}/dist/pytest_cuflight-{options.version}-py3-none-any.whl', info,
                metadata(field('name'), options.version, field('description'), f'{source}/README.md',
                         'License-File: LICENSE', f'Requires-Python: {field("requires-python")}',
                         *(f'Requires-Dist: {name}' for name in field('dependencies')),
                         *(f'Classifier: {name}' for name in field('classifiers'))), ['py3-none-any'], files)


def write_tar(path, folder, name):
    """name/...: the tree of folder."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode='w', format=tarfile.PAX_FORMAT) as archive:
        for root, folders, files in os.walk(folder):
            folders.sort()
            for entry in sorted(files + [f for f in folders if os.path.islink(f'{root}/{f}')]):
                full = os.path.join(root, entry)
                info = archive.gettarinfo(full, f'{name}/' + os.path.relpath(full, folder))
                info.uid = info.gid = 0
                info.uname = info.gname = ''
                info.mtime = DATE
                info.mode = 0o755 if info.mode & 0o100 else 0o644
                if info.issym():
                    archive.addfile(info)
                else:
                    with open(full, 'rb') as file:
                        archive.addfile(info, file)
    write(path, gzip.compress(out.getvalue(), 9, mtime=0))


def documents(root, share='share'):
    """man pages, completion, header, schemas"""
    for pattern, folder in (('analysis/cmd/man/*.1', 'man/man1'), ('analysis/cmd/man/*.7', 'man/man7'),
                            ('analysis/view/*.schema.json', 'cuflight')):
        for path in sorted(glob.glob(pattern)):
            data = read(path)
            name = os.path.basename(path)
            if folder.startswith('man'):
                data, name = gzip.compress(data, 9, mtime=0), name + '.gz'
            write(f'{root}/{share}/{folder}/{name}', data)
    write(f'{root}/{share}/bash-completion/completions/cuflight', read('analysis/cmd/man/cuflight.bash'))
    for path in ['interpose/cuflight.h'] + sorted(glob.glob('scripts/ci/*.h')):
        write(f'{root}/include/{os.path.basename(path)}', read(path))


def tree(root, command, recorder, arch):
    """As `cuflight install` leaves it."""
    write(f'{root}/bin/cuflight', command)
    os.chmod(f'{root}/bin/cuflight', 0o755)
    write(f'{root}/lib/libcuflight.so', recorder)
    for folder, target in (('lib64', '../lib'), (f'lib/{arch}-linux-gnu', '..')):
        os.makedirs(f'{root}/{folder}', exist_ok=True)
        os.symlink(f'{target}/libcuflight.so', f'{root}/{folder}/libcuflight.so')


def tar(options, command, recorder):
    name = f'cuflight-{options.version}-linux-{options.arch}'
    root = f'{options.build}/tree'
    shutil.rmtree(root, ignore_errors=True)
    tree(root, command, recorder, options.arch)
    documents(root)
    for file, data in texts(options).items():
        write(f'{root}/share/doc/cuflight/{file}', data)
    write_tar(f'{options.build}/dist/{name}.tar.gz', root, name)


def image(options, command):
    """A build context: docker build FOLDER."""
    root = f'{options.build}/image'
    shutil.rmtree(root, ignore_errors=True)
    write(f'{root}/bin/cuflight', command)
    os.chmod(f'{root}/bin/cuflight', 0o755)
    for file, data in texts(options).items():
        write(f'{root}/{file}', data)
    write(f'{root}/Dockerfile', b'# cuflight env --k8s=sidecar --image=IMAGE prints the manifests of a pod\nFROM scratch\n'
          b'COPY bin/cuflight /bin/cuflight\nCOPY LICENSE THIRD_PARTY cuflight.cdx.json /\n'
          b'ENTRYPOINT ["/bin/cuflight"]\n')
    name = f'cuflight-{options.version}-image-{options.arch}'
    write_tar(f'{options.build}/dist/{name}.tar.gz', root, name)


def deb(options, command, recorder):
    root = f'{options.build}/deb'
    shutil.rmtree(root, ignore_errors=True)
    write(f'{root}/usr/bin/cuflight', command)
    write(f'{root}/usr/lib/{options.arch}-linux-gnu/libcuflight.so', recorder)
    documents(f'{root}/usr')
    for file, data in texts(options).items():
        name = 'copyright' if file == 'THIRD_PARTY' else file
        write(f'{root}/usr/share/doc/cuflight/{name}', data)
    bytes_in_it = sum(os.lstat(os.path.join(f, n)).st_size for f, _, names in os.walk(root) for n in names)
    write(f'{root}/DEBIAN/control', (
        f'Package: cuflight\nVersion: {options.version}\nArchitecture: {DEBIAN[options.arch]}\n'
        'Maintainer: the authors of cuflight <root@localhost>\nSection: devel\nPriority: optional\n'
        f'Depends: libc6 (>= 2.17)\nInstalled-Size: {bytes_in_it // 1024}\nDescription: {SUMMARY}\n'
        ' It explains why GPU or host memory ran out, from a recording that survives the process.\n').encode())
    for folder, folders, files in os.walk(root):
        os.chmod(folder, 0o755)
        for name in files:
            path = os.path.join(folder, name)
            os.chmod(path, 0o755 if os.path.dirname(path) == f'{root}/usr/bin' else 0o644)
            os.utime(path, (DATE, DATE))
    path = f'{options.build}/dist/cuflight_{options.version}_{DEBIAN[options.arch]}.deb'
    # Debian 11 knows neither zstd nor this system's default
    subprocess.run(['dpkg-deb', '--root-owner-group', '-Zxz', '--build', root, path], check=True,
                   stdout=subprocess.DEVNULL)


def main():
    parser = argparse.ArgumentParser()
    for name in ('arch', 'version', 'build', 'sources'):
        parser.add_argument(f'--{name}', required=True)
    options = parser.parse_args()
    command = read(f'{options.build}/command/cuflight')
    recorder = read(f'{options.build}/recorder/libcuflight.so')
    dist = f'{options.build}/dist'
    shutil.rmtree(dist, ignore_errors=True)
    os.makedirs(dist)
    wheel(options, command, recorder)
    plugin_wheel(options)
    tar(options, command, recorder)
    image(options, command)
    deb(options, command, recorder)
    write(f'{dist}/cuflight-{options.version}-{options.arch}.cdx.json', sbom(options))
    sums = ''.join(f'{hashlib.sha256(read(f"{dist}/{name}")).hexdigest()}  {name}\n' for name in sorted(os.listdir(dist)))
    write(f'{dist}/SHA256SUMS', sums.encode())
    for name in sorted(os.listdir(dist)):
        print(f'{os.path.getsize(f"{dist}/{name}"):>9}  {os.path.relpath(dist)}/{name}')


if __name__ == '__main__':
    main()
