// SPDX-License-Identifier: Apache-2.0
// growth.js NAME [SECONDS]: one program of programs.txt; a leak keeps 20 MB a second. Its buffers
// are blocks of malloc; the JavaScript heap is mapped and not theirs.
const [name, seconds] = [process.argv[2], Number(process.argv[3] ?? 8)];
const each = 100, block = 20000;

function serve(request) {
	let left = seconds * 80;
	const step = () => {
		for (let i = 0; i < each / 10; i++)
			request();
		if (--left > 0)
			setTimeout(step, 10);
		else
			process.kill(process.pid); // as a server ends; at an exit Node frees everything
	};
	step();
}

const kept = [];
const programs = {
	bodies_kept: () => serve(() => kept.push(Buffer.alloc(block))),
	last_bodies: () => serve(() => {
		kept.push(Buffer.alloc(3 * block)); // so that V8 collects several times a second
		if (kept.length > 400)
			kept.shift();
	}),
	one_document: () => {
		for (let i = 0; i < 5000; i++)
			kept.push(Buffer.alloc(block));
	},
};
programs[name]();
