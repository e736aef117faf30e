// A drawing of a graph: forces on a canvas. Repulsion is felt within a radius only, found by a grid,
// so a step costs the number of nodes, not its square.

import { h, colour } from "./elements.js";

const RADIUS = 90;
const LINK = 60;

class GraphDrawing extends HTMLElement {
  connectedCallback() {
    this.nodes = new Map();
    this.links = new Map();
    this.view = { x: 0, y: 0, scale: 1 };
    this.canvas = h("canvas", { tabindex: "0", role: "application", "aria-label": "Graph. Tab and arrow keys choose nodes, Enter expands one, plus and minus zoom." });
    this.append(this.canvas);
    this.watch = new ResizeObserver(() => this.size());
    this.watch.observe(this);
    this.onscheme = () => { this.colours = null; this.wake(); };
    addEventListener("scheme", this.onscheme);
    for (const [name, handler] of [["pointerdown", this.ondown], ["pointermove", this.onmove], ["pointerup", this.onup], ["dblclick", this.onexpand], ["keydown", this.onkey]]) this.canvas.addEventListener(name, handler.bind(this));
    this.canvas.addEventListener("wheel", (event) => { event.preventDefault(); this.zoom(event.deltaY < 0 ? 1.15 : 1 / 1.15, event.offsetX, event.offsetY); }, { passive: false });
    this.size();
  }
  disconnectedCallback() { this.watch.disconnect(); removeEventListener("scheme", this.onscheme); cancelAnimationFrame(this.frame); this.frame = 0; }
  clear() { this.nodes.clear(); this.links.clear(); this.chosen = null; this.wake(); }

