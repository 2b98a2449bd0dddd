// SPDX-License-Identifier: Apache-2.0
// live_page.cjs ADDRESS WORDS...: opens the live page of `cuflight serve` in Chromium and waits until it has the
// words. Prints "ready"; then waits for lines on stdin with more words, without reloading, and prints "seen" for
// each. At the end of stdin it fails if the page asked for anything but itself and live.json, or wrote an error.
// SCREENSHOT=FILE keeps a picture.
"use strict";
const path = require("path");
const readline = require("readline");
const { createRequire } = require("module");
const { chromium } = createRequire(path.resolve(process.env.BUILD ?? "build", "x.js"))("playwright-core");

const [address, ...first] = process.argv.slice(2);

async function main() {
	const browser = await chromium.launch({
		executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
		args: ["--no-sandbox", "--disable-gpu", "--no-proxy-server"],
	});
	const page = await browser.newPage({ viewport: { width: 1000, height: 600 } });
	const faults = [], allowed = [address + "/", address + "/live.json"];
	page.on("console", (message) => ["error", "warning"].includes(message.type()) && faults.push(message.text()));
	page.on("pageerror", (error) => faults.push(error.stack));
	page.on("request", (request) => allowed.includes(request.url()) || faults.push(`request: ${request.url()}`));
	const seen = (words) => page.waitForFunction((text) => document.body.innerText.includes(text), words, { timeout: 60000 });
	await page.goto(address + "/");
	for (const words of first) await seen(words);
	await page.evaluate(() => (window.isTheSame = true));
	console.log("ready");
	for await (const words of readline.createInterface({ input: process.stdin })) {
		await seen(words);
		console.log("seen");
	}
	if (!(await page.evaluate(() => window.isTheSame))) faults.push("it was loaded again");
	if (process.env.SCREENSHOT) await page.screenshot({ path: process.env.SCREENSHOT });
	await browser.close();
	if (faults.length) throw new Error(faults.join("\n"));
}
main().catch((error) => {
	console.error(error.message);
	process.exit(1);
});
