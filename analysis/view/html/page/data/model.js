// SPDX-License-Identifier: Apache-2.0
// Questions to the data of DATA.md: which call sites a chart is about, what they hold at a moment,
// how a stack reads. Nothing is measured here: it looks up, selects and adds up.

import { bytesText, timeText } from "../base/format.js";

export class Model {
	#live = new Map();
	#starts = null;

	constructor(data) {
		Object.assign(this, data);
		this.data = data;
		this.moments.report ??= null;
	}

	name(enumeration, index) {
		const names = this.names[enumeration] ?? [];
		return index === null || index < 0 ? "" : (names[index] ?? "");
	}

	string(index) {
		return index === null || index < 0 ? "" : (this.strings[index] ?? "");
	}

	layerOf(chart) {
		return typeof chart.layer === "number"
			? this.name("layer", chart.layer)
			: chart.layer;
	}

	time(ns) {
		return timeText(ns, this.duration_ns);
	}

	momentKind(moment) {
		return this.name("moment", this.moments.kind[moment]);
	}

	momentText(moment) {
		const label = this.string(this.moments.label[moment]);
		const time = this.time(this.moments.t[moment]);
		return label ? `${time}, ${label}` : time;
	}

	// moments that have a name: failures, peaks, the end
	namedMoments() {
		const named = [];
		for (let i = 0; i < this.moments.count; i++)
			if (this.momentKind(i) !== "sample") named.push(i);
		return named;
	}

	// the last moment at or before T
	momentBefore(t) {
		const times = this.moments.t;
		let low = 0,
			high = times.length;
		while (low < high) {
			const middle = (low + high) >> 1;
			if (times[middle] <= t) low = middle + 1;
			else high = middle;
		}
		return Math.max(0, low - 1);
	}

	// the moment nearest to T; one with a name wins within WITHIN
	momentNear(t, within) {
		const times = this.moments.t;
		let best = this.momentBefore(t);
		if (best + 1 < times.length && times[best + 1] - t < t - times[best]) best++;
		let nearest = null;
		for (const i of this.namedMoments())
			if (
				Math.abs(times[i] - t) <= within &&
				(nearest === null || this.#isNearer(i, nearest, t))
			)
				nearest = i;
		return nearest ?? best;
	}

	#isNearer(moment, other, t) {
		const isIncident = this.momentKind(moment) === "incident";
		if (isIncident !== (this.momentKind(other) === "incident")) return isIncident;
		return Math.abs(this.moments.t[moment] - t) < Math.abs(this.moments.t[other] - t);
	}

	// is this row of `sites` in the memory that CHART draws
	isInChart(site, chart) {
		const { sites } = this;
		if (this.name("layer", sites.layer[site]) !== this.layerOf(chart)) return false;
		if (chart.device !== null && sites.device[site] !== chart.device) return false;
		return chart.process === null || sites.process[site] === chart.process;
	}

	// the sites that hold the memory of CHART: of a framework's segments, who has the blocks inside
	sitesOf(chart) {
		const found = [],
			inside = chart.inside ? { ...chart, layer: "framework" } : null;
		for (let site = 0; site < this.sites.count; site++)
			if (inside && this.isInChart(site, inside)) found.push(site);
			else if (this.isInChart(site, chart) && !(inside && this.sites.segment[site] === 1))
				found.push(site);
		return found;
	}

	// what a framework reserved at MOMENT and gave to nobody: [label, bytes], or null
	unusedAt(chart, moment) {
		const part = chart.by.site?.find((one) => one.unused);
		return part ? [part.label, part.bytes[this.pointOf(chart, moment)]] : null;
	}

	// the rows of the table: sites of one process that the first screen prints as one
	rowsOf(chart) {
		const rows = new Map();
		for (const site of this.sitesOf(chart)) {
			const key = this.sites.process[site] + ":" + this.sites.row[site];
			if (!rows.has(key)) rows.set(key, []);
			rows.get(key).push(site);
		}
		return [...rows.values()];
	}

	// what SITES held together, at every moment
	sumOf(sites) {
		const sum = new Float64Array(this.moments.count);
		for (const site of sites) {
			const history = this.historyOf(site);
			for (let i = 0; i < history.length; i++) {
				const [from, bytes] = history[i],
					to = history[i + 1]?.[0] ?? sum.length;
				for (let moment = from; moment < to; moment++) sum[moment] += bytes;
			}
		}
		return sum;
	}

