// SPDX-License-Identifier: Apache-2.0
// node cli_keys.cjs [--schema=PATH] FILE...: every key that the reports have must be described by the published schema. The schema itself
// leaves readers room for keys to come; this closes it for the writer's own tests. 1 and the paths when one is not.
const fs = require("fs");
const path = require("path");

const given = process.argv.find((argument) => argument.startsWith("--schema="));
const name = given ? given.slice("--schema=".length) : "analysis/view/cuflight.report-1.schema.json";
const schema = JSON.parse(fs.readFileSync(path.resolve(__dirname, "../..", name), "utf8"));
const resolve = (node) => (node.$ref ? resolve(schema.$defs[node.$ref.split("/").pop()]) : node);

function unknownKeys(value, node, at) {
	node = resolve(node);
	if (node.anyOf) node = resolve(node.anyOf.find((choice) => resolve(choice).type !== "null"));
	if (Array.isArray(value)) return value.flatMap((item, i) => unknownKeys(item, node.items, `${at}[${i}]`));
	if (value === null || typeof value !== "object") return [];
	return Object.entries(value).flatMap(([key, item]) => {
		const child = (node.properties && node.properties[key]) || node.additionalProperties;
		return child ? unknownKeys(item, child, `${at}.${key}`) : [`${at}.${key}`];
	});
}

const files = process.argv.slice(2).filter((argument) => argument !== given);
const found = files.flatMap((file) => unknownKeys(JSON.parse(fs.readFileSync(file, "utf8")), schema, path.basename(file)));
for (const key of new Set(found)) console.error(`not in the schema: ${key}`);
process.exit(found.length ? 1 : 0);
