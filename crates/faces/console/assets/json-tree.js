// A JSON value as a tree that opens and closes; numbers keep their digits.

import { h } from "./elements.js";
import { ExactNumber } from "./api.js";

/** Members shown at once; the rest follow on demand, so a large value stays usable. */
const PAGE = 200;

export function tree(value, depth = 2) {
  return h("div", { class: "tree" }, node(undefined, value, depth));
}

function node(key, value, depth) {
  const name = key === undefined ? "" : [h("span", { class: "k" }, JSON.stringify(key)), ": "];
  if (value === null || typeof value !== "object" || value instanceof ExactNumber) {
    const kind = value instanceof ExactNumber || typeof value === "number" ? "n" : typeof value === "string" ? "s" : "b";
    return h("div", { class: "leaf" }, name, h("span", { class: kind }, value instanceof ExactNumber ? value.source : JSON.stringify(value)));
  }
  const isList = Array.isArray(value);
  const entries = isList ? value.map((one, at) => [at, one]) : Object.entries(value);
  if (!entries.length) return h("div", { class: "leaf" }, name, isList ? "[]" : "{}");
  const body = h("div");
  let shown = 0;
  const more = () => {
    body.querySelector(":scope > button")?.remove();
    for (const [at, one] of entries.slice(shown, (shown += PAGE))) body.append(node(isList ? undefined : at, one, depth - 1));
    if (shown < entries.length) body.append(h("button", { type: "button", class: "quiet", onclick: more }, `${entries.length - shown} more`));
  };
  const details = h("details", { open: depth > 0 }, h("summary", {}, name, h("span", { class: "muted" }, isList ? `[${entries.length}]` : `{${entries.length}}`)), body);
  const open = () => { if (details.open && !shown) more(); };
  details.addEventListener("toggle", open);
  if (depth > 0) more();
  return details;
}

/** One line of a value, for a list. */
export function preview(value, most = 300) {
  if (value === undefined) return "";
  let text;
  try { text = JSON.stringify(value, (_, one) => (one instanceof ExactNumber ? one.source : one)) ?? ""; } catch { text = "nested too deeply to show in a line"; }
  return text.length > most ? text.slice(0, most) + "…" : text;
}
