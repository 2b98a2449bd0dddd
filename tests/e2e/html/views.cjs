// SPDX-License-Identifier: Apache-2.0
// views.cjs GPU PYTHON LIMITED: what stands on the page as its reader sees it: nothing on top of
// something else, one name and one colour for one thing, the program's own code first, a link that
// opens the same view. GPU: a framework's segments. PYTHON: several processes. LIMITED: a limit of
// the cgroup.
"use strict";

const { open, ready, check, same, run } = require("./browser.cjs");

const all = (page, selector) => page.locator(selector).allTextContents();
const overlap = (a, b) =>
	a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height;

async function boxes(page, selector) {
	const found = [];
	for (const one of await page.locator(selector).all()) {
		const box = await one.boundingBox();
		if (box) found.push({ ...box, text: await one.textContent() });
	}
	return found;
}

async function limitsAreLegible(page) {
	const labels = await boxes(page, ".limit");
	check(labels.length > 0, "a limit has a label");
	for (const [i, one] of labels.entries())
		for (const other of labels.slice(i + 1))
			check(!overlap(one, other), `${one.text} lies on ${other.text}`);
	const plots = await boxes(page, ".u-over");
	for (const one of labels)
		check(
			plots.some((plot) => one.y >= plot.y && one.y + one.height <= plot.y + plot.height),
			`${one.text} leaves its chart`,
		);
	const limit = await page.evaluate(() => window.cuflight.model.charts[0].limit_bytes);
	check(limit !== null, "the recording has a limit");
	const bar = await page.textContent("#moment");
	check(bar.includes("limit of the cgroup"), `the bar has the limit: ${bar}`);
	check(!/ of \d/.test(bar), `the bar has the machine's memory: ${bar}`);
}

// each legend, and the named moments, have a name once; a name has the same colour everywhere
async function namesAndColours(page) {
	const legends = await page.$$eval(".panel:not(.lanes) .legend", (lists) =>
		lists.map((list) =>
			[...list.querySelectorAll("li:not(.line)")].map((row) => [
				row.querySelector(".name").textContent,
				row.querySelector("canvas").toDataURL(),
			]),
		),
	);
	const colours = new Map();
	for (const legend of legends) {
		const names = legend.map(([name]) => name);
		same([...new Set(names)], names, "names of a legend");
		for (const [name, colour] of legend) {
			check((colours.get(name) ?? colour) === colour, `${name} has two colours`);
			colours.set(name, colour);
		}
	}
	const moments = (await all(page, "select[aria-label=Moment] option")).map((one) => one);
	same([...new Set(moments)], moments, "named moments");
	check(!moments.some((one) => one.endsWith(", peak")), "a peak names what peaked");
}

async function words(page) {
	const text = await page.evaluate(() =>
		[...document.querySelectorAll("table, .legend")].map((one) => one.textContent).join(" "),
	);
	const foreign = /plateau|retained|geometric|quadratic|Judged|Shape|malloc_live/.exec(text);
	same(foreign, null, "a word that no report has");
}

const frames = (page) =>
	page.$$eval(".flame g.frame", (all) => all.map((one) => one.getAttribute("name")));

async function ownCodeFirst(page) {
	const [graph] = await boxes(page, ".flame"),
		[root] = await boxes(page, ".flame g.frame"),
		[section] = await boxes(page, "#stacks");
	check(root.width > 0.97 * section.width, `the graph is ${root.width} of ${section.width} wide`);
	check(graph.height < 900, `the graph is ${graph.height} high`);
	const runtime = /^(_start|__libc_start|Py_|_Py|PyEval|pymain|_find_and_load)/;
	const own = await frames(page);
	check(!own.some((name) => runtime.test(name)), `frames of a runtime: ${own}`);
	await page.getByLabel("All frames").check();
	const every = await frames(page);
	check(every.some((name) => runtime.test(name)), `frames of the runtime on request: ${every}`);
	await page.getByLabel("All frames").uncheck();
}

// what the call sites hold, as the table has it
const sums = (page, state) =>
	page.evaluate((changes) => {
		const { model, state: now } = window.cuflight;
		now.set(changes);
		const live = model.liveAt(now.moment).bytes,
			sites = model.sitesOf(now.subject);
		return sites.reduce((sum, site) => sum + live[site], 0);
	}, state);

