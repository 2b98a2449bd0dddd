// SPDX-License-Identifier: Apache-2.0
// controls.cjs TORCH OOM: uses every control of the page once, by pointer or by key, and looks for its
// effect.
"use strict";

const { open, ready, check, same, run } = require("./browser.cjs");

const state = (page) =>
	page.evaluate(() => {
		const { moment, before, chart, grouping } = window.cuflight.state;
		return { moment, before, chart, grouping };
	});
const copied = (page) => page.evaluate(() => window.copied.at(-1));
const text = (page, selector) => page.locator(selector).first().textContent();

// ACTION() must change what LOOK() returns
async function changes(look, action, what) {
	const before = JSON.stringify(await look());
	await action();
	const after = JSON.stringify(await look());
	check(before !== after, `${what}: nothing changed from ${before.slice(0, 200)}`);
	return JSON.parse(after);
}

// what a canvas shows
const pixels = (page, selector) =>
	page
		.locator(selector)
		.first()
		.evaluate((canvas) => canvas.toDataURL());

// a box that opens fills itself a moment later
async function atLeast(locator, count, what) {
	await locator
		.nth(count)
		.waitFor({ timeout: 5000 })
		.catch(() => check(false, what));
}

async function summary(page) {
	await page.getByRole("button", { name: "Copy as Markdown" }).click();
	const markdown = await copied(page);
	check(
		markdown.startsWith("```") && markdown.includes(await text(page, "h1")),
		"copied Markdown",
	);
	await page.getByRole("button", { name: "Copied" }).first().waitFor();
	const target = page.getByRole("navigation").getByRole("link", { name: "Stacks" });
	await changes(
		() => page.evaluate(() => window.scrollY),
		() => target.click(),
		"link to a section",
	);
	await page.evaluate(() => window.scrollTo(0, 0));
}

async function momentBar(page) {
	const now = () => state(page).then((one) => one.moment);
	for (const name of [
		"Moment before",
		"Named moment before",
		"Next moment",
		"Next named moment",
	])
		await changes(
			now,
			() => page.getByRole("button", { name, exact: true }).click(),
			name,
		);
	const moment = page.getByLabel("Moment", { exact: true });
	const first = await moment.locator("option").first().getAttribute("value");
	const last = await moment.locator("option").last().getAttribute("value");
	const other = String(await now()) === last ? first : last;
	await moment.selectOption(other);
	same(await now(), Number(other), "moment from the list");
	const before = await text(page, "#moment");
	await page.getByLabel("Memory", { exact: true }).selectOption("1");
	same((await state(page)).chart, 1, "memory from the list");
	check(before !== (await text(page, "#moment")), "the bar names the memory");
	await page.getByLabel("Memory", { exact: true }).selectOption("0");
}

async function timeline(page) {
	const legend = () => text(page, ".panel .legend"),
		now = () => state(page).then((one) => one.moment);
	for (const name of ["Kind", "Role", "Call site"]) {
		await page.locator("#timeline .choice label", { hasText: name }).click();
		same(
			(await state(page)).grouping,
			{ Kind: "kind", Role: "role", "Call site": "site" }[name],
			name,
		);
	}
	await changes(
		legend,
		() => page.locator("#timeline .choice label", { hasText: "Kind" }).click(),
		"grouping",
	);
	const over = page.locator(".u-over").first(),
		box = await over.boundingBox();
	await changes(now, () => over.click({ position: { x: box.width * 0.4, y: 40 } }), "click");
	await changes(
		() => text(page, ".panel .figure"),
		() => over.hover({ position: { x: box.width * 0.7, y: 40 } }),
		"cursor",
	);
	const zoom = () =>
		page.evaluate(
			() => document.querySelector("#timeline .section-head > button").disabled,
		);
	await over.scrollIntoViewIfNeeded();
	const at = await over.boundingBox();
	await page.mouse.move(at.x + 100, at.y + 40);
	await page.mouse.down();
	await page.mouse.move(at.x + 300, at.y + 40, { steps: 5 });
	await page.mouse.up();
	await page.waitForTimeout(50);
	same(await zoom(), false, "drag zooms");
	await page.getByRole("button", { name: "Whole time" }).click();
	same(await zoom(), true, "whole time");
	const plot = page.locator(".plot[tabindex]").first();
	for (const key of [
		"ArrowLeft",
		"Home",
		"ArrowRight",
		"End",
		"PageUp",
		"PageDown",
		"Shift+ArrowLeft",
		"Home",
		"Shift+ArrowRight",
	])
		await changes(now, () => plot.press(key), key);
	const canvas = ".u-wrap canvas, .uplot canvas";
	for (const key of ["+", "-", "+", "0"])
		await changes(
			() => pixels(page, canvas),
			async () => {
				await plot.press(key);
				await page.waitForTimeout(60);
			},
			key,
		);
	await page.locator(".plot[tabindex]").nth(1).press("Enter");
	check((await state(page)).chart !== 0, "Enter chooses the memory");
	await page.locator("button.panel-title").first().click();
	same((await state(page)).chart, 0, "title chooses the memory");
	await page.locator(".table-of-chart summary").first().click();
	await atLeast(page.locator(".table-of-chart tbody tr"), 10, "table of the chart");
}

