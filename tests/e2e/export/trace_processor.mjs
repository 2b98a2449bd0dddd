// SPDX-License-Identifier: Apache-2.0
// trace_processor.mjs FOLDER TRACE [SQL...]: Perfetto's own trace_processor reads TRACE. Prints the
// rows of each query as one line of JSON: a list of lists. Exits 1 when it refuses the trace.
// FOLDER has its WebAssembly module, the worker around it, and the decoder of its answers, as
// scripts/setup fetched them. The worker is a browser's: what it takes from a browser is given here.
import { readFileSync } from "node:fs";
import { runInThisContext } from "node:vm";
import { pathToFileURL } from "node:url";

const [folder, trace, ...queries] = process.argv.slice(2);
const { EngineBase } = await import(pathToFileURL(`${folder}/engine.mjs`));
const SLICE = 1 << 20;

// how the worker loads its module
class LocalRequest {
	open(method, name) {
		this.path = `${folder}/${name}`;
	}
	send() {
		const bytes = readFileSync(this.path);
		this.status = 200;
		this.response = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length);
	}
}

// The worker asks whether 64-bit modules are understood, with this first part of one. The package
// has the 32-bit one alone.
const has64 = [0x00, 0x61, 0x73, 0x6d, 0x01, 0x00, 0x00, 0x00, 0x05, 0x03, 0x01, 0x04];
class Module32 extends WebAssembly.Module {
	constructor(bytes) {
		if (has64.every((byte, at) => new Uint8Array(bytes)[at] === byte))
			throw new WebAssembly.CompileError("no 64-bit memory");
		super(bytes);
	}
}

// What the worker says beside its answers: kept, and shown when it fails.
const said = [];
const keep = (...words) => said.push(words.join(" "));

class Engine extends EngineBase {
	mode = "WASM";
	constructor(port) {
		super();
		this.port = port;
		port.onmessage = ({ data }) => this.onRpcResponseBytes(data);
	}
	rpcSendRequestBytes(data) {
		this.port.postMessage(data);
	}
}

function startWorker() {
	const { port1, port2 } = new MessageChannel();
	globalThis.self = globalThis;
	globalThis.location = { href: `file://${folder}/` };
	globalThis.XMLHttpRequest = LocalRequest;
	globalThis.WorkerGlobalScope = Object;
	WebAssembly.Module = Module32;
	console.log = keep;
	console.warn = keep;
	runInThisContext(readFileSync(`${folder}/engine_bundle.node.js`, "utf8"));
	globalThis.onmessage({ data: port2 });
	return new Engine(port1);
}

async function load(engine) {
	const bytes = readFileSync(trace);
	for (let at = 0; at < bytes.length; at += SLICE)
		await engine.parse(bytes.subarray(at, at + SLICE));
	await engine.notifyEof();
}

async function rows(engine, sql) {
	const result = await engine.query(sql);
	const columns = result.columns();
	const found = [];
	for (const row = result.iter({}); row.valid(); row.next())
		found.push(columns.map((name) => row.get(name)));
	return found;
}

const plain = (key, value) => (typeof value === "bigint" ? Number(value) : value);
try {
	const engine = startWorker();
	await load(engine);
	for (const sql of queries)
		process.stdout.write(`${JSON.stringify(await rows(engine, sql), plain)}\n`);
	process.exit(0);
} catch (error) {
	process.stderr.write(`trace_processor: ${error.stack ?? error}\n${said.slice(-9).join("\n")}\n`);
	process.exit(1);
}
