// SPDX-License-Identifier: Apache-2.0
// One chart of the timeline with its legend, its figures at the moment and its table.

import uPlot from "uplot";
import { h, replace } from "../base/dom.js";
import { bytesText, durationText } from "../base/format.js";
import { drawSwatch, fillOf, theme } from "../base/palette.js";
import { folded } from "../base/table.js";
import { groupingsOf, partNames, partsOf } from "../data/parts.js";
import { chartTable } from "./chart_table.js";
import {
	drawBehind,
	drawOver,
	limitLabels,
	limitsOf,
	limitSwatch,
	lineSwatch,
	mostOf,
} from "./overlay.js";

// the lanes below the charts have the same
export const AXIS_WIDTH = 76;
export const RIGHT_GAP = 24;

// cumulative sums, the whole first: painted in this order each leaves the lower ones on top
function stack(chart, parts) {
	const layers = [],
		sum = new Float64Array(chart.count);
	for (const part of [...parts].reverse()) {
		for (let i = 0; i < chart.count; i++) sum[i] += part.bytes[i];
		layers.unshift(Float64Array.from(sum));
	}
	return layers;
}

export class Panel {
	constructor(timeline, index) {
		this.timeline = timeline;
		this.index = index;
		this.chart = timeline.model.charts[index];
		this.plotNode = h("div", {
			class: "plot",
			tabindex: "0",
			role: "group",
			onkeydown: (event) => timeline.onKey(event, this),
		});
		this.legend = h("ul", { class: "legend" });
		this.title = h(
			"button",
			{
				type: "button",
				class: "panel-title",
				title: "Show this memory below",
				onclick: () => timeline.state.set({ chart: index }),
			},
			timeline.model.chartTitle(this.chart),
		);
		this.figure = h("span", { class: "figure" });
		this.node = h(
			"figure",
			{ class: "panel" },
			h("figcaption", {}, this.title, " ", this.figure),
			h("div", { class: "panel-body" }, this.plotNode, this.legend),
			folded(
				"Table of this chart",
				() =>
					chartTable(
						timeline.model,
						this.chart,
						partsOf(
							timeline.model,
							this.chart,
							this.grouping,
						),
					).node,
				{ class: "table-of-chart" },
			),
		);
	}

	get grouping() {
		const requested = this.timeline.state.grouping,
			possible = groupingsOf(this.chart);
		return possible.some(([name]) => name === requested)
			? requested
			: (possible[0]?.[0] ?? "kind");
	}

	options(parts) {
		const { timeline, chart } = this,
			ink = theme("ink"),
			grid = theme("grid");
		const axis = {
			stroke: ink,
			grid: { stroke: grid, width: 1 },
			ticks: { show: false },
			font: theme("canvas-font"),
		};
		return {
			width: this.plotNode.clientWidth || 600,
			height: timeline.model.layerOf(chart) === "host" ? 150 : 200,
			padding: [10, RIGHT_GAP, 0, 0],
			legend: { show: false },
			cursor: {
				sync: { key: "cuflight" },
				drag: { x: true, y: false, setScale: false },
				points: { show: false },
			},
			scales: {
				x: {
					time: false,
					range: () => this.timeRange(),
				},
				y: { range: () => [0, mostOf(timeline.model, chart) * 1.06 || 1] },
			},
			axes: [
				{
					...axis,
					size: 30,
					values: (_, splits) =>
						splits.map((s) => (s ? durationText(s * 1e9) : "0")),
				},
				{
					...axis,
					size: AXIS_WIDTH,
					values: (_, splits) => splits.map(bytesText),
					incrs: Array.from({ length: 54 }, (_, i) => 2 ** i),
				},
			],
			series: [
				{},
				...parts.map((part) => ({
					label: part.label,
					paths: uPlot.paths.stepped({ align: 1 }),
					points: { show: false },
					width: 0,
					fill: (plot) => fillOf(plot.ctx, part.colour),
				})),
			],
			hooks: {
				drawAxes: [(plot) => drawBehind(plot, chart)],
				draw: [
					(plot) =>
						drawOver(
							plot,
							chart,
							timeline.model,
							timeline.state,
						),
				],
				setSelect: [(plot) => timeline.onSelect(plot)],
				setCursor: [(plot) => this.onCursor(plot)],
				ready: [
					(plot) => timeline.listenForClicks(plot),
					(plot) => limitLabels(plot, timeline.model, chart),
				],
			},
		};
	}

	timeRange() {
		return this.timeline.range;
	}

	draw() {
		this.plot?.destroy();
		replace(this.plotNode);
		const parts = (this.parts = partsOf(this.timeline.model, this.chart, this.grouping));
		this.names = partNames(parts, this.timeline.model);
		const times = Float64Array.from(this.chart.t, (ns) => ns / 1e9);
		this.plot = new uPlot(
			this.options(parts),
			[times, ...stack(this.chart, parts)],
			this.plotNode,
		);
		this.describe();
	}

	describe() {
		const { model, state } = this.timeline;
		this.node.classList.toggle("is-chosen", state.chart === this.index);
		this.title.setAttribute("aria-pressed", String(state.chart === this.index));
		this.plotNode.setAttribute(
			"aria-label",
			`${model.chartTitle(this.chart)} over time. At ${model.momentText(state.moment)}: ` +
				`${model.summaryOf(this.chart, state.moment)}. Arrow keys move the moment.`,
		);
		this.showValues(state.moment, false);
	}

	showValues(moment, isHover) {
		const { model } = this.timeline,
			point = model.pointOf(this.chart, moment);
		this.figure.textContent =
			(isHover ? "at the cursor, " : "") +
			`${model.momentText(moment)}: ${model.summaryOf(this.chart, moment)}`;
		const rows = this.parts.map((part, i) =>
			h(
				"li",
				{},
				drawSwatch(h("canvas", { "aria-hidden": "true" }), part.colour),
				h("span", { class: "name", title: this.names[i] }, this.names[i]),
				h("span", { class: "number" }, bytesText(part.bytes[point])),
			),
		);
		replace(this.legend, rows, this.#lineRows(moment), this.#limitRows());
	}

	#lineRows(moment) {
		const { model } = this.timeline;
		return [...(this.chart.lines ?? []).entries()]
			.filter(([, line]) => line.bytes.some((bytes) => bytes > 0))
			.map(([i, line]) =>
				dashRow(
					lineSwatch(i),
					LINES[line.name] ?? line.name,
					model.lineAt(this.chart, line, model.moments.t[moment]),
				),
			);
	}

	#limitRows() {
		return limitsOf(this.timeline.model, this.chart).map(([name, bytes]) =>
			dashRow(limitSwatch(), name, bytes),
		);
	}

	onCursor(plot) {
		const { left } = plot.cursor;
		if (left === null || left < 0 || plot.cursor.event === undefined) return;
		this.timeline.showCursor(plot.posToVal(left, "x") * 1e9);
	}
}

// the recorder's samples, in the words of the reports
const LINES = {
	rss: "resident",
	cgroup: "in the cgroup",
	malloc_live: "allocated",
	pinned: "page-locked",
	driver_used: "in use, as the driver counts",
};

function dashRow(swatch, name, bytes) {
	return h(
		"li",
		{ class: "line" },
		swatch,
		h("span", { class: "name", title: name }, name),
		h("span", { class: "number" }, bytes === null ? "" : bytesText(bytes)),
	);
}
