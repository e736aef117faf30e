// Charts: lines, bars and heat maps with axes, units, a cursor for pointer and keyboard, and a text for
// readers of the screen. One element: <data-chart>, whose `data` says what to draw.
//
//   {kind: "line", at: [ms …], series: [{name, values, colour}], unit, height, isSpark}
//   {kind: "bar", labels: […], series: [{name, values}], unit, height}
//   {kind: "heat", columns: […], rows: […], values: [[…] …], unit}

import { h, number, short } from "./elements.js";

const SVG = "http://www.w3.org/2000/svg";
function s(name, attributes, ...children) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) if (value !== undefined) element.setAttribute(key, value);
  element.append(...children.flat());
  return element;
}

/** A few round values, among them 0, that hold the least and the greatest between the first and the last. */
export function scale(least, greatest) {
  if (!(greatest > 0) && !(least < 0)) return [0, 1];
  const rough = (Math.max(0, greatest) - Math.min(0, least)) / 4;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].find((factor) => factor * power >= rough * 0.999) * power;
  const values = [];
  for (let at = Math.floor(Math.min(0, least) / step); at < Math.max(0, greatest) / step + 0.999; at += 1) values.push(at * step);
  return values;
}

/** A moment in UTC, as everything here. */
function moment(ms, span) {
  const date = new Date(ms);
  const two = (value) => String(value).padStart(2, "0");
  const clock = two(date.getUTCHours()) + ":" + two(date.getUTCMinutes());
  if (span > 2 * 86400e3) return date.getUTCFullYear() + "-" + two(date.getUTCMonth() + 1) + "-" + two(date.getUTCDate());
  return span < 600e3 ? clock + ":" + two(date.getUTCSeconds()) : clock;
}

class DataChart extends HTMLElement {
  set data(data) { this.given = data; if (this.isConnected) this.draw(); }
  connectedCallback() {
    this.watch = new ResizeObserver(() => this.clientWidth !== this.drawnWidth && this.draw());
    this.watch.observe(this);
    this.addEventListener("pointermove", this.onpointer);
    this.addEventListener("pointerleave", () => this.point(null));
    this.addEventListener("keydown", this.onkey);
    if (this.given) this.draw();
  }
  disconnectedCallback() { this.watch.disconnect(); }

  draw() {
    this.drawnWidth = this.clientWidth || 300;
    const { kind, isSpark } = this.given;
    this.plot = isSpark ? [2, 2, this.drawnWidth - 4, (this.given.height ?? 42) - 4] : [46, 20, this.drawnWidth - 54, (this.given.height ?? 200) - 44];
    const svg = s("svg", { height: this.given.height ?? (isSpark ? 42 : 200), role: "img", "aria-label": this.describe() });
    if (!isSpark) svg.setAttribute("tabindex", "0");
    ({ line: () => this.lines(svg), bar: () => this.bars(svg), heat: () => this.heat(svg) })[kind]();
    this.cursor = s("line", { class: "cursor", y1: this.plot[1], y2: this.plot[1] + this.plot[3], visibility: "hidden" });
    svg.append(this.cursor);
    this.tip = h("div", { class: "tip", hidden: true, role: "status" });
    const many = this.given.series?.length > 1 && !isSpark;
    this.replaceChildren(svg, this.tip, many ? h("div", { class: "keys" }, this.given.series.map((one, at) => h("span", {}, h("i", { class: "k" + this.colour(at) }), one.name))) : "");
  }
  colour(at) { return this.given.series[at].colour ?? 1 + (at % 8); }
  describe() {
    const { kind, series, unit = "", title = "" } = this.given;
    if (kind === "heat") return title || "Heat map";
    return (title ? title + ": " : "") + series.map((one) => {
      const values = one.values.filter((value) => value !== null && value !== undefined);
      if (!values.length) return one.name + " has no values";
      return `${one.name} from ${number(Math.min(...values))} to ${number(Math.max(...values))} ${unit}, last ${number(values.at(-1))}`;
    }).join("; ");
  }
  /** The scale of the values, and where a value lies on it. */
  scaled() {
    const all = this.given.series.flatMap((one) => one.values).filter((value) => Number.isFinite(value));
    const [least, greatest] = all.reduce(([low, high], value) => [Math.min(low, value), Math.max(high, value)], [0, 0]);
    const steps = this.given.isSpark ? [least, greatest > least ? greatest : least + 1] : scale(least, greatest);
    const [, y, , height] = this.plot;
    this.yOf = (value) => y + height - ((value - steps[0]) / (steps.at(-1) - steps[0])) * height;
    return steps;
  }

