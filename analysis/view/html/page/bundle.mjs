// SPDX-License-Identifier: Apache-2.0
// bundle.mjs MODULES OUT: the page's modules and what they import from the folder MODULES, as
// OUT/page.js and OUT/page.css. The licences of all that went in come first in the script, can be
// read on the page, and are OUT/licences.txt.

import { createRequire } from "node:module";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const [modules, out] = process.argv.slice(2).map((path) => resolve(path));
const here = dirname(fileURLToPath(import.meta.url));
const esbuild = createRequire(join(modules, "x.js"))("esbuild");

const common = {
	entryPoints: { page: join(here, "main.js") },
	outdir: out,
	bundle: true,
	minify: true,
	// d3-flame-graph asks for the name of a class
	keepNames: true,
	format: "iife",
	target: ["chrome111", "firefox115", "safari16.4"],
	legalComments: "inline",
	nodePaths: [modules],
	logLevel: "warning",
};

function packagesOf(metafile) {
	const found = new Set();
	for (const input of Object.keys(metafile.inputs)) {
		const match = /node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(input);
		if (match) found.add(match[1]);
	}
	return [...found].sort();
}

function licenceOf(name) {
	const folder = join(modules, name);
	const { version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
	const file = readdirSync(folder).find((one) => /^licen[cs]e/i.test(one));
	if (!file || !existsSync(join(folder, file)))
		throw new Error(`${name} has no licence text`);
	const text = readFileSync(join(folder, file), "utf8").trim();
	// the full text of this one is long, and cuflight's own licence
	const notice =
		license === "Apache-2.0" ? "Licensed under the Apache License, Version 2.0." : text;
	return `${name} ${version} (${license})\n\n${notice}`;
}

const dry = await esbuild.build({
	...common,
	write: false,
	metafile: true,
	define: { PAGE_LICENCES: '""' },
});
const licences = packagesOf(dry.metafile).map(licenceOf).join("\n\n----\n\n");
const banner = `/*! cuflight's page contains:\n\n${licences.replaceAll("*/", "* /")}\n*/`;
await esbuild.build({
	...common,
	banner: { js: banner },
	define: { PAGE_LICENCES: JSON.stringify(licences) },
});
writeFileSync(join(out, "licences.txt"), licences + "\n");
