// SPDX-License-Identifier: Apache-2.0
// A chart as text: every moment with what each part held.

import { bytesText } from "../base/format.js";
import { DataTable } from "../base/table.js";

export function chartTable(model, chart, parts) {
	const columns = [
		{
			name: "Time",
			unit: "ns",
			number: true,
			head: true,
			value: (i) => chart.t[i],
			text: (i) => model.time(chart.t[i]),
		},
		{ name: "Moment", value: (i) => model.string(model.moments.label[i]) },
		{
			name: "Sum",
			unit: "bytes",
			number: true,
			value: (i) => chart.sum[i],
			text: (i) => bytesText(chart.sum[i]),
		},
		...parts.map((part) => ({
			name: part.label,
			unit: "bytes",
			number: true,
			value: (i) => part.bytes[i],
			text: (i) => bytesText(part.bytes[i]),
		})),
	];
	const table = new DataTable(`${model.chartTitle(chart)} over time`, columns, {
		sort: 0,
		descending: false,
	});
	table.rows = Array.from({ length: chart.count }, (_, i) => i);
	return table;
}
