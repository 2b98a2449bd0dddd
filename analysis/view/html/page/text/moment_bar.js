// SPDX-License-Identifier: Apache-2.0
// The bar that stays in view: which moment and which memory the page is about, and how to change it.

import { h, replace, select } from "../base/dom.js";

export class MomentBar {
	constructor(model, state) {
		Object.assign(this, { model, state });
		this.time = h("output", { id: "moment", "aria-live": "polite" });
		this.selects = h("span", { class: "selects" });
		this.compare = h("span", { class: "selects" });
		this.node = h(
			"div",
			{ class: "moment-bar", role: "region", "aria-label": "Chosen moment" },
			this.selects,
			h(
				"span",
				{ class: "steps" },
				this.#button("|◀", "Named moment before", () =>
					state.stepNamed(-1),
				),
				this.#button("◀", "Moment before", () => state.step(-1)),
				this.#button("▶", "Next moment", () => state.step(1)),
				this.#button("▶|", "Next named moment", () => state.stepNamed(1)),
			),
			this.compare,
			this.time,
		);
		state.subscribe(() => this.draw());
	}

	#button(text, label, onclick) {
		return h(
			"button",
			{ type: "button", "aria-label": label, title: label, onclick },
			text,
		);
	}

	#momentOptions() {
		const { model, state } = this,
			named = model.namedMoments();
		const options = named.map((moment) => [moment, model.momentText(moment)]);
		if (!named.includes(state.moment))
			options.unshift([state.moment, model.momentText(state.moment)]);
		return options;
	}

	#compareOptions() {
		const { model, state } = this,
			moments = new Set([0, ...model.namedMoments(), state.before ?? 0]);
		return [
			["", "nothing"],
			...[...moments]
				.sort((a, b) => a - b)
				.map((moment) => [moment, model.momentText(moment)]),
		];
	}

	#drawCompare() {
		const { state } = this;
		replace(
			this.compare,
			select("Compare with", this.#compareOptions(), state.before ?? "", (value) =>
				state.compareWith(value === "" ? null : Number(value)),
			),
			this.#button("this moment", "Compare with the chosen moment", () =>
				state.compareWith(state.moment),
			),
		);
	}

	draw() {
		const { model, state } = this;
		this.#drawCompare();
		this.time.textContent =
			`${model.chartTitle(state.subject)}: ` +
			model.summaryOf(state.subject, state.moment);
		const charts = model.charts.map((chart, i) => [i, model.chartTitle(chart)]);
		replace(
			this.selects,
			select("Moment", this.#momentOptions(), state.moment, (value) =>
				state.set({ moment: Number(value) }),
			),
			select("Memory", charts, state.chart, (value) =>
				state.set({ chart: Number(value) }),
			),
		);
	}
}
