// Elements out of names, attributes and children. Text is always text: nothing here reads markup.

const SVG = "http://www.w3.org/2000/svg";
const HANDLERS = ["onclick", "onsubmit", "onchange", "oninput", "onkeydown", "onclose"];

function make(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (HANDLERS.includes(name)) node[name] = value;
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children.flat(Infinity)) {
    if (child === undefined || child === null || child === false) continue;
    node.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return node;
}

/** An HTML element. A child is a node, a text or number, a list of these, or nothing. */
export const h = (name, attributes, ...children) => make(document.createElement(name), attributes, children);

/** An SVG element. */
export const s = (name, attributes, ...children) => make(document.createElementNS(SVG, name), attributes, children);

/** Make a node's children those given, changing what differs only: focus, scrolling and what was typed stay. */
export function patch(parent, children) {
  const wanted = children.flat(Infinity).filter((child) => child instanceof Node);
  const ids = new Set(wanted.map((child) => child.id).filter(Boolean));
  wanted.forEach((next, i) => {
    let old = parent.childNodes[i];
    // Rows that went, or came before this one, leave the others as they are.
    while (old?.id && next.id && old.id !== next.id && !ids.has(old.id)) {
      old.remove();
      old = parent.childNodes[i];
    }
    if (old === undefined) parent.append(next);
    else if (!alike(old, next)) {
      if (old.id && ids.has(old.id)) parent.insertBefore(next, old);
      else old.replaceWith(next);
    } else if (next.nodeType === Node.TEXT_NODE) {
      if (old.data !== next.data) old.data = next.data;
    } else become(old, next);
  });
  while (parent.childNodes.length > wanted.length) parent.lastChild.remove();
}

const alike = (old, next) =>
  old.nodeType === next.nodeType && old.nodeName === next.nodeName && (old.id ?? "") === (next.id ?? "") && old.getAttribute?.("type") === next.getAttribute?.("type");

function become(old, next) {
  for (const { name } of [...old.attributes]) {
    // Whether details are open, and a dialog shown, is the reader's own doing.
    if (!next.hasAttribute(name) && name !== "open") old.removeAttribute(name);
  }
  for (const { name, value } of next.attributes) {
    if (old.getAttribute(name) === value) continue;
    old.setAttribute(name, value);
    if (name === "value" && old.nodeName === "INPUT") old.value = value;
  }
  for (const name of HANDLERS) {
    if (old[name] !== next[name]) old[name] = next[name];
  }
  if (old.nodeName !== "TEXTAREA") patch(old, [...next.childNodes]);
  if (old.nodeName === "SELECT" && old !== document.activeElement) old.value = next.value;
}
