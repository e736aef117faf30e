// History and what happens now, in one list; one event in full; appending, also under a condition.

import { h, fill, heading, Page, field, button, number, time, note, problemNote, dialog, copy } from "./elements.js";
import { get, post, call, ofLog, query, may, logs, parse } from "./api.js";
import { tree } from "./json-tree.js";
import { showSnippets, pythonic } from "./snippets.js";
import "./event-list.js";

/** A choice of the log, for every page that shows one. */
export async function logChoice(page) {
  const names = await logs().catch(() => ["main"]);
  if (!names.includes(page.log)) names.push(page.log);
  return h("label", {}, h("span", { class: "small" }, "Log"), h("select", { "aria-label": "Log", onchange: (event) => { page.remember({ log: event.target.value }); page.show(); } }, names.map((name) => h("option", { value: name, selected: name === page.log }, name))));
}

/** An input that completes types or tags from the log, and collects several. */
export function collector({ title, log, kind, values, onchange, id }) {
  const list = h("datalist", { id: id + "-list" });
  const input = h("input", { list: id + "-list", id, autocomplete: "off", spellcheck: "false", placeholder: kind === "tags" ? "customer:7" : "OrderPlaced" });
  const chips = h("div", { class: "chips" });
  const paint = () => fill(chips, values.map((value) => h("button", { type: "button", class: "chip", title: "Remove", "aria-label": `Remove ${value}`, onclick: () => { values.splice(values.indexOf(value), 1); paint(); onchange(values); } }, value, " ✕")));
  const add = () => {
    const value = input.value.trim();
    if (!value || values.includes(value)) return;
    values.push(value);
    input.value = "";
    paint();
    onchange(values);
  };
  let asked = null;
  const complete = async () => {
    const path = kind === "tags" ? ofLog(log(), "/tags") + query({ prefix: input.value, limit: 30 }) : ofLog(log(), "/types") + query({ limit: 1000 });
    if (path === asked) return;
    asked = path;
    const found = await get(path).catch(() => null);
    if (found && path === asked) fill(list, (found.tags ?? found.types).map((one) => h("option", { value: one.tag ?? one.type }, number(one.count))));
  };
  input.addEventListener("focus", complete);
  input.addEventListener("input", (event) => { complete(); if (event.inputType === "insertReplacementText" || !event.inputType) add(); });
  input.addEventListener("keydown", (event) => { if (event.key === "Enter") { event.preventDefault(); add(); } if (event.key === "Backspace" && !input.value && values.length) { values.pop(); paint(); onchange(values); } });
  input.addEventListener("change", add);
  paint();
  return h("div", { class: "stack" }, field(title, input), chips, list);
}

/** The position before the first event that was recorded at a time or later: a search by halves. */
async function positionAt(log, iso, head, signal) {
  const wanted = new Date(iso).getTime();
  let [low, high] = [0, head];
  while (low < high) {
    const middle = Math.floor((low + high) / 2) + 1;
    const event = await get(ofLog(log, "/events/" + middle), { signal });
    if (new Date(event.recorded_at).getTime() < wanted) low = middle; else high = middle - 1;
  }
  return low;
}

