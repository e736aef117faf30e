// Elements made by hand: text is always text, never markup, whoever wrote it.

import { homeLog } from "./api.js";

export function h(name, attributes, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (key === "value" || key === "checked" || key === "data" || key === "disabled") element[key] = value;
    else if (key === "class") element.className = value;
    else element.setAttribute(key, value === true ? "" : value);
  }
  append(element, children);
  return element;
}

/** Marks that turn the direction of a text are shown, not obeyed. */
const shown = (text) => text.replace(/[\u202a-\u202e\u2066-\u2069]/g, (mark) => "\\u" + mark.charCodeAt(0).toString(16));

export function append(element, children) {
  for (const child of [children].flat(Infinity)) {
    if (child === undefined || child === null || child === false) continue;
    element.append(child instanceof Node ? child : shown(String(child)));
  }
  return element;
}

export function fill(element, ...children) {
  element.replaceChildren();
  return append(element, children);
}

/** A page: shown while it is in the document, and ended with everything it has running. */
export class Page extends HTMLElement {
  connectedCallback() {
    this.ending = new AbortController();
    this.signal = this.ending.signal;
    this.params = new URLSearchParams(location.hash.split("?")[1] ?? "");
    this.show();
  }
  disconnectedCallback() {
    this.ending.abort();
  }
  /** Runs now and then every so many ms, one run after the other, while the page is visible. */
  async every(ms, work) {
    while (!this.signal.aborted) {
      if (!document.hidden) {
        try { await work(); } catch (error) { if (error.name !== "AbortError") this.failed?.(error); }
      }
      await sleep(ms, this.signal);
    }
  }
  /** Remembers values in the address, so that a page can be sent to someone. */
  remember(values) {
    for (const [name, value] of Object.entries(values)) {
      this.params.delete(name);
      for (const one of [value].flat()) if (one !== undefined && one !== null && one !== "") this.params.append(name, one);
    }
    const query = this.params.toString();
    history.replaceState(null, "", location.hash.split("?")[0] + (query ? "?" + query : ""));
  }
  get log() { return this.params.get("log") || homeLog(); }
}

export function sleep(ms, signal) {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal?.addEventListener("abort", () => { clearTimeout(timer); resolve(); }, { once: true });
  });
}

export function heading(title, ...tools) {
  return h("div", { class: "head" }, h("h1", { tabindex: "-1" }, title), h("div", { class: "tools" }, tools));
}

export function note(kind, ...children) {
  return h("div", { class: "note " + kind, role: kind === "bad" ? "alert" : "status" }, children);
}

/** A problem as a person reads it: what, where, what to do. */
export function problemNote(error) {
  const { title, detail, field, type, conflict } = error.problem ?? {};
  return note("bad",
    h("p", {}, h("b", {}, title ?? "The request failed"), field ? [" at ", h("code", {}, field)] : ""),
    h("p", {}, detail ?? error.message),
    conflict?.position ? h("p", {}, "In the way: the event at position ", h("b", {}, conflict.position), ".") : "",
    type?.startsWith("/problems/") ? h("p", {}, h("a", { href: type, target: "_blank", rel: "noopener" }, "What this means and what helps")) : "");
}

let statusArea;
export function say(kind, ...children) {
  if (!statusArea) document.body.append(statusArea = h("div", { id: "status", "aria-live": "polite" }));
  const one = note(kind, children);
  if ([...statusArea.children].some((known) => known.textContent === one.textContent)) return;
  statusArea.append(one);
  setTimeout(() => one.remove(), kind === "bad" ? 12000 : 5000);
}

/** A button that says when its work fails, and cannot be pressed twice at once. */
export function button(text, work, attributes = {}) {
  const element = h("button", { type: "button", ...attributes, onclick: async () => {
    element.disabled = true;
    try { await work(element); } catch (error) { if (error.name !== "AbortError") say("bad", ...problemNote(error).childNodes); }
    element.disabled = false;
  } }, text);
  return element;
}

const titled = (name) => name[0].toUpperCase() + name.slice(1);

/** An area that work fills; until then it says so, and what goes wrong stands in it. */
export function loaded(work) {
  const area = h("div", { class: "stack" }, h("p", { class: "muted" }, "Loading …"));
  work(area).catch((error) => error.name === "AbortError" || fill(area, problemNote(error)));
  return area;
}

