// SPDX-License-Identifier: Apache-2.0
// The address map: blocks coloured by call site, holes left white, the largest outlined, and the
// request that failed drawn to the same scale below.

import { addressSpace, layRows, LEAST_SPAN, PAGE, rowsAround } from "../data/address_space.js";
import { choice, h, replace, sizeCanvas } from "../base/dom.js";
import { addressText, bytesText, countText, durationText } from "../base/format.js";
import { siteColours } from "../data/parts.js";
import { drawSwatch, fillOf, theme } from "../base/palette.js";
import { paintRequest } from "./map_request.js";
import { blockTable, holeTable } from "./map_tables.js";
import { folded } from "../base/table.js";

const LABEL = 112,
	ROW = 14,
	GAP = 3,
	MOST_ROWS = 40,
	RIGHT = 14,
	PAGE_TICKS = 6;

export class AddressMap {
	constructor(model, state) {
		Object.assign(this, { model, state, inside: true, hit: -1, zoom: 0 });
		this.canvas = h("canvas", {
			tabindex: "0",
			role: "application",
			"aria-label":
				"Address map. Arrow keys go from block to block, + and - zoom, 0 shows all.",
		});
		this.request = h("canvas", { role: "img", hidden: true, "aria-label": "Request" });
		this.summary = h("p", { class: "figure", id: "map-summary" });
		this.tip = h("div", { class: "detail", role: "status", id: "map-detail" });
		this.legend = h("ul", { class: "legend" });
		this.controls = h("span");
		this.tables = h("div", { class: "columns" });
		this.body = h(
			"div",
			{ class: "map-body" },
			h("div", { class: "map-canvas" }, this.canvas, this.request),
			h("div", {}, this.legend, this.tip),
		);
		this.node = h(
			"section",
			{ id: "map", "aria-labelledby": "map-title" },
			h(
				"header",
				{ class: "section-head" },
				h("h2", { id: "map-title" }, "Address map"),
				this.controls,
			),
			this.summary,
			this.body,
			this.tables,
		);
		this.canvas.addEventListener("mousemove", (event) => this.#point(event));
		this.canvas.addEventListener("keydown", (event) => this.#key(event));
		state.subscribe((changed) => {
			if (changed.has("moment") || changed.has("chart") || changed.has("size"))
				this.draw();
		});
	}

	draw() {
		const { model, state } = this,
			chart = state.subject;
		const isHost = model.layerOf(chart) === "host";
		const space = isHost
			? { regions: [], count: 0 }
			: addressSpace(model, chart, state.moment, this.inside);
		this.space = space;
		this.body.hidden = this.tables.hidden = !space.count;
		replace(this.controls);
		if (!space.count) {
			this.summary.textContent = isHost
				? "Host blocks have no map: the allocator places them." +
					(model.devices.length ? " Choose the memory of a GPU above." : "")
				: "No block with an address was live at this moment.";
			return;
		}
		if (space.hasSegments)
			this.controls.append(
				choice(
					"Show",
					[
						[true, "Inside segments"],
						[false, "Driver's blocks"],
					],
					this.inside,
					(inside) => {
						this.inside = inside;
						this.draw();
					},
				),
			);
		this.controls.append(this.#zoomButtons());
		this.hit = -1;
		this.zoom = 0;
		this.order = space.regions.flatMap((region) => region.blocks);
		this.colour = siteColours(model);
		this.#showLegend();
		this.#lay();
		this.#makeTables();
	}

	#zoomButtons() {
		const button = (text, steps) =>
			h("button", { type: "button", onclick: () => this.#zoomBy(steps) }, text);
		this.zoomOut = button("Zoom out", -1);
		this.zoomIn = button("Zoom in", 1);
		return h("span", { class: "buttons" }, this.zoomOut, this.zoomIn);
	}

	// what stays in view: the chosen block, else the largest hole, else the first address
	#target() {
		const { blocks } = this.model,
			{ regions, largest } = this.space;
		if (this.hit >= 0) {
			const block = this.order[this.hit];
			return { region: this.#regionOf(block), address: blocks.address[block] };
		}
		if (largest) return { region: largest.region, address: largest.start };
		return { region: regions[0], address: regions[0].start };
	}

	#regionOf(block) {
		return this.space.regions.find((one) => one.blocks.includes(block));
	}

	#lay() {
		const all = layRows(this.space.regions, MOST_ROWS, this.zoom);
		this.laid = rowsAround(all, MOST_ROWS, this.#target());
		this.zoomOut.disabled = this.zoom === 0;
		this.zoomIn.disabled = all.span <= LEAST_SPAN;
		this.#describe();
		this.#paint();
		this.#showRequest();
	}

	#zoomBy(steps) {
		const isFinest = steps > 0 && this.laid.span <= LEAST_SPAN;
		if (isFinest) return;
		this.zoom = Math.max(0, this.zoom + steps);
		this.#lay();
	}

	get incident() {
		const { incidents } = this.model,
			{ moment, subject } = this.state;
		for (let i = incidents.count - 1; i >= 0; i--)
			if (
				incidents.moment[i] === moment &&
				incidents.device[i] === (subject.device ?? -1)
			)
				return i;
		return -1;
	}

	#describe() {
		const { space, laid, model } = this,
			left = model.blocks.left_out;
		const holes = space.holes.reduce((sum, hole) => sum + hole.bytes, 0);
		const isPartial = left?.count && !left.complete_at?.includes(this.state.moment);
		this.summary.textContent =
			`${countText(this.order.length)} blocks, ` +
			`${countText(space.holes.length)} holes of ${bytesText(holes)} in all, the largest ` +
			`${bytesText(space.largest?.bytes ?? 0)}. A row is ${bytesText(laid.span)}.` +
			(laid.count > laid.rows.length
				? ` Rows ${countText(laid.first + 1)} to ${countText(laid.first + laid.rows.length)} of ${countText(laid.count)}.`
				: "") +
			(isPartial
				? ` ${countText(left.count)} blocks below ${bytesText(left.least_bytes)} are not in this file.`
				: "");
	}

	// what the colours stand for, by the bytes in this map
	#showLegend() {
		const { blocks } = this.model,
			bytes = new Map();
		for (const block of this.order) {
			const made = blocks.site[block],
				site = this.colour(made) < 0 ? -1 : this.model.sites.row[made];
			bytes.set(site, (bytes.get(site) ?? 0) + blocks.bytes[block]);
		}
		const largest = [...bytes].sort((a, b) => b[1] - a[1]);
		replace(
			this.legend,
			largest.map(([site, sum]) => this.#legendRow(site, sum)),
		);
	}

	#legendRow(site, sum) {
		const { model } = this,
			callers = site < 0 ? "" : model.string(model.sites.callers[site]);
		const text = site < 0 ? "other call sites" : model.siteText(site);
		const title = text + (callers ? " < " + callers : "");
		return h(
			"li",
			{},
			drawSwatch(
				h("canvas", { "aria-hidden": "true" }),
				site < 0 ? -1 : this.colour(site),
			),
			h("span", { class: "name", title }, title),
			h("span", { class: "number" }, bytesText(sum)),
		);
	}

