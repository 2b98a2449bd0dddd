// SPDX-License-Identifier: Apache-2.0
// Tables of what the report judged: failed requests, and what fills each device.

import { h } from "../base/dom.js";
import { bytesText, countText, percentText, plural } from "../base/format.js";
import { DataTable } from "../base/table.js";

const FRAMES = 8;

function stackLine(model, node) {
	const names = model
		.stackOf(node)
		.filter((frame) => frame.isOwn)
		.map((frame) => frame.name);
	return names.slice(0, FRAMES).join(" < ") + (names.length > FRAMES ? " < …" : "");
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
			{ name: "Stack", value: (i) => stackLine(model, incidents.node[i]) },
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

function deviceTable(model, device) {
	const table = new DataTable(
		`Device ${device.id}`,
		[
			{ name: "Kind", head: true, value: (row) => row.kind.replaceAll("_", " ") },
			{ name: "Role", value: (row) => model.roleWord(row.role) },
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
	if (report.devices?.length)
		sections.push(
			section(
				"devices",
				"What fills each GPU, at the moment of the report",
				...report.devices.map((device) => deviceTable(model, device)),
			),
		);
	return sections;
}
