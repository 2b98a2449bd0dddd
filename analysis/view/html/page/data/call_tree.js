// SPDX-License-Identifier: Apache-2.0
// From what call sites hold to the tree that a flame graph draws. A node's value is what it and all
// that it calls hold; `delta` is the change, in a comparison. From the bottom up, a node's children
// are its callers.

function newNode(name, where, node) {
	return { name, where, node, value: 0, delta: 0, children: new Map() };
}

// HOW: {allFrames, bottomUp, hidden: Set of functions}; a node that is drawn, or left out
function isShown(model, node, how) {
	if (!how.allFrames && model.nodes.own[node] !== 1) return false;
	return !how.hidden.has(model.frameText(model.nodes.frame[node]));
}

// the nodes of a stack as the tree has them: outermost first, or innermost
function pathOf(model, node, how) {
	const path = [];
	for (; node >= 0; node = model.nodes.parent[node])
		if (isShown(model, node, how)) path.push(node);
	return how.bottomUp ? path : path.reverse();
}

function childOf(parent, key, make) {
	let child = parent.children.get(key);
	if (!child) parent.children.set(key, (child = make()));
	return child;
}

function keyOf(model, node) {
	const frame = model.nodes.frame[node],
		{ file, module } = model.frames;
	return `${model.frameText(frame)}\n${file[frame]} ${module[frame]}`;
}

// the same function of the same file is one node, whichever line calls on
function frameChild(model, parent, node) {
	const frame = model.nodes.frame[node],
		where = model.frameWhere(frame);
	const child = childOf(parent, keyOf(model, node), () =>
		newNode(model.frameText(frame), where, node),
	);
	if (child.where !== where) child.where = model.string(model.frames.file[frame]) || where;
	return child;
}

function toArrays(node) {
	node.children = [...node.children.values()].sort((a, b) => b.value - a.value);
	for (const child of node.children) toArrays(child);
	return node;
}

// WEIGHTS: [[site, bytes, delta], ...]; of what no site holds, a text in the place of the site
export function callTree(model, name, weights, how) {
	const root = newNode(name, "", -1);
	for (const [site, bytes, delta] of weights) {
		const isText = typeof site === "string";
		const path = isText ? [] : pathOf(model, model.sites.node[site], how);
		const nodes = [root];
		for (const node of path) nodes.push(frameChild(model, nodes.at(-1), node));
		if (!path.length) {
			const text = isText ? site : model.siteText(site);
			nodes.push(childOf(root, "site " + text, () => newNode(text, "", -1)));
		}
		for (const node of nodes) {
			node.value += bytes;
			node.delta += delta;
		}
	}
	return toArrays(root);
}

// Who calls the function of NODE and what it calls, wherever it stands: {callers, callees}, each
// [[name, bytes], ...], the largest first. What it allocates itself is "itself".
export function neighbours(model, node, weights, how) {
	const key = keyOf(model, node),
		callers = new Map(),
		callees = new Map();
	for (const [site, bytes] of weights) {
		if (typeof site === "string") continue;
		const path = pathOf(model, model.sites.node[site], { ...how, bottomUp: false });
		const names = path.map((one) => model.frameText(model.nodes.frame[one]));
		const seen = [new Set(), new Set()]; // recursion counts once
		path.forEach((one, i) => {
			if (keyOf(model, one) !== key) return;
			seen[0].add(names[i - 1] ?? "outermost");
			seen[1].add(names[i + 1] ?? "itself");
		});
		for (const name of seen[0]) callers.set(name, (callers.get(name) ?? 0) + bytes);
		for (const name of seen[1]) callees.set(name, (callees.get(name) ?? 0) + bytes);
	}
	const sorted = (sums) => [...sums].sort((a, b) => b[1] - a[1]);
	return { callers: sorted(callers), callees: sorted(callees) };
}
