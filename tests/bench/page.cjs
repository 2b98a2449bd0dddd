// SPDX-License-Identifier: Apache-2.0
// page.cjs HTML [ROUNDS]: what a page of `report --html` costs the main thread of Chromium until it is
// usable (first screen and charts) and until it is complete, in CPU time, and both as wall time.
"use strict";

const { open, ready, usable } = require("../e2e/html/browser.cjs");

const [file, rounds = "5"] = process.argv.slice(2);

async function measure() {
	const { browser, page, session } = await open(file, {
		strict: false,
		async prepare(session) {
			await session.send("Performance.enable", { timeDomain: "threadTicks" });
		},
	});
	await ready(page);
	const { metrics } = await session.send("Performance.getMetrics");
	const cpu = metrics.find((one) => one.name === "TaskDuration").value * 1000;
	const complete = await page.evaluate(() => Number(document.documentElement.dataset.ready));
	const result = { cpu, usable: await usable(page), complete };
	await browser.close();
	return result;
}

const median = (numbers) => numbers.sort((a, b) => a - b)[numbers.length >> 1];

(async () => {
	const all = [];
	for (let i = 0; i < Number(rounds); i++) all.push(await measure());
	for (const [key, words] of [
		["cpu", "CPU time of the main thread until complete"],
		["usable", "usable after"],
		["complete", "built in"],
	])
		console.log(`${words}: median ${median(all.map((one) => one[key])).toFixed(0)} ms`);
})();
