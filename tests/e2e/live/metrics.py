#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""metrics.py FILE [EXPRESSION...]: reads an exposition with prometheus-client's parser of its format,
checks what always holds, and evaluates Python expressions that must be true. m('name', label=value)
is the sum of the samples with these labels; n(...) is their number; truth(PID) is what a server
wrote."""
import glob
import json
import sys

from prometheus_client.openmetrics import parser as openmetrics
from prometheus_client import parser as text


def read(path):
	with open(path, encoding='utf-8') as file:
		whole = file.read()
	parser = openmetrics if whole.endswith('# EOF\n') else text
	return [sample for family in parser.text_string_to_metric_families(whole)
		for sample in family.samples]


samples = read(sys.argv[1])


def found(name, **labels):
	return [sample for sample in samples if sample.name == 'cuflight_' + name and
		all(sample.labels.get(key) == value for key, value in labels.items())]


def m(name, **labels):
	return sum(sample.value for sample in found(name, **labels))


def n(name, **labels):
	return len(found(name, **labels))


def truth(pid):
	with open(f'truth.{pid}', encoding='utf-8') as file:
		return json.load(file)


def check_always():
	names = [(sample.name, tuple(sorted(sample.labels.items()))) for sample in samples]
	assert len(names) == len(set(names)), 'a series appears twice'
	for sample in found('gpu_memory_bytes'):
		uuid = sample.labels['UUID']
		held, total = m('gpu_memory_bytes', UUID=uuid), m('gpu_memory_total_bytes', UUID=uuid)
		assert held == total, f'the owners of {uuid} sum to {held}, not to {total}'


check_always()
for expression in sys.argv[2:]:
	if not eval(expression):
		for sample in samples:
			print(sample.name, sample.labels, sample.value)
		sys.exit(f'not true: {expression} {glob.glob("truth.*")}')
