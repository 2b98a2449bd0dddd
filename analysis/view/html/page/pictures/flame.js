// SPDX-License-Identifier: Apache-2.0
// The flame graph, hanging from the top: what is live at the moment, at the peak, never freed, or
// what changed between two moments. d3-flame-graph draws and zooms; keys and colours are ours.

import flamegraph from "d3-flame-graph";
import { select as d3select } from "d3-selection";
import { callTree, neighbours } from "../data/call_tree.js";
import { choice, copyButton, h, mark, replace } from "../base/dom.js";
import { bytesText, percentText, signedBytesText } from "../base/format.js";
import { colourOf, GREW, SHRANK } from "../base/palette.js";
import { DataTable, folded } from "../base/table.js";

const MODES = [
	["live", "At the moment"],
	["peak", "At the peak"],
	["end", "Never freed"],
	["change", "Change"],
];
const DIRECTIONS = [
	[false, "From the top"],
	[true, "From the bottom up"],
];
const CELL = 19,
	LEAST = 3; // pixels of a frame that is drawn

function hash(text) {
	let value = 0;
	for (let i = 0; i < text.length; i++) value = (value * 31 + text.charCodeAt(i)) | 0;
	return Math.abs(value);
}

export class Flame {
	constructor(model, state) {
		Object.assign(this, { model, state, focus: null });
		this.chartNode = h("div", {
			class: "flame",
			tabindex: "0",
			role: "application",
			"aria-label":
				"Flame graph. Arrow keys go from frame to frame, Enter zooms, Escape shows all.",
			onkeydown: (event) => this.#key(event),
		});
		this.line = h("p", { class: "figure flame-line", role: "status", id: "flame-line" });
		this.detail = h("div", { class: "detail", id: "flame-detail" });
		this.summary = h("p", { class: "figure", id: "flame-summary" });
		this.found = h("span", { class: "status", role: "status" });
		this.modes = choice("Show", MODES, this.mode, (mode) => this.#chooseMode(mode));
		this.directions = choice("Read", DIRECTIONS, state.bottomUp, (bottomUp) =>
			state.set({ bottomUp }),
		);
		this.all = h("input", {
			type: "checkbox",
			id: "all-frames",
			onchange: () => state.set({ allFrames: this.all.checked }),
		});
		this.hiddenNode = h("span", { class: "choices" });
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
				this.modes,
				this.directions,
				h("label", { class: "field" }, this.all, "All frames"),
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
				this.hiddenNode,
			),
			this.line,
			this.chartNode,
			this.detail,
			this.table,
		);
		const names = ["moment", "before", "chart", "size", "stacks", "allFrames"];
		names.push("bottomUp", "hidden");
		state.subscribe((changed) => {
			if (names.some((name) => changed.has(name))) this.draw();
		});
	}

	get mode() {
		return this.state.stacks;
	}

	get how() {
		const { allFrames, bottomUp, hidden } = this.state;
		return { allFrames, bottomUp, hidden: new Set(hidden) };
	}

	#chooseMode(mode) {
		const before = mode === "change" ? (this.state.before ?? 0) : this.state.before;
		this.state.set({ stacks: mode, before });
	}

	#drawChoices() {
		const { state } = this;
		mark(this.modes, this.mode);
		mark(this.directions, state.bottomUp);
		this.all.checked = state.allFrames;
		replace(
			this.hiddenNode,
			state.hidden.map((name) =>
				h(
					"button",
					{
						type: "button",
						class: "chip",
						title: "Show it again",
						onclick: () =>
							state.set({
								hidden: state.hidden.filter((one) => one !== name),
							}),
					},
					`${name} is hidden ✕`,
				),
			),
		);
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
			change: this.state.moment,
			peak: this.#peakMoment(),
			end: this.#endMoment(),
		}[this.mode];
	}

	#weights() {
		const { model, state } = this,
			chart = state.subject,
			weights = [],
			isChange = this.mode === "change";
		const now = model.liveAt(this.shown).bytes,
			before = isChange ? model.liveAt(state.before ?? 0).bytes : null;
		const add = (site, bytes, was) => {
			const delta = isChange ? bytes - was : 0,
				weight = isChange ? Math.abs(delta) : bytes;
			if (weight > 0) weights.push([site, weight, delta]);
		};
		for (const site of model.sitesOf(chart)) add(site, now[site], before?.[site]);
		const unused = model.unusedAt(chart, this.shown);
		if (unused) add(...unused, model.unusedAt(chart, state.before ?? 0)[1]);
		return weights;
	}

	draw() {
		const { model, state } = this;
		this.weights = this.#weights();
		this.tree = callTree(model, model.chartTitle(state.subject), this.weights, this.how);
		this.#drawChoices();
		this.#describe();
		this.chart?.destroy();
		replace(this.chartNode);
		this.focus = null;
		replace(this.detail);
		this.line.textContent = "";
		this.table.replaceChildren(folded("Table of the stacks", () => this.#table()));
		if (!this.tree.value) return;
		this.chart = flamegraph()
			.width(this.chartNode.clientWidth || 800)
			.cellHeight(CELL)
			.inverted(true)
			.transitionDuration(0)
			.minFrameSize(LEAST)
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
		this.#fit();
		if (this.search.value) this.#search();
	}

	// as high as the deepest frame that is drawn, not as the deepest of all
	#fit() {
		const picture = this.chartNode.querySelector("svg");
		let depth = 0;
		d3select(this.chartNode)
			.selectAll("g.frame")
			.each((d) => {
				depth = Math.max(depth, d.depth);
			});
		picture?.setAttribute("height", (depth + 1) * CELL + 2);
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
			this.mode === "change"
				? `From ${model.momentText(state.before ?? 0)} to ${now}: ${signedBytesText(this.tree.delta)} ` +
					`(orange grew, blue shrank; ${total} of change)`
				: `${total} live at ${now}`;
	}

	#colour(d) {
		if (d.highlight) return "#f0e442";
		if (d === this.focus) return "#f0e442";
		if (this.mode === "change") return d.data.delta > 0 ? GREW : SHRANK;
		if (d.data.node < 0) return colourOf(-1);
		return this.model.nodes.own[d.data.node] === 1
			? WARM[hash(d.data.name) % WARM.length]
			: COOL[hash(d.data.name) % COOL.length];
	}

	#label(data) {
		const share = percentText(data.value / (this.tree.value || 1));
		const delta =
			this.mode === "change"
				? `${signedBytesText(data.delta)}`
				: `${bytesText(data.value)}, ${share}`;
		return `${data.name}${data.where ? ` (${data.where})` : ""}: ${delta}`;
	}

	// where the pointer or the arrow keys are
	#show(d) {
		this.shownPath = d
			.ancestors()
			.filter((one) => one.parent)
			.map((one) => one.data);
		if (this.state.bottomUp) this.shownPath.reverse();
		this.line.textContent = this.#label(d.data);
	}

	#focusOn(d) {
		this.focus = d;
		this.#show(d);
		this.#describeSvg();
		this.#fit();
		this.#showDetail(d.data);
	}

	#showDetail(data) {
		const { model, state } = this,
			path = this.shownPath;
		const list = (title, rows) =>
			h(
				"div",
				{},
				h("h3", {}, title),
				h(
					"ul",
					{ class: "legend" },
					rows
						.slice(0, NEIGHBOURS)
						.map(([name, bytes]) =>
							h(
								"li",
								{ class: "plain" },
								h("span", { class: "name", title: name }, name),
								h("span", { class: "number" }, bytesText(bytes)),
							),
						),
				),
			);
		if (data.node < 0) return replace(this.detail, h("strong", {}, this.#label(data)));
		const { callers, callees } = neighbours(model, data.node, this.weights, this.how);
		const hide = () => state.set({ hidden: [...state.hidden, data.name] });
		return replace(
			this.detail,
			h("strong", {}, this.#label(data)),
			" ",
			h("button", { type: "button", onclick: hide }, "Hide this function"),
			h(
				"div",
				{ class: "columns" },
				h(
					"div",
					{},
					h("h3", {}, "Stack"),
					h(
						"ol",
						{ class: "stack" },
						path.map((one) => h("li", {}, frameText(one))),
					),
				),
				h(
					"div",
					{ class: "columns" },
					list("Called by", callers),
					list("Calls", callees),
				),
			),
		);
	}

	#stackText() {
		return (this.shownPath ?? []).map(frameText).join("\n");
	}

	#reset() {
		this.search.value = "";
		this.found.textContent = "";
		this.focus = null;
		replace(this.detail);
		this.line.textContent = "";
		this.shownPath = null;
		if (!this.tree.value) return;
		this.chart.resetZoom();
		this.chart.clear();
		this.#fit();
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
			this.#showDetail(this.focus.data);
			this.chart.update();
		} else if (event.key === "Enter") {
			this.chart.zoomTo(at);
			this.#fit();
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
		const isChange = this.mode === "change";
		const table = new DataTable("Stacks", [
			{
				name: "Bytes",
				number: true,
				value: (row) => (isChange ? row.node.delta : row.node.value),
				text: (row) =>
					isChange
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
const NEIGHBOURS = 8;
const COOL = ["#b9c7d6", "#c6d2de", "#acbccd", "#d2dbe5"];

function frameText(data) {
	return data.name + (data.where ? ` (${data.where})` : "");
}

// plain text, not a pattern: names are full of brackets
function matches(data, term) {
	return (data.name + " " + data.where).toLowerCase().includes(term.toLowerCase());
}
