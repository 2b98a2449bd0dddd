// SPDX-License-Identifier: Apache-2.0
// grows.js KEEP CREATE: creates so many MiB of objects in V8's heap and keeps the last KEEP MiB.
// Prints "heap BYTES" as V8 counts it, every MiB.
'use strict';
const v8 = require('v8');
const [keep, create] = process.argv.slice(2).map(Number);
const sessions = [];

// about 1 MiB: an array of numbers that are no small integers
function remember(n) {
	const scores = new Array(1 << 17);
	for (let i = 0; i < scores.length; i++) scores[i] = n + i / 7;
	sessions.push(scores);
	if (sessions.length > keep) sessions.shift();
}

for (let n = 0; n < create; n++) {
	remember(n);
	require('fs').writeSync(1, `heap ${v8.getHeapStatistics().total_physical_size}\n`);
	const until = Date.now() + 2;
	while (Date.now() < until);
}
