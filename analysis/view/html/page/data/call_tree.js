// SPDX-License-Identifier: Apache-2.0
// From what call sites hold to the tree that a flame graph draws. A node's value is what it and all
// that it calls hold; `delta` is the change, in a comparison.

function newNode(name, where, node) {
	return { name, where, node, value: 0, delta: 0, children: new Map() };
}

// the nodes from the outermost frame to NODE; libraries are left out when they are folded
function pathOf(model, node, isFolded) {
	const path = [];
	for (; node >= 0; node = model.nodes.parent[node])
		if (!isFolded || model.nodes.own[node] === 1) path.push(node);
	return path.reverse();
}

function childOf(parent, key, make) {
	let child = parent.children.get(key);
	if (!child) parent.children.set(key, (child = make()));
	return child;
}

// the same function of the same file is one node, whichever line calls on
function frameChild(model, parent, node) {
	const frame = model.nodes.frame[node],
		{ file, module } = model.frames,
		where = model.frameWhere(frame);
	const key = `${model.frameText(frame)}\n${file[frame]} ${module[frame]}`;
	const child = childOf(parent, key, () =>
		newNode(model.frameText(frame), where, node),
	);
	if (child.where !== where) child.where = model.string(file[frame]) || where;
	return child;
}

function toArrays(node) {
	node.children = [...node.children.values()].sort((a, b) => b.value - a.value);
	for (const child of node.children) toArrays(child);
	return node;
}

// WEIGHTS: [[site, bytes, delta], ...]
export function callTree(model, name, weights, isFolded) {
	const root = newNode(name, "", -1);
	for (const [site, bytes, delta] of weights) {
		const path = pathOf(model, model.sites.node[site], isFolded);
		const nodes = [root];
		for (const node of path) nodes.push(frameChild(model, nodes.at(-1), node));
		if (!path.length) {
			const text = model.siteText(site);
			nodes.push(childOf(root, "site " + text, () => newNode(text, "", -1)));
		}
		for (const node of nodes) {
			node.value += bytes;
			node.delta += delta;
		}
	}
	return toArrays(root);
}
