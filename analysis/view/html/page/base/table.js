// SPDX-License-Identifier: Apache-2.0
// A table that sorts by any column, filters by text, and copies what it shows as CSV. Rows are made
// as they are asked for, a page at a time: a recording has many thousands.

import { copyButton, h, replace } from "./dom.js";
import { countText, plural } from "./format.js";

const PAGE = 25;

function quoted(value) {
	const text = value === null || value === undefined ? "" : String(value);
	// a spreadsheet would run a text that begins like a formula
	const safe = typeof value === "string" && /^[=+\-@\t\r]/.test(text) ? "'" + text : text;
	return /[",\n\r]/.test(safe) ? '"' + safe.replaceAll('"', '""') + '"' : safe;
}

function compare(a, b) {
	if (a === b) return 0;
	if (a === null || a === undefined) return 1;
	if (b === null || b === undefined) return -1;
	return typeof a === "number" ? a - b : String(a).localeCompare(String(b), "en", { numeric: true });
}

// columns: [{name, value(row), text(row)?, node(row)?, number?, unit?}]; value sorts and goes to CSV
export class DataTable {
	#rows = [];
	#shown = PAGE;
	#filter = "";

	constructor(caption, columns, { sort = 0, descending = true, onRow = null } = {}) {
		Object.assign(this, { columns, sort, descending, onRow });
		this.body = h("tbody");
		this.status = h("span", { class: "status", role: "status" });
		this.more = h(
			"button",
			{ type: "button", onclick: () => this.#showMore() },
			"Show more",
		);
		this.heads = columns.map((column, i) => this.#head(column, i));
		const search = h("input", {
			type: "search",
			"aria-label": `Filter ${caption}`,
			placeholder: "Filter",
			oninput: () => {
				this.#filter = search.value.toLowerCase();
				this.#shown = PAGE;
				this.#draw();
			},
		});
		this.node = h(
			"div",
			{ class: "data-table" },
			h(
				"div",
				{ class: "tools" },
				search,
				copyButton("Copy CSV", () => this.csv()),
				this.status,
			),
			h(
				"div",
				{
					class: "scroll",
					tabindex: "0",
					role: "region",
					"aria-label": caption,
				},
				h(
					"table",
					{},
					h("caption", { class: "offscreen" }, caption),
					h("thead", {}, h("tr", {}, ...this.heads)),
					this.body,
				),
			),
			this.more,
		);
	}

	set rows(rows) {
		this.#rows = rows;
		this.#draw();
	}

	#head(column, i) {
		const button = h(
			"button",
			{
				type: "button",
				onclick: () => {
					this.descending =
						this.sort === i
							? !this.descending
							: Boolean(column.number);
					this.sort = i;
					this.#draw();
				},
			},
			column.name,
		);
		return h("th", { scope: "col", class: column.number ? "number" : "" }, button);
	}

	#text(column, row) {
		const value = column.text ? column.text(row) : column.value(row);
		return value === null || value === undefined ? "" : String(value);
	}

	visible() {
		const { columns } = this;
		const rows = this.#filter
			? this.#rows.filter((row) =>
					columns.some((column) =>
						this.#text(column, row)
							.toLowerCase()
							.includes(this.#filter),
					),
				)
			: [...this.#rows];
		const value = columns[this.sort].value,
			sign = this.descending ? -1 : 1;
		return rows.sort((a, b) => sign * compare(value(a), value(b)));
	}

	#showMore() {
		this.#shown += 8 * PAGE;
		this.#draw();
	}

	#cell(column, row, isFirst) {
		const content = column.node ? column.node(row) : this.#text(column, row);
		return isFirst
			? h("th", { scope: "row", class: column.number ? "number" : "" }, content)
			: h("td", { class: column.number ? "number" : "" }, content);
	}

	#draw() {
		const rows = this.visible(),
			page = rows.slice(0, this.#shown);
		this.heads.forEach((head, i) => {
			if (i === this.sort)
				head.setAttribute(
					"aria-sort",
					this.descending ? "descending" : "ascending",
				);
			else head.removeAttribute("aria-sort");
		});
		const rowHead = this.columns.findIndex((column) => column.head);
		replace(
			this.body,
			page.map((row) =>
				h(
					"tr",
					{},
					this.columns.map((column, i) =>
						this.#cell(column, row, i === rowHead),
					),
				),
			),
		);
		this.status.textContent =
			rows.length === this.#rows.length
				? plural(rows.length, "row", "rows")
				: `${countText(rows.length)} of ${countText(this.#rows.length)} rows`;
		this.more.hidden = rows.length <= this.#shown;
	}

	csv() {
		const columns = this.columns.filter((column) => !column.hiddenInCsv);
		const head = columns.map((column) =>
			quoted(column.name + (column.unit ? ` (${column.unit})` : "")),
		);
		const lines = this.visible().map((row) =>
			columns.map((column) => quoted(column.value(row))).join(","),
		);
		return [head.join(","), ...lines].join("\n") + "\n";
	}
}

// a closed box whose content is made when it is first opened
export function folded(summary, make, attributes = {}) {
	const box = h("details", attributes, h("summary", {}, summary));
	box.addEventListener("toggle", () => {
		if (box.open && box.childElementCount === 1) box.append(make());
	});
	return box;
}
