// SPDX-License-Identifier: Apache-2.0
// Colours that remain distinct to colour-blind eyes (Okabe and Ito), and patterns for when there are
// more things than colours. Canvases take theme colours from the style sheet.

const COLOURS = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#b8a900"];
const REST = "#9aa0a6";

export const GREW = "#d55e00";
export const SHRANK = "#0072b2";
export const SHADES = COLOURS.length * 3;

// index below 0: everything that has no colour of its own
export function colourOf(index) {
	return index < 0 ? REST : COLOURS[index % COLOURS.length];
}

function patternOf(index) {
	return index < 0 ? 3 : Math.floor(index / COLOURS.length) % 3;
}

const STROKES = [null, [[0, 8, 8, 0]], [[0, 0, 8, 8]], [[0, 4, 8, 4]]];
const tiles = new Map();

function tileOf(index) {
	const key = index < 0 ? -1 : index % SHADES;
	if (tiles.has(key)) return tiles.get(key);
	const tile = document.createElement("canvas");
	tile.width = tile.height = 8;
	const context = tile.getContext("2d");
	context.fillStyle = colourOf(index);
	context.fillRect(0, 0, 8, 8);
	context.strokeStyle = "rgba(255,255,255,.65)";
	context.lineWidth = 1.5;
	for (const [x0, y0, x1, y1] of STROKES[patternOf(index)] ?? []) {
		for (const shift of [-8, 0, 8]) {
			context.beginPath();
			context.moveTo(x0 + (y0 === y1 ? 0 : shift), y0);
			context.lineTo(x1 + (y0 === y1 ? 0 : shift), y1);
			context.stroke();
		}
	}
	tiles.set(key, tile);
	return tile;
}

export function fillOf(context, index) {
	return patternOf(index) === 0
		? colourOf(index)
		: context.createPattern(tileOf(index), "repeat");
}

// a small square in a legend
export function drawSwatch(canvas, index) {
	canvas.width = canvas.height = 24;
	canvas.className = "swatch";
	const context = canvas.getContext("2d");
	context.fillStyle = fillOf(context, index);
	context.fillRect(0, 0, 24, 24);
	return canvas;
}

export function theme(name) {
	return getComputedStyle(document.documentElement)
		.getPropertyValue("--" + name)
		.trim();
}
