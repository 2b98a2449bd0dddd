// SPDX-License-Identifier: Apache-2.0
// Why the report states what it states, what could not be seen, and the texts behind it all, folded.

import { copyButton, h } from "../base/dom.js";
import { countText, durationText, plural } from "../base/format.js";
import { folded } from "../base/table.js";

function frameText(frame) {
	const where = frame.file ? ` (${frame.file}${frame.line ? ":" + frame.line : ""})` : "";
	return (frame.function ?? frame.module ?? "?") + where;
}

function evidenceItem(item) {
	return h(
		"li",
		{},
		item.against ? h("strong", {}, "Against: ") : null,
		item.text,
		item.stack?.length
			? h(
					"ol",
					{ class: "stack" },
					item.stack.map((frame) => h("li", {}, frameText(frame))),
				)
			: null,
	);
}

function textOf(item) {
	return typeof item === "string" ? item : (item.text ?? item.name ?? JSON.stringify(item));
}

function confidenceText(confidence) {
	if (confidence >= 0.8) return "high";
	return confidence >= 0.5 ? "medium" : "low";
}

function causeBox(cause) {
	const list = (title, items) =>
		items?.length
			? [
					h("h3", {}, title),
					h(
						"ul",
						{},
						items.map((item) => h("li", {}, textOf(item))),
					),
				]
			: null;
	return h(
		"div",
		{ class: "prose" },
		h(
			"p",
			{},
			h("strong", {}, cause.name ?? "no cause"),
			` (${confidenceText(cause.confidence)} confidence): `,
			cause.summary ?? "",
		),
		h("h3", {}, "Evidence"),
		h("ul", { class: "evidence" }, (cause.evidence ?? []).map(evidenceItem)),
		list("What to change", cause.fix),
		cause.runner_up
			? [h("h3", {}, "Second guess"), h("p", {}, textOf(cause.runner_up))]
			: null,
		list("What would settle it", cause.separates ? [].concat(cause.separates) : []),
		list("What is not known", cause.lacks ? [].concat(cause.lacks) : []),
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

function coverageList(model) {
	const { coverage, capture } = model.report,
		items = [];
	const named = (title, key) => {
		const names = coverage[key] ?? [];
		if (names.length)
			items.push(
				h(
					"li",
					{},
					h("strong", {}, title + ": "),
					names.map(textOf).join(", "),
				),
			);
	};
	for (const blind of coverage.blind ?? []) items.push(h("li", {}, blind.text));
	named("Looked up but not recorded", "unhooked");
	named("Programs with a CUDA runtime of their own", "static_cudart");
	named("Lost", "lost");
	if (capture.events_overwritten)
		items.push(
			h(
				"li",
				{},
				`${countText(capture.events_overwritten)} events were overwritten: the timeline begins with samples.`,
			),
		);
	if (capture.events_lost)
		items.push(h("li", {}, `${countText(capture.events_lost)} events were lost.`));
	if (model.blocks.left_out?.blocks)
		items.push(
			h(
				"li",
				{},
				`${plural(model.blocks.left_out.blocks, "block is", "blocks are")} not in this file's address map; every figure counts them.`,
			),
		);
	return items.length ? h("ul", {}, items) : h("p", {}, "Nothing is known to be missing.");
}

function environmentBox(model) {
	return h(
		"div",
		{},
		model.processes.slice(0, 64).map((process) => [
			h("h3", {}, `${process.name}, pid ${process.pid}`),
			h("pre", { class: "scroll", tabindex: "0" }, process.command_line ?? ""),
			h(
				"dl",
				{ class: "environment" },
				(process.environment ?? []).map(([name, value]) => [
					h("dt", {}, name),
					h("dd", {}, value ?? ""),
				]),
			),
		]),
	);
}

export function evidenceSections(model) {
	const { report } = model,
		{ capture, coverage } = report;
	const causes = [
		report.cause,
		...(report.incidents ?? []).map((incident) => incident.cause),
	].filter((cause) => cause?.name);
	const different = causes.filter(
		(cause, i) => causes.findIndex((other) => other.summary === cause.summary) === i,
	);
	const recorder = coverage.recorder_ns
		? ` The recorder took ${durationText(coverage.recorder_ns)}.`
		: "";
	return [
		section(
			"seen",
			"What was not seen",
			coverageList(model),
			h(
				"p",
				{ class: "figure" },
				`${plural(capture.events_recorded, "event", "events")} of ${plural(model.processes.length, "process", "processes")}.${recorder}`,
			),
		),
		section(
			"evidence",
			"Evidence",
			...different
				.slice(0, 8)
				.map((cause) =>
					folded(`How "${cause.name}" was decided`, () =>
						causeBox(cause),
					),
				),
			folded("The long report as text", () =>
				h(
					"div",
					{},
					copyButton("Copy", () => model.text),
					h(
						"pre",
						{ class: "scroll long", tabindex: "0" },
						model.text,
					),
				),
			),
			folded("Command lines and environment", () => environmentBox(model)),
			folded("Names that were recorded", () =>
				h("p", {}, (coverage.hooked ?? []).join(", ")),
			),
		),
	];
}