async function comparison(page) {
	const last = await page.evaluate(() => window.cuflight.state.moment);
	const then = await sums(page, { moment: last >> 1 }),
		now = await sums(page, { moment: last });
	await page.evaluate((moment) => window.cuflight.state.compareWith(moment), last >> 1);
	const heads = await all(page, "#sites thead th");
	const at = heads.indexOf("Change");
	check(at > 0, `columns: ${heads}`);
	await page.locator("#sites button", { hasText: "Copy CSV" }).click();
	const csv = (await page.evaluate(() => window.copied.at(-1))).trimEnd().split("\n").slice(1);
	const cells = (line) => line.match(/("([^"]|"")*"|[^,]+|(?<=,|^)(?=,|$))/g);
	const changes = csv.map((line) => Number(cells(line)[at]));
	const unused = await page.evaluate((from) => {
		const { model, state } = window.cuflight,
			found = model.unusedAt(state.subject, state.moment);
		return found ? found[1] - model.unusedAt(state.subject, from)[1] : 0;
	}, last >> 1);
	same(
		changes.reduce((a, b) => a + b, 0),
		now - then + unused,
		"sum of the changes",
	);
	same((await page.textContent("#flame-summary")).startsWith("From "), true, "the graph, too");
	await page.evaluate(() => window.cuflight.state.compareWith(null));
}

async function bottomUp(page) {
	const { leaves, drawn } = await page.evaluate(() => {
		const { model, state } = window.cuflight;
		state.set({ bottomUp: true, stacks: "live" });
		const live = model.liveAt(state.moment).bytes;
		const names = model
			.sitesOf(state.subject)
			.filter((site) => live[site] > 0)
			.map((site) => model.stackOf(model.sites.node[site]).find((one) => one.isOwn)?.name);
		const { children } = document.querySelector(".flame").__data__;
		return { leaves: names, drawn: children.map((one) => one.data.name) };
	});
	for (const name of drawn)
		check(leaves.includes(name) || leaves.includes(undefined), `${name} allocates nothing`);
	const [first] = drawn;
	await page.locator(`.flame g.frame[name="${first}"]`).first().click();
	const detail = await page.textContent("#flame-detail");
	check(detail.includes("Called by") && detail.includes("itself"), `callers: ${detail}`);
	await page.getByRole("button", { name: "Hide this function" }).click();
	check(!(await frames(page)).includes(first), `${first} is hidden`);
}

const STATE = ["moment", "before", "chart", "grouping", "zoom", "stacks", "allFrames"];
const state = (page) =>
	page.evaluate(
		(names) => names.map((name) => [name, window.cuflight.state[name]]),
		[...STATE, "bottomUp", "hidden"],
	);

async function link(page) {
	same(await page.evaluate(() => location.hash.includes("hide=")), true, "hidden is in the address");
	await page.evaluate(() => {
		const { model, state } = window.cuflight;
		const before = Math.floor(model.moments.count / 4);
		state.set({ chart: 1, grouping: "kind", zoom: [0.001, Math.round(model.duration_ns / 2) / 1e9] });
		state.set({ allFrames: true, moment: Math.floor(model.moments.count / 2) });
		state.compareWith(before);
	});
	await page.getByRole("navigation").getByRole("link", { name: "Call sites" }).click();
	const chosen = await state(page),
		address = page.url();
	check(address.includes("at=sites"), `the section is in the address: ${address}`);
	await page.goto("about:blank");
	await page.goto(address);
	await ready(page);
	same(await state(page), chosen, "a link opens the same view");
	const top = await page.evaluate(() => document.getElementById("sites").getBoundingClientRect().top);
	check(top < 400, `the section is in view: ${top}`);
	await page.goto(address.replace(/#.*/, "#t=x&chart=99&zoom=5-1&hide=%E0&by=&__proto__=1"));
	await page.waitForTimeout(100);
	const first = new Map(await state(page));
	same([first.get("chart"), first.get("zoom"), first.get("hidden")], [0, null, []], "nonsense");
}

async function phone(file) {
	for (const width of [390, 360]) {
		const { browser, page, faults } = await open(file, {
			options: { viewport: { width, height: 844 }, isMobile: true, hasTouch: true },
		});
		await ready(page);
		await page.evaluate(() => {
			for (const box of document.querySelectorAll("details")) box.open = true;
		});
		await page.waitForTimeout(200);
		const wide = await page.evaluate(() => document.documentElement.scrollWidth);
		check(wide <= width, `on ${width} pixels the page is ${wide} wide`);
		same(faults, [], "console and network");
		await browser.close();
	}
}

run(async () => {
	const [gpu, python, limited] = process.argv.slice(2);
	for (const file of [gpu, python, limited]) {
		const { browser, page, faults } = await open(file);
		await ready(page);
		await namesAndColours(page);
		await words(page);
		if (file === limited) await limitsAreLegible(page);
		if (file !== gpu) await ownCodeFirst(page);
		await comparison(page);
		await bottomUp(page);
		if (file !== limited) await link(page);
		same(faults, [], "console and network");
		await browser.close();
		await phone(file);
	}
});
