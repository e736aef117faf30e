// Cypher over a log's graph: a statement, its answer as table, drawing or JSON.

import { h, fill, heading, Page, button, number, table, tabs, note, problemNote, copyable, colour } from "./elements.js";
import { call, may } from "./api.js";
import { logChoice } from "./events.js";
import { tree, preview } from "./json-tree.js";
import { CypherEditor } from "./cypher.js";
import { caption } from "./drawing.js";
import { showSnippets } from "./snippets.js";

/** Most rows of a table; the JSON has all. */
const MOST_ROWS = 1000;
const EXAMPLE = "MATCH (n) OPTIONAL MATCH (n)-[r]->(m) RETURN n, r, m LIMIT 300";
const MAKE = "MERGE (a:Person {name: 'Ada'}) MERGE (b:Person {name: 'Grace'}) MERGE (c:Machine {name: 'Engine'})\nMERGE (a)-[:KNOWS]->(b) MERGE (a)-[:DESIGNED]->(c) RETURN a, b, c";

class GraphPage extends Page {
  async show() {
    this.known = null;
    this.editor = new CypherEditor({ names: () => this.names(), run: () => this.run(), value: this.editor?.value || this.params.get("statement") || EXAMPLE });
    this.parameters = h("textarea", { rows: "2", spellcheck: "false", value: "{}", "aria-label": "Parameters as JSON" });
    this.answer = h("div", { class: "stack", "aria-live": "polite" });
    this.size = h("span", { class: "muted small" });
    fill(this, heading("Graph", await logChoice(this), this.size),
      h("div", { class: "card stack" }, this.editor.element,
        h("details", {}, h("summary", { class: "muted small" }, "Parameters"), this.parameters),
        h("div", { class: "row center" }, button("Run", () => this.run(), { class: "main" }), button("Explain", () => this.run("EXPLAIN ")), button("As code", () => showSnippets({ method: "POST", path: this.path(), body: this.body(this.editor.value) })),
          may("writer", this.log) ? button("Create a sample graph", () => { this.editor.value = MAKE; return this.run(); }) : "", h("span", { class: "muted small" }, "Ctrl+Enter runs, Ctrl+↑ recalls earlier statements"))), this.answer);
    this.counted();
    // Only the example runs by itself: a statement in the address may be anyone's.
    if (this.editor.value === EXAMPLE) this.run();
  }
  path() { return `/db/${encodeURIComponent(this.log)}/tx/commit`; }
  body(statement) { return { statements: [{ statement, parameters: JSON.parse(this.parameters.value || "{}"), resultDataContents: ["row", "graph"], includeStats: true }] }; }
  async ask(statement) {
    const { data, ms } = await call("POST", this.path(), { body: this.body(statement), signal: this.signal, exact: true, headers: { "Content-Type": "application/json" } });
    if (data.errors.length) throw Object.assign(new Error(data.errors[0].message), { cypher: data.errors[0] });
    return { ...data.results[0], ms };
  }
  async counted() {
    const found = await call("GET", `/db/${encodeURIComponent(this.log)}`, { signal: this.signal }).catch(() => null);
    if (found) fill(this.size, `${number(found.data.nodeCount)} nodes, ${number(found.data.relationshipCount)} relationships`);
  }
  /** The labels, types and keys of the graph, for completion. */
  names() {
    return this.known ??= (async () => {
      const first = async (statement) => (await this.ask(statement)).data.map(({ row }) => row[0]).filter(Boolean);
      const [labels, types, keys] = await Promise.all(["MATCH (n) UNWIND labels(n) AS name RETURN DISTINCT name LIMIT 300", "MATCH ()-[r]->() RETURN DISTINCT type(r) LIMIT 300", "MATCH (n) WITH n LIMIT 2000 UNWIND keys(n) AS name RETURN DISTINCT name LIMIT 300"].map((one) => first(one).catch(() => [])));
      return { labels, types, keys };
    })();
  }
  async run(prefix = "") {
    this.editor.keep();
    this.remember({ statement: this.editor.value });
    fill(this.answer, h("p", { class: "muted" }, "Running …"));
    try {
      const isExplained = /^\s*(EXPLAIN|PROFILE)\b/i.test(this.editor.value);
      this.showAnswer(await this.ask((isExplained ? "" : prefix) + this.editor.value));
      this.counted();
      this.known = null;
    } catch (error) {
      if (error.name === "AbortError") return;
      if (!error.cypher) return fill(this.answer, error instanceof SyntaxError ? note("bad", "The parameters are not JSON: ", error.message) : problemNote(error));
      this.showError(error.cypher, prefix.length);
    }
  }
  showError({ code, message }, shift) {
    const [, line, column] = message.match(/line (\d+), column (\d+)/) ?? [];
    fill(this.answer, h("div", { class: "note bad", role: "alert" }, h("p", {}, h("b", {}, code)), h("pre", { class: "wrap" }, message)));
    if (!line) return;
    const lines = this.editor.value.split("\n");
    const at = lines.slice(0, line - 1).reduce((sum, text) => sum + text.length + 1, 0) + Number(column) - 1 - (line === "1" ? shift : 0);
    this.editor.area.focus();
    this.editor.area.setSelectionRange(Math.max(0, at), at + (this.editor.value.slice(at).match(/^\w+/)?.[0].length ?? 1));
  }
  showAnswer(result) {
    const nodes = new Map(), relationships = new Map();
    for (const { graph } of result.data) { for (const node of graph?.nodes ?? []) nodes.set(node.id, node); for (const one of graph?.relationships ?? []) relationships.set(one.id, one); }
    const changes = Object.entries(result.stats ?? {}).filter(([, value]) => typeof value === "number" && value > 0).map(([name, value]) => `${number(value)} ${name.replaceAll("_", " ")}`);
    const named = {};
    if (result.plan) named.Plan = () => h("div", { class: "card tree" }, this.step(result.plan.root));
    if (nodes.size) named.Drawing = () => this.drawing([...nodes.values()], [...relationships.values()]);
    named.Table = () => h("div", { class: "card" }, table(result.columns, result.data.slice(0, MOST_ROWS).map(({ row, meta }) => row.map((value, at) => this.cell(value, meta?.[at]))), "No rows."), result.data.length > MOST_ROWS ? h("p", { class: "muted" }, `${number(result.data.length - MOST_ROWS)} more rows are in the answer.`) : "");
    named.JSON = () => copyable(JSON.stringify(result.data.map(({ row }) => Object.fromEntries(result.columns.map((column, at) => [column, row[at]]))), null, 2));
    fill(this.answer, h("p", { class: "muted small" }, `${number(result.data.length)} rows in ${number(result.ms)} ms. `, changes.join(", ")), tabs(named, result.plan ? "Plan" : nodes.size ? "Drawing" : "Table"));
  }
  step({ operatorType, Details, children }) {
    const said = [h("b", {}, operatorType.split("@")[0]), " ", h("span", { class: "muted" }, Details)];
    return children.length ? h("details", { open: true }, h("summary", {}, said), h("div", {}, children.map((child) => this.step(child)))) : h("div", { class: "leaf" }, said);
  }
  cell(value, meta) {
    if (meta?.type === "node" || meta?.type === "relationship") return h("span", { class: "mono" }, preview(value, 120));
    return value !== null && typeof value === "object" && !("source" in value) ? h("span", { class: "mono" }, preview(value, 200)) : value === null ? h("span", { class: "muted" }, "null") : String(value);
  }
  drawing(nodes, relationships) {
    const drawing = document.createElement("graph-drawing");
    const chosen = h("aside", { class: "card", "aria-live": "polite" }, h("p", { class: "muted" }, "Choose a node; a double click or Enter expands its neighbours."));
    const labels = [...new Set(nodes.flatMap((node) => node.labels))];
    queueMicrotask(() => drawing.add({ nodes, relationships }));
    drawing.addEventListener("choose", ({ detail }) => fill(chosen, h("h2", {}, caption(detail)), h("p", { class: "chips" }, detail.labels.map((one) => h("span", { class: "chip" }, one))), tree(detail.properties), h("p", { class: "muted small" }, "id ", detail.id)));
    drawing.addEventListener("expand", async ({ detail }) => {
      try {
        const { data } = await this.ask(`MATCH (n)-[r]-(m) WHERE id(n) = ${Number(detail.node.id)} RETURN n, r, m LIMIT 100`);
        for (const { graph } of data) drawing.add(graph, detail);
      } catch (error) { fill(chosen, problemNote(error)); }
    });
    return h("div", { class: "split" }, drawing, h("div", { class: "stack" }, chosen, h("div", { class: "card chips" }, labels.map((one) => { const key = h("i", { class: "k" + colour(one) }); return h("span", { class: "chip" }, key, " ", one); }))));
  }
}
customElements.define("graph-page", GraphPage);
