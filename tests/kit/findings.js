// What is wrong with a page for readers who do not see it, see it badly, or have no mouse: a list of words.
() => {
  const found = [];
  const seen = (node) => {
    const box = node.getBoundingClientRect();
    const style = getComputedStyle(node);
    return box.width > 0 && box.height > 0 && style.visibility !== "hidden" && style.display !== "none" && !node.closest(".unseen") && !node.closest(".skip:not(:focus)");
  };
  const rgb = (text) => {
    const [r, g, b, a = 1] = text.match(/[\d.]+/g).map(Number);
    return text.startsWith("color(") ? [255 * r, 255 * g, 255 * b, a] : [r, g, b, a];
  };
  const light = ([r, g, b]) => {
    const [x, y, z] = [r, g, b].map((v) => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const contrast = (a, b) => {
    const [high, low] = [light(a), light(b)].sort((p, q) => q - p);
    return (high + 0.05) / (low + 0.05);
  };
  const ground = (node) => {
    for (let at = node; at; at = at.parentElement) {
      const colour = rgb(getComputedStyle(at).backgroundColor);
      if (colour[3] === 1) return colour;
    }
    return [255, 255, 255, 1];
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const text = walker.currentNode.data.trim();
    const node = walker.currentNode.parentElement;
    if (!text || !seen(node) || ["SCRIPT", "STYLE", "NOSCRIPT", "title", "desc"].includes(node.nodeName) || node.closest("progress, noscript")) continue;
    const style = getComputedStyle(node);
    const ratio = contrast(rgb(node.namespaceURI.endsWith("svg") ? style.fill : style.color), ground(node));
    if (ratio < 4.5) found.push(`contrast ${ratio.toFixed(2)} of "${text.slice(0, 40)}"`);
  }
  for (const mark of document.querySelectorAll(".plot .bar, .plot .line, .plot .dot, .plot .bound, .swatch line")) {
    const style = getComputedStyle(mark);
    const colour = rgb(style.stroke !== "none" ? style.stroke : style.fill);
    const ratio = contrast(colour, ground(mark));
    if (ratio < 3) found.push(`contrast ${ratio.toFixed(2)} of a mark ${mark.getAttribute("class")}`);
  }
  for (const control of document.querySelectorAll("button, select, input, textarea")) {
    const ratio = contrast(rgb(getComputedStyle(control).borderTopColor), ground(control.parentElement));
    if (seen(control) && ratio < 3) found.push(`contrast ${ratio.toFixed(2)} of the border of ${control.outerHTML.slice(0, 60)}`);
  }
  let level = 0;
  for (const heading of document.querySelectorAll("h1, h2, h3, h4, h5, h6")) {
    const mine = Number(heading.nodeName[1]);
    if (mine > level + 1) found.push(`heading "${heading.textContent}" of level ${mine} after level ${level}`);
    level = mine;
  }
  if (document.querySelectorAll("h1").length !== 1) found.push(`${document.querySelectorAll("h1").length} headings of level 1`);
  for (const table of document.querySelectorAll("table")) {
    if (!table.caption?.textContent.trim()) found.push("a table without a caption");
    for (const head of table.querySelectorAll("th")) if (!["col", "row"].includes(head.scope)) found.push(`a table head without scope: ${head.textContent}`);
    const region = table.closest("[role=region]");
    if (!region || region.tabIndex !== 0) found.push(`the table "${table.caption?.textContent}" cannot be scrolled by keyboard`);
  }
  for (const plot of document.querySelectorAll("svg[role=img]")) {
    const [title, desc] = (plot.getAttribute("aria-labelledby") ?? "").split(" ").map((id) => document.getElementById(id)?.textContent ?? "");
    if (!title || !desc || desc.length < 40) found.push("a plot without a title and a description");
  }
  for (const control of document.querySelectorAll("select, input, textarea, progress")) {
    if (!control.labels?.length && !control.getAttribute("aria-label")) found.push(`a control without a name: ${control.outerHTML.slice(0, 80)}`);
  }
  for (const one of document.querySelectorAll("a, button")) if (!one.textContent.trim() && !one.getAttribute("aria-label")) found.push(`without a name: ${one.outerHTML.slice(0, 80)}`);
  const ids = [...document.querySelectorAll("[id]")].map((node) => node.id);
  for (const id of new Set(ids)) if (ids.filter((other) => other === id).length > 1) found.push(`the id ${id} is there twice`);
  const over = document.documentElement.scrollWidth - document.documentElement.clientWidth;
  if (over > 0) found.push(`the page is ${over} px wider than the window`);
  return found;
}
