// SPDX-License-Identifier: Apache-2.0
// Call sites of the chosen memory, those that print alike as one row: what each holds at the moment,
// what it did over time, and what changed since the moment to compare with.

import { h, replace, svg } from "../base/dom.js";
import { bytesOf, bytesText, countText, percentText, signedBytesText } from "../base/format.js";
import { siteColours } from "../data/parts.js";
import { drawSwatch } from "../base/palette.js";
import { DataTable } from "../base/table.js";

const WIDTH = 90,
	HEIGHT = 18,
	STACKS = 5;

export class SiteTable {
	constructor(model, state) {
		Object.assign(this, { model, state, histories: new Map() });
		this.summary = h("p", { class: "figure" });
		this.detail = h("div", { class: "detail", role: "status", id: "site-detail" });
		this.place = h("div");
		this.node = h(
			"section",
			{ id: "sites", "aria-labelledby": "sites-title" },
			h(
				"header",
				{ class: "section-head" },
				h("h2", { id: "sites-title" }, "Call sites"),
			),
			this.summary,
			this.place,
			this.detail,
		);
		state.subscribe((changed) => {
			if (["moment", "chart", "before"].some((name) => changed.has(name))) this.draw();
		});
	}

	#bytesColumn(name, key) {
		return {
			name,
			unit: "bytes",
			number: true,
			value: (row) => row[key],
			text: (row) => (row[key] === null ? "" : bytesOf(row[key], row.isSampled)),
		};
	}

	#countColumn(name, key) {
		return {
			name,
			number: true,
			value: (row) => row[key],
			text: (row) => (row[key] === null ? "" : countText(row[key])),
		};
	}

	#columns() {
		const isCompared = this.state.before !== null;
		const change = {
			name: "Change",
			unit: "bytes",
			number: true,
			value: (row) => row.change,
			text: (row) => (row.change ? signedBytesText(row.change) : ""),
		};
		return [
			{
				name: "Call site",
				head: true,
				value: (row) => row.title,
				node: (row) => this.#siteNode(row),
			},
			{ name: "Kind", value: (row) => row.kind },
			this.#bytesColumn("Bytes", "bytes"),
			{
				name: "Share",
				number: true,
				value: (row) => row.bytes / this.sum,
				text: (row) => percentText(row.bytes / this.sum),
			},
			...(isCompared ? [change] : []),
			this.#countColumn("Blocks", "blocks"),
			{
				name: "Over time",
				hiddenInCsv: true,
				value: (row) => row.peak,
				node: (row) => this.#spark(row),
			},
			this.#bytesColumn("At peak", "peak"),
			{ name: "Role", value: (row) => row.role },
			{ name: "Trend", value: (row) => row.trend },
			this.#bytesColumn("Allocated", "allocated"),
			this.#countColumn("Calls", "calls"),
			this.#countColumn("Short-lived", "short"),
			{ name: "Process", value: (row) => row.process },
		];
	}

	#rowOf(chart, sites) {
		const { model } = this,
			{ sites: all } = model,
			[first] = sites,
			{ sum, highest } = this.#history(sites);
		const add = (column) => sites.reduce((total, site) => total + column[site], 0);
		const isHost = model.layerOf(chart) === "host";
		const callers = isHost ? "" : model.string(all.callers[first]);
		const roles = sites.map((site) => model.string(all.role[site])).filter(Boolean);
		const before = this.state.before === null ? 0 : sum[this.state.before];
		return {
			sites,
			name: model.siteText(first),
			callers,
			title: model.siteText(first) + (callers ? " < " + callers : ""),
			kind: [...new Set(sites.map((site) => model.kindWord(all.kind[site])))].join(", "),
			bytes: add(this.live.bytes),
			blocks: add(this.live.blocks),
			change: add(this.live.bytes) - before,
			history: sum,
			peak: Math.max(highest, ...sites.map((site) => all.peak_bytes[site])),
			role: model.roleWord(roles[0]),
			trend: model.trendOf(sites),
			allocated: add(all.alloc_bytes),
			calls: add(all.alloc_count),
			freed: add(all.free_count),
			short: add(all.short_count),
			isSampled: sites.some((site) => all.sampled[site] === 1),
			process: model.processText(all.process[first]),
		};
	}

	// what sites of one row held together: it does not depend on the moment
	#history(sites) {
		const key = sites[0];
		if (!this.histories.has(key)) {
			const sum = this.model.sumOf(sites);
			this.histories.set(key, { sum, highest: sum.reduce((a, b) => Math.max(a, b), 0) });
		}
		return this.histories.get(key);
	}

	#unusedRow(chart) {
		const { model, state } = this,
			part = chart.by.site?.find((one) => one.unused);
		if (!part) return [];
		const [name, bytes] = model.unusedAt(chart, state.moment),
			before = state.before === null ? 0 : model.unusedAt(chart, state.before)[1],
			{ processes } = model.devices[chart.device];
		return [
			{
				sites: [],
				name,
				callers: "",
				title: name,
				kind: "",
				bytes,
				blocks: null,
				change: bytes - before,
				history: part.bytes,
				peak: part.bytes.reduce((a, b) => Math.max(a, b), 0),
				role: "",
				trend: "",
				allocated: null,
				calls: null,
				short: null,
				isSampled: false,
				process: processes.length === 1 ? model.processText(processes[0]) : "",
			},
		];
	}

	#siteNode(row) {
		const swatch = drawSwatch(h("canvas", { "aria-hidden": "true" }), this.#colour(row));
		if (!row.sites.length) return h("span", {}, swatch, " ", row.name);
		return h(
			"button",
			{ type: "button", class: "link", onclick: () => this.#show(row) },
			swatch,
			" ",
			row.name,
			row.callers ? h("span", { class: "callers" }, " < " + row.callers) : null,
		);
	}

	#colour(row) {
		return row.sites.length ? this.colour(row.sites[0]) : -1;
	}

	#spark(row) {
		const { model } = this,
			peak = row.peak || 1,
			end = model.duration_ns || 1;
		const x = (moment) => ((model.moments.t[moment] / end) * WIDTH).toFixed(1);
		const y = (bytes) => (HEIGHT - 1 - (bytes / peak) * (HEIGHT - 2)).toFixed(1);
		let path = `M0 ${y(0)}`,
			last = 0;
		row.history.forEach((bytes, moment) => {
			if (bytes !== last) path += `H${x(moment)}V${y(bytes)}`;
			last = bytes;
		});
		path += `H${WIDTH}`;
		return svg(
			"svg",
			{
				width: WIDTH,
				height: HEIGHT,
				class: "spark",
				role: "img",
				"aria-label": `peak ${bytesText(peak)}`,
			},
			svg("path", { class: "area", d: `${path}V${HEIGHT}H0Z` }),
			svg("path", { class: "edge", d: path }),
		);
	}

	#stackNode(site, isOnly) {
		const { model } = this,
			{ sites } = model;
		const stack = h(
			"ol",
			{ class: "stack" },
			model
				.stackOf(sites.node[site])
				.map((frame) => h("li", { class: frame.isOwn ? "own" : "" }, frame.text)),
		);
		if (isOnly) return stack;
		const bytes = bytesOf(this.live.bytes[site], sites.sampled[site] === 1);
		return [h("h3", {}, `${bytes} by`), stack];
	}

	#show(row) {
		const { model } = this,
			{ sites } = model;
		const least = Math.min(...row.sites.map((site) => sites.least_bytes[site])),
			most = Math.max(...row.sites.map((site) => sites.most_bytes[site]));
		const stacks = [...row.sites]
			.sort((a, b) => this.live.bytes[b] - this.live.bytes[a])
			.slice(0, STACKS);
		const left = row.sites.length - stacks.length;
		replace(
			this.detail,
			h("strong", {}, row.title),
			h(
				"p",
				{},
				`blocks of ${bytesText(least)} to ${bytesText(most)}; ` +
					`${countText(row.calls)} allocations, ${countText(row.freed)} frees`,
			),
			row.trend === "leaks"
				? h(
						"p",
						{},
						"A rule that suppresses it: ",
						h("code", {}, "cuflight check --gen-suppressions=FILE"),
					)
				: null,
			stacks.map((site) => this.#stackNode(site, row.sites.length === 1)),
			left > 0 ? h("p", {}, `and ${countText(left)} smaller stacks`) : null,
		);
	}

	// what was counted before the oldest event that is left is gone
	#sinceText(sites) {
		const { model } = this;
		const owners = new Set(sites.map((site) => model.sites.process[site]));
		const since = [...owners]
			.map((process) => model.processes[process]?.first ?? null)
			.filter((first) => first !== null);
		return since.length
			? ` Allocated, calls and short-lived count from ${model.time(Math.min(...since))} on.`
			: "";
	}

	// a table of other columns is another table
	#table() {
		const isCompared = this.state.before !== null;
		if (this.table && this.isCompared === isCompared) return this.table;
		this.isCompared = isCompared;
		this.table = new DataTable("Call sites", this.#columns(), { sort: isCompared ? 4 : 2 });
		replace(this.place, this.table.node);
		return this.table;
	}

	draw() {
		const { model, state } = this,
			chart = state.subject;
		this.live = model.liveAt(state.moment);
		this.colour = siteColours(model);
		if (this.histories.chart !== chart) this.histories = new Map();
		this.histories.chart = chart;
		const rows = [
			...model.rowsOf(chart).map((sites) => this.#rowOf(chart, sites)),
			...this.#unusedRow(chart),
		];
		this.sum = rows.reduce((sum, row) => sum + row.bytes, 0) || 1;
		const holding = rows.filter((row) => row.bytes > 0).length;
		this.summary.textContent =
			`${model.chartTitle(chart)} at ${model.momentText(state.moment)}: ` +
			`${countText(holding)} of ${countText(rows.length)} call sites hold something.` +
			(state.before === null
				? ""
				: ` Change: since ${model.momentText(state.before)}.`) +
			(rows.length ? " Choose one to see its stacks." : "") +
			this.#sinceText(model.sitesOf(chart));
		this.#table().rows = rows;
		replace(this.detail);
	}
}
