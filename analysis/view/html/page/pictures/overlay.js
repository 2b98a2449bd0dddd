// SPDX-License-Identifier: Apache-2.0
// What a chart shows in addition to its stack: the exact range of each stretch of time behind it, the
// samples of driver and system as lines, limits, failures, and the chosen moment.

import { svg } from "../base/dom.js";
import { theme } from "../base/palette.js";
import { bytesText } from "../base/format.js";

const DASHES = [[], [6, 3], [2, 3], [8, 3, 2, 3]];

// the same pattern in the legend
export function lineSwatch(i) {
	const pattern = DASHES[i % DASHES.length].join(" ") || "none";
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

function limitsOf(chart) {
	const limits = [];
	if (chart.total_bytes) limits.push(["total", chart.total_bytes]);
	if (chart.limit_bytes && chart.limit_bytes !== chart.total_bytes)
		limits.push(["limit", chart.limit_bytes]);
	return limits;
}

// the top of the axis: a limit far above what was used would flatten the chart
export function mostOf(chart) {
	let top = Math.max(most(chart.sum), most(chart.range?.high));
	for (const line of chart.lines ?? [])
		if (line.name !== "cgroup") top = Math.max(top, most(line.bytes));
	// the control group has other processes in it: their memory must not flatten this one's
	const group = most((chart.lines ?? []).find((line) => line.name === "cgroup")?.bytes);
	if (group < 4 * top) top = Math.max(top, group);
	for (const [, bytes] of limitsOf(chart)) if (bytes < 4 * top) top = Math.max(top, bytes);
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

function label(ctx, text, x, y, align) {
	ctx.font = scaledFont();
	ctx.textAlign = align;
	ctx.lineWidth = 3 * ratio();
	ctx.strokeStyle = theme("paper");
	ctx.setLineDash([]);
	ctx.strokeText(text, x, y);
	ctx.fillText(text, x, y);
}

function ratio() {
	return window.devicePixelRatio || 1;
}

function scaledFont() {
	return theme("canvas-font").replace(/^(\d+)px/, (_, size) => size * ratio() + "px");
}

function drawLimits(ctx, plot, chart, y) {
	const { left, width, top } = plot.bbox,
		scale = ratio();
	for (const [name, bytes] of limitsOf(chart)) {
		const at = y(bytes),
			isAbove = at < top,
			text = `${name} ${bytesText(bytes)}`;
		ctx.strokeStyle = ctx.fillStyle = theme("ink");
		ctx.lineWidth = scale;
		ctx.setLineDash([5 * scale, 4 * scale]);
		if (!isAbove) {
			ctx.beginPath();
			ctx.moveTo(left, at);
			ctx.lineTo(left + width, at);
			ctx.stroke();
		}
		const below = Math.max(at, top) + 12 * scale;
		label(
			ctx,
			isAbove ? `${text}, above this chart` : text,
			left + 6 * scale,
			below,
			"left",
		);
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
		drawLimits(ctx, plot, chart, y);
		drawIncidents(ctx, plot, chart, model, x);
		drawMoment(ctx, plot, x(model.moments.t[state.before]), [2, 4]);
		drawMoment(ctx, plot, x(model.moments.t[state.moment]), []);
	});
}
