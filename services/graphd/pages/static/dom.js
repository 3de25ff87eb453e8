// Build elements from names, attributes and children. Text is never parsed as markup.

const SVG = "http://www.w3.org/2000/svg";
const HANDLERS = ["onclick", "onsubmit", "onchange", "oninput", "onkeydown", "onmousedown", "onblur", "onclose"];

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

/** Create an HTML element. A child is a node, a text, a number, a list of these, or null. */
export const h = (name, attributes, ...children) => make(document.createElement(name), attributes, children);

/** Create an SVG element. */
export const s = (name, attributes, ...children) => make(document.createElementNS(SVG, name), attributes, children);

/** Replace a node's children, changing only what differs: focus, scroll positions and typed text stay. */
export function patch(parent, children) {
  const wanted = children.flat(Infinity).filter((child) => child instanceof Node);
  const ids = new Set(wanted.map((child) => child.id).filter(Boolean));
  wanted.forEach((next, i) => {
    let old = parent.childNodes[i];
    // Remove rows that are gone. The remaining rows keep their elements.
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
    } else if (old.dataset?.own === undefined) become(old, next); // `data-own`: a script fills this element
  });
  while (parent.childNodes.length > wanted.length) parent.lastChild.remove();
}

const alike = (old, next) =>
  old.nodeType === next.nodeType && old.nodeName === next.nodeName && (old.id ?? "") === (next.id ?? "") && old.getAttribute?.("type") === next.getAttribute?.("type");

function become(old, next) {
  for (const { name } of [...old.attributes]) {
    // The reader opens and closes details and dialogs, so keep their state.
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
