// SPDX-License-Identifier: Apache-2.0
// From blocks to ranges of addresses: what lies where at one moment, and which ranges are free. A
// region is a run of addresses that belong together: whole 2 MiB pages that blocks touch, or one
// segment that a framework sub-allocates.

export const PAGE = 2 * 1024 * 1024;
export const LEAST_SPAN = 64 * 1024;
const KINDS = new Set([
	"device",
	"managed",
	"async",
	"imported",
	"array",
	"framework",
	"vmm",
	"graph",
	"mapping",
	"device memory",
]);

// A block that was never freed lives as long as its process; at the moment of the report, what each
// process held last.
function isLive(model, i, moment) {
	const { blocks } = model,
		t = model.moments.t[moment];
	if (blocks.born[i] > t || (blocks.died[i] >= 0 && blocks.died[i] <= t)) return false;
	const end = model.processes[blocks.process[i]]?.end ?? null;
	return blocks.died[i] >= 0 || end === null || t <= end || moment === model.moment;
}

// live blocks of the chart's memory at MOMENT, by layer, each ascending by address
function liveBlocks(model, chart, moment) {
	const { blocks } = model,
		t = model.moments.t[moment],
		found = { device: [], framework: [] };
	for (let i = 0; i < blocks.count && blocks.born[i] <= t; i++) {
		if (!isLive(model, i, moment)) continue;
		if (chart.device !== null && blocks.device[i] !== chart.device) continue;
		if (chart.process !== null && blocks.process[i] !== chart.process) continue;
		if (!KINDS.has(model.name("kind", blocks.kind[i]))) continue;
		found[model.name("layer", blocks.layer[i])]?.push(i);
	}
	for (const list of Object.values(found))
		list.sort(
			(a, b) =>
				blocks.process[a] - blocks.process[b] ||
				blocks.address[a] - blocks.address[b],
		);
	return found;
}

function newRegion(process, start, end, segment = -1) {
	return { process, start, end, segment, blocks: [], holes: [] };
}

// 2 MiB pages that device blocks touch
function pageRegions(blocks, list) {
	const regions = [];
	for (const i of list) {
		const start = Math.floor(blocks.address[i] / PAGE) * PAGE;
		const end = Math.ceil((blocks.address[i] + blocks.bytes[i]) / PAGE) * PAGE;
		const last = regions.at(-1);
		if (last && last.process === blocks.process[i] && start <= last.end)
			last.end = Math.max(last.end, end);
		else regions.push(newRegion(blocks.process[i], start, end));
		regions.at(-1).blocks.push(i);
	}
	return regions;
}

// device blocks that hold framework blocks, each a region of its own
function segmentRegions(blocks, devices, frameworks) {
	const regions = [],
		rest = [];
	let at = 0;
	for (const i of devices) {
		const end = blocks.address[i] + blocks.bytes[i];
		const isBefore = (j) =>
			blocks.process[j] < blocks.process[i] ||
			(blocks.process[j] === blocks.process[i] &&
				blocks.address[j] < blocks.address[i]);
		while (at < frameworks.length && isBefore(frameworks[at])) at++;
		const region = newRegion(blocks.process[i], blocks.address[i], end, i);
		while (
			at < frameworks.length &&
			blocks.process[frameworks[at]] === blocks.process[i] &&
			blocks.address[frameworks[at]] < end
		)
			region.blocks.push(frameworks[at++]);
		if (region.blocks.length) regions.push(region);
		else rest.push(i);
	}
	return { regions, rest };
}

function findHoles(blocks, region) {
	let at = region.start;
	const note = (from, to) => {
		if (to > from) region.holes.push({ region, start: from, bytes: to - from });
	};
	for (const i of region.blocks) {
		note(at, blocks.address[i]);
		at = Math.max(at, blocks.address[i] + blocks.bytes[i]);
	}
	note(at, region.end);
}

// {regions, holes, largest, hasSegments}; `inside`: show what frameworks put into their segments
export function addressSpace(model, chart, moment, inside) {
	const { blocks } = model,
		live = liveBlocks(model, chart, moment);
	const hasSegments = live.framework.length > 0;
	const { regions, rest } =
		inside && hasSegments
			? segmentRegions(blocks, live.device, live.framework)
			: { regions: [], rest: live.device };
	const all = inside && hasSegments ? regions : pageRegions(blocks, rest);
	for (const region of all) findHoles(blocks, region);
	const holes = all.flatMap((region) => region.holes).sort((a, b) => b.bytes - a.bytes);
	return {
		regions: all,
		holes,
		largest: holes[0] ?? null,
		hasSegments,
		count: live.device.length + live.framework.length,
	};
}

// Regions one after another in rows that each stand for `span` bytes. A region goes on in the next
// row; between two regions the addresses jump. Each step of `zoom` halves the span.
export function layRows(regions, mostRows, zoom = 0) {
	const bytes = regions.reduce((sum, region) => sum + region.end - region.start, 0);
	let span = PAGE;
	while (bytes / span > mostRows) span *= 2;
	span = Math.max(LEAST_SPAN, span / 2 ** zoom);
	const rows = [];
	let room = 0;
	for (const region of regions) {
		for (let at = region.start; at < region.end;) {
			if (room === 0) {
				rows.push([]);
				room = span;
			}
			const take = Math.min(room, region.end - at);
			rows.at(-1).push({ region, from: at, to: at + take, offset: span - room });
			at += take;
			room -= take;
		}
	}
	return { rows, span };
}

// MOST rows with the one of ADDRESS in REGION among them, in the middle if there is room
export function rowsAround({ rows, span }, most, { region, address }) {
	const at = rows.findIndex((row) =>
		row.some(
			(piece) =>
				piece.region === region &&
				address >= piece.from &&
				address < piece.to,
		),
	);
	const first = Math.max(0, Math.min(at - (most >> 1), rows.length - most));
	return { rows: rows.slice(first, first + most), span, first, count: rows.length };
}
