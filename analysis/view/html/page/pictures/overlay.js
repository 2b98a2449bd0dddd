// SPDX-License-Identifier: Apache-2.0
// What a chart shows in addition to its stack: the exact range of each stretch of time behind it, the
// samples of driver and system as lines, limits, failures, and the chosen moment.

import { h, svg } from "../base/dom.js";
import { theme } from "../base/palette.js";
import { bytesText } from "../base/format.js";

const DASHES = [[], [6, 3], [2, 3], [8, 3, 2, 3]];
const LIMIT = [5, 4];
const LABEL = 17; // pixels of a line

// the same pattern in the legend
export function lineSwatch(i) {
	return dashSwatch(DASHES[i % DASHES.length]);
}

export function limitSwatch() {
	return dashSwatch(LIMIT);
}

function dashSwatch(dash) {
	const pattern = dash.join(" ") || "none";
	return svg(
		"svg",
		{ width: 24, height: 10, class: "dash", "aria-hidden": "true" },
		svg("path", { d: "M0 5H24", "stroke-dasharray": pattern }),
	);
}

function most(values) {
	let found = 0;
	for (const value of values ?? []) if (value > found) found = value;
	return found;
}

// what ends the growth of a chart, in the words of the first screen: [[name, bytes], ...]
export function limitsOf(model, chart) {
	if (model.layerOf(chart) !== "host")
		return chart.total_bytes ? [["total", chart.total_bytes]] : [];
	if (chart.limit_bytes) return [["limit of the cgroup", chart.limit_bytes]];
	return chart.total_bytes ? [["memory of the machine", chart.total_bytes]] : [];
}

// The limits of a chart as texts over its PLOT, none on top of another.
export function limitLabels(plot, model, chart) {
	const { height } = plot.over.getBoundingClientRect();
	let free = 0;
	for (const [name, bytes] of limitsOf(model, chart)) {
		const at = plot.valToPos(bytes, "y");
		if (at < 0) continue; // above this chart: the legend has it
		const label = h("span", { class: "limit" }, `${name} ${bytesText(bytes)}`);
		plot.over.append(label);
		const top = Math.max(free, at >= LABEL ? at - LABEL : at + 1);
		label.style.top = Math.min(top, height - LABEL) + "px";
		free = top + LABEL;
	}
}

// the top of the axis: a limit far above what was used would flatten the chart
export function mostOf(model, chart) {
	let top = Math.max(most(chart.sum), most(chart.range?.high));
	for (const line of chart.lines ?? [])
		if (line.name !== "cgroup") top = Math.max(top, most(line.bytes));
	// the control group has other processes in it: their memory must not flatten this one's
	const group = most((chart.lines ?? []).find((line) => line.name === "cgroup")?.bytes);
	if (group < 4 * top) top = Math.max(top, group);
	for (const [, bytes] of limitsOf(model, chart))
		if (bytes < 4 * top) top = Math.max(top, bytes);
	return top;
}

function clipped(plot, draw) {
	const { ctx, bbox } = plot;
	ctx.save();
	ctx.beginPath();
	ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
	ctx.clip();
	draw(
		ctx,
		(ns) => plot.valToPos(ns / 1e9, "x", true),
		(bytes) => plot.valToPos(bytes, "y", true),
	);
	ctx.restore();
}

export function drawBehind(plot, chart) {
	const { range } = chart;
	if (!range) return;
	clipped(plot, (ctx, x, y) => {
		const width = (range.to - range.from) / range.count;
		ctx.fillStyle = theme("range");
		for (let i = 0; i < range.count; i++) {
			if (range.high[i] < 0) continue;
			const from = x(range.from + i * width),
				to = x(range.from + (i + 1) * width);
			const top = y(range.high[i]);
			ctx.fillRect(
				from,
				top,
				Math.max(1, to - from),
				y(Math.max(0, range.low[i])) - top,
			);
		}
	});
}

function drawLine(ctx, line, x, y) {
	ctx.beginPath();
	let before = null;
	for (let i = 0; i < line.count; i++) {
		if (line.bytes[i] < 0) continue;
		const at = y(line.bytes[i]);
		if (before === null) ctx.moveTo(x(line.t[i]), at);
		else (ctx.lineTo(x(line.t[i]), before), ctx.lineTo(x(line.t[i]), at));
		before = at;
	}
	ctx.stroke();
}

function ratio() {
	return window.devicePixelRatio || 1;
}

function drawLimits(ctx, plot, model, chart, y) {
	const { left, width } = plot.bbox;
	ctx.strokeStyle = theme("ink");
	ctx.lineWidth = ratio();
	ctx.setLineDash(LIMIT.map((size) => size * ratio()));
	for (const [, bytes] of limitsOf(model, chart)) {
		ctx.beginPath();
		ctx.moveTo(left, y(bytes));
		ctx.lineTo(left + width, y(bytes));
		ctx.stroke();
	}
}

function drawIncidents(ctx, plot, chart, model, x) {
	const { incidents } = model,
		{ top, height } = plot.bbox,
		scale = ratio();
	ctx.strokeStyle = ctx.fillStyle = theme("alarm");
	ctx.lineWidth = scale;
	ctx.setLineDash([]);
	for (let i = 0; i < incidents.count; i++) {
		const isHost = incidents.device[i] < 0;
		if (isHost !== (model.layerOf(chart) === "host")) continue;
		if (!isHost && chart.device !== null && incidents.device[i] !== chart.device)
			continue;
		if (isHost && incidents.process[i] !== chart.process) continue;
		const at = x(incidents.t[i]);
		ctx.beginPath();
		ctx.moveTo(at, top);
		ctx.lineTo(at, top + height);
		ctx.stroke();
		ctx.beginPath();
		ctx.moveTo(at - 5 * scale, top);
		ctx.lineTo(at + 5 * scale, top);
		ctx.lineTo(at, top + 8 * scale);
		ctx.fill();
	}
}

function drawMoment(ctx, plot, at, dash) {
	const { top, height } = plot.bbox;
	ctx.strokeStyle = theme("ink");
	ctx.lineWidth = 2 * ratio();
	ctx.setLineDash(dash.map((size) => size * ratio()));
	ctx.beginPath();
	ctx.moveTo(at, top);
	ctx.lineTo(at, top + height);
	ctx.stroke();
}

export function drawOver(plot, chart, model, state) {
	clipped(plot, (ctx, x, y) => {
		ctx.strokeStyle = theme("ink");
		ctx.lineWidth = 1.5 * ratio();
		(chart.lines ?? []).forEach((line, i) => {
			ctx.setLineDash(DASHES[i % DASHES.length].map((size) => size * ratio()));
			drawLine(ctx, line, x, y);
		});
		drawLimits(ctx, plot, model, chart, y);
		drawIncidents(ctx, plot, chart, model, x);
		if (state.before !== null)
			drawMoment(ctx, plot, x(model.moments.t[state.before]), [2, 4]);
		drawMoment(ctx, plot, x(model.moments.t[state.moment]), []);
	});
}
