// SPDX-License-Identifier: Apache-2.0
// The first screen: the command's own words, and its table of holders as a table.

import { bytesOf, bytesText, countText, percentText } from "../base/format.js";
import { copyButton, h } from "../base/dom.js";

const ROWS = 12;
const FIRST_WORD = /^( *)(\S*\d (?:.iB|B)\S*|\S*)/; // a figure and its unit are one
const COLUMNS = 80; // of the text of the command, as the page has it
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

// Sentences as they were before the command broke them at its columns: a line is the rest of the one
// before where its first word had no room there.
function unbroken(lines) {
	const out = [];
	lines.forEach((line, i) => {
		const [, indent, word] = FIRST_WORD.exec(line);
		const before = lines[i - 1] ?? "";
		const isRest =
			before &&
			word &&
			indent.length <= 2 &&
			!LEADS.test(line) &&
			before.length + 1 + word.length > COLUMNS;
		if (isRest) out[out.length - 1] += " " + line.slice(indent.length);
		else out.push(line);
	});
	return out;
}

function proseBlock(lines) {
	const block = h("pre", { class: "prose" });
	for (const line of unbroken(lines)) {
		const lead = LEADS.exec(line)?.[0] ?? "";
		const isInner = line.startsWith("  ") && !line.startsWith("   ");
		block.append(
			h(
				"span",
				{ class: isInner ? "line inner" : "line" },
				lead ? h("strong", {}, lead) : null,
				line.slice(isInner ? 2 : lead.length) || "\n",
			),
		);
	}
	return block;
}

function holderName(model, row) {
	const where = row.line ? ` (${row.file ?? ""}:${row.line})` : "";
	const role = row.leaks ? "LEAK" : model.roleWord(row.role);
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

function holderRow(model, row, isFolded) {
	const kind = [row.sort, row.suspect ? "is-suspect" : ""].join(" ");
	return h(
		"tr",
		{ class: kind, hidden: isFolded },
		holderName(model, row),
		h("td", { class: "number" }, bytesOf(row.bytes, row.sampled)),
		h("td", { class: "number" }, percentText(row.share)),
		h("td", { class: "bars" }, bar(row.share)),
		h("td", { class: "number" }, row.count ? countText(row.count) : ""),
		h("td", {}, row.trend_word),
	);
}

// A run of 64 ranks has 64 rows: the first ones stand for it until all are asked for.
function moreRow(folded, rows) {
	const bytes = folded.reduce((sum, row) => sum + row.bytes, 0);
	const text = `${countText(folded.length)} more rows, ${bytesText(bytes)}`;
	const line = h("tr", {});
	const show = () => {
		for (const row of rows) row.hidden = false;
		line.remove();
	};
	line.append(
		h(
			"td",
			{ colspan: "6" },
			h("button", { type: "button", class: "link", onclick: show }, text),
		),
	);
	return line;
}

function holderRows(model, holders) {
	const isKept = (row, i) => i < ROWS || row.suspect || row.sort === "free";
	const folded = holders.rows.filter((row, i) => !isKept(row, i));
	const isShort = folded.length > 2;
	const rows = holders.rows.map((row, i) =>
		holderRow(model, row, isShort && !isKept(row, i)),
	);
	if (!isShort) return rows;
	const hidden = rows.filter((row) => row.hidden);
	const last = holders.rows.findIndex((row, i) => !isKept(row, i));
	return [...rows.slice(0, last), moreRow(folded, hidden), ...rows.slice(last)];
}

const HEADS = ["Holder", "Bytes", "Share", "", "Blocks", "Trend"];
const NUMBERS = new Set(["Bytes", "Share", "Blocks"]);

function holderTable(model, holders) {
	const head = (name) =>
		name
			? h("th", { scope: "col", class: NUMBERS.has(name) ? "number" : "" }, name)
			: h("td", { class: "bars" });
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
		h("thead", {}, h("tr", {}, HEADS.map(head))),
		h("tbody", {}, holderRows(model, holders)),
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
			model.holders?.rows.length
				? h(
						"div",
						{
							class: "verdict-holders scroll",
							tabindex: "0",
							role: "region",
							"aria-label": "Holders",
						},
						holderTable(model, model.holders),
					)
				: null,
		),
	);
}