/** A form of named inputs: elements, or attributes of one. Work gets what was filled in, by name, and where to tell of it. */
export function fieldForm(text, fields, work) {
  const told = h("div", { "aria-live": "polite" });
  const inputs = Object.entries(fields).map(([name, of]) => [name, of.title || titled(name), of instanceof Node ? of : h("input", { required: !of.optional, autocomplete: "off", spellcheck: "false", ...of, title: undefined, optional: undefined })]);
  return h("form", { class: "stack", onsubmit: async (event) => {
    event.preventDefault();
    const given = inputs.filter(([, , input]) => input.value !== "").map(([name, , input]) => [name, input.value]);
    try { await work(Object.fromEntries(given), told); } catch (error) { fill(told, problemNote(error)); }
  } }, h("div", { class: "row" }, inputs.map(([, title, input]) => field(title, input)), h("button", { class: "main" }, text)), told);
}

export function field(text, input) {
  return h("label", {}, text, input);
}

export function table(columns, rows, empty = "Nothing here yet.") {
  if (!rows.length) return h("p", { class: "empty" }, empty);
  const of = (cell) => (cell instanceof Node || Array.isArray(cell) ? cell : cell ?? "");
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Table" }, h("table", {},
    h("thead", {}, h("tr", {}, columns.map((column) => h("th", { class: column.number && "number", scope: "col" }, column.title ?? column)))),
    h("tbody", {}, rows.map((row) => h("tr", {}, row.map((cell, at) => h("td", { class: columns[at]?.number && "number" }, of(cell))))))));
}

/** Tabs with their contents made when they are chosen. */
export function tabs(named, chosen, onchoose) {
  const body = h("div", { role: "tabpanel" });
  const bar = h("div", { class: "tabs", role: "tablist" });
  const choose = (name) => {
    for (const one of bar.children) { const is = one.dataset.name === name; one.setAttribute("aria-selected", is); one.tabIndex = is ? 0 : -1; }
    fill(body, named[name]());
    onchoose?.(name);
  };
  for (const name of Object.keys(named)) {
    const one = h("button", { type: "button", role: "tab", onclick: () => choose(name) }, name);
    one.dataset.name = name;
    bar.append(one);
  }
  bar.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const all = [...bar.children];
    const next = all[(all.indexOf(document.activeElement) + step + all.length) % all.length];
    choose(next.dataset.name);
    next.focus();
  });
  choose(chosen in named ? chosen : Object.keys(named)[0]);
  return h("div", {}, bar, body);
}

export function dialog(title, ...children) {
  const element = h("dialog", { "aria-label": title }, h("div", { class: "head" }, h("h2", {}, title), h("button", { type: "button", onclick: () => element.close(), "aria-label": "Close" }, "✕")), children);
  element.addEventListener("close", () => element.remove());
  document.body.append(element);
  element.showModal();
  return element;
}

/** Asks before something that cannot be undone; the name has to be typed. */
export function confirmName(what, name) {
  return new Promise((resolve) => {
    const input = h("input", { autocomplete: "off", spellcheck: "false" });
    const box = dialog(what, h("p", {}, "Type ", h("b", {}, name), " to go on. This cannot be undone."), h("form", { method: "dialog", class: "row", onsubmit: () => resolve(input.value === name) }, input, h("button", { class: "danger" }, what)));
    box.addEventListener("close", () => resolve(false));
  });
}

export async function copy(text) {
  await navigator.clipboard.writeText(text);
  say("good", "Copied.");
}

export function copyable(text, attributes = {}) {
  return h("div", { class: "stack" }, h("pre", { class: "wrap", tabindex: "0", ...attributes }, text), h("div", {}, button("Copy", () => copy(text))));
}

const whole = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });
const small = new Intl.NumberFormat("en-US", { maximumSignificantDigits: 3 });
export function number(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  return Math.abs(value) >= 100 || Number.isInteger(value) ? whole.format(value) : small.format(value);
}
export function short(value) {
  if (value === null || value === undefined) return "–";
  for (const [limit, unit] of [[1e9, "G"], [1e6, "M"], [1e4, "k"]]) if (Math.abs(value) >= limit) return small.format(value / (unit === "k" ? 1e3 : limit)) + unit;
  return number(value);
}
export function bytes(value) {
  if (value === null || value === undefined) return "–";
  for (const [limit, unit] of [[2 ** 40, "TiB"], [2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"]]) if (value >= limit) return small.format(value / limit) + " " + unit;
  return number(value) + " B";
}
export function time(text) {
  if (!text) return "–";
  return text.replace("T", " ").replace(/(\.\d{3})\d*/, "$1").replace("Z", "").replace("+00:00", "");
}
export function ago(ms) {
  for (const [limit, unit] of [[86400e3, "d"], [3600e3, "h"], [60e3, "min"], [1e3, "s"]]) if (ms >= limit) return Math.floor(ms / limit) + " " + unit;
  return Math.round(ms) + " ms";
}
/** One of eight colours, the same for the same text. */
export function colour(text) {
  let sum = 7;
  for (const character of String(text)) sum = (sum * 31 + character.codePointAt(0)) >>> 0;
  return 1 + (sum % 8);
}
