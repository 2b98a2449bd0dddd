// SPDX-License-Identifier: Apache-2.0
// The only way that elements are made here. Texts of a recording are foreign: they come in as text
// nodes, never as markup, so there is no other function for it.

const SVG = "http://www.w3.org/2000/svg";

function fill(node, attributes, children) {
	for (const [name, value] of Object.entries(attributes)) {
		if (value === null || value === undefined || value === false) continue;
		if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
		else if (name === "style") Object.assign(node.style, value);
		else if (name in node && typeof value !== "string") node[name] = value;
		else node.setAttribute(name, value === true ? "" : value);
	}
	add(node, children);
	return node;
}

function add(node, children) {
	for (const child of children.flat(Infinity))
		if (child !== null && child !== undefined && child !== false) node.append(child);
}

// h("td", {class: "number"}, "12", " ", node): strings become text
export function h(tag, attributes = {}, ...children) {
	return fill(document.createElement(tag), attributes, children);
}

export function svg(tag, attributes = {}, ...children) {
	const node = document.createElementNS(SVG, tag);
	for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
	add(node, children);
	return node;
}

export function replace(node, ...children) {
	node.replaceChildren();
	add(node, children);
}

// A canvas of CSS size WIDTH x HEIGHT whose context draws in CSS pixels.
export function sizeCanvas(canvas, width, height) {
	const ratio = window.devicePixelRatio || 1;
	canvas.width = Math.round(width * ratio);
	canvas.height = Math.round(height * ratio);
	canvas.style.width = width + "px";
	canvas.style.height = height + "px";
	const context = canvas.getContext("2d");
	context.setTransform(ratio, 0, 0, ratio, 0, 0);
	context.clearRect(0, 0, width, height);
	return context;
}

let counter = 0;
export function newId(prefix) {
	return prefix + "-" + ++counter;
}

// A row of buttons of which one is pressed; arrow keys move as in any radio group.
export function choice(label, options, chosen, onChoose) {
	const name = newId("choice");
	const group = h("fieldset", { class: "choice" }, h("legend", {}, label));
	for (const [value, text] of options) {
		const input = h("input", {
			type: "radio",
			name,
			value,
			checked: value === chosen,
			onchange: () => onChoose(value),
		});
		group.append(h("label", {}, input, h("span", {}, text)));
	}
	return group;
}

// VALUE is the one that was chosen, by whatever way
export function mark(group, value) {
	for (const input of group?.querySelectorAll("input") ?? [])
		input.checked = input.value === String(value);
}

export function select(label, options, chosen, onChoose) {
	const node = h("select", {
		"aria-label": label,
		onchange: () => onChoose(node.value),
	});
	for (const [value, text] of options)
		node.append(
			h(
				"option",
				{
					value: String(value),
					selected: String(value) === String(chosen),
				},
				text,
			),
		);
	return h("label", { class: "field" }, h("span", {}, label), node);
}

// Some browsers refuse the clipboard to pages from file://; a selected field always works.
export async function copyText(text) {
	try {
		await navigator.clipboard.writeText(text);
		return true;
	} catch {
		const area = h("textarea", { class: "offscreen" });
		area.value = text;
		document.body.append(area);
		area.select();
		const isCopied = document.execCommand("copy");
		area.remove();
		return isCopied;
	}
}

// a button that copies what TEXT() returns and then reads "Copied"
export function copyButton(label, text) {
	const button = h("button", { type: "button", class: "copy" }, label);
	button.addEventListener("click", async () => {
		const isCopied = await copyText(text());
		button.textContent = isCopied ? "Copied" : "Copying was refused";
		setTimeout(() => {
			button.textContent = label;
		}, 1500);
	});
	return button;
}
