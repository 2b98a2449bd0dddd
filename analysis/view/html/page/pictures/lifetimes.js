// SPDX-License-Identifier: Apache-2.0
// How long blocks of each size lived: rows are ages, columns are sizes, darker is more.

import { choice, h, replace, select, svg } from "../base/dom.js";
import { bytesText, countText, durationText } from "../base/format.js";
import { DataTable, folded } from "../base/table.js";

const CELL_WIDTH = 26,
	CELL_HEIGHT = 16,
	LEFT = 96,
	TOP = 4,
	STEPS = 7;

function ageText(age, ages) {
	if (age === ages - 1) return "still live";
	return age === 0 ? "< 1 ms" : "< " + durationText(2 ** age * 1e6);
}

export class Lifetimes {
	constructor(model, state) {
		Object.assign(this, { model, state, measure: "bytes", index: 0 });
		this.picture = h("div", {
			class: "scroll",
			tabindex: "0",
			role: "region",
			"aria-label": "Lifetimes",
		});
		this.tip = h("p", { class: "figure", role: "status", id: "lifetime-detail" });
		this.table = h("div");
		this.which = h("span");
		this.node = h(
			"section",
			{ id: "lifetimes", "aria-labelledby": "lifetimes-title" },
			h(
				"header",
				{ class: "section-head" },
				h("h2", { id: "lifetimes-title" }, "How long blocks lived"),
				choice(
					"Count",
					[
						["bytes", "Bytes"],
						["count", "Blocks"],
					],
					this.measure,
					(measure) => {
						this.measure = measure;
						this.draw();
					},
				),
				this.which,
			),
			h(
				"p",
				{ class: "hint" },
				"Down: age when it was freed. Across: size of the block. Darker: more, by factors of ten.",
			),
			this.tip,
			this.picture,
			this.table,
		);
		state.subscribe((changed) => {
			if (!changed.has("chart")) return;
			const found = this.#matching();
			if (found >= 0) this.index = found;
			this.draw();
		});
	}

	#matching() {
		const { subject } = this.state;
		return this.model.ages.findIndex(
			(one) =>
				this.#layer(one) === this.model.layerOf(subject) &&
				(subject.process === null || one.process === subject.process),
		);
	}

	#layer(one) {
		return typeof one.layer === "number"
			? this.model.name("layer", one.layer)
			: one.layer;
	}

	#title(one) {
		const process =
			one.process === null || one.process < 0
				? ""
				: this.model.processText(one.process);
		return `${this.#layer(one)} memory, ${process}`;
	}

	draw() {
		const { ages } = this.model;
		replace(
			this.which,
			ages.length > 1
				? select(
						"of",
						ages.map((one, i) => [i, this.#title(one)]),
						this.index,
						(value) => {
							this.index = Number(value);
							this.draw();
						},
					)
				: null,
		);
		const one = ages[this.index];
		this.table.replaceChildren();
		const values = one?.[this.measure];
		const most = values ? values.reduce((a, b) => Math.max(a, b), 0) : 0;
		if (!most) {
			replace(this.picture, h("p", {}, "No block was freed or is live here."));
			this.tip.textContent = "";
			return;
		}
		this.#drawGrid(one, values, most);
		this.tip.textContent =
			(one.sampled ? "Estimates from samples. " : "") + this.#summary(one);
		this.table.append(folded("Table of lifetimes", () => this.#makeTable(one)));
	}

	#summary(one) {
		let all = 0,
			brief = 0,
			live = 0;
		for (let age = 0; age < one.ages; age++) {
			for (let size = 0; size < one.sizes; size++) {
				const count = one.count[age * one.sizes + size];
				all += count;
				if (age <= 3) brief += count;
				if (age === one.ages - 1) live += count;
			}
		}
		return `${countText(all)} blocks: ${countText(brief)} lived less than 8 ms, ${countText(live)} were never freed.`;
	}

	#drawGrid(one, values, most) {
		const used = [],
			rows = this.#usedAges(one, values);
		for (let size = 0; size < one.sizes; size++)
			for (let age = 0; age < one.ages; age++)
				if (values[age * one.sizes + size] > 0) {
					used.push(size);
					break;
				}
		const first = used[0],
			last = used.at(-1),
			columns = last - first + 1;
		const width = LEFT + columns * CELL_WIDTH + 40,
			height = TOP + rows.length * CELL_HEIGHT + 24;
		const picture = svg("svg", {
			width,
			height,
			role: "img",
			"aria-label": "Lifetimes by size; the table has the figures",
		});
		rows.forEach((age, row) => {
			picture.append(
				svg(
					"text",
					{
						x: LEFT - 8,
						y: TOP + row * CELL_HEIGHT + 12,
						"text-anchor": "end",
						class: "tick",
					},
					ageText(age, one.ages),
				),
			);
			for (let size = first; size <= last; size++) {
				const cell = this.#cell(one, values, most, age, size);
				cell.setAttribute("x", LEFT + (size - first) * CELL_WIDTH);
				cell.setAttribute("y", TOP + row * CELL_HEIGHT);
				picture.append(cell);
			}
		});
		for (let size = first; size <= last; size += 3)
			picture.append(
				svg(
					"text",
					{
						x: LEFT + (size - first) * CELL_WIDTH,
						y: height - 8,
						class: "tick",
					},
					bytesText(2 ** size),
				),
			);
		replace(this.picture, picture);
	}

	// from the youngest to the oldest that was freed, and the living
	#usedAges(one, values) {
		let last = 0;
		for (let age = 0; age < one.ages - 1; age++)
			for (let size = 0; size < one.sizes; size++)
				if (values[age * one.sizes + size] > 0) last = age;
		return [...Array(last + 1).keys(), one.ages - 1];
	}

	#cell(one, values, most, age, size) {
		const at = age * one.sizes + size,
			value = values[at];
		const step =
			value > 0 ? Math.max(1, Math.round(STEPS + Math.log10(value / most))) : 0;
		const cell = svg("rect", {
			width: CELL_WIDTH - 1,
			height: CELL_HEIGHT - 1,
			class: "heat heat-" + step,
		});
		if (value > 0)
			cell.addEventListener("mouseenter", () => {
				this.tip.textContent =
					`${ageText(age, one.ages)}, ${bytesText(2 ** size)} to ${bytesText(2 ** (size + 1))}: ` +
					`${countText(one.count[at])} blocks, ${bytesText(one.bytes[at])}`;
			});
		return cell;
	}

	#makeTable(one) {
		const rows = [];
		for (let at = 0; at < one.count.length; at++)
			if (one.count[at] > 0)
				rows.push({
					age: Math.floor(at / one.sizes),
					size: at % one.sizes,
					at,
				});
		const table = new DataTable(
			"Lifetimes",
			[
				{
					name: "Age",
					value: (row) => row.age,
					text: (row) => ageText(row.age, one.ages),
					head: true,
				},
				{
					name: "Size from",
					unit: "bytes",
					number: true,
					value: (row) => 2 ** row.size,
					text: (row) => bytesText(2 ** row.size),
				},
				{
					name: "Blocks",
					number: true,
					value: (row) => one.count[row.at],
					text: (row) => countText(one.count[row.at]),
				},
				{
					name: "Bytes",
					number: true,
					value: (row) => one.bytes[row.at],
					text: (row) => bytesText(one.bytes[row.at]),
				},
			],
			{ sort: 3 },
		);
		table.rows = rows;
		return table.node;
	}
}