class EventsPage extends Page {
  async show() {
    const types = this.params.getAll("type"), tags = this.params.getAll("tag");
    Object.assign(this, { types, tags });
    this.detail = h("aside", { class: "card detail", "aria-label": "The chosen event", hidden: true });
    this.list = document.createElement("event-list");
    this.count = h("span", { class: "muted small", "aria-live": "polite" });
    this.live = h("button", { type: "button", "aria-pressed": "true", onclick: () => { const is = this.live.getAttribute("aria-pressed") !== "true"; this.live.setAttribute("aria-pressed", is); } }, "Live");
    const changed = () => { this.remember({ type: types, tag: tags, at: null }); this.open(); };
    const filters = h("div", { class: "row top" },
      collector({ title: "Types, any of", kind: "types", id: "types", log: () => this.log, values: types, onchange: changed }),
      collector({ title: "Tags, all of", kind: "tags", id: "tags", log: () => this.log, values: tags, onchange: changed }),
      field("Up to position", this.position = h("input", { inputmode: "numeric", size: "10", placeholder: "newest", value: this.params.get("at") ?? "", onchange: () => { this.remember({ at: this.position.value.replace(/\D/g, "") }); this.open(); } })),
      field("Or up to a time, UTC", h("input", { type: "datetime-local", step: "1", onchange: (event) => this.toTime(event.target.value) })));
    this.split = h("div", { class: "stack" }, this.list, this.detail);
    fill(this, heading("Events", await logChoice(this), this.count, this.live,
      button("As code", () => this.code()), may("writer", this.log) ? h("button", { type: "button", class: "main", onclick: () => appendDialog(this.log, () => this.list.renew()) }, "Append") : ""), h("div", { class: "stack" }, filters, this.rail = h("input", { type: "range", min: "1", "aria-label": "Position in the log", hidden: true, onchange: (event) => { this.position.value = event.target.value; this.remember({ at: event.target.value }); this.open(); } }), this.split));
    this.list.addEventListener("choose", (event) => this.choose(event.detail));
    this.list.addEventListener("loaded", () => this.counted());
    await this.open();
    if (!this.isFollowing) { this.isFollowing = true; this.every(1000, async () => { if (this.live.getAttribute("aria-pressed") === "true") await this.list.renew(); }); }
  }
  async open() {
    const at = Number(this.params.get("at")) || null;
    try {
      await this.list.open({ log: this.log, types: this.types, tags: this.tags, before: at === null ? null : at + 1 });
    } catch (error) {
      this.list.log = null;
      if (error.name !== "AbortError") fill(this.detail, problemNote(error)).hidden = false;
    }
  }
  counted() {
    const { events, head, isWhole } = this.list;
    const isFiltered = this.types.length || this.tags.length;
    fill(this.count, events.length ? [isFiltered && isWhole ? `${number(events.length)} match, ` : "", `${number(head)} in the log`] : "No event matches");
    this.rail.hidden = Boolean(isFiltered) || head < 500;
    this.rail.max = head;
    this.rail.value = events[0]?.position ?? head;
  }
  async toTime(text) {
    if (!text) return;
    const { head } = await get(ofLog(this.log, "/head"), { signal: this.signal });
    const before = await positionAt(this.log, text + "Z", head, this.signal);
    this.position.value = before;
    this.remember({ at: before || 1 });
    await this.open();
  }
  choose(event) {
    this.split.className = "split";
    this.detail.hidden = false;
    const chip = (name, value) => h("button", { type: "button", class: "chip", title: "All events with this " + name, onclick: () => { const values = name === "tag" ? this.tags : this.types; if (!values.includes(value)) values.push(value); this.remember({ [name]: values, at: null }); this.position.value = ""; this.show(); } }, value);
    const isBytes = event.data_base64 !== undefined;
    fill(this.detail,
      h("div", { class: "head" }, h("h2", {}, "Position ", number(event.position)), h("button", { type: "button", "aria-label": "Close", onclick: () => { this.detail.hidden = true; this.split.className = "stack"; this.list.focus(); } }, "✕")),
      h("dl", {}, h("dt", {}, "Type"), h("dd", {}, chip("type", event.type)), h("dt", {}, "Tags"), h("dd", { class: "chips" }, event.tags.length ? event.tags.map((tag) => chip("tag", tag)) : "none"),
        h("dt", {}, "Recorded"), h("dd", {}, time(event.recorded_at), " UTC"), event.id ? [h("dt", {}, "Id"), h("dd", { class: "mono" }, event.id)] : ""),
      h("h3", {}, "Data"), isBytes ? h("pre", { class: "wrap" }, event.data_base64) : tree(event.data),
      event.metadata ? [h("h3", {}, "Metadata"), tree(event.metadata)] : "",
      h("div", { class: "row" }, button("Copy", async () => { const found = await call("GET", ofLog(this.log, "/events/" + event.position)); await copy(found.text); }), button("As code", () => showSnippets({ path: ofLog(this.log, "/events/" + event.position) }))));
  }
  code() {
    const { types, tags, log } = this;
    const items = types.length || tags.length;
    showSnippets({
      path: ofLog(log, "/events") + query({ type: types, tag: tags, order: "desc", limit: 100 }),
      python: `from wellspring import Client, matching\n\nlog = Client(${JSON.stringify(location.origin)}).log(${JSON.stringify(log)})\nfor event in log.read(${items ? `matching(types=${pythonic(types)}, tags=${pythonic(tags)}), ` : ""}limit=100):\n    print(event.position, event.type, event.data)`,
      typescript: `import { Client, matching } from "wellspring-client";\n\nconst log = new Client(${JSON.stringify(location.origin)}).log(${JSON.stringify(log)});\nfor await (const event of log.read(matching(${JSON.stringify(types)}, ${JSON.stringify(tags)}), { limit: 100 })) {\n  console.log(event.position, event.type, event.data);\n}`,
    });
  }
}

