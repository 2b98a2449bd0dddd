// SPDX-License-Identifier: Apache-2.0
// The parts that a chart is stacked of, and the colour of each. A call site has the same colour in
// the timeline, the map and the tables.

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
export function partsOf(chart, grouping) {
	const parts = chart.by[grouping] ?? chart.by.kind ?? [];
	const weights = parts.map((part) =>
		part.bytes.reduce((most, bytes) => Math.max(most, bytes), 0),
	);
	const order = parts
		.map((_, i) => i)
		.filter((i) => weights[i] > 0)
		.sort((a, b) => isGrey(parts[a]) - isGrey(parts[b]) || weights[b] - weights[a]);
	let colour = 0;
	return order.map((i) => ({
		...parts[i],
		bytes: parts[i].bytes,
		colour: isGrey(parts[i]) ? -1 : colour++,
	}));
}

function isGrey(part) {
	return part.rest || part.older ? 1 : 0;
}

// a function from a row of `sites` to its colour
export function siteColours(chart) {
	const colours = new Map();
	for (const part of partsOf(chart, "site"))
		if (part.site >= 0 && part.colour >= 0) colours.set(part.site, part.colour);
	return (site) => colours.get(site) ?? -1;
}

// A place is not unique: sites of one line differ by who called.
export function partNames(parts, model) {
	const count = new Map();
	for (const { label } of parts) count.set(label, (count.get(label) ?? 0) + 1);
	return parts.map((part) => {
		const callers = part.site >= 0 ? model.string(model.sites.callers[part.site]) : "";
		if (!callers || count.get(part.label) === 1) return part.label;
		return part.label.replace(/ \([^()]*\)$/, "") + " < " + callers;
	});
}
