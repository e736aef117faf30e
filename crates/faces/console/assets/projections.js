// A projection: which events, how they are folded, by what they are grouped; and the condition under
// which a decision on it may be appended.

import { h, fill, heading, Page, field, button, number, table, problemNote, copyable, time } from "./elements.js";
import { call, ofLog } from "./api.js";
import { chart } from "./chart.js";
import { collector, logChoice } from "./events.js";
import { tree } from "./json-tree.js";
import { showSnippets, pythonic } from "./snippets.js";

const REDUCERS = ["count", "sum", "min", "max", "avg", "first", "last", "distinct"];
/** Most groups that are drawn; the table has all. */
const MOST_BARS = 60;

class ProjectionsPage extends Page {
  async show() {
    const types = this.params.getAll("type"), tags = this.params.getAll("tag");
    const keep = () => this.remember({ type: types, tag: tags, reduce: this.reducer.value, of: this.pointer.value, by: this.by.value, key: this.key.value });
    Object.assign(this, { types, tags, keep });
    const choice = (name, values, chosen, attributes = {}) => h("select", { ...attributes, onchange: () => { keep(); this.fit(); } }, values.map(([value, text]) => h("option", { value, selected: value === chosen }, text)));
    this.reducer = choice("reduce", REDUCERS.map((name) => [name, name]), this.params.get("reduce") ?? "count");
    this.pointer = h("input", { placeholder: "/total", spellcheck: "false", autocomplete: "off", value: this.params.get("of") ?? "", onchange: keep });
    this.by = choice("by", [["", "Nothing"], ["tag", "A tag's key"], ["pointer", "A value in the data"], ["minute", "Minute"], ["hour", "Hour"], ["day", "Day"]], this.params.get("by") ?? "");
    this.key = h("input", { placeholder: "customer", spellcheck: "false", autocomplete: "off", value: this.params.get("key") ?? "", onchange: keep });
    this.pointerField = field("Pointer to the value", this.pointer);
    this.keyField = field("Key or pointer", this.key);
    this.answer = h("div", { class: "stack", "aria-live": "polite" });
    fill(this, heading("Projections", await logChoice(this), button("As code", () => showSnippets(this.request()))),
      h("p", { class: "lead muted" }, "A projection folds events into a value, in one read. Its append condition is what a decision on that value needs: the append is refused if an event that could change the value has come in the meantime."),
      h("form", { class: "card row top", onsubmit: (event) => { event.preventDefault(); this.run(); } },
        collector({ title: "Types, any of", kind: "types", id: "types", log: () => this.log, values: types, onchange: keep }),
        collector({ title: "Tags, all of", kind: "tags", id: "tags", log: () => this.log, values: tags, onchange: keep }),
        field("Reducer", this.reducer), this.pointerField, field("Group by", this.by), this.keyField, h("button", { class: "main" }, "Project")), this.answer);
    this.fit();
    if (types.length || tags.length) this.run();
  }
  fit() {
    this.pointerField.hidden = this.reducer.value === "count";
    this.keyField.hidden = !["tag", "pointer"].includes(this.by.value);
  }
  reduce() {
    const name = this.reducer.value;
    const one = name === "count" ? "count" : { [name]: this.pointer.value };
    if (!this.by.value) return one;
    const by = { tag: { tag: this.key.value }, pointer: this.key.value }[this.by.value] ?? { time: this.by.value };
    return { group: { by, reduce: one } };
  }
  query() { return { items: this.types.length || this.tags.length ? [{ types: this.types, tags: this.tags }] : [] }; }
  request() {
    const body = { projections: { value: { query: this.query(), reduce: this.reduce() } } };
    return { method: "POST", path: ofLog(this.log, "/project"), body, python: `from wellspring import Client, projection\n\nlog = Client(${JSON.stringify(location.origin)}).log(${JSON.stringify(this.log)})\nfound = log.project({"value": projection(${pythonic(this.reduce())}, ${pythonic(this.types)}, ${pythonic(this.tags)})})\nprint(found.states["value"], found.condition)` };
  }
  async run() {
    fill(this.answer, h("p", { class: "muted" }, "Reading …"));
    try {
      const { path, body } = this.request();
      const { data, ms } = await call("POST", path, { body, signal: this.signal, exact: true });
      this.showAnswer(data, ms);
    } catch (error) {
      if (error.name !== "AbortError") fill(this.answer, problemNote(error));
    }
  }
  showAnswer(data, ms) {
    const value = data.states.value;
    const isGrouped = this.by.value && value && typeof value === "object";
    const groups = isGrouped ? Object.entries(value) : [];
    const numeric = groups.filter(([, one]) => Number.isFinite(Number(one)) && one !== null && typeof one !== "boolean").sort((a, b) => Number(b[1]) - Number(a[1]));
    // Moments stand in their order, everything else by size.
    const isByTime = !["tag", "pointer"].includes(this.by.value);
    if (isByTime) numeric.sort((a, b) => (a[0] < b[0] ? -1 : 1));
    const shown = isByTime ? numeric.slice(-MOST_BARS) : numeric.slice(0, MOST_BARS);
    const labels = shown.map(([name]) => (isByTime ? time(name).slice(5, 16) : name));
    const ignored = data.ignored?.value;
    fill(this.answer,
      h("p", { class: "muted small" }, `At position ${number(data.position)}, in ${number(ms)} ms. `, ignored ? h("span", { class: "warn" }, `${number(ignored)} events have a value of another type there and were passed over.`) : ""),
      isGrouped ? [
        numeric.length ? h("section", { class: "card" }, h("h2", {}, numeric.length > MOST_BARS ? `The ${MOST_BARS} ${isByTime ? "newest" : "greatest"} of ${number(numeric.length)} groups` : "Groups"), chart({ kind: "bar", title: "Groups", labels, series: [{ name: this.reducer.value, values: shown.map(([, one]) => Number(one)) }], height: 240 })) : "",
        h("section", { class: "card" }, table(["Group", { title: this.reducer.value, number: true }], (numeric.length === groups.length ? numeric : groups).slice(0, 1000).map(([name, one]) => [name, String(typeof one === "object" && one && !("source" in one) ? JSON.stringify(one) : one)]), "No group."), groups.length > 1000 ? h("p", { class: "muted" }, `${number(groups.length - 1000)} more groups are in the answer.`) : ""),
      ] : h("section", { class: "card figure" }, h("span", {}, this.reducer.value), typeof value === "object" && value !== null && !("source" in value) ? tree(value) : h("b", {}, String(value ?? "nothing"))),
      h("section", { class: "card" }, h("h2", {}, "Append condition"), h("p", { class: "muted small" }, "Send it with the events of a decision that rests on this value."), copyable(JSON.stringify({ condition: data.appendCondition }, null, 2))));
  }
}
customElements.define("projections-page", ProjectionsPage);
