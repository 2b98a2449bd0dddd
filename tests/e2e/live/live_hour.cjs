// SPDX-License-Identifier: Apache-2.0
// live_hour.cjs ADDRESS REFRESHES: opens the live page of `cuflight serve` in Chromium, whose clock is
// made faster, and counts what the page holds after a tenth of the refreshes and at the end: bytes of
// JavaScript, nodes, listeners. Fails when the end has more than the beginning by a tenth.
"use strict";
const path = require("path");
const { createRequire } = require("module");
const { chromium } = createRequire(path.resolve(process.env.BUILD ?? "build", "x.js"))("playwright-core");

const [address, refreshes] = process.argv.slice(2);

async function main() {
	const browser = await chromium.launch({
		executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
		args: ["--no-sandbox", "--disable-gpu", "--no-proxy-server"],
	});
	const page = await browser.newPage();
	const devtools = await page.context().newCDPSession(page);
	await devtools.send("Performance.enable");
	await page.addInitScript(() => {
		const later = window.setTimeout, draw = Element.prototype.replaceChildren;
		// its look() sleeps while it is counted: a table that is being replaced is there twice
		window.setTimeout = (what) => later(function wake() {
			if (what.name !== "look" || !window.isCounted) return what();
			window.sleeps = true;
			later(wake, 10);
		}, 1);
		window.drawn = 0;
		Element.prototype.replaceChildren = function (...children) {
			window.drawn++;
			draw.apply(this, children);
		};
	});
	await page.goto(address + "/");
	await page.waitForSelector("td", { timeout: 0 }); // something was analysed
	await page.evaluate(() => (window.drawn = 0));
	async function held(after) {
		await page.waitForFunction((count) => window.drawn >= count, after, { timeout: 0, polling: 200 });
		await page.evaluate(() => ((window.sleeps = false), (window.isCounted = true)));
		await page.waitForFunction(() => window.sleeps, null, { timeout: 0, polling: 20 });
		// the first frees what JavaScript holds of a node, a later one the node
		for (let i = 0; i < 4; i++) await devtools.send("HeapProfiler.collectGarbage");
		const { metrics } = await devtools.send("Performance.getMetrics");
		await page.evaluate(() => (window.isCounted = false));
		return Object.fromEntries(["JSHeapUsedSize", "Nodes", "JSEventListeners"].map((name) =>
			[name, metrics.find((metric) => metric.name === name).value]));
	}
	const begin = await held(refreshes / 10), end = await held(Number(refreshes));
	console.log(`after ${refreshes / 10}: ${JSON.stringify(begin)}, after ${refreshes}: ${JSON.stringify(end)}`);
	await browser.close();
	for (const name of Object.keys(begin))
		if (end[name] > begin[name] * 1.1) throw new Error(`${name} grows`);
}
main().catch((error) => {
	console.error(error.message);
	process.exit(1);
});
