// SPDX-License-Identifier: Apache-2.0
// What the reader has chosen: a moment, a second one to compare with, and which memory. Sections
// subscribe, so that a new choice redraws all that depends on it.

export class State {
	#listeners = [];

	constructor(model) {
		this.model = model;
		this.moment = model.moment;
		this.before = 0;
		this.chart = 0;
		this.grouping = "site";
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