/** The form for an append, with the condition and what stood in its way. */
function appendDialog(log, done) {
  const types = [], tags = [], conditionTypes = [], conditionTags = [];
  const told = h("div", { "aria-live": "polite" });
  const type = h("input", { required: true, autocomplete: "off", spellcheck: "false" });
  const data = h("textarea", { rows: "6", spellcheck: "false", value: "{}" });
  const after = h("input", { inputmode: "numeric", size: "10", placeholder: "0" });
  const request = () => {
    const body = { events: [{ type: type.value, tags, data: JSON.parse(data.value) }] };
    if (conditionTypes.length || conditionTags.length) body.condition = { failIfEventsMatch: { items: [{ types: conditionTypes, tags: conditionTags }] }, ...(after.value && { after: Number(after.value) }) };
    return body;
  };
  const read = () => { try { return request(); } catch (error) { fill(told, note("bad", "The data are not JSON: ", error.message)); return null; } };
  const box = dialog("Append an event to " + log, h("form", { class: "stack", onsubmit: async (event) => {
    event.preventDefault();
    // The data go as they were typed: a number keeps its digits.
    if (!read()) return;
    const body = JSON.stringify({ ...request(), events: null }).replace('"events":null', () => `"events":[{"type":${JSON.stringify(type.value)},"tags":${JSON.stringify(tags)},"data":${data.value}}]`);
    try {
      const found = await post(ofLog(log, "/append"), body);
      fill(told, note("good", "Appended at position ", h("b", {}, number(found.first)), "."));
      after.value = after.value && String(found.head);
      done?.();
    } catch (error) {
      const at = error.problem?.conflict?.position;
      fill(told, problemNote(error));
      if (at) told.append(h("div", { class: "card" }, h("h3", {}, "The event in the way"), tree(parse((await call("GET", ofLog(log, "/events/" + at))).text), 3)));
    }
  } },
    field("Type", type), collector({ title: "Tags", kind: "tags", id: "append-tags", log: () => log, values: tags, onchange: () => {} }), field("Data, as JSON", data),
    h("fieldset", { class: "stack" }, h("legend", {}, "Refuse it if such an event exists"),
      h("div", { class: "row" }, collector({ title: "Types, any of", kind: "types", id: "unless-types", log: () => log, values: conditionTypes, onchange: () => {} }), collector({ title: "Tags, all of", kind: "tags", id: "unless-tags", log: () => log, values: conditionTags, onchange: () => {} }), field("After position", after))),
    told, h("div", { class: "row" }, h("button", { class: "main" }, "Append"), button("As code", () => { const body = read(); if (body) showSnippets({ method: "POST", path: ofLog(log, "/append"), body }); }))));
  type.focus();
  return box;
}
customElements.define("events-page", EventsPage);
