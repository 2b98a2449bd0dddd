// SPDX-License-Identifier: Apache-2.0
// plain.cjs HTML SCREEN: without JavaScript the first screen and the long report stand there as text.
"use strict";

const fs = require("fs");
const { open, check, same, run } = require("./browser.cjs");

run(async () => {
	const [html, screen] = process.argv.slice(2);
	const { browser, page, faults } = await open(html, {
		strict: false,
		options: { javaScriptEnabled: false },
	});
	const expected = fs.readFileSync(screen, "utf8").trim();
	same(
		(await page.locator("#cuflight-screen").innerText()).trim().split("\n")[0],
		expected.split("\n")[0],
		"first line",
	);
	check(await page.locator("#cuflight-screen").isVisible(), "the screen is not visible");
	const text = await page.locator("body").innerText();
	for (const line of expected.split("\n").filter((one) => !/^(More:|\s+cuflight )/.test(one)))
		check(text.includes(line.trim()), `no line: ${line}`);
	check(text.length > 2 * expected.length, "the long report is not there");
	same(faults, [], "console and network");
	await browser.close();
});
