// SPDX-License-Identifier: Apache-2.0
// Reads the data of this file and builds the page, the first screen at once and the rest as it
// comes near: a reader sees the verdict before the pictures are drawn.

import "uplot/dist/uPlot.min.css";
import "./style/base.css";
import "./style/controls.css";
import "./style/tables.css";
import "./style/pictures.css";
import "./style/media.css";
import { readContainer } from "./data/container.js";
import { h } from "./base/dom.js";
import { folded } from "./base/table.js";
import { Model } from "./data/model.js";
import { Link } from "./data/link.js";
import { State } from "./data/state.js";
import { verdictSection } from "./text/verdict.js";
import { MomentBar } from "./text/moment_bar.js";
import { Timeline } from "./pictures/timeline.js";
import { AddressMap } from "./pictures/map.js";
import { Flame } from "./pictures/flame.js";
import { Lifetimes } from "./pictures/lifetimes.js";
import { SiteTable } from "./text/site_table.js";
import { findingsSections } from "./text/findings.js";
import { processSection } from "./text/processes.js";
import { evidenceSections } from "./text/evidence.js";

const NAMES = {
	summary: "Summary",
	timeline: "Time",
	map: "Map",
	stacks: "Stacks",
	sites: "Call sites",
	lifetimes: "Lifetimes",
	failures: "Failures",
	devices: "GPUs",
	processes: "Processes",
	seen: "Not seen",
	evidence: "Evidence",
};

function contents(sections, link) {
	const goTo = (event, id) => {
		if (!link) return;
		event.preventDefault();
		link.goTo(id);
	};
	return h(
		"nav",
		{ "aria-label": "Sections" },
		h(
			"ul",
			{},
			sections.map((section) =>
				h(
					"li",
					{},
					h(
						"a",
						{
							href: "#" + section.id,
							onclick: (event) => goTo(event, section.id),
						},
						NAMES[section.id],
					),
				),
			),
		),
	);
}

function skipLink(link) {
	const onclick = (event) => {
		event.preventDefault();
		link?.goTo("timeline");
	};
	return h("a", { class: "skip", href: "#timeline", onclick }, "Skip to the pictures");
}

function footer(model) {
	const at = new Date(Number(BigInt(model.origin.realtime_ns) / 1000000n));
	return h(
		"footer",
		{},
		h(
			"p",
			{},
			`${model.generator}. Recorded ${at.toISOString().replace("T", " ").slice(0, 19)} UTC.`,
		),
		// bundle.mjs defines PAGE_LICENCES
		folded("Licences of the libraries on this page", () =>
			h("pre", { class: "long scroll", tabindex: "0" }, PAGE_LICENCES),
		),
	);
}

// A redraw for each step of a window that is being resized would be felt.
function watchSizes(state) {
	let timer = 0,
		width = window.innerWidth;
	window.addEventListener("resize", () => {
		if (window.innerWidth === width) return;
		width = window.innerWidth;
		clearTimeout(timer);
		timer = setTimeout(() => state.redraw(), 120);
	});
	window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () =>
		state.redraw(),
	);
}

// a turn of the browser's own between two pieces of work: it paints, and answers keys and pointer
function turn() {
	return new Promise((done) => {
		const channel = new MessageChannel();
		channel.port1.onmessage = done;
		channel.port2.postMessage(null);
	});
}

// Usable is the page with its first screen and the charts; what is below follows, a picture a turn.
async function build(model) {
	const state = new State(model),
		link = model.charts.length ? new Link(model, state) : null;
	const bar = new MomentBar(model, state);
	const pictures = model.charts.length
		? [
				new Timeline(model, state),
				...(model.devices.length ? [new AddressMap(model, state)] : []),
				new Flame(model, state),
				new SiteTable(model, state),
			]
		: [];
	if (model.ages.length) pictures.push(new Lifetimes(model, state));
	const sections = [
		verdictSection(model),
		...pictures.map((picture) => picture.node),
		...findingsSections(model, state),
		processSection(model, state),
		...evidenceSections(model),
	];
	const app = document.getElementById("cuflight-app");
	app.append(
		skipLink(link),
		h(
			"header",
			{ class: "page-head" },
			h("strong", {}, "cuflight"),
			contents(sections, link),
		),
		h("main", {}, sections[0], pictures.length ? bar.node : null, ...sections.slice(1)),
		footer(model),
	);
	document.getElementById("cuflight-screen")?.remove();
	window.cuflight = { model, state };
	if (pictures.length) bar.draw();
	pictures[0]?.draw();
	document.documentElement.dataset.usable = String(Math.round(performance.now()));
	for (const picture of pictures.slice(1)) {
		await turn();
		picture.draw();
	}
	watchSizes(state);
	link?.show();
}

async function start() {
	const began = performance.now();
	const model = new Model(
		await readContainer(document.getElementById("cuflight-data").textContent),
	);
	await build(model);
	document.documentElement.dataset.ready = String(Math.round(performance.now() - began));
}

start().catch((error) => {
	document.getElementById("cuflight-app").append(
		h(
			"p",
			{ class: "failure", role: "alert" },
			`The pictures could not be drawn: ${error.message}. The report above is complete as text.`,
		),
	);
	throw error;
});