async function lanes(page) {
	if (!(await page.locator(".lanes canvas").isVisible())) return;
	await changes(
		() => text(page, ".lanes .figure"),
		() => page.locator(".lanes canvas").hover({ position: { x: 500, y: 9 } }),
		"phase",
	);
	await page.locator(".lanes summary").click();
	await atLeast(page.locator(".lanes tbody tr"), 0, "table of phases");
}

async function toFailure(page) {
	await page.locator("#failures button.link").first().click();
	const { model, state: now } = await page.evaluate(() => ({
		model: window.cuflight.model.incidents.moment[0],
		state: window.cuflight.state.moment,
	}));
	same(now, model, "the failure's moment");
}

async function map(page) {
	const detail = () => page.locator("#map-detail").textContent();
	check(await page.locator(".map-canvas canvas").nth(1).isVisible(), "the request is drawn");
	const canvas = page.locator(".map-canvas canvas").first();
	const drawn = () => pixels(page, ".map-canvas canvas");
	await changes(
		detail,
		() => canvas.hover({ position: { x: 300, y: 10 } }),
		"hover over a block",
	);
	check(
		/ old, /.test(await detail()) &&
			(await page.locator("#map-detail .stack li").count()) > 1,
		"age and stack",
	);
	for (const key of ["ArrowRight", "ArrowDown", "ArrowUp", "ArrowLeft", "End", "Home"])
		await changes(detail, () => canvas.press(key), `${key} in the map`);
	const rows = () => text(page, "#map-summary");
	const zoom = (name) => page.getByRole("button", { name, exact: true });
	check(await zoom("Zoom out").isDisabled(), "the whole map is not zoomed");
	await changes(rows, () => zoom("Zoom in").click(), "zoom in");
	check(/ Rows \d+ to \d+ of \d+\./.test(await rows()), "rows in view");
	await changes(drawn, () => zoom("Zoom out").click(), "zoom out");
	for (const key of ["+", "+", "-", "0"])
		await changes(drawn, () => canvas.press(key), `${key} in the map`);
	await canvas.press("+");
	for (const key of ["End", "Home"])
		await changes(rows, () => canvas.press(key), `${key} leaves the rows in view`);
	await canvas.press("0");
	const driver = page.locator("#map .choice label", { hasText: "Driver's blocks" });
	if (await driver.count()) {
		await changes(drawn, () => driver.click(), "driver's blocks");
		await page.locator("#map .choice label", { hasText: "Inside segments" }).click();
	}
	for (const name of ["blocks", "holes"]) {
		const box = page.locator("#map details", { hasText: `Table of the ${name}` });
		await box.locator("summary").click();
		await atLeast(box.locator("tbody tr"), 0, `table of the ${name}`);
	}
}

async function flame(page) {
	const figure = () => text(page, "#flame-summary"),
		frames = () => page.locator(".flame g.frame").count();
	const names = () =>
		page
			.locator(".flame g.frame")
			.evaluateAll((all) => all.map((g) => g.getAttribute("name")));
	const mode = (name) => page.locator("#stacks .choice label", { hasText: name }).click();
	await changes(names, () => page.getByLabel("All frames").check(), "all frames");
	await changes(names, () => page.getByLabel("All frames").uncheck(), "own code");
	const read = (name) =>
		page.locator("#stacks .choice label", { hasText: name }).click();
	await changes(names, () => read("From the bottom up"), "from the bottom up");
	await changes(names, () => read("From the top"), "from the top");
	await mode("Change");
	check(/^From .* to /.test(await figure()), "change");
	await page.getByRole("button", { name: "Compare with the chosen moment" }).click();
	same(await frames(), 0, "no change since now");
	await page.getByLabel("Compare with", { exact: true }).selectOption("0");
	check((await frames()) > 1, "change since the start");
	check((await text(page, "#sites thead")).includes("Change"), "the table has the change");
	await page.getByLabel("Compare with", { exact: true }).selectOption("");
	check(!(await text(page, "#sites thead")).includes("Change"), "no comparison");
	await page.evaluate(() => window.cuflight.state.set({ moment: 40 }));
	await mode("At the moment");
	const live = await figure();
	await mode("At the peak");
	check(live !== (await figure()), "peak");
	await mode("Never freed");
	check(live !== (await figure()), "never freed");
	const search = page.getByLabel("Search the flame graph");
	await search.fill("load_weights (");
	await search.fill("load_weights");
	check(/^\d+ frames, /.test(await text(page, "#stacks .tools .status")), "search");
	await search.fill("no such name");
	same(await text(page, "#stacks .tools .status"), "nothing found", "search for nothing");
	await page.getByRole("button", { name: "Show all" }).click();
	same(await search.inputValue(), "", "show all");
	await page.mouse.move(2, 2); // a frame below the pointer would be described instead
	await page.getByLabel("All frames").check();
	const count = await frames(),
		graph = page.locator(".flame");
	for (const key of [
		"ArrowDown",
		"ArrowDown",
		"ArrowDown",
		"ArrowDown",
		"ArrowDown",
		"ArrowRight",
		"ArrowLeft",
		"ArrowUp",
		"Home",
	])
		await changes(
			() => text(page, "#flame-detail"),
			() => graph.press(key),
			`${key} in the flame graph`,
		);
	for (let i = 0; i < 6; i++) await graph.press("ArrowDown");
	await graph.press("Enter");
	check((await frames()) < count, "Enter zooms");
	await graph.press("Escape");
	same(await frames(), count, "Escape shows all");
	await page.locator(".flame g.frame").last().click();
	await page.getByRole("button", { name: "Copy stack" }).click();
	check((await copied(page)).split("\n").length > 3, "copied stack");
	await changes(
		names,
		() => page.getByRole("button", { name: "Hide this function" }).click(),
		"hidden function",
	);
	await changes(names, () => page.locator("#stacks .chip").click(), "shown again");
	await page.locator("#stacks details summary").click();
	await atLeast(page.locator("#stacks tbody tr"), 3, "table of the stacks");
}

