// SPDX-License-Identifier: Apache-2.0
// The first screen: the command's own words, and its table of holders as a table.

import { bytesOf, countText, percentText } from "../base/format.js";
import { copyButton, h } from "../base/dom.js";

const LEADS = /^(Likely cause|Cause|Fix|Failed at|More|No cause found|Second guess):/;

// the lines of the screen without the holders, which follow as a table
function proseOf(screen, holders) {
	const lines = screen.replace(/\s+$/, "").split("\n");
	const from = holders?.title
		? lines.findIndex((line) => line.startsWith(holders.title))
		: -1;
	if (from < 0) return lines;
	let to = from;
	while (to < lines.length && lines[to] !== "") to++;
	return [...lines.slice(0, from), ...lines.slice(to + 1)];
}

function proseBlock(lines) {
	const block = h("pre", { class: "prose" });
	for (const line of lines) {
		const lead = LEADS.exec(line);
		if (lead) block.append(h("strong", {}, lead[0]), line.slice(lead[0].length));
		else block.append(line);
		block.append("\n");
	}
	return block;
}

function holderName(row) {
	const where = row.line ? ` (${row.file ?? ""}:${row.line})` : "";
	const role = row.leaks ? "LEAK" : row.role;
	const guess = row.role && row.role_is_likely && !row.leaks ? "?" : "";
	return h(
		"td",
		{ title: `${row.label}${where}${row.callers ? " < " + row.callers : ""}` },
		row.suspect
			? h(
					"span",
					{ class: "suspect", title: "the cause is about this row" },
					"▶ ",
				)
			: null,
		role ? h("span", { class: row.leaks ? "role leak" : "role" }, role + guess) : null,
		role ? " " : null,
		row.label === "?" ? "call site not recorded" : row.label,
		h("span", { class: "where" }, where),
		row.callers ? h("span", { class: "callers" }, " < " + row.callers) : null,
	);
}

function bar(share) {
	const inner = h("span", { class: "bar-fill" });
	inner.style.width = Math.min(100, Math.max(0, (share ?? 0) * 100)) + "%";
	return h("span", { class: "bar", "aria-hidden": "true" }, inner);
}

function holderTable(holders) {
	const body = h("tbody");
	for (const row of holders.rows) {
		body.append(
			h(
				"tr",
				{ class: [row.sort, row.suspect ? "is-suspect" : ""].join(" ") },
				holderName(row),
				h("td", { class: "number" }, bytesOf(row.bytes, row.sampled)),
				h("td", { class: "number" }, percentText(row.share)),
				h("td", { class: "bars" }, bar(row.share)),
				h("td", { class: "number" }, row.count ? countText(row.count) : ""),
				h("td", {}, row.trend ?? ""),
			),
		);
	}
	return h(
		"table",
		{ class: "plain holders", id: "holders" },
		h(
			"caption",
			{},
			holders.title,
			" ",
			h("strong", {}, bytesOf(holders.total_bytes, false)),
		),
		h(
			"thead",
			{},
			h(
				"tr",
				{},
				...["Holder", "Bytes", "Share", "", "Blocks", "Trend"].map(
					(name) =>
						name
							? h(
									"th",
									{
										scope: "col",
										class: /Bytes|Share|Blocks/.test(
											name,
										)
											? "number"
											: "",
									},
									name,
								)
							: h("td", {}),
				),
			),
		),
		body,
	);
}

export function verdictSection(model) {
	const lines = proseOf(model.screen, model.holders);
	const headline = lines.shift() ?? model.title;
	while (lines.length && lines[0] === "") lines.shift();
	return h(
		"section",
		{ id: "summary", "aria-labelledby": "headline" },
		h(
			"div",
			{ class: "verdict" },
			h(
				"div",
				{ class: "verdict-words" },
				h("h1", { id: "headline" }, headline),
				proseBlock(lines),
				h(
					"p",
					{ class: "actions" },
					copyButton("Copy as Markdown", () => model.markdown),
					copyButton("Copy as text", () => model.screen),
				),
			),
			model.holders
				? h(
						"div",
						{
							class: "verdict-holders scroll",
							tabindex: "0",
							role: "region",
							"aria-label": "Holders",
						},
						holderTable(model.holders),
					)
				: null,
		),
	);
}
