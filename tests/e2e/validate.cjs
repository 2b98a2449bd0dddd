// SPDX-License-Identifier: Apache-2.0
// node tests/e2e/validate.cjs [--schema=PATH] FILE...: exit 0 when each file (- is stdin) is valid by the published schema,
// that of cuflight.report/1 unless another is given;
// 1 and the reasons when one is not; 77 when the validator is not installed (scripts/setup installs it into build/).
const fs = require("fs");
const path = require("path");

const root = path.resolve(__dirname, "../..");
let Ajv;
try {
	Ajv = require(path.join(root, "build/node_modules/ajv/dist/2020"));
} catch (error) {
	console.error("no schema validator: run scripts/setup");
	process.exit(77);
}
const given = process.argv.find((argument) => argument.startsWith("--schema="));
const name = given ? given.slice("--schema=".length) : "analysis/view/cuflight.report-1.schema.json";
const schema = JSON.parse(fs.readFileSync(path.resolve(root, name), "utf8"));
const validate = new Ajv({ allErrors: true, allowUnionTypes: true }).compile(schema);
const files = process.argv.slice(2).filter((argument) => argument !== given);
let failed = files.length === 0;

for (const file of files) {
	const report = JSON.parse(fs.readFileSync(file === "-" ? 0 : file, "utf8"));
	if (validate(report)) continue;
	failed = true;
	for (const error of validate.errors) console.error(`${file}: ${error.instancePath || "/"} ${error.message} ${JSON.stringify(error.params)}`);
}
process.exit(failed ? 1 : 0);