	#width() {
		return Math.max(260, this.canvas.parentNode.clientWidth);
	}

	#scale() {
		return (this.#width() - LABEL - RIGHT) / this.laid.span;
	}

	#paint() {
		const { rows } = this.laid,
			height = rows.length * (ROW + GAP) + 2;
		const context = (this.context = sizeCanvas(this.canvas, this.#width(), height));
		context.font = theme("canvas-mono");
		context.textBaseline = "middle";
		rows.forEach((row, y) => this.#paintRow(context, row, y * (ROW + GAP) + 1));
		if (this.space.largest)
			this.#outline(
				context,
				this.space.largest.start,
				this.space.largest.start + this.space.largest.bytes,
				this.space.largest.region,
				theme("alarm"),
				2,
			);
		if (this.hit >= 0) this.#outlineBlock(context);
	}

	#paintRow(context, row, top) {
		const scale = this.#scale(),
			{ blocks } = this.model;
		context.fillStyle = theme("muted");
		context.fillText(addressText(row[0].from), 0, top + ROW / 2);
		for (const piece of row) {
			const x = LABEL + piece.offset * scale,
				width = (piece.to - piece.from) * scale;
			context.fillStyle = theme("hole");
			context.fillRect(x, top, width, ROW);
			this.#paintBlocks(context, piece, x, top, scale, blocks);
			context.fillStyle = theme("ink");
			if (PAGE * scale >= PAGE_TICKS) this.#paintPages(context, piece, x, top, scale);
			if (piece.from === piece.region.start)
				context.fillRect(x, top - 1, 1, ROW + 2);
		}
	}

	// where 2 MiB pages begin, as soon as there is room for it
	#paintPages(context, piece, x, top, scale) {
		for (let at = Math.ceil(piece.from / PAGE) * PAGE; at < piece.to; at += PAGE)
			context.fillRect(x + (at - piece.from) * scale, top + ROW - 3, 1, 5);
	}

	// blocks narrower than a pixel are drawn once a pixel: a map of a million blocks stays quick
	#paintBlocks(context, piece, x, top, scale, blocks) {
		const { region } = piece;
		let drawn = -1;
		for (
			let i = firstAfter(blocks, region.blocks, piece.from);
			i < region.blocks.length;
			i++
		) {
			const block = region.blocks[i],
				from = Math.max(piece.from, blocks.address[block]);
			if (from >= piece.to) break;
			const to = Math.min(piece.to, blocks.address[block] + blocks.bytes[block]);
			const left = x + (from - piece.from) * scale,
				right = x + (to - piece.from) * scale;
			if (right - left < 0.5 && right < drawn + 0.5) continue;
			context.fillStyle = fillOf(context, this.colour(blocks.site[block]));
			context.fillRect(
				left,
				top,
				Math.max(0.5, right - left - (right - left > 3 ? 0.75 : 0)),
				ROW,
			);
			drawn = right;
		}
	}

	#outline(context, from, to, region, colour, width) {
		const scale = this.#scale();
		context.strokeStyle = colour;
		context.lineWidth = width;
		this.laid.rows.forEach((row, y) => {
			for (const piece of row) {
				if (piece.region !== region || from >= piece.to || to <= piece.from)
					continue;
				const left =
					LABEL +
					(piece.offset + Math.max(from, piece.from) - piece.from) *
						scale;
				const right =
					LABEL +
					(piece.offset + Math.min(to, piece.to) - piece.from) *
						scale;
				context.strokeRect(
					left,
					y * (ROW + GAP) + 1,
					Math.max(2, right - left),
					ROW,
				);
			}
		});
	}

	#outlineBlock(context) {
		const block = this.order[this.hit],
			{ blocks } = this.model;
		const region = this.#regionOf(block);
		this.#outline(
			context,
			blocks.address[block],
			blocks.address[block] + blocks.bytes[block],
			region,
			theme("ink"),
			2,
		);
	}

	#showRequest() {
		const { incident, model } = this;
		this.request.hidden = incident < 0;
		if (incident < 0) return;
		paintRequest(this.request, {
			requested: model.incidents.requested_bytes[incident],
			hole: this.space.largest?.bytes ?? 0,
			left: LABEL,
			width: this.#width() - RIGHT,
			scale: this.#scale(),
		});
	}

	#point(event) {
		const box = this.canvas.getBoundingClientRect(),
			{ blocks } = this.model;
		const row = this.laid.rows[Math.floor((event.clientY - box.top) / (ROW + GAP))];
		const offset = (event.clientX - box.left - LABEL) / this.#scale();
		const piece = row?.find(
			(one) => offset >= one.offset && offset < one.offset + one.to - one.from,
		);
		if (!piece) return;
		const address = piece.from + offset - piece.offset;
		const at = firstAfter(blocks, piece.region.blocks, address),
			block = piece.region.blocks[at];
		if (block !== undefined && blocks.address[block] <= address)
			this.#choose(this.order.indexOf(block));
		else
			this.#showHole(
				piece.region.holes.find(
					(hole) =>
						address >= hole.start &&
						address < hole.start + hole.bytes,
				),
			);
	}

	#choose(hit) {
		if (hit === this.hit || hit < 0) return;
		this.hit = hit;
		if (this.#isInView(this.order[hit])) this.#paint();
		else this.#lay();
		this.#showBlock(this.order[hit]);
	}

	#isInView(block) {
		const { blocks } = this.model,
			address = blocks.address[block],
			process = blocks.process[block];
		return this.laid.rows.some((row) =>
			row.some(
				({ region, from, to }) =>
					region.process === process &&
					address < to &&
					address + blocks.bytes[block] > from,
			),
		);
	}

	#showHole(hole) {
		if (!hole) return;
		this.hit = -1;
		this.#paint();
		replace(
			this.tip,
			h("strong", {}, `Hole of ${bytesText(hole.bytes)}`),
			h("p", {}, addressText(hole.start)),
		);
	}

	#showBlock(block) {
		const { model } = this,
			{ blocks, sites } = model,
			site = blocks.site[block];
		const age = model.moments.t[this.state.moment] - blocks.born[block];
		const stack =
			site >= 0 && sites.node[site] >= 0 ? model.stackOf(sites.node[site]) : [];
		replace(
			this.tip,
			h(
				"strong",
				{},
				`${bytesText(blocks.bytes[block])}, ${model.kindWord(blocks.kind[block])}`,
			),
			h(
				"p",
				{},
				`${addressText(blocks.address[block])}, ${durationText(age)} old, ` +
					model.processText(blocks.process[block]),
			),
			h("p", {}, site >= 0 ? model.siteText(site) : "call site unknown"),
			h(
				"ol",
				{ class: "stack" },
				stack
					.slice(0, 24)
					.map((frame) =>
						h(
							"li",
							{ class: frame.isOwn ? "own" : "" },
							frame.text,
						),
					),
			),
		);
	}

	#key(event) {
		const steps = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: 16, ArrowUp: -16 }[
			event.key
		];
		const last = this.order.length - 1;
		if (steps) this.#choose(Math.min(last, Math.max(0, this.hit + steps)));
		else if (event.key === "Home") this.#choose(0);
		else if (event.key === "End") this.#choose(last);
		else if (event.key === "+") this.#zoomBy(1);
		else if (event.key === "-") this.#zoomBy(-1);
		else if (event.key === "0") this.#zoomBy(-this.zoom);
		else return;
		event.preventDefault();
	}

	#makeTables() {
		replace(
			this.tables,
			folded(
				"Table of the blocks",
				() => blockTable(this.model, this.order, this.state.moment).node,
			),
			folded(
				"Table of the holes",
				() => holeTable(this.model, this.space.holes).node,
			),
		);
	}
}

// index of the first block of LIST that ends after ADDRESS
function firstAfter(blocks, list, address) {
	let low = 0,
		high = list.length;
	while (low < high) {
		const middle = (low + high) >> 1,
			block = list[middle];
		if (blocks.address[block] + blocks.bytes[block] <= address) low = middle + 1;
		else high = middle;
	}
	return low;
}
