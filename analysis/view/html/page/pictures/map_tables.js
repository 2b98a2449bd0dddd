// SPDX-License-Identifier: Apache-2.0
// The address map as text: its blocks and its holes.

import { addressText, bytesText, durationText } from "../base/format.js";
import { DataTable } from "../base/table.js";

export function blockTable(model, order, moment) {
	const { blocks } = model,
		now = model.moments.t[moment];
	const table = new DataTable("Blocks at the chosen moment", [
		{
			name: "Bytes",
			number: true,
			value: (i) => blocks.bytes[i],
			text: (i) => bytesText(blocks.bytes[i]),
		},
		{ name: "Address", value: (i) => addressText(blocks.address[i]), head: true },
		{ name: "Kind", value: (i) => model.kindWord(blocks.kind[i]) },
		{
			name: "Age",
			unit: "ns",
			number: true,
			value: (i) => now - blocks.born[i],
			text: (i) => durationText(now - blocks.born[i]),
		},
		{
			name: "Call site",
			value: (i) => (blocks.site[i] >= 0 ? model.siteText(blocks.site[i]) : ""),
		},
		{ name: "Process", value: (i) => model.processText(blocks.process[i]) },
	]);
	table.rows = order;
	return table;
}

export function holeTable(model, holes) {
	const table = new DataTable("Holes at the chosen moment", [
		{
			name: "Bytes",
			number: true,
			value: (hole) => hole.bytes,
			text: (hole) => bytesText(hole.bytes),
		},
		{ name: "Address", value: (hole) => addressText(hole.start), head: true },
		{ name: "Region", value: (hole) => addressText(hole.region.start) },
		{
			name: "Region's bytes",
			number: true,
			value: (hole) => hole.region.end - hole.region.start,
			text: (hole) => bytesText(hole.region.end - hole.region.start),
		},
		{ name: "Process", value: (hole) => model.processText(hole.region.process) },
	]);
	table.rows = holes;
	return table;
}