  /** Adds nodes and relationships as answers hold them; known ones stay where they are. */
  add({ nodes, relationships }, around) {
    for (const node of nodes) {
      const known = this.nodes.get(node.id);
      if (known) { known.node = node; continue; }
      const angle = this.nodes.size * 2.399963;
      const far = around ? 40 : 12 * Math.sqrt(this.nodes.size);
      this.nodes.set(node.id, { node, x: (around?.x ?? 0) + far * Math.cos(angle), y: (around?.y ?? 0) + far * Math.sin(angle), vx: 0, vy: 0, colour: colour(node.labels[0] ?? "") });
    }
    for (const relationship of relationships) {
      const [from, to] = [this.nodes.get(relationship.startNode), this.nodes.get(relationship.endNode)];
      if (from && to) this.links.set(relationship.id, { relationship, from, to });
    }
    this.heat = 1;
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) { for (let step = 0; step < 250; step += 1) this.step(); this.heat = 0; }
    this.fitting = !around;
    this.wake();
  }
  size() {
    const ratio = devicePixelRatio || 1;
    this.canvas.width = this.clientWidth * ratio;
    this.canvas.height = this.clientHeight * ratio;
    this.wake();
  }
  wake() { if (!this.frame && this.isConnected) this.frame = requestAnimationFrame(() => this.turn()); }
  turn() {
    this.frame = 0;
    if (!this.isConnected) return;
    if (this.heat > 0.02) { this.step(); this.heat *= 0.985; }
    if (this.fitting && this.nodes.size) this.fit();
    this.paint();
    this.frames = (this.frames ?? 0) + 1;
    if (this.heat > 0.02) this.wake(); else this.fitting = false;
  }
  step() {
    const cells = new Map();
    for (const node of this.nodes.values()) {
      const key = Math.floor(node.x / RADIUS) * 65536 + Math.floor(node.y / RADIUS);
      const cell = cells.get(key);
      if (cell) cell.push(node); else cells.set(key, [node]);
    }
    const heat = this.heat || 1;
    for (const [key, cell] of cells) {
      for (const [dx, dy] of [[0, 0], [1, 0], [0, 1], [1, 1], [1, -1]]) {
        const other = cells.get(key + dx * 65536 + dy);
        if (!other) continue;
        for (let i = 0; i < cell.length; i += 1) {
          const a = cell[i];
          for (let j = other === cell ? i + 1 : 0; j < other.length; j += 1) {
            const b = other[j];
            let x = a.x - b.x, y = a.y - b.y;
            const square = x * x + y * y;
            if (square > RADIUS * RADIUS) continue;
            let far = Math.sqrt(square);
            if (far < 0.01) { x = (i - j) || 1; y = 1; far = 1; }
            const force = ((RADIUS - far) / RADIUS) * 6 * heat / far;
            a.vx += x * force; a.vy += y * force; b.vx -= x * force; b.vy -= y * force;
          }
        }
      }
    }
    for (const { from, to } of this.links.values()) {
      const x = to.x - from.x, y = to.y - from.y;
      const far = Math.sqrt(x * x + y * y) || 1;
      const force = ((far - LINK) / far) * 0.06 * heat;
      from.vx += x * force; from.vy += y * force; to.vx -= x * force; to.vy -= y * force;
    }
    for (const node of this.nodes.values()) {
      node.vx -= node.x * 0.0006 * heat; node.vy -= node.y * 0.0006 * heat;
      if (node !== this.dragged) { node.x += Math.max(-30, Math.min(30, node.vx)); node.y += Math.max(-30, Math.min(30, node.vy)); }
      node.vx *= 0.6; node.vy *= 0.6;
    }
  }
  fit() {
    let [left, right, top, bottom] = [Infinity, -Infinity, Infinity, -Infinity];
    for (const { x, y } of this.nodes.values()) { left = Math.min(left, x); right = Math.max(right, x); top = Math.min(top, y); bottom = Math.max(bottom, y); }
    const scale = Math.min(1.6, this.clientWidth / (right - left + 120), this.clientHeight / (bottom - top + 120));
    this.view = { scale, x: this.clientWidth / 2 - ((left + right) / 2) * scale, y: this.clientHeight / 2 - ((top + bottom) / 2) * scale };
  }
  paint() {
    const style = this.colours ??= (() => { const of = getComputedStyle(document.documentElement); const value = (name) => of.getPropertyValue(name).trim(); return { line: value("--muted"), text: value("--text"), back: value("--surface"), accent: value("--accent"), node: Array.from({ length: 9 }, (_, at) => value("--c" + (at || 1))) }; })();
    const ratio = devicePixelRatio || 1;
    const { x, y, scale } = this.view;
    const pen = this.canvas.getContext("2d");
    pen.setTransform(1, 0, 0, 1, 0, 0);
    pen.clearRect(0, 0, this.canvas.width, this.canvas.height);
    pen.setTransform(scale * ratio, 0, 0, scale * ratio, x * ratio, y * ratio);
    const isClose = scale > 0.55 && this.nodes.size < 700;
    pen.strokeStyle = style.line;
    pen.globalAlpha = 0.55;
    pen.lineWidth = 1 / Math.max(0.5, scale);
    pen.beginPath();
    for (const { from, to } of this.links.values()) { pen.moveTo(from.x, from.y); pen.lineTo(to.x, to.y); }
    pen.stroke();
    pen.globalAlpha = 1;
    const radius = Math.max(7, 2.5 / scale);
    for (let which = 1; which <= 8; which += 1) {
      pen.fillStyle = style.node[which];
      pen.beginPath();
      for (const node of this.nodes.values()) if (node.colour === which) { pen.moveTo(node.x + radius, node.y); pen.arc(node.x, node.y, radius, 0, 6.2832); }
      pen.fill();
    }
    if (this.chosen) { pen.strokeStyle = style.text; pen.lineWidth = 2.5; pen.beginPath(); pen.arc(this.chosen.x, this.chosen.y, radius + 3, 0, 6.2832); pen.stroke(); }
    if (!isClose) return;
    pen.fillStyle = style.text;
    pen.font = "10px system-ui, sans-serif";
    pen.textAlign = "center";
    for (const { node, x: at, y: down } of this.nodes.values()) pen.fillText(caption(node), at, down + 18);
    pen.fillStyle = style.line;
    for (const { relationship, from, to } of this.links.values()) {
      const [mx, my] = [from.x + (to.x - from.x) * 0.55, from.y + (to.y - from.y) * 0.55];
      pen.fillText(relationship.type, mx, my);
      const angle = Math.atan2(to.y - from.y, to.x - from.x);
      const [ex, ey] = [to.x - Math.cos(angle) * 9, to.y - Math.sin(angle) * 9];
      pen.beginPath(); pen.moveTo(ex, ey); pen.lineTo(ex - Math.cos(angle - 0.4) * 6, ey - Math.sin(angle - 0.4) * 6); pen.lineTo(ex - Math.cos(angle + 0.4) * 6, ey - Math.sin(angle + 0.4) * 6); pen.fill();
    }
  }
  under(event) {
    const [x, y] = [(event.offsetX - this.view.x) / this.view.scale, (event.offsetY - this.view.y) / this.view.scale];
    let nearest = null, far = Math.max(12, 9 / this.view.scale);
    for (const node of this.nodes.values()) { const away = Math.hypot(node.x - x, node.y - y); if (away < far) [nearest, far] = [node, away]; }
    return nearest;
  }
  ondown(event) {
    this.canvas.setPointerCapture(event.pointerId);
    this.fitting = false;
    this.dragged = this.under(event);
    this.from = [event.offsetX, event.offsetY];
    if (this.dragged) this.choose(this.dragged);
  }
  onmove(event) {
    if (!this.from) return;
    const [x, y] = [event.offsetX - this.from[0], event.offsetY - this.from[1]];
    this.from = [event.offsetX, event.offsetY];
    if (this.dragged) { this.dragged.x += x / this.view.scale; this.dragged.y += y / this.view.scale; this.heat = Math.max(this.heat, 0.3); } else { this.view.x += x; this.view.y += y; }
    this.wake();
  }
  onup() { this.from = this.dragged = null; }
  onexpand(event) { const node = this.under(event); if (node) this.expand(node); }
  expand(node) { this.dispatchEvent(new CustomEvent("expand", { detail: node })); }
  choose(node) { this.chosen = node; this.dispatchEvent(new CustomEvent("choose", { detail: node.node })); this.wake(); }
  zoom(factor, x = this.clientWidth / 2, y = this.clientHeight / 2) {
    this.fitting = false;
    const scale = Math.min(6, Math.max(0.03, this.view.scale * factor));
    const by = scale / this.view.scale;
    this.view = { scale, x: x - (x - this.view.x) * by, y: y - (y - this.view.y) * by };
    this.wake();
  }
  onkey(event) {
    const all = [...this.nodes.values()];
    if (event.key === "+" || event.key === "-") this.zoom(event.key === "+" ? 1.25 : 0.8);
    else if (event.key === "Enter" && this.chosen) this.expand(this.chosen);
    else if (event.key.startsWith("Arrow") && all.length) {
      const [dx, dy] = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] }[event.key];
      const from = this.chosen;
      // The nearest node in that direction; distance across counts double.
      const cost = (node) => { const [x, y] = [node.x - from.x, node.y - from.y]; const along = x * dx + y * dy; return along <= 0 ? Infinity : along + 2 * Math.abs(x * dy - y * dx); };
      const next = from ? all.filter((node) => node !== from).reduce((best, node) => (cost(node) < cost(best) ? node : best), from) : all[0];
      if (next) this.choose(next);
    } else return;
    event.preventDefault();
  }
}
customElements.define("graph-drawing", GraphDrawing);

/** What a node is called: its name or title, else its first property, else its label. */
export function caption(node) {
  const { name, title, label, id } = node.properties;
  const value = name ?? title ?? label ?? id ?? Object.values(node.properties)[0] ?? node.labels[0] ?? node.id;
  return String(value).slice(0, 24);
}
