// SPDX-License-Identifier: Apache-2.0
// Call sites of the chosen memory: what each holds at the moment and did over time.

import { h, replace, svg } from "../base/dom.js";
import { bytesOf, bytesText, countText, percentText } from "../base/format.js";
import { siteColours } from "../data/parts.js";
import { drawSwatch } from "../base/palette.js";
import { DataTable } from "../base/table.js";

const WIDTH = 90,
	HEIGHT = 18;

export class SiteTable {
	constructor(model, state) {
		Object.assign(this, { model, state });
		this.summary = h("p", { class: "figure" });
		this.detail = h("div", { class: "detail", role: "status", id: "site-detail" });
		this.table = new DataTable("Call sites", this.#columns(), { sort: 2 });
		this.node = h(
			"section",
			{ id: "sites", "aria-labelledby": "sites-title" },
			h(
				"header",
				{ class: "section-head" },
				h("h2", { id: "sites-title" }, "Call sites"),
			),
			this.summary,
			this.table.node,
			this.detail,
		);
		state.subscribe((changed) => {
			if (changed.has("moment") || changed.has("chart")) this.draw();
		});
	}

	#columns() {
		const { model } = this,
			{ sites } = model;
		const isSampled = (site) => sites.sampled[site] === 1;
		return [
			{
				name: "Call site",
				head: true,
				value: (site) => this.#title(site),
				node: (site) => this.#siteNode(site),
			},
			{ name: "Kind", value: (site) => model.name("kind", sites.kind[site]) },
			{
				name: "Bytes",
				number: true,
				value: (site) => this.live.bytes[site],
				text: (site) => bytesOf(this.live.bytes[site], isSampled(site)),
			},
			{
				name: "Share",
				number: true,
				value: (site) => this.live.bytes[site] / this.sum,
				text: (site) => percentText(this.live.bytes[site] / this.sum),
			},
			{
				name: "Blocks",
				number: true,
				value: (site) => this.live.blocks[site],
				text: (site) => countText(this.live.blocks[site]),
			},
			{
				name: "Over time",
				hiddenInCsv: true,
				value: (site) => sites.peak_bytes[site],
				node: (site) => this.#spark(site),
			},
			{
				name: "Peak",
				unit: "bytes",
				number: true,
				value: (site) => sites.peak_bytes[site],
				text: (site) => bytesOf(sites.peak_bytes[site], isSampled(site)),
			},
			{
				name: "Allocated",
				unit: "bytes",
				number: true,
				value: (site) => sites.alloc_bytes[site],
				text: (site) => bytesOf(sites.alloc_bytes[site], isSampled(site)),
			},
			{
				name: "Calls",
				number: true,
				value: (site) => sites.alloc_count[site],
				text: (site) => countText(sites.alloc_count[site]),
			},
			{
				name: "Short-lived",
				number: true,
				value: (site) => sites.short_count[site],
				text: (site) => countText(sites.short_count[site]),
			},
			{ name: "Judged", value: (site) => this.#judged(site) },
			{
				name: "Process",
				value: (site) => model.processText(sites.process[site]),
			},
		];
	}

	#title(site) {
		const callers = this.model.string(this.model.sites.callers[site]);
		return this.model.siteText(site) + (callers ? " < " + callers : "");
	}

	#judged(site) {
		const { sites } = this.model;
		const words = [
			this.model.name("role", sites.role[site]),
			this.model.name("class", sites.class[site]),
			this.model.name("shape", sites.shape[site]),
		];
		return words.filter(Boolean).join(", ");
	}

	#siteNode(site) {
		const { model } = this,
			callers = model.string(model.sites.callers[site]);
		return h(
			"button",
			{ type: "button", class: "link", onclick: () => this.#show(site) },
			drawSwatch(h("canvas", { "aria-hidden": "true" }), this.colour(site)),
			" ",
			model.siteText(site),
			callers ? h("span", { class: "callers" }, " < " + callers) : null,
		);
	}

	#spark(site) {
		const { model } = this,
			peak = model.sites.peak_bytes[site] || 1,
			end = model.duration_ns || 1;
		const x = (moment) => ((model.moments.t[moment] / end) * WIDTH).toFixed(1);
		const y = (bytes) => (HEIGHT - 1 - (bytes / peak) * (HEIGHT - 2)).toFixed(1);
		let path = `M0 ${y(0)}`;
		for (const [moment, bytes] of model.historyOf(site))
			path += `H${x(moment)}V${y(bytes)}`;
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

	#show(site) {
		const { model } = this,
			{ sites } = model,
			isLeak = model.name("class", sites.class[site]) === "leak";
		replace(
			this.detail,
			h("strong", {}, this.#title(site)),
			h(
				"p",
				{},
				`blocks of ${bytesText(sites.least_bytes[site])} to ${bytesText(sites.most_bytes[site])}; ` +
					`${countText(sites.alloc_count[site])} allocations, ${countText(sites.free_count[site])} frees`,
			),
			isLeak
				? h(
						"p",
						{},
						"A rule that suppresses it: ",
						h("code", {}, "cuflight check --gen-suppressions=FILE"),
					)
				: null,
			h(
				"ol",
				{ class: "stack" },
				model
					.stackOf(sites.node[site])
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

	draw() {
		const { model, state } = this;
		this.live = model.liveAt(state.moment);
		this.colour = siteColours(state.subject);
		const sites = model.sitesOf(state.subject);
		this.sum = sites.reduce((sum, site) => sum + this.live.bytes[site], 0) || 1;
		const holding = sites.filter((site) => this.live.bytes[site] > 0).length;
		this.summary.textContent =
			`${model.chartTitle(state.subject)} at ${model.momentText(state.moment)}: ` +
			`${holding} of ${countText(sites.length)} call sites hold something.` +
			(sites.length ? " Choose one to see its stack." : "") +
			this.#sinceText(sites);
		this.table.rows = sites;
	}
}
