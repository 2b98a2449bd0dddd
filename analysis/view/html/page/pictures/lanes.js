// SPDX-License-Identifier: Apache-2.0
// Phases, requests and marks below the charts, on the same time axis. Rows are packed: a span goes
// to the first row that is free.

import { h, replace, sizeCanvas } from "../base/dom.js";
import { durationText, plural } from "../base/format.js";
import { colourOf, theme } from "../base/palette.js";
import { DataTable, folded } from "../base/table.js";
import { AXIS_WIDTH, RIGHT_GAP } from "./panel.js";

const ROW = 18,
	MOST_ROWS = 10;

function pack(lanes, duration) {
	const ends = [],
		rows = new Int32Array(lanes.count);
	for (let i = 0; i < lanes.count; i++) {
		const end =
			lanes.is_mark[i] === 1
				? lanes.begin[i] + duration / 50
				: lanes.end[i] < 0
					? duration
					: lanes.end[i];
		let row = ends.findIndex((until) => until <= lanes.begin[i]);
		if (row < 0) row = ends.length;
		if (row < MOST_ROWS) ends[row] = end;
		rows[i] = row < MOST_ROWS ? row : -1;
	}
	return {
		rows,
		count: ends.length,
		left: rows.reduce((n, row) => n + (row < 0 ? 1 : 0), 0),
	};
}

export class Lanes {
	constructor(model, timeline) {
		Object.assign(this, { model, timeline });
		this.lanes = model.lanes ?? { count: 0 };
		this.canvas = h("canvas", {
			role: "img",
			"aria-label": "Phases and requests over time; the table has them as text",
		});
		this.tip = h("span", { class: "figure", role: "status" });
		this.packed = this.lanes.count
			? pack(this.lanes, model.duration_ns)
			: { count: 0, left: 0 };
		this.node = h(
			"figure",
			{ class: "panel lanes", hidden: !this.lanes.count },
			h(
				"figcaption",
				{},
				h("span", { class: "panel-title" }, "Phases and requests"),
				" ",
				this.tip,
			),
			h(
				"div",
				{ class: "panel-body" },
				h("div", { class: "plot" }, this.canvas),
				this.#legend(),
			),
			folded("Table of phases and requests", () => this.#table()),
		);
		this.canvas.addEventListener("mousemove", (event) => this.#hover(event));
	}

	#legend() {
		const sources = new Set();
		for (let i = 0; i < this.lanes.count; i++) sources.add(this.lanes.source[i]);
		const { left } = this.packed,
			out = this.lanes.left_out ?? 0;
		return h(
			"ul",
			{ class: "legend" },
			[...sources].map((source) => {
				const box = h("span", { class: "box" });
				box.style.background = colourOf(source);
				return h(
					"li",
					{},
					box,
					h(
						"span",
						{ class: "name" },
						this.model.name("lane", source),
					),
				);
			}),
			left + out
				? h(
						"li",
						{ class: "note" },
						plural(left + out, "span is", "spans are") + " not drawn",
					)
				: null,
		);
	}

	spanText(i) {
		const { lanes, model } = this,
			end = lanes.end[i];
		const request = lanes.request_id[i] >= 0 ? ` ${lanes.request_id[i]}` : "";
		const lasted =
			lanes.is_mark[i] === 1
				? "mark"
				: end < 0
					? "not ended"
					: durationText(end - lanes.begin[i]);
		return `${model.string(lanes.name[i])}${request}: ${model.time(lanes.begin[i])}, ${lasted}`;
	}

	#scale(width) {
		const [from, to] = this.timeline.range,
			inner = width - AXIS_WIDTH - RIGHT_GAP;
		return (ns) => AXIS_WIDTH + ((ns / 1e9 - from) / (to - from)) * inner;
	}

	draw() {
		const { lanes, packed } = this;
		if (!packed.count) return;
		const width = this.canvas.parentNode.clientWidth || 600;
		const context = sizeCanvas(this.canvas, width, packed.count * ROW + 4);
		const x = this.#scale(width);
		context.font = theme("canvas-font");
		context.textBaseline = "middle";
		context.beginPath();
		context.rect(AXIS_WIDTH, 0, width - AXIS_WIDTH - RIGHT_GAP, packed.count * ROW + 4);
		context.clip();
		this.boxes = [];
		for (let i = 0; i < lanes.count; i++)
			if (packed.rows[i] >= 0) this.#drawSpan(context, i, x, width);
	}

	#drawSpan(context, i, x, width) {
		const { lanes, model } = this,
			top = this.packed.rows[i] * ROW + 2;
		const from = Math.max(AXIS_WIDTH, x(lanes.begin[i]));
		const end = lanes.end[i] < 0 ? model.duration_ns : lanes.end[i];
		const to =
			lanes.is_mark[i] === 1
				? from + 2
				: Math.min(width - RIGHT_GAP, Math.max(from + 1, x(end)));
		if (to < AXIS_WIDTH || from > width) return;
		context.fillStyle = colourOf(lanes.source[i]);
		context.globalAlpha = 0.35;
		context.fillRect(from, top, to - from, ROW - 4);
		context.globalAlpha = 1;
		context.fillRect(from, top, 2, ROW - 4);
		this.boxes.push([from, to, top, i]);
		const name = model.string(lanes.name[i]),
			room = lanes.is_mark[i] === 1 ? 200 : to - from - 8;
		if (room < 20) return;
		context.fillStyle = theme("ink");
		const measured = context.measureText(name).width;
		if (measured <= room) context.fillText(name, from + 5, top + ROW / 2 - 2);
	}

	#hover(event) {
		const box = this.canvas.getBoundingClientRect();
		const x = event.clientX - box.left,
			y = event.clientY - box.top;
		const hit = this.boxes?.findLast(
			([from, to, top]) =>
				x >= from - 1 && x <= to + 1 && y >= top && y < top + ROW,
		);
		replace(this.tip, hit ? this.spanText(hit[3]) : "");
	}

	#table() {
		const { lanes, model } = this;
		const table = new DataTable(
			"Phases and requests",
			[
				{
					name: "Name",
					head: true,
					value: (i) => model.string(lanes.name[i]),
				},
				{
					name: "Source",
					value: (i) => model.name("lane", lanes.source[i]),
				},
				{
					name: "Process",
					value: (i) => model.processText(lanes.process[i]),
				},
				{
					name: "Request",
					number: true,
					value: (i) =>
						lanes.request_id[i] < 0
							? null
							: lanes.request_id[i],
				},
				{
					name: "Begin",
					unit: "ns",
					number: true,
					value: (i) => lanes.begin[i],
					text: (i) => model.time(lanes.begin[i]),
				},
				{
					name: "Lasted",
					unit: "ns",
					number: true,
					value: (i) =>
						lanes.end[i] < 0
							? null
							: lanes.end[i] - lanes.begin[i],
					text: (i) =>
						lanes.end[i] < 0
							? "not ended"
							: durationText(
									lanes.end[i] -
										lanes.begin[i],
								),
				},
			],
			{ sort: 4, descending: false },
		);
		table.rows = Array.from({ length: lanes.count }, (_, i) => i);
		return table.node;
	}
}
