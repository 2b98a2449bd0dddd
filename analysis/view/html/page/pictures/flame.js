// SPDX-License-Identifier: Apache-2.0
// The flame graph, hanging from the top: what is live at the moment, at the peak, never freed, or
// what changed between two moments. d3-flame-graph draws and zooms; keys and colours are ours.

import flamegraph from "d3-flame-graph";
import { select as d3select } from "d3-selection";
import { callTree } from "../data/call_tree.js";
import { choice, copyButton, h, replace, select } from "../base/dom.js";
import { bytesText, percentText, signedBytesText } from "../base/format.js";
import { colourOf, GREW, SHRANK } from "../base/palette.js";
import { DataTable, folded } from "../base/table.js";

const MODES = [
	["live", "At the moment"],
	["peak", "At the peak"],
	["end", "Never freed"],
	["growth", "Growth"],
];
const CELL = 19;

function hash(text) {
	let value = 0;
	for (let i = 0; i < text.length; i++) value = (value * 31 + text.charCodeAt(i)) | 0;
	return Math.abs(value);
}

export class Flame {
	constructor(model, state) {
		Object.assign(this, { model, state, mode: "live", isFolded: false, focus: null });
		this.chartNode = h("div", {
			class: "flame",
			tabindex: "0",
			role: "application",
			"aria-label":
				"Flame graph. Arrow keys go from frame to frame, Enter zooms, Escape shows all.",
			onkeydown: (event) => this.#key(event),
		});
		this.detail = h("div", { class: "detail", role: "status", id: "flame-detail" });
		this.summary = h("p", { class: "figure", id: "flame-summary" });
		this.found = h("span", { class: "status", role: "status" });
		this.extra = h("span");
		this.table = h("div");
		this.search = h("input", {
			type: "search",
			placeholder: "Search functions and files",
			"aria-label": "Search the flame graph",
			oninput: () => this.#search(),
		});
		this.node = h(
			"section",
			{ id: "stacks", "aria-labelledby": "stacks-title" },
			h(
				"header",
				{ class: "section-head" },
				h("h2", { id: "stacks-title" }, "Who holds it: call stacks"),
				choice("Show", MODES, this.mode, (mode) => {
					this.mode = mode;
					this.draw();
				}),
				h(
					"label",
					{ class: "field" },
					h("input", {
						type: "checkbox",
						id: "fold",
						onchange: (event) => {
							this.isFolded = event.target.checked;
							this.draw();
						},
					}),
					"Own code only",
				),
				this.extra,
			),
			this.summary,
			h(
				"div",
				{ class: "tools" },
				this.search,
				this.found,
				h(
					"button",
					{ type: "button", onclick: () => this.#reset() },
					"Show all",
				),
				copyButton("Copy stack", () => this.#stackText()),
			),
			h("div", { class: "flame-body" }, this.chartNode, this.detail),
			this.table,
		);
		state.subscribe((changed) => {
			if (["moment", "before", "chart", "size"].some((name) => changed.has(name)))
				this.draw();
		});
	}

	#peakMoment() {
		const { subject } = this.state,
			{ moments } = this.model;
		let best = 0;
		for (let i = 0; i < subject.count && i < moments.count; i++)
			if (subject.sum[i] > subject.sum[best]) best = i;
		return best;
	}

	// what is live at the end and is still there, before exit handlers free everything
	#endMoment() {
		const { moments } = this.model;
		for (let i = moments.count - 1; i >= 0; i--)
			if (this.model.momentKind(i) === "end") return i;
		return moments.count - 1;
	}

	get shown() {
		return {
			live: this.state.moment,
			growth: this.state.moment,
			peak: this.#peakMoment(),
			end: this.#endMoment(),
		}[this.mode];
	}

