// SPDX-License-Identifier: Apache-2.0
// From base64 in the page to the object of DATA.md, whose columns become Float64Arrays. A column is
// decoded when it is first read: most sections need a few of them.

function fromBase64(text) {
	if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
	const binary = atob(text),
		bytes = new Uint8Array(binary.length);
	for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
	return bytes;
}

async function inflate(bytes) {
	const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
	return new Uint8Array(await new Response(stream).arrayBuffer());
}

function decodeColumn(bytes, [offset, , count]) {
	const out = new Float64Array(count);
	let at = offset,
		value = 0;
	for (let i = 0; i < count; i++) {
		let byte = bytes[at++],
			number = byte & 127,
			scale = 128;
		while (byte > 127) {
			byte = bytes[at++];
			number += (byte & 127) * scale;
			scale *= 128;
		}
		value += number % 2 ? -(number + 1) / 2 : number / 2;
		out[i] = value;
	}
	return out;
}

function makeLazy(object, bytes) {
	for (const [key, value] of Object.entries(object)) {
		if (value === null || typeof value !== "object") continue;
		if (!Array.isArray(value.column)) {
			makeLazy(value, bytes);
			continue;
		}
		Object.defineProperty(object, key, {
			configurable: true,
			enumerable: true,
			get() {
				const decoded = decodeColumn(bytes, value.column);
				Object.defineProperty(object, key, {
					value: decoded,
					enumerable: true,
				});
				return decoded;
			},
		});
	}
}

export async function readContainer(base64) {
	const bytes = await inflate(fromBase64(base64.trim()));
	const magic = new TextDecoder().decode(bytes.subarray(0, 8));
	if (magic !== "CUFPAGE1") throw new Error("the data of this page begins with " + magic);
	const length = new DataView(bytes.buffer).getUint32(8, true);
	const data = JSON.parse(new TextDecoder().decode(bytes.subarray(16, 16 + length)));
	const report = data.report;
	delete data.report;
	makeLazy(data, bytes.subarray(16 + length));
	data.report = report;
	return data;
}
