// SPDX-License-Identifier: Apache-2.0
// The parts that a chart is stacked of, and the colour of each. What has one name has one colour, in
// every chart, in the map and in the tables.

import { SHADES } from "../base/palette.js";

export const GROUPINGS = [
	["kind", "Kind"],
	["role", "Role"],
	["site", "Call site"],
	["process", "Process"],
];

export function groupingsOf(chart) {
	return GROUPINGS.filter(([name]) => chart.by[name]?.length);
}

// parts of CHART with the largest first; what the page cannot tell apart is grey and last
export function partsOf(model, chart, grouping) {
	const name = chart.by[grouping] ? grouping : "kind",
		colours = coloursOf(model, name),
		parts = sorted(chart.by[name] ?? []);
	return parts.map((part) => ({
		...part,
		bytes: part.bytes,
		colour: isGrey(part) ? -1 : (colours.get(identity(model, chart, part)) ?? -1),
	}));
}

function sorted(parts) {
	const weights = new Map(
		parts.map((part) => [part, part.bytes.reduce((a, b) => Math.max(a, b), 0)]),
	);
	return parts
		.filter((part) => weights.get(part) > 0)
		.sort((a, b) => isGrey(a) - isGrey(b) || weights.get(b) - weights.get(a));
}

function isGrey(part) {
	return part.rest || part.older ? 1 : 0;
}

// on the host a line is one row, whoever called
function callersOf(model, site) {
	const { sites } = model;
	return model.name("layer", sites.layer[site]) === "host"
		? ""
		: model.string(sites.callers[site]);
}

function siteIdentity(model, site) {
	const { sites } = model;
	return [
		model.string(sites.place[site]),
		callersOf(model, site),
		model.string(sites.role[site]),
	].join("\n");
}

function identity(model, chart, part) {
	return part.site >= 0 && part.site !== null ? siteIdentity(model, part.site) : part.label;
}

const known = new WeakMap();

// the colours of one grouping: the first chart chooses first, and none comes twice until all are taken
function coloursOf(model, grouping) {
	if (!known.has(model)) known.set(model, {});
	return (known.get(model)[grouping] ??= chooseColours(model, grouping));
}

function chooseColours(model, grouping) {
	const colours = new Map();
	let next = 0;
	for (const chart of model.charts) {
		const parts = sorted(chart.by[grouping] ?? []).filter((part) => !isGrey(part));
		const names = parts.map((part) => identity(model, chart, part));
		const taken = new Set(names.map((name) => colours.get(name)));
		for (const name of names.filter((one) => !colours.has(one))) {
			let colour = next++;
			if (colour >= SHADES) colour = firstFree(taken);
			taken.add(colour);
			colours.set(name, colour);
		}
	}
	return colours;
}

function firstFree(taken) {
	let colour = 0;
	while (taken.has(colour) && colour < SHADES) colour++;
	return colour % SHADES;
}

// a function from a row of `sites` to its colour
export function siteColours(model) {
	const colours = new Map();
	for (const chart of model.charts)
		for (const part of partsOf(model, chart, "site"))
			if (part.site !== null && part.colour >= 0) colours.set(part.site, part.colour);
	return (site) => colours.get(model.sites.row[site]) ?? -1;
}

// the labels that more than one part has, in whichever chart
function sharedLabels(model) {
	const seen = new Map(),
		shared = new Set();
	for (const chart of model.charts)
		for (const part of chart.by.site ?? []) {
			const id = part.site === null ? part.label : siteIdentity(model, part.site);
			if ((seen.get(part.label) ?? id) !== id) shared.add(part.label);
			seen.set(part.label, id);
		}
	return shared;
}

// A place is not unique: sites of one line differ by who called, or by what it is for.
export function partNames(parts, model) {
	const shared = sharedLabels(model),
		names = parts.map((part) => part.label);
	const isTwice = (name) => names.indexOf(name) !== names.lastIndexOf(name);
	const twice = parts.map(
		(part) => part.site >= 0 && (shared.has(part.label) || isTwice(part.label)),
	);
	const called = parts.map((part, i) => {
		const callers = twice[i] ? callersOf(model, part.site) : "";
		return callers ? part.label + " < " + callers : part.label;
	});
	return called.map((name, i) => {
		const role = twice[i] ? model.string(model.sites.role[parts[i].site]) : "";
		return role ? `${model.roleWord(role)}: ${name}` : name;
	});
}
