"use strict";
// The page is complete without this script, which adds sorting, filtering and a draggable graph.
// Text is only moved or cloned, never parsed.
(function () {
  function numberOf(text) {
    const plain = text.replace(/[,%\s]/g, "");
    return plain === "" || isNaN(plain) ? NaN : Number(plain);
  }

  function sortBy(table, column, descending) {
    const body = table.tBodies[0];
    const rows = Array.from(body.rows);
    const keys = new Map(rows.map((row) => [row, row.cells[column].textContent.trim()]));
    const numeric = rows.every((row) => {
      const key = keys.get(row);
      return key === "" || key === "\u00b7" || !isNaN(numberOf(key));
    });
    rows.sort((a, b) => {
      const x = keys.get(a), y = keys.get(b);
      if (!numeric) return x.localeCompare(y, undefined, { numeric: true });
      const p = numberOf(x), q = numberOf(y);
      if (isNaN(p) || isNaN(q)) return (isNaN(p) ? 1 : 0) - (isNaN(q) ? 1 : 0);
      return p - q;
    });
    if (descending) {
      // Empty cells stay last in either order.
      const empty = rows.filter((row) => numeric && isNaN(numberOf(keys.get(row))));
      const full = rows.filter((row) => !empty.includes(row)).reverse();
      rows.splice(0, rows.length, ...full, ...empty);
    }
    rows.forEach((row) => body.appendChild(row));
  }

  function makeSortable(table) {
    const heads = Array.from(table.tHead.rows[0].cells);
    heads.forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "sort";
      while (head.firstChild) button.appendChild(head.firstChild);
      head.appendChild(button);
      button.addEventListener("click", () => {
        const descending = head.getAttribute("aria-sort") === "ascending";
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", descending ? "descending" : "ascending");
        sortBy(table, column, descending);
      });
    });
  }

  function makeFilterable(table) {
    const rows = Array.from(table.tBodies[0].rows);
    if (rows.length < 8) return;
    const label = document.createElement("label");
    label.className = "filter";
    const field = document.createElement("input");
    const count = document.createElement("span");
    field.type = "search";
    field.placeholder = "filter rows";
    field.setAttribute("aria-label", "Show only rows with this text");
    label.append(field, count);
    table.closest(".scroll").before(label);
    const texts = new Map(rows.map((row) => [row, row.textContent.toLowerCase()]));
    field.addEventListener("input", () => {
      const wanted = field.value.trim().toLowerCase();
      let shown = 0;
      rows.forEach((row) => {
        row.hidden = wanted !== "" && !texts.get(row).includes(wanted);
        shown += row.hidden ? 0 : 1;
      });
      count.textContent = wanted === "" ? "" : ` ${shown} of ${rows.length} rows`;
    });
  }

  document.querySelectorAll("table.sortable").forEach((table) => {
    makeSortable(table);
    makeFilterable(table);
  });

  // Collapsed parts are opened for printing.
  let opened = [];
  window.addEventListener("beforeprint", () => {
    opened = Array.from(document.querySelectorAll("details:not([open])"));
    opened.forEach((details) => { details.open = true; });
  });
  window.addEventListener("afterprint", () => {
    opened.forEach((details) => { details.open = false; });
    opened = [];
  });

  const drawing = document.getElementById("graph");
  if (!drawing) return;
  const nodes = Array.from(drawing.querySelectorAll("g.node")).map((group) => ({
    group,
    x: Number(group.dataset.x),
    y: Number(group.dataset.y),
    width: Number(group.dataset.width),
    height: Number(group.dataset.height),
  }));
  const edges = Array.from(drawing.querySelectorAll("g.edge")).map((group) => ({
    group,
    source: Number(group.dataset.source),
    target: Number(group.dataset.target),
  }));
  const panel = document.getElementById("graph-panel");

  // The last selection stays, since lifting a finger or moving to the panel leaves the drawing.
  function show(id) {
    const found = document.getElementById(id);
    if (!found) return;
    const copy = found.cloneNode(true);
    copy.removeAttribute("id");
    copy.hidden = false;
    panel.replaceChildren(copy);
  }

  function border(from, to) {
    const dx = to.x - from.x, dy = to.y - from.y;
    const reach = Math.max(Math.abs(dx) / (from.width / 2), Math.abs(dy) / (from.height / 2), 1e-9);
    return [from.x + dx / reach, from.y + dy / reach];
  }

  function redraw(k) {
    edges.filter((edge) => edge.source === k || edge.target === k).forEach((edge) => {
      const a = nodes[edge.source], b = nodes[edge.target];
      const [x1, y1] = border(a, b), [x2, y2] = border(b, a);
      edge.group.querySelectorAll("path").forEach((path) => {
        path.setAttribute("d", `M${x1},${y1} L${x2},${y2}`);
      });
    });
  }

  function pointIn(event) {
    const point = drawing.createSVGPoint();
    point.x = event.clientX;
    point.y = event.clientY;
    return point.matrixTransform(drawing.getScreenCTM().inverse());
  }

  // The element may be larger than its viewBox; nodes can be dragged over all of it.
  function bounds() {
    const scale = drawing.getScreenCTM();
    const box = drawing.getBoundingClientRect();
    const left = (box.left - scale.e) / scale.a, top = (box.top - scale.f) / scale.d;
    return [left, top, left + box.width / scale.a, top + box.height / scale.d];
  }

  nodes.forEach((node, k) => {
    let offset = null;
    node.group.addEventListener("pointerdown", (event) => {
      const at = pointIn(event);
      offset = [at.x - node.x, at.y - node.y];
      node.group.setPointerCapture(event.pointerId);
      event.preventDefault();
      node.group.focus();
    });
    node.group.addEventListener("pointermove", (event) => {
      if (offset === null) return;
      const at = pointIn(event);
      const half = [node.width / 2, node.height / 2];
      const [left, top, right, bottom] = bounds();
      node.x = Math.min(Math.max(at.x - offset[0], left + half[0]), right - half[0]);
      node.y = Math.min(Math.max(at.y - offset[1], top + half[1]), bottom - half[1]);
      node.group.setAttribute("transform", `translate(${node.x},${node.y})`);
      redraw(k);
    });
    ["pointerup", "pointercancel"].forEach((name) =>
      node.group.addEventListener(name, () => { offset = null; }));
    node.group.addEventListener("pointerenter", () => show(`node-${k}`));
    node.group.addEventListener("focus", () => show(`node-${k}`));
  });
  edges.forEach((edge, e) => {
    edge.group.addEventListener("pointerenter", () => show(`edge-${e}`));
    edge.group.addEventListener("focus", () => show(`edge-${e}`));
  });

  const threshold = document.getElementById("threshold");
  const measure = document.getElementById("measure");
  const output = document.getElementById("threshold-value");
  function apply() {
    const by = measure ? measure.value : threshold.dataset.by;
    const least = Number(threshold.value) / 100;
    let shown = 0;
    edges.forEach((edge) => {
      const weak = Number(edge.group.dataset[by]) < least;
      edge.group.classList.toggle("weak", weak);
      shown += weak ? 0 : 1;
    });
    output.textContent = `${least.toFixed(2)}: ${shown} of ${edges.length} ${edges.length === 1 ? "edge" : "edges"}`;
  }
  if (threshold) {
    document.getElementById("graph-controls").hidden = false;
    threshold.addEventListener("input", apply);
    if (measure) measure.addEventListener("change", apply);
    apply();
  }
})();
