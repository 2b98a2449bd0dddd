#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""hostile_packs.py RECORDING DIRECTORY: writes packs that want to harm their reader, one for each way.

Their names begin with what has to happen: refused-*.cufpack are not read, harmless-*.cufpack are
read like the recording in them."""
import io
import random
import subprocess
import sys
import tarfile

recording = open(sys.argv[1], 'rb').read()
out = sys.argv[2]


def file_of(name, data=b''):
	info = tarfile.TarInfo(name)
	info.size = len(data)
	return info, data


def link_of(name, target, kind):
	info = tarfile.TarInfo(name)
	info.type, info.linkname = kind, target
	return info, b''


def compress(path, data):
	with open(path, 'wb') as file:
		subprocess.run(['zstd', '-q', '-3', '-c'], input=data, stdout=file, check=True)


def write(name, *entries, form=tarfile.PAX_FORMAT):
	tar = io.BytesIO()
	with tarfile.open(fileobj=tar, mode='w', format=form) as archive:
		for info, data in entries:
			archive.addfile(info, io.BytesIO(data))
	compress(f'{out}/{name}.cufpack', tar.getvalue())
	return tar.getvalue()


good = file_of('recordings/a.cuf', recording)
whole = write('harmless-good', good)
long = file_of(f'recordings/{"long" * 40}.cuf', recording)
write('harmless-long_pax', long)
write('harmless-long_gnu', long, form=tarfile.GNU_FORMAT)
write('refused-above', file_of('recordings/../../../../tmp/cuflight-was-here', recording), good)
write('refused-folder', file_of('recordings/a/b.cuf', recording), good)
write('refused-empty')
write('refused-no_recording', file_of('recordings/a.cuf', b'x' * 5000))
write('harmless-absolute', file_of('/tmp/cuflight-was-here', recording), good)
write('harmless-links', link_of('recordings/a.cuf', '/etc/passwd', tarfile.SYMTYPE),
      link_of('recordings/b.cuf', 'recordings/a.cuf', tarfile.LNKTYPE), good)
write('harmless-names', good, file_of('names.ndjson', b'{"path":"/lib/x","build_id":"zz","state":0}\n{"at":3,"frames":7}\n'
                                      b'[[[[[[\n{"at":"0x10","frames":[[1,2,3,4,5],[]]}\n' + b'[' * 10000 + b'\n\xff\xfe\n'))
write('harmless-name_bytes', file_of('recordings/\x1b[31m\u202e<b>".cuf', recording))

with open(f'{out}/refused-no_archive.cufpack', 'wb') as file:
	file.write(b'\x28\xb5\x2f\xfd' + random.Random(1).randbytes(3000))
with open(f'{out}/refused-cut.cufpack', 'wb') as file:
	file.write(open(f'{out}/harmless-good.cufpack', 'rb').read()[:-2000])
# extensions of extensions, and one whose length lies
def extension(data):
	info = tarfile.TarInfo('x')
	info.type, info.size = tarfile.XHDTYPE, len(data)
	return info.tobuf() + data.ljust(-(-len(data) // 512) * 512, b'\0')
compress(f'{out}/refused-extensions.cufpack', extension(b'12 path=abc\n') * 1000 + whole)
compress(f'{out}/refused-extension.cufpack', extension(b'99 path=abc\n') + whole)
# a tar inside of whose header a number lies
compress(f'{out}/refused-size.cufpack', whole[:124] + b'77777777777\0' + whole[136:])
# 8 GiB that are not zeros, in 750 KB: one page again and again
info = tarfile.TarInfo('recordings/bomb.cuf')
info.size = 8 << 30
with open(f'{out}/refused-bomb.cufpack', 'wb') as file:
	zstd = subprocess.Popen(['zstd', '-q', '-3', '-c'], stdin=subprocess.PIPE, stdout=file)
	zstd.stdin.write(info.tobuf())
	for _ in range(info.size >> 24):
		zstd.stdin.write(b'boom' * (1 << 22))
	zstd.stdin.close()
	zstd.wait()
