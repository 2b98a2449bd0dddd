// SPDX-License-Identifier: Apache-2.0
// What the reader has chosen as the fragment of the page's address, so that a link opens the same
// view. Moments are written as their time; what is as at first is left out.

const at = (model, moment) => String(model.moments.t[moment]);
const momentAt = (model, text) =>
	/^-?\d+$/.test(text) ? model.momentNear(Number(text), 0) : undefined;
const oneOf = (words) => (_, text) => (words.includes(text) ? text : undefined);
const flag = { write: () => "1", read: (_, text) => text === "1" };

function readZoom(model, text) {
	const [from, to] = text.split("-").map((ns) => Number(ns) / 1e9);
	return from >= 0 && to > from && from < model.duration_ns / 1e9 ? [from, to] : undefined;
}

function readChart(model, text) {
	const chart = Number(text);
	return Number.isInteger(chart) && model.charts[chart] ? chart : undefined;
}

// key in the address: {name in State, how to write and read it; undefined: not understood}
const KEYS = {
	t: { name: "moment", write: at, read: momentAt },
	since: { name: "before", write: at, read: momentAt },
	chart: { name: "chart", write: (_, chart) => String(chart), read: readChart },
	by: {
		name: "grouping",
		write: (_, by) => by,
		read: oneOf(["kind", "role", "site", "process"]),
	},
	zoom: {
		name: "zoom",
		write: (_, zoom) => zoom.map((s) => Math.round(s * 1e9)).join("-"),
		read: readZoom,
	},
	stacks: {
		name: "stacks",
		write: (_, stacks) => stacks,
		read: oneOf(["live", "peak", "end", "change"]),
	},
	all: { name: "allFrames", ...flag },
	up: { name: "bottomUp", ...flag },
	hide: {
		name: "hidden",
		write: (_, names) => names.map(encodeURIComponent).join(","),
		read: (_, text) => text.split(",").filter(Boolean).map(decodeURIComponent),
	},
};

const isSame = (a, b) => JSON.stringify(a) === JSON.stringify(b);

function write(state, first, section) {
	const words = section ? ["at=" + section] : [];
	for (const [key, { name, write: text }] of Object.entries(KEYS))
		if (!isSame(state[name], first[name]) && state[name] !== null)
			words.push(`${key}=${text(state.model, state[name])}`);
	return words.length ? "#" + words.join("&") : "";
}

// {state: what differs from `first`, section}
function read(model, first, hash) {
	const changes = { ...first };
	let section = /^#[a-z]+$/.test(hash) ? hash.slice(1) : "";
	for (const word of hash.slice(1).split("&")) {
		const [key, text = ""] = word.split("=");
		if (key === "at") section = text;
		if (!Object.hasOwn(KEYS, key)) continue;
		const { name, read: value } = KEYS[key];
		try {
			changes[name] = value(model, text) ?? changes[name];
		} catch {
			continue; // a text that is no text: % and no number
		}
	}
	return { changes, section };
}

// The address follows the state, and the state an address that is typed or opened.
export class Link {
	constructor(model, state) {
		Object.assign(this, { model, state, section: "" });
		this.first = Object.fromEntries(
			Object.values(KEYS).map(({ name }) => [name, state[name]]),
		);
		this.open();
		state.subscribe((changed) => {
			if (!changed.has("size")) this.#write();
		});
		window.addEventListener("hashchange", () => {
			this.open();
			this.show();
		});
	}

	open() {
		const { changes, section } = read(this.model, this.first, location.hash);
		this.section = section;
		for (const [name, value] of Object.entries(changes))
			if (isSame(value, this.state[name])) delete changes[name];
		this.state.set(changes);
	}

	show() {
		if (/^[a-z]+$/.test(this.section))
			document.getElementById(this.section)?.scrollIntoView();
	}

	goTo(section) {
		const node = document.getElementById(section);
		this.section = section;
		this.#write();
		this.show();
		node?.setAttribute("tabindex", "-1");
		node?.focus({ preventScroll: true });
	}

	#write() {
		const hash = write(this.state, this.first, this.section);
		if (hash !== location.hash)
			history.replaceState(null, "", hash || location.pathname + location.search);
	}
}
