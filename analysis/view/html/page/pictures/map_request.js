// SPDX-License-Identifier: Apache-2.0
// The request that failed and the largest hole, one below the other to the same scale.

import { sizeCanvas } from "../base/dom.js";
import { bytesText } from "../base/format.js";
import { theme } from "../base/palette.js";

const ROW = 14;
const STEP = 36;

// SCALE: pixels a byte in the map; a smaller one is taken where both would not fit
export function paintRequest(canvas, { requested, hole, left, width, scale }) {
	const fitting = Math.min(scale, (width - left - 3) / Math.max(requested, hole, 1));
	const context = sizeCanvas(canvas, width, 2 * STEP + 4);
	const note = fitting < scale ? ", both drawn smaller than the map" : "";
	const bars = [
		[`Requested: ${bytesText(requested)} in one piece`, requested, theme("alarm")],
		[`Largest hole: ${bytesText(hole)}`, hole, theme("ink")],
	];
	context.font = theme("canvas-font");
	bars.forEach(([text, bytes, colour], i) => {
		const top = i * STEP + 16;
		context.fillStyle = theme("ink");
		context.fillText(i === 0 ? text + note : text, left, top - 3);
		context.strokeStyle = colour;
		context.lineWidth = 2;
		context.strokeRect(left + 1, top + 1, Math.max(2, bytes * fitting), ROW);
	});
	canvas.setAttribute("aria-label", `${bars[0][0]}; ${bars[1][0]}`);
}