	#weights() {
		const { model, state } = this,
			sites = model.sitesOf(state.subject),
			weights = [];
		const now = model.liveAt(this.shown).bytes;
		const before = this.mode === "growth" ? model.liveAt(state.before).bytes : null;
		for (const site of sites) {
			const delta = before ? now[site] - before[site] : 0;
			const bytes = before ? Math.abs(delta) : now[site];
			if (bytes > 0) weights.push([site, bytes, delta]);
		}
		return weights;
	}

	draw() {
		const { model, state } = this,
			weights = this.#weights();
		this.tree = callTree(
			model,
			model.chartTitle(state.subject),
			weights,
			this.isFolded,
		);
		this.#describe();
		this.#growthControl();
		this.chart?.destroy();
		replace(this.chartNode);
		this.focus = null;
		replace(this.detail);
		this.table.replaceChildren(folded("Table of the stacks", () => this.#table()));
		if (!this.tree.value) return;
		this.chart = flamegraph()
			.width(this.chartNode.clientWidth || 800)
			.cellHeight(CELL)
			.inverted(true)
			.transitionDuration(0)
			.minFrameSize(1)
			.sort((a, b) => b.value - a.value)
			.selfValue(false)
			.setColorMapper((d) => this.#colour(d))
			.label((d) => this.#label(d.data))
			.onClick((d) => this.#focusOn(d))
			.onHover((d) => this.#show(d));
		this.chart.setSearchMatch?.((d, term) => matches(d.data, term));
		this.chart.setSearchHandler((results, sum) => this.#found(results.length, sum));
		d3select(this.chartNode).datum(this.tree).call(this.chart);
		this.#describeSvg();
		if (this.search.value) this.#search();
	}

	// the picture is one image for a screen reader; the status names the frame in focus
	#describeSvg() {
		const picture = this.chartNode.querySelector("svg");
		picture?.setAttribute("aria-hidden", "true");
		picture?.querySelector("text.title")?.remove();
	}

	#describe() {
		const { model, state } = this,
			total = bytesText(this.tree.value);
		const now = model.momentText(this.shown);
		this.summary.textContent =
			this.mode === "growth"
				? `From ${model.momentText(state.before)} to ${now}: ${signedBytesText(this.tree.delta)} ` +
					`(orange grew, blue shrank; ${total} of change)`
				: `${total} live at ${now}`;
	}

	#growthControl() {
		const { model, state } = this,
			named = new Set([0, ...model.namedMoments(), state.before]);
		const options = [...named]
			.sort((a, b) => a - b)
			.map((moment) => [moment, model.momentText(moment)]);
		replace(
			this.extra,
			this.mode === "growth"
				? [
						select("since", options, state.before, (value) =>
							state.set({ before: Number(value) }),
						),
						h(
							"button",
							{
								type: "button",
								onclick: () =>
									state.set({
										before: state.moment,
									}),
							},
							"Since the chosen moment",
						),
					]
				: null,
		);
	}

	#colour(d) {
		if (d.highlight) return "#f0e442";
		if (d === this.focus) return "#f0e442";
		if (this.mode === "growth") return d.data.delta > 0 ? GREW : SHRANK;
		if (d.data.node < 0) return colourOf(-1);
		return this.model.nodes.own[d.data.node] === 1
			? WARM[hash(d.data.name) % WARM.length]
			: COOL[hash(d.data.name) % COOL.length];
	}

	#label(data) {
		const share = percentText(data.value / (this.tree.value || 1));
		const delta =
			this.mode === "growth"
				? `${signedBytesText(data.delta)}`
				: `${bytesText(data.value)}, ${share}`;
		return `${data.name}${data.where ? ` (${data.where})` : ""}: ${delta}`;
	}

	#show(d) {
		const path = d
			.ancestors()
			.filter((one) => one.parent)
			.map((one) => one.data);
		this.shownPath = path;
		replace(
			this.detail,
			h("strong", {}, this.#label(d.data)),
			h(
				"ol",
				{ class: "stack" },
				path.map((data) => h("li", {}, frameText(data))),
			),
		);
	}

	#focusOn(d) {
		this.focus = d;
		this.#show(d);
		this.#describeSvg();
	}

	#stackText() {
		return (this.shownPath ?? []).map(frameText).join("\n");
	}

	#reset() {
		this.search.value = "";
		this.found.textContent = "";
		this.focus = null;
		replace(this.detail);
		this.shownPath = null;
		if (!this.tree.value) return;
		this.chart.resetZoom();
		this.chart.clear();
	}

	#search() {
		if (!this.tree.value) return;
		if (this.search.value) this.chart.search(this.search.value);
		else this.chart.clear();
		if (!this.search.value) this.found.textContent = "";
	}

	#found(count, sum) {
		const share = percentText(sum / (this.tree.value || 1));
		this.found.textContent = count
			? `${count} frames, ${bytesText(sum)}, ${share}`
			: "nothing found";
	}

	get root() {
		return d3select(this.chartNode).datum();
	}

	#key(event) {
		if (!this.tree.value || event.target !== this.chartNode) return;
		const at = this.focus ?? this.root,
			siblings = at.parent?.children ?? [at];
		const next = {
			ArrowDown: () => at.children?.[0],
			ArrowUp: () => at.parent,
			ArrowRight: () => siblings[siblings.indexOf(at) + 1],
			ArrowLeft: () => siblings[siblings.indexOf(at) - 1],
			Home: () => this.root,
		}[event.key];
		if (next) {
			this.focus = next() ?? at;
			this.#show(this.focus);
			this.chart.update();
		} else if (event.key === "Enter") {
			this.chart.zoomTo(at);
		} else if (event.key === "Escape") {
			this.#reset();
		} else return;
		event.preventDefault();
	}

	#table() {
		const rows = [],
			walk = (node, depth) => {
				rows.push({ node, depth });
				for (const child of node.children) walk(child, depth + 1);
			};
		walk(this.tree, 0);
		const isGrowth = this.mode === "growth";
		const table = new DataTable("Stacks", [
			{
				name: "Bytes",
				number: true,
				value: (row) => (isGrowth ? row.node.delta : row.node.value),
				text: (row) =>
					isGrowth
						? signedBytesText(row.node.delta)
						: bytesText(row.node.value),
			},
			{ name: "Depth", number: true, value: (row) => row.depth },
			{ name: "Function", head: true, value: (row) => row.node.name },
			{ name: "Where", value: (row) => row.node.where },
		]);
		table.rows = rows;
		return table.node;
	}
}

const WARM = ["#f3b562", "#f0a24f", "#f6c77e", "#eeb04c"];
const COOL = ["#b9c7d6", "#c6d2de", "#acbccd", "#d2dbe5"];

function frameText(data) {
	return data.name + (data.where ? ` (${data.where})` : "");
}

// plain text, not a pattern: names are full of brackets
function matches(data, term) {
	return (data.name + " " + data.where).toLowerCase().includes(term.toLowerCase());
}
