// SPDX-License-Identifier: Apache-2.0
// Processes and ranks side by side, the one that stands out marked.

import { h } from "../base/dom.js";
import { bytesText, countText, durationText, plural } from "../base/format.js";
import { DataTable } from "../base/table.js";

function meter(bytes, most, isMarked) {
	const inner = h("span", { class: isMarked ? "bar-fill marked" : "bar-fill" });
	inner.style.width = (most > 0 ? (Math.max(0, bytes ?? 0) / most) * 100 : 0) + "%";
	return h(
		"span",
		{ class: "meter" },
		h("span", { class: "number" }, bytesText(bytes)),
		h("span", { class: "bar", "aria-hidden": "true" }, inner),
	);
}

function marksOf(process) {
	const marks = [
		["focus", "this report"],
		["outlier", "outlier"],
		["failed", "failed"],
		["leader", "leader"],
	];
	return marks
		.filter(([key]) => process[key])
		.map(([, text]) => text)
		.join(", ");
}

export function processSection(model, state) {
	const { processes } = model;
	const most = (key) =>
		processes.reduce((best, process) => Math.max(best, process[key] ?? 0), 0);
	const mostHeld = most("held_bytes"),
		mostHost = most("host_peak_bytes");
	const chartOf = (process) =>
		model.charts.findIndex((chart) => chart.process === processes.indexOf(process));
	const show = (process) =>
		chartOf(process) < 0
			? process.name
			: h(
					"button",
					{
						type: "button",
						class: "link",
						title: "Show its host memory",
						onclick: () =>
							state.set({ chart: chartOf(process) }),
					},
					process.name,
				);
	const hasRanks = processes.some(
		(process) => process.rank !== null && process.rank !== undefined,
	);
	const table = new DataTable(
		"Processes",
		[
			...(hasRanks
				? [{ name: "Rank", number: true, value: (process) => process.rank }]
				: []),
			{
				name: "Process",
				head: true,
				value: (process) => process.name,
				node: show,
			},
			{
				name: "Pid",
				number: true,
				value: (process) => process.pid,
				text: (process) => String(process.pid),
			},
			{
				name: "Marks",
				value: marksOf,
				node: (process) =>
					h(
						"span",
						{ class: process.outlier ? "mark-outlier" : "" },
						marksOf(process),
					),
			},
			{
				name: "GPU memory held",
				unit: "bytes",
				value: (process) => process.held_bytes,
				number: true,
				node: (process) =>
					meter(process.held_bytes, mostHeld, process.outlier),
			},
			{
				name: "Host peak",
				unit: "bytes",
				value: (process) => process.host_peak_bytes,
				number: true,
				node: (process) => meter(process.host_peak_bytes, mostHost, false),
			},
			{
				name: "Started",
				unit: "ns",
				number: true,
				value: (process) => process.start,
				text: (process) => model.time(process.start),
			},
			{
				name: "Lasted",
				unit: "ns",
				number: true,
				value: (process) =>
					process.end === null ? null : process.end - process.start,
				text: (process) =>
					process.end === null
						? ""
						: durationText(process.end - process.start),
			},
			{ name: "Ended", value: (process) => process.end_text },
			{ name: "Host name", value: (process) => process.hostname },
			{ name: "Command line", value: (process) => process.command_line },
		],
		{ sort: 0, descending: false },
	);
	table.rows = processes;
	const outliers = processes.filter((process) => process.outlier).length;
	return h(
		"section",
		{ id: "processes", "aria-labelledby": "processes-title" },
		h(
			"header",
			{ class: "section-head" },
			h(
				"h2",
				{ id: "processes-title" },
				plural(processes.length, "process", "processes"),
			),
		),
		outliers
			? h(
					"p",
					{ class: "figure" },
					`${countText(outliers)} of them holds far more than the others: see Marks.`,
				)
			: null,
		table.node,
	);
}
