// SPDX-License-Identifier: Apache-2.0
// Memory over time, one panel for each chart. All share the time axis and the cursor. Click or
// arrow keys choose the moment that the rest of the page is about; dragging zooms.

import { choice, h, mark, replace, select } from "../base/dom.js";
import { GROUPINGS, groupingsOf } from "../data/parts.js";
import { Lanes } from "./lanes.js";
import { Panel } from "./panel.js";

const MANY = 6;

export class Timeline {
	constructor(model, state) {
		Object.assign(this, { model, state, panels: [] });
		this.end = Math.max(model.duration_ns, model.moments.t.at(-1) ?? 0, 1) / 1e9;
		this.grid = h("div", { class: "panels" });
		this.lanes = new Lanes(model, this);
		this.by = this.#groupings().length
			? choice("Stacked by", this.#groupings(), state.grouping, (grouping) =>
					state.set({ grouping }),
				)
			: null;
		this.reset = h(
			"button",
			{ type: "button", onclick: () => this.setZoom(null) },
			"Whole time",
		);
		this.node = h(
			"section",
			{ id: "timeline", "aria-labelledby": "timeline-title" },
			h(
				"header",
				{ class: "section-head" },
				h("h2", { id: "timeline-title" }, "Memory over time"),
				this.by,
				this.#hostChoice(),
				this.reset,
			),
			h(
				"p",
				{ class: "hint" },
				"Click to choose a moment for everything below; drag to zoom. " +
					"Keys: ← → moments, Shift ← → named moments, + − zoom, 0 whole time.",
			),
			this.grid,
			this.lanes.node,
		);
		state.subscribe((changed) => this.onChange(changed));
	}

	#groupings() {
		const present = new Set(
			this.model.charts.flatMap((chart) =>
				groupingsOf(chart).map(([name]) => name),
			),
		);
		return GROUPINGS.filter(([name]) => present.has(name));
	}

	// with many processes there are many charts of hosts; one at a time is enough
	#hostChoice() {
		const { charts } = this.model;
		const hosts = charts
			.map((_, i) => i)
			.filter((i) => this.model.layerOf(charts[i]) === "host");
		this.hosts = hosts;
		if (charts.length <= MANY) return null;
		this.host = hosts.includes(0) ? 0 : hosts[0];
		const options = hosts.map((i) => [i, this.model.processText(charts[i].process)]);
		return select("Host memory of", options, this.host, (value) => {
			this.host = Number(value);
			this.#makePanels();
		});
	}

	#makePanels() {
		for (const panel of this.panels) panel.plot?.destroy();
		const all = this.model.charts.map((_, i) => i);
		const isShown = (i) =>
			this.host === undefined || !this.hosts.includes(i) || i === this.host;
		const rank = (i) =>
			["device", "framework", "host"].indexOf(
				this.model.layerOf(this.model.charts[i]),
			);
		this.panels = all
			.filter(isShown)
			.sort((a, b) => rank(a) - rank(b) || a - b)
			.map((i) => new Panel(this, i));
		replace(
			this.grid,
			this.panels.map((panel) => panel.node),
		);
		for (const panel of this.panels) panel.draw();
		this.lanes.draw();
	}

	draw() {
		this.#makePanels();
		this.reset.disabled = this.state.zoom === null;
	}

	onChange(changed) {
		if (changed.has("grouping") || changed.has("size")) {
			mark(this.by, this.state.grouping);
			for (const panel of this.panels) panel.draw();
		} else if (
			changed.has("chart") &&
			!this.panels.some((panel) => panel.index === this.state.chart)
		) {
			this.host = this.state.chart;
			this.#makePanels();
		} else if (changed.has("zoom")) {
			const [min, max] = this.range;
			this.reset.disabled = this.state.zoom === null;
			for (const { plot } of this.panels) plot.setScale("x", { min, max });
		} else {
			for (const panel of this.panels) {
				panel.plot.redraw(false);
				panel.describe();
			}
		}
		this.lanes.draw();
	}

	// seconds [from, to], or null for all
	setZoom(zoom) {
		this.state.set({ zoom });
	}

	get range() {
		return this.state.zoom ?? [0, this.end];
	}

	// a drag in one panel zooms all; the others repeat its selection, which is the same one
	onSelect(plot) {
		const { left, width } = plot.select;
		if (width < 4 || this.isSelecting) return;
		const from = plot.posToVal(left, "x"),
			to = plot.posToVal(left + width, "x");
		this.isSelecting = true;
		queueMicrotask(() => {
			this.isSelecting = false;
			for (const panel of this.panels)
				panel.plot.setSelect(
					{ left: 0, top: 0, width: 0, height: 0 },
					false,
				);
			this.setZoom([Math.max(0, from), Math.min(this.end, to)]);
		});
	}

	listenForClicks(plot) {
		let downAt = null;
		plot.over.addEventListener("mousedown", (event) => {
			downAt = event.clientX;
		});
		plot.over.addEventListener("click", (event) => {
			if (downAt === null || Math.abs(event.clientX - downAt) > 3) return;
			const left = event.clientX - plot.over.getBoundingClientRect().left;
			this.choose(plot, left);
		});
		plot.over.addEventListener("dblclick", () => this.setZoom(null));
		plot.over.addEventListener("mouseleave", () => {
			for (const panel of this.panels) panel.showValues(this.state.moment, false);
		});
	}

	choose(plot, left) {
		const perPixel = (plot.posToVal(1, "x") - plot.posToVal(0, "x")) * 1e9;
		this.state.set({
			moment: this.model.momentNear(plot.posToVal(left, "x") * 1e9, 6 * perPixel),
		});
	}

	showCursor(ns) {
		const moment = this.model.momentBefore(ns);
		for (const panel of this.panels) panel.showValues(moment, true);
	}

	onKey(event, panel) {
		const steps = { ArrowLeft: -1, ArrowRight: 1, PageUp: -20, PageDown: 20 }[
			event.key
		];
		const middle = this.model.moments.t[this.state.moment] / 1e9;
		if (steps && event.shiftKey) this.state.stepNamed(Math.sign(steps));
		else if (steps) this.state.step(steps);
		else if (event.key === "Home") this.state.set({ moment: 0 });
		else if (event.key === "End")
			this.state.set({ moment: this.model.moments.count - 1 });
		else if (event.key === "+") this.#zoomBy(0.5, middle);
		else if (event.key === "-") this.#zoomBy(2, middle);
		else if (event.key === "0" || event.key === "Escape") this.setZoom(null);
		else if (event.key === "Enter") this.state.set({ chart: panel.index });
		else return;
		event.preventDefault();
	}

	#zoomBy(factor, middle) {
		const [from, to] = this.range,
			width = (to - from) * factor;
		if (width >= this.end) return this.setZoom(null);
		const start = Math.min(Math.max(0, middle - width / 2), this.end - width);
		return this.setZoom([start, start + width]);
	}
}
