// SPDX-License-Identifier: Apache-2.0
// Tables of what the report judged: failed requests, leaks and growth, what fills each device.

import { h } from "../base/dom.js";
import { bytesText, countText, percentText, plural } from "../base/format.js";
import { DataTable } from "../base/table.js";

const FRAMES = 8;

function stackLine(stack) {
	const names = (stack ?? []).map((frame) => frame.function ?? frame.module ?? "?");
	return names.slice(0, FRAMES).join(" < ") + (names.length > FRAMES ? " < …" : "");
}

// what grew stands in both lists of the report, when it was judged twice
function distinct(rows) {
	const seen = new Set();
	return rows.filter((row) => {
		const key = JSON.stringify([
			row.pid,
			row.kind,
			row.bytes,
			row.count,
			row.first_ns,
			row.stack,
		]);
		return !seen.has(key) && seen.add(key);
	});
}

function incidentTable(model, state) {
	const { report, incidents } = model;
	const table = new DataTable(
		"Failed requests",
		[
			{
				name: "Time",
				unit: "ns",
				number: true,
				value: (i) => incidents.t[i],
				node: (i) => momentLink(model, state, i),
			},
			{
				name: "Request",
				head: true,
				value: (i) => model.string(incidents.label[i]),
			},
			{
				name: "Outcome",
				value: (i) =>
					report.incidents[i]?.outcome ??
					model.name("outcome", incidents.outcome[i]),
			},
			{
				name: "Requested",
				unit: "bytes",
				number: true,
				value: (i) => incidents.requested_bytes[i],
				text: (i) => bytesText(nullable(incidents.requested_bytes[i])),
			},
			{
				name: "Free",
				unit: "bytes",
				number: true,
				value: (i) => nullable(incidents.free_bytes[i]),
				text: (i) => bytesText(nullable(incidents.free_bytes[i])),
			},
			{
				name: "Largest free",
				unit: "bytes",
				number: true,
				value: (i) => nullable(incidents.largest_bytes[i]),
				text: (i) => bytesText(nullable(incidents.largest_bytes[i])),
			},
			{ name: "Cause", value: (i) => report.incidents[i]?.cause?.name ?? "" },
			{ name: "Process", value: (i) => model.processText(incidents.process[i]) },
			{ name: "Stack", value: (i) => stackLine(report.incidents[i]?.stack) },
		],
		{ sort: 0, descending: false },
	);
	table.rows = Array.from({ length: incidents.count }, (_, i) => i);
	return table;
}

function nullable(value) {
	return value < 0 ? null : value;
}

function momentLink(model, state, incident) {
	const moment = model.incidents.moment[incident],
		text = model.time(model.incidents.t[incident]);
	if (moment < 0) return text;
	return h(
		"button",
		{ type: "button", class: "link", onclick: () => state.set({ moment }) },
		text,
	);
}

function growthTable(title, rows) {
	const table = new DataTable(title, [
		{
			name: "Bytes",
			number: true,
			value: (row) => row.bytes,
			text: (row) => bytesText(row.bytes),
		},
		{
			name: "Blocks",
			number: true,
			value: (row) => row.count,
			text: (row) => countText(row.count),
		},
		{
			name: "Grew",
			unit: "bytes",
			number: true,
			value: (row) => row.grown_bytes,
			text: (row) => bytesText(row.grown_bytes),
		},
		{
			name: "A second",
			unit: "bytes",
			number: true,
			value: (row) => row.slope_bytes_per_s,
			text: (row) =>
				row.slope_bytes_per_s === null
					? ""
					: bytesText(row.slope_bytes_per_s),
		},
		{
			name: "A request",
			unit: "bytes",
			number: true,
			value: (row) => row.per_request_bytes,
			text: (row) =>
				row.per_request_bytes === null
					? ""
					: bytesText(row.per_request_bytes),
		},
		{ name: "Class", value: (row) => row.class },
		{ name: "Shape", value: (row) => row.shape },
		{ name: "Kind", value: (row) => row.kind },
		{ name: "Stack", head: true, value: (row) => stackLine(row.stack) },
	]);
	table.rows = rows;
	return table;
}

function deviceTable(device) {
	const table = new DataTable(
		`Device ${device.id}`,
		[
			{ name: "Kind", head: true, value: (row) => row.kind.replaceAll("_", " ") },
			{ name: "Role", value: (row) => row.role ?? "" },
			{ name: "Process", number: true, value: (row) => row.pid },
			{
				name: "Bytes",
				number: true,
				value: (row) => row.bytes,
				text: (row) => bytesText(row.bytes),
			},
			{
				name: "Share",
				number: true,
				value: (row) => row.bytes / device.total_bytes,
				text: (row) => percentText(row.bytes / device.total_bytes),
			},
			{
				name: "Blocks",
				number: true,
				value: (row) => row.count,
				text: (row) => (row.count === null ? "" : countText(row.count)),
			},
			{ name: "Basis", value: (row) => row.basis },
			{
				name: "In the sum",
				value: (row) => (row.in_sum === false ? "separate" : "yes"),
			},
		],
		{ sort: 3 },
	);
	table.rows = device.owners.filter((row) => row.bytes);
	return h(
		"div",
		{},
		h(
			"h3",
			{},
			`GPU ${device.id}: ${device.name ?? ""}, ${bytesText(device.total_bytes)}`,
		),
		table.node,
	);
}

function section(id, title, ...content) {
	return h(
		"section",
		{ id, "aria-labelledby": id + "-title" },
		h("header", { class: "section-head" }, h("h2", { id: id + "-title" }, title)),
		...content,
	);
}

export function findingsSections(model, state) {
	const { report } = model,
		sections = [];
	if (model.incidents.count)
		sections.push(
			section(
				"failures",
				plural(model.incidents.count, "failed request", "failed requests"),
				incidentTable(model, state).node,
			),
		);
	const grown = distinct([...(report.leaks ?? []), ...(report.growth ?? [])]);
	if (grown.length)
		sections.push(
			section(
				"growth",
				"Leaks and growth",
				growthTable("Leaks and growth", grown).node,
			),
		);
	if (report.devices?.length)
		sections.push(
			section(
				"devices",
				"What fills each GPU, at the moment of the report",
				...report.devices.map(deviceTable),
			),
		);
	return sections;
}