	#siteStarts() {
		if (this.#starts) return this.#starts;
		const starts = new Int32Array(this.sites.count + 1),
			{ site } = this.values;
		for (let i = 0; i < site.length; i++) starts[site[i] + 1]++;
		for (let i = 0; i < this.sites.count; i++) starts[i + 1] += starts[i];
		return (this.#starts = starts);
	}

	// what every site holds at MOMENT: {bytes, blocks}, indexed by site
	liveAt(moment) {
		if (this.#live.has(moment)) return this.#live.get(moment);
		const starts = this.#siteStarts(),
			{ values } = this,
			count = this.sites.count;
		const live = { bytes: new Float64Array(count), blocks: new Float64Array(count) };
		for (let site = 0; site < count; site++) {
			let low = starts[site],
				high = starts[site + 1];
			while (low < high) {
				const middle = (low + high) >> 1;
				if (values.moment[middle] <= moment) low = middle + 1;
				else high = middle;
			}
			if (low === starts[site]) continue;
			live.bytes[site] = values.bytes[low - 1];
			live.blocks[site] = values.blocks[low - 1];
		}
		if (this.#live.size > 16) this.#live.clear();
		this.#live.set(moment, live);
		return live;
	}

	// [[moment, bytes], ...] of one site
	historyOf(site) {
		const starts = this.#siteStarts(),
			history = [];
		for (let i = starts[site]; i < starts[site + 1]; i++)
			history.push([this.values.moment[i], this.values.bytes[i]]);
		return history;
	}

	frameText(frame) {
		const { frames } = this;
		const name =
			this.string(frames.function[frame]) ||
			this.string(frames.module[frame]) ||
			"?";
		return name;
	}

	frameWhere(frame) {
		const file = this.string(this.frames.file[frame]),
			line = this.frames.line[frame];
		if (!file) return this.string(this.frames.module[frame]);
		return line > 0 ? `${file}:${line}` : file;
	}

	// innermost first, as one reads a stack
	stackOf(node) {
		const stack = [];
		for (; node >= 0; node = this.nodes.parent[node]) {
			const frame = this.nodes.frame[node],
				where = this.frameWhere(frame);
			stack.push({
				name: this.frameText(frame),
				text: this.frameText(frame) + (where ? ` (${where})` : ""),
				isOwn: this.nodes.own[node] === 1,
			});
		}
		return stack;
	}

	stackText(node) {
		return this.stackOf(node)
			.map((frame) => frame.text)
			.join("\n");
	}

	siteText(site) {
		const place = this.string(this.sites.place[site]);
		if (place) return place;
		return this.sites.rest[site] === 1 ? "smaller call sites" : "unknown call site";
	}

	processText(process) {
		const found = this.processes[process];
		if (!found) return "";
		const rank =
			found.rank === null || found.rank === undefined
				? ""
				: `rank ${found.rank}, `;
		return `${found.name} (${rank}pid ${found.pid})`;
	}

	// the words of the first screen and the long report
	kindWord(kind) {
		return this.names.kind_word[kind] ?? "";
	}

	roleWord(role) {
		return this.names.role_word[role] ?? role ?? "";
	}

	// "leaks", "growing", "steady"
	trendOf(sites) {
		const words = sites.map((site) =>
			this.name("class", this.sites.class[site]) === "leak"
				? "leaks"
				: this.name("trend", this.sites.shape[site]),
		);
		return ["leaks", "growing", "steady"].find((word) => words.includes(word)) ?? "";
	}

	chartTitle(chart) {
		return chart.title || this.layerOf(chart);
	}

	// the point of CHART at MOMENT: its times are the moments'
	pointOf(chart, moment) {
		return Math.min(moment, chart.count - 1);
	}

	sumAt(chart, moment) {
		return chart.sum[this.pointOf(chart, moment)];
	}

	// what the recorder sampled last until T; null: nothing, or its process had ended
	lineAt(chart, line, t) {
		const end = chart.process === null ? null : this.processes[chart.process].end;
		if (end !== null && t > end) return null;
		let low = 0,
			high = line.count;
		while (low < high) {
			const middle = (low + high) >> 1;
			if (line.t[middle] <= t) low = middle + 1;
			else high = middle;
		}
		return low ? line.bytes[low - 1] : null;
	}

	// host memory is limited by the cgroup, not by what the machine has
	summaryOf(chart, moment) {
		const sum = bytesText(this.sumAt(chart, moment));
		if (this.layerOf(chart) !== "host")
			return chart.total_bytes === null
				? sum
				: `${sum} of ${bytesText(chart.total_bytes)}`;
		const line = (chart.lines ?? []).find((one) => one.name === "rss"),
			resident = line && this.lineAt(chart, line, this.moments.t[moment]);
		return (
			`${sum} allocated` +
			(resident ? `, ${bytesText(resident)} resident` : "") +
			(chart.limit_bytes === null
				? ""
				: `, limit of the cgroup ${bytesText(chart.limit_bytes)}`)
		);
	}
}
