// SPDX-License-Identifier: Apache-2.0
// A page of `report --html` in Debian's Chromium, and what it must never do: ask for anything, write
// an error to the console. Loaded by look.cjs and controls.cjs.
"use strict";

const fs = require("fs");
const path = require("path");
const { createRequire } = require("module");

const modules = createRequire(path.resolve(process.env.BUILD ?? "build", "x.js"));
const { chromium } = modules("playwright-core");

const CLIPBOARD = () => {
	window.copied = [];
	Object.defineProperty(navigator, "clipboard", {
		value: { writeText: async (text) => void window.copied.push(text) },
	});
};

// The same file under one more rule: a text that is used as markup throws.
function withTrustedTypes(file) {
	const html = fs.readFileSync(file, "utf8");
	const policy = "default-src 'none';";
	if (!html.includes(policy)) throw new Error("the page has no policy");
	const strict = file.replace(/\.html$/, ".strict.html");
	fs.writeFileSync(
		strict,
		html.replace(policy, policy + " require-trusted-types-for 'script';"),
	);
	return strict;
}

// PREPARE(session): before the page is opened, with a session of the browser's own protocol
async function open(file, { options = {}, strict = true, prepare = null } = {}) {
	const browser = await chromium.launch({
		executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
		args: ["--no-sandbox", "--disable-gpu"],
	});
	const context = await browser.newContext({
		viewport: { width: 1280, height: 800 },
		...options,
	});
	if (options.javaScriptEnabled !== false) await context.addInitScript(CLIPBOARD);
	const page = await context.newPage();
	const faults = [];
	const address = "file://" + path.resolve(strict ? withTrustedTypes(file) : file);
	page.on("console", (message) => {
		if (["error", "warning"].includes(message.type()))
			faults.push("console: " + message.text());
	});
	page.on("pageerror", (error) => faults.push("error: " + error.stack));
	page.on("request", (request) => {
		if (request.url() !== address) faults.push("request: " + request.url());
	});
	page.on("dialog", (dialog) => faults.push("dialog: " + dialog.message()));
	const session = prepare ? await context.newCDPSession(page) : null;
	await prepare?.(session);
	await page.goto(address);
	return { browser, page, session, faults };
}

async function ready(page) {
	await page.waitForFunction(() => document.documentElement.dataset.ready, null, {
		timeout: 60000,
	});
	return page.evaluate(() => Math.round(performance.now()));
}

// when the first screen and the charts stood there, in ms since the page was opened
const usable = (page) => page.evaluate(() => Number(document.documentElement.dataset.usable));

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB"];

// written again here, so that a fault of the page's own function shows
function bytesText(bytes) {
	if (bytes === null) return "unknown";
	let value = bytes,
		unit = 0;
	for (; value >= 1023.5; unit++) value /= 1024;
	if (unit === 0) return `${value} B`;
	const digits = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
	return `${value.toFixed(digits)} ${UNITS[unit]}`;
}

function check(is, what) {
	if (!is) throw new Error(what);
}

function same(found, expected, what) {
	const [a, b] = [JSON.stringify(found), JSON.stringify(expected)];
	check(a === b, `${what}: the page has ${a}, expected ${b}`);
}

// MAIN(): its error is the test's
function run(main) {
	main().then(
		() => process.exit(0),
		(error) => {
			console.error(error.stack);
			process.exit(1);
		},
	);
}

module.exports = { open, ready, usable, bytesText, check, same, run, modules };
