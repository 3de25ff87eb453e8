// A picture of a sampled neighborhood: a force-directed layout in rings, one per hop.

import "./vendor/d3-quadtree.min.js";
import "./vendor/d3-dispatch.min.js";
import "./vendor/d3-timer.min.js";
import "./vendor/d3-force.min.js";
import { h, s } from "./dom.js";
import { of, real } from "./format.js";
import { table } from "./parts.js";

const { forceCollide, forceLink, forceManyBody, forceRadial, forceSimulation } = globalThis.d3;
const TICKS = 120;
const MARGIN = 46;
const MOST_ROWS = 200;

/** Return the position of every node. The layout is computed at once and is the same every time. */
export function layout({ nodes, edges }, width, height) {
  const ring = (Math.min(width, height) / 2 - MARGIN) / Math.max(1, ...nodes.map((node) => node.hop));
  const placed = nodes.map((node) => (node.hop ? { hop: node.hop } : { hop: 0, fx: 0, fy: 0 }));
  const links = edges.filter((edge) => edge.source !== edge.target).map(({ source, target }) => ({ source, target }));
  forceSimulation(placed)
    .alphaDecay(1 - 0.001 ** (1 / TICKS)) // so that it ends cooled down
    .force("link", forceLink(links).distance(ring * 0.8).strength(0.4))
    .force("charge", forceManyBody().strength(-60))
    .force("ring", forceRadial((node) => node.hop * ring).strength(0.9))
    .force("collide", forceCollide((node) => (node.hop < 2 ? 30 : 13))) // with space for labels
    .stop()
    .tick(TICKS);
  const within = (value, limit) => Math.max(-limit, Math.min(limit, value));
  const stretch = Math.max(1, (width / 2 - MARGIN) / (height / 2 - MARGIN)); // wide screens: ellipses instead of circles
  return placed.map(({ x, y }) => [width / 2 + within(x * stretch, width / 2 - 10), height / 2 + within(y, height / 2 - 14)]);
}

const shape = (kind, x, y, size) => {
  const at = { class: `node n${kind % 3}` };
  if (kind % 3 === 0) return s("circle", { ...at, cx: x.toFixed(1), cy: y.toFixed(1), r: size });
  if (kind % 3 === 1) return s("rect", { ...at, x: (x - size).toFixed(1), y: (y - size).toFixed(1), width: 2 * size, height: 2 * size });
  return s("path", { ...at, d: `M${x} ${y - size - 2}L${x + size + 2} ${y}L${x} ${y + size + 2}L${x - size - 2} ${y}Z` });
};

const cut = (text) => (text.length > 14 ? `${text.slice(0, 13)}…` : text);

/** Draw a neighborhood. `href` returns the address of a node's page. */
export function picture({ id, data, positions, width, height, href }) {
  const { nodes, edges } = data;
  const kinds = [...new Set(nodes.map((node) => node.type))];
  const name = (node) => `${node.type} ${node.id}`;
  const hops = Math.max(...nodes.map((node) => node.hop));
  const ties = edges.map((edge) => {
    const [[x1, y1], [x2, y2]] = [positions[edge.source], positions[edge.target]];
    const long = Math.hypot(x2 - x1, y2 - y1) || 1;
    const short = Math.max(0, long - 11) / long; // the arrow ends at the border of the node
    return s(
      "line",
      { class: "tie", x1: x1.toFixed(1), y1: y1.toFixed(1), x2: (x1 + (x2 - x1) * short).toFixed(1), y2: (y1 + (y2 - y1) * short).toFixed(1), "marker-end": `url(#${id}-arrow)` },
      s("title", null, `${name(nodes[edge.source])} ${edge.type} ${name(nodes[edge.target])}${edge.weight === null ? "" : `, weight ${real(edge.weight)}`}`),
    );
  });
  const marks = nodes.map((node, i) => {
    const [x, y] = positions[i];
    return s(
      "a",
      { href: href(node), class: node.hop ? null : "center" },
      s("title", null, node.hop ? `${name(node)}, ${of(node.hop, "hop")} away` : name(node)),
      shape(kinds.indexOf(node.type), x, y, node.hop ? 7 : 10),
      node.hop < 2 && s("text", { class: "label", x: x.toFixed(1), y: (y - 13).toFixed(1), "text-anchor": "middle", "aria-hidden": "true" }, cut(node.id)),
    );
  });
  return h(
    "figure",
    { id, class: "plot" },
    h("figcaption", null, "Sampled neighborhood"),
    h("ul", { class: "legend" }, kinds.map((type, kind) => h("li", null, s("svg", { class: "key", viewBox: "0 0 20 20", width: 18, height: 18, "aria-hidden": "true" }, shape(kind, 10, 10, 7)), type))),
    s(
      "svg",
      { role: "group", "aria-labelledby": `${id}-title ${id}-desc`, viewBox: `0 0 ${width} ${height}`, width, height },
      s("title", { id: `${id}-title` }, "Sampled neighborhood"),
      s("desc", { id: `${id}-desc` }, `${of(nodes.length, "node")} within ${of(hops, "hop")} of ${name(nodes[0])}, and ${of(edges.length, "sampled edge")}. Every node is a link.`),
      s("defs", null, s("marker", { id: `${id}-arrow`, viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto-start-reverse" }, s("path", { class: "arrow", d: "M0 0L8 4L0 8Z" }))),
      ties,
      marks,
    ),
    h(
      "details",
      null,
      h("summary", null, "The sampled edges"),
      table({
        id: `${id}-edges`,
        caption: edges.length > MOST_ROWS ? `The first ${MOST_ROWS} of ${edges.length} edges` : "Sampled edges",
        rows: edges.slice(0, MOST_ROWS),
        columns: [
          { label: "From", head: true, cell: (edge) => h("a", { href: href(nodes[edge.source]) }, name(nodes[edge.source])) },
          { label: "Edge type", cell: (edge) => edge.type },
          { label: "To", cell: (edge) => h("a", { href: href(nodes[edge.target]) }, name(nodes[edge.target])) },
          { label: "Weight", number: true, cell: (edge) => real(edge.weight) },
        ],
      }),
    ),
  );
}
