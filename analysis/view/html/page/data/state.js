// SPDX-License-Identifier: Apache-2.0
// What the reader has chosen: a moment, one to compare with, which memory, and how it is shown.
// Sections subscribe, so that a new choice redraws all that depends on it.

export class State {
	#listeners = [];

	constructor(model) {
		this.model = model;
		this.moment = model.moment;
		this.before = null; // the moment to compare with
		this.chart = 0;
		this.grouping = "site";
		this.zoom = null; // seconds [from, to]
		// a program that finished is asked for its peak
		this.stacks = model.momentKind(model.moment) === "end" ? "peak" : "live";
		this.allFrames = false;
		this.bottomUp = false;
		this.hidden = []; // functions that are left out of the stacks
	}

	get subject() {
		return this.model.charts[this.chart];
	}

	// LISTENER(changed): `changed` is the set of names that are new
	subscribe(listener) {
		this.#listeners.push(listener);
	}

	set(changes) {
		const changed = new Set();
		for (const [name, value] of Object.entries(changes)) {
			if (this[name] === value) continue;
			this[name] = value;
			changed.add(name);
		}
		if (changed.size) for (const listener of this.#listeners) listener(changed);
	}

	redraw() {
		for (const listener of this.#listeners) listener(new Set(["size"]));
	}

	// MOMENT null: no comparison
	compareWith(moment) {
		const isShown = this.stacks === "change";
		this.set({
			before: moment,
			stacks: moment !== null ? "change" : isShown ? "live" : this.stacks,
		});
	}

	// a new moment STEPS further among all of them
	step(steps) {
		const last = this.model.moments.count - 1;
		this.set({ moment: Math.min(last, Math.max(0, this.moment + steps)) });
	}

	// the next one with a name, in direction SIGN
	stepNamed(sign) {
		const named = this.model.namedMoments();
		const next =
			sign > 0
				? named.find((moment) => moment > this.moment)
				: named.findLast((moment) => moment < this.moment);
		if (next !== undefined) this.set({ moment: next });
	}
}