async function tables(page) {
	const first = () => text(page, "#sites tbody tr");
	await changes(
		() =>
			page
				.locator("#sites th[aria-sort]")
				.evaluate((head) => head.textContent + head.ariaSort),
		() => page.locator("#sites thead button", { hasText: "Calls" }).click(),
		"sort",
	);
	await changes(
		first,
		() => page.locator("#sites thead button", { hasText: "Calls" }).click(),
		"sort again",
	);
	await page.getByLabel("Filter Call sites").fill("load_weights");
	check(/^\d+ of \d+ rows$/.test(await text(page, "#sites .tools .status")), "filter");
	await page.locator("#sites button", { hasText: "Copy CSV" }).click();
	const lines = (await copied(page)).trimEnd().split("\n");
	same(lines.length - 1, await page.locator("#sites tbody tr").count(), "rows of the CSV");
	check(
		lines.slice(1).every((line) => line.includes("load_weights")),
		"CSV is what the filter leaves",
	);
	await page.locator("#sites tbody button.link").first().click();
	check((await text(page, "#site-detail")).includes("load_weights"), "stack of a call site");
	const chart = page.locator(".table-of-chart").first();
	await changes(
		() => chart.locator("tbody tr").count(),
		() => chart.getByRole("button", { name: "Show more" }).click(),
		"show more",
	);
}

async function lifetimes(page) {
	const fills = () =>
		page
			.locator("#lifetimes rect")
			.evaluateAll((all) => all.map((one) => one.className.baseVal));
	await changes(
		fills,
		() => page.locator("#lifetimes .choice label", { hasText: "Blocks" }).click(),
		"count of blocks",
	);
	const of = page.locator("#lifetimes select");
	if (await of.count()) await changes(fills, () => of.selectOption("1"), "other memory");
	await changes(
		() => text(page, "#lifetime-detail"),
		() => page.locator("#lifetimes rect.heat-7").first().hover(),
		"cell",
	);
	await page.locator("#lifetimes details summary").click();
	await atLeast(page.locator("#lifetimes tbody tr"), 0, "table of lifetimes");
}

async function rest(page) {
	const boxes = page.locator("#evidence > details, footer details");
	for (let i = 0; i < (await boxes.count()); i++) {
		await boxes.nth(i).locator("summary").first().click();
		// the content is made when the box opens, which is an event of its own
		await boxes.nth(i).locator(":scope > :nth-child(2)").waitFor({ state: "attached" });
		check((await boxes.nth(i).textContent()).length > 60, `folded text ${i}`);
	}
	await page.locator("#evidence").getByRole("button", { name: "Copy", exact: true }).click();
	check((await copied(page)).length > 500, "copied report");
	const name = page.locator("#processes tbody button.link").first();
	await name.click();
	check((await state(page)).chart !== 0, "a process's memory");
	check(
		(await text(page, "#map-summary")).startsWith("Host blocks have no map"),
		"no map of host memory",
	);
}

run(async () => {
	const [torch, oom] = process.argv.slice(2);
	for (const file of [torch, oom]) {
		const { browser, page, faults } = await open(file);
		await ready(page);
		for (const part of [
			summary,
			momentBar,
			timeline,
			lanes,
			toFailure,
			map,
			flame,
			tables,
			lifetimes,
			rest,
		]) {
			await part(page).catch((error) => {
				throw new Error(
					`${part.name}: ${error.stack}\n${faults.join("\n")}`,
				);
			});
		}
		same(faults, [], "console and network");
		await browser.close();
	}
});