  axes(svg, steps, labelOf) {
    const [x, y, width, height] = this.plot;
    for (const value of steps) {
      const at = this.yOf(value);
      svg.append(s("line", { class: "axis", x1: x, x2: x + width, y1: at, y2: at }), s("text", { x: x - 6, y: at + 4, "text-anchor": "end" }, short(value)));
    }
    if (this.given.unit) svg.append(s("text", { x: 0, y: 10 }, this.given.unit));
    const most = Math.max(1, Math.floor(width / 90));
    const count = this.count;
    const each = Math.max(1, Math.ceil(count / most));
    for (let index = 0; index < count; index += each) svg.append(s("text", { x: this.xOf(index), y: y + height + 18, "text-anchor": index ? "middle" : "start" }, labelOf(index)));
  }
  lines(svg) {
    const { at, series, isSpark } = this.given;
    const [x, , width] = this.plot;
    const [first, last] = [at[0], at.at(-1)];
    this.count = at.length;
    this.xOf = (index) => x + (last > first ? ((at[index] - first) / (last - first)) * width : 0);
    this.labelOf = (index) => moment(at[index], last - first);
    const steps = this.scaled();
    if (!isSpark) this.axes(svg, steps, this.labelOf);
    series.forEach((one, which) => {
      let path = "", isOpen = false;
      one.values.forEach((value, index) => {
        if (value === null || value === undefined) { isOpen = false; return; }
        // A value alone between none is a dot.
        path += (isOpen ? "L" : "M") + this.xOf(index).toFixed(1) + " " + this.yOf(value).toFixed(1) + (isOpen ? "" : "h.01");
        isOpen = true;
      });
      svg.append(s("path", { d: path, fill: "none", stroke: `var(--c${this.colour(which)})`, "stroke-width": 1.7, "stroke-linejoin": "round", "stroke-linecap": "round" }));
    });
  }
  bars(svg) {
    const { labels, series } = this.given;
    const [x, , width] = this.plot;
    this.count = labels.length;
    const each = width / Math.max(1, labels.length);
    this.xOf = (index) => x + (index + 0.5) * each;
    this.labelOf = (index) => labels[index];
    this.axes(svg, this.scaled(), (index) => String(labels[index]).slice(0, 14));
    series.forEach((one, which) => one.values.forEach((value, index) => {
      const [top, bottom] = [this.yOf(Math.max(0, value)), this.yOf(Math.min(0, value))];
      const wide = Math.max(1, (each * 0.78) / series.length);
      svg.append(s("rect", { x: this.xOf(index) - each * 0.39 + which * wide, y: top, width: wide, height: bottom - top, rx: Math.min(2, wide / 3), fill: `var(--c${this.colour(which)})` }));
    }));
  }
  heat(svg) {
    const { columns, rows, values } = this.given;
    const [x, y, width, height] = this.plot;
    const greatest = Math.max(1, ...values.flat());
    const [wide, tall] = [width / columns.length, height / rows.length];
    this.count = columns.length;
    this.xOf = (index) => x + (index + 0.5) * wide;
    this.labelOf = (index) => columns[index];
    rows.forEach((row, down) => {
      svg.append(s("text", { x: x - 6, y: y + (down + 0.5) * tall + 4, "text-anchor": "end" }, row));
      columns.forEach((_, across) => svg.append(s("rect", { x: x + across * wide, y: y + down * tall, width: Math.max(1, wide - 1), height: Math.max(1, tall - 1), rx: 2, fill: "var(--c1)", "fill-opacity": (0.06 + 0.94 * ((values[down][across] ?? 0) / greatest)).toFixed(3) })));
    });
    const each = Math.max(1, Math.ceil(columns.length / Math.max(1, Math.floor(width / 60))));
    for (let index = 0; index < columns.length; index += each) svg.append(s("text", { x: this.xOf(index), y: y + height + 18, "text-anchor": "middle" }, columns[index]));
  }

  onpointer(event) {
    if (!this.count) return;
    const x = event.clientX - this.getBoundingClientRect().left;
    let nearest = 0;
    for (let index = 1; index < this.count; index += 1) if (Math.abs(this.xOf(index) - x) < Math.abs(this.xOf(nearest) - x)) nearest = index;
    this.point(nearest);
  }
  onkey(event) {
    const step = { ArrowLeft: -1, ArrowRight: 1, Home: -1e9, End: 1e9 }[event.key];
    if (!step || !this.count) return;
    event.preventDefault();
    this.point(Math.min(this.count - 1, Math.max(0, (this.pointed ?? (step > 0 ? -1 : this.count)) + step)));
  }
  point(index) {
    this.pointed = index;
    this.tip.hidden = index === null;
    this.cursor.setAttribute("visibility", index === null ? "hidden" : "visible");
    if (index === null) return;
    const { series, rows, values, unit = "" } = this.given;
    const x = this.xOf(index);
    this.cursor.setAttribute("x1", x);
    this.cursor.setAttribute("x2", x);
    const lines = series ? series.map((one) => [one.name, one.values[index]]) : rows.map((row, down) => [row, values[down][index]]).filter(([, value]) => value);
    this.tip.replaceChildren(h("b", {}, this.labelOf(index)), lines.map(([name, value]) => h("div", {}, name, " ", h("b", {}, number(value)), " ", unit)).reduce((all, one) => (all.append(one), all), document.createDocumentFragment()));
    this.tip.style.top = "0";
    const isRight = x > this.drawnWidth / 2;
    this.tip.style.left = isRight ? "auto" : x + 8 + "px";
    this.tip.style.right = isRight ? this.drawnWidth - x + 8 + "px" : "auto";
  }
}
customElements.define("data-chart", DataChart);

export function chart(data) {
  const element = document.createElement("data-chart");
  element.data = data;
  return element;
}
