// SPDX-License-Identifier: Apache-2.0
// Figures as the text report writes them: three digits, binary units, "unknown" for null.

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

function threeDigits(value) {
	if (value < 9.995) return value.toFixed(2);
	return value < 99.95 ? value.toFixed(1) : value.toFixed(0);
}

export function bytesText(bytes) {
	if (bytes === null || bytes === undefined) return "unknown";
	let value = Math.abs(bytes),
		unit = 0;
	while (value >= 1023.5 && unit < UNITS.length - 1) {
		value /= 1024;
		unit++;
	}
	const digits = unit === 0 ? String(Math.round(value)) : threeDigits(value);
	return (bytes < 0 ? "-" : "") + digits + " " + UNITS[unit];
}

// what a sample measured: two digits and a tilde
export function estimateText(bytes) {
	if (bytes === null || bytes === undefined) return "unknown";
	if (bytes === 0) return "0 B";
	const scale = 10 ** Math.max(0, Math.floor(Math.log10(Math.abs(bytes))) - 1);
	return "~" + bytesText(Math.round(bytes / scale) * scale).replace(/(\.\d)\d /, "$1 ");
}

export function bytesOf(bytes, isSampled) {
	return isSampled ? estimateText(bytes) : bytesText(bytes);
}

export function signedBytesText(bytes) {
	return (bytes > 0 ? "+" : "") + bytesText(bytes);
}

export function countText(count) {
	if (count === null || count === undefined) return "unknown";
	return Math.round(count).toLocaleString("en-US");
}

export function percentText(share) {
	if (share === null || share === undefined || !Number.isFinite(share)) return "";
	const percent = share * 100;
	return percent > 0 && percent < 0.5 ? "< 1 %" : percent.toFixed(0) + " %";
}

const TIMES = [
	[1e3, "ns", 1],
	[1e6, "µs", 1e3],
	[1e9, "ms", 1e6],
];

export function durationText(ns) {
	if (ns === null || ns === undefined) return "unknown";
	const size = Math.abs(ns),
		sign = ns < 0 ? "-" : "";
	for (const [below, unit, scale] of TIMES)
		if (size < below)
			return sign + threeDigits(size / scale).replace(/\.00$/, "") + " " + unit;
	if (size < 120e9) return sign + threeDigits(size / 1e9) + " s";
	const seconds = Math.round(size / 1e9),
		minutes = Math.floor(seconds / 60);
	if (minutes < 120) return `${sign}${minutes} min ${seconds % 60} s`;
	return `${sign}${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

// a point in time, with as many digits as tell two moments of this run apart
export function timeText(ns, spanNs) {
	if (ns === null || ns === undefined) return "unknown";
	if (Math.abs(spanNs) < 1e9) return durationText(ns);
	if (Math.abs(ns) >= 120e9) return durationText(ns);
	return (ns / 1e9).toFixed(spanNs < 20e9 ? 3 : 2) + " s";
}

export function addressText(address) {
	return "0x" + Math.round(address).toString(16);
}

export function plural(count, one, many) {
	return countText(count) + " " + (count === 1 ? one : many);
}
