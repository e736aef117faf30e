// What is wrong first, then how the server is doing since its start.

import { h, fill, heading, Page, number, short, bytes, ago, note, table } from "./elements.js";
import { call, get, may, query } from "./api.js";
import { chart } from "./chart.js";

/** The page that mends a problem, by its type. */
const MENDS = [
  [/sink|source|connector/, "#/operation?tab=Connectors", "Connectors"],
  [/backup|scrub|damaged/, "#/operation?tab=Backups", "Backups"],
  [/lead|node|cluster|shared|peer/, "#/operation?tab=Nodes", "Nodes"],
  [/storage|full|device/, "#/operation?tab=Logs", "Logs"],
  [/view/, "#/operation?tab=Views", "Views"],
  [/ingest/, "#/ingest", "Ingest"],
];

/** Samples beyond which the series are fetched anew, thinner. */
const MOST = 2000;

class OverviewPage extends Page {
  show() {
    this.wrong = h("div", { "aria-live": "polite" });
    this.cards = h("div", { class: "grid" });
    this.plots = h("div", { class: "grid wide" });
    this.parts = h("div", { class: "grid wide" });
    this.since = h("span", { class: "muted small" });
    fill(this, heading("Overview", this.since), this.wrong, this.cards, this.plots, this.parts);
    this.every(3000, () => this.figures());
    this.every(8000, () => this.state());
  }

  async state() {
    const signal = this.signal;
    const maybe = (is, path, otherwise) => (is ? get(path, { signal }).catch((error) => { if (error.status === 0 || error.name === "AbortError") throw error; return otherwise; }) : otherwise);
    const operator = may("operator");
    const [ready, logList, views, cluster, sinks, sources] = await Promise.all([
      call("GET", "/health/ready", { signal, text: true }),
      get("/v1/logs", { signal }),
      maybe(true, "/v1/views", { views: [] }),
      maybe(true, "/v1/cluster", {}),
      maybe(operator, "/v1/sinks", { sinks: [] }),
      maybe(operator, "/v1/sources", { sources: [] }),
    ]);
    const connectors = [...(sinks.sinks ?? []).map((one) => ["sink", one]), ...(sources.sources ?? []).map((one) => ["source", one])];
    this.showWrong(ready, views.views ?? [], cluster, connectors);
    this.showParts(logList.logs, views.views ?? [], cluster, connectors);
  }

  showWrong(ready, views, cluster, connectors) {
    const found = [];
    const mend = (type) => MENDS.find(([pattern]) => pattern.test(type ?? ""));
    const add = (kind, type, text, [, href, name] = mend(type) ?? []) =>
      found.push(note(kind, h("p", {}, text, " ", type?.startsWith("/problems/") ? h("a", { href: type, target: "_blank", rel: "noopener" }, "What helps") : "", href ? [" · ", h("a", { href }, name)] : "")));
    for (const reason of ready.status === 200 ? [] : (ready.data?.reasons ?? [ready.data ?? { detail: "The server is not ready." }])) add("bad", reason.type, (reason.log ? reason.log + ": " : "") + reason.detail);
    for (const warning of ready.data?.warnings ?? []) add("warn", warning.type, (warning.log ? warning.log + ": " : "") + warning.detail);
    for (const [kind, one] of connectors) if (["stopped", "retrying"].includes(one.state)) add(one.state === "stopped" ? "bad" : "warn", "connector", `${kind} ${one.name} is ${one.state}: ${one.reason ?? "no reason given"}`);
    for (const node of cluster.nodes ?? []) if (!node.reachable) add("bad", "node", `Node ${node.node} cannot be reached: ${node.error ?? ""}`);
    for (const view of views) if (view.state === "failed") add("bad", "view", `The view ${view.view} of ${view.log} cannot read its log.`);
    fill(this.wrong, found.length ? found : note("good", h("p", {}, "Nothing is wrong.")));
  }

  showParts(logList, views, cluster, connectors) {
    const lag = views.reduce((most, view) => Math.max(most, view.lag ?? 0), 0);
    fill(this.parts,
      h("section", { class: "card" }, h("h2", {}, "Logs"), table(["Log", { title: "Events", number: true }, { title: "On disk", number: true }],
        logList.map((log) => [h("a", { href: "#/events?log=" + encodeURIComponent(log.name) }, log.name), number(log.head), bytes(log.disk_bytes)]))),
      h("section", { class: "card" }, h("h2", {}, "Nodes"), cluster.nodes?.length ? table(["Node", "Role", { title: "Position", number: true }], cluster.nodes.map((node) => [node.node, node.reachable ? node.role : h("span", { class: "bad" }, "unreachable"), number(node.position)])) : h("p", { class: "muted" }, "One node, over files. ", h("a", { href: "#/operation?tab=Nodes" }, "Nodes"))),
      h("section", { class: "card" }, h("h2", {}, "Connectors"), connectors.length ? table(["Connector", "State", { title: "Behind", number: true }], connectors.map(([kind, one]) => [`${one.name} (${kind})`, one.state, number(one.lag ?? one.records_behind)])) : h("p", { class: "muted" }, may("operator") ? ["None. ", may("admin") ? h("a", { href: "#/operation?tab=Connectors" }, "Add one") : ""] : "They need the role operator.")),
      h("section", { class: "card" }, h("h2", {}, "Views"), views.length ? h("p", {}, number(views.length), views.length === 1 ? " view" : " views", ", at most ", number(lag), " events behind. ", h("a", { href: "#/operation?tab=Views" }, "All of them")) : h("p", { class: "muted" }, "None is open.")));
  }

  async figures() {
    if (!may("operator")) {
      if (!this.plots.hasChildNodes()) fill(this.plots, h("p", { class: "muted" }, "Figures need the role operator."));
      return this.counts();
    }
    const { at, now, series } = await this.series();
    const last = (name) => series[name].findLast((value) => value !== null) ?? 0;
    fill(this.since, at.length > 1 ? "Running for " + ago(at.at(-1) - at[0]) : "Just started");
    const card = (title, value, spark, text) => h("div", { class: "card figure" }, h("span", {}, title), h("b", {}, value), spark && at.length > 2 ? chart({ kind: "line", isSpark: true, at, series: [{ name: title, values: series[spark] }] }) : "", h("span", {}, text));
    fill(this.cards,
      card("Events in the logs", short(now.stored_events), null, short(now.events) + " since the start"),
      card("Events appended per second", short(last("events")), "events", short(last("conflicts")) + " conflicts per second"),
      card("Events ingested per second", short(last("ingested")), "ingested", "by fire-and-forget ingest"),
      card("Reads per second", short(last("reads")), "reads", short(last("statements")) + " graph statements, " + short(last("redirects")) + " redirects"),
      card("Memory", bytes(now.memory_bytes), "memory_bytes", number(last("cpu_seconds") * 100) + " % of a core"),
      card("Disk", bytes(now.disk_bytes), "disk_bytes", bytes(now.device_free_bytes) + " free"),
      card("Connections", number(now.connections), "connections", number(now.subscribers) + " subscriptions"));
    const plot = (title, unit, named) => h("section", { class: "card" }, h("h2", {}, title), chart({ kind: "line", title, at, unit, series: named.map(([name, values]) => ({ name, values: series[values] })) }));
    // The cursor of a chart that is looked at stays: it is drawn anew only when nobody is at it.
    if (this.plots.matches(":hover, :focus-within")) return;
    fill(this.plots,
      plot("Work", "per second", [["events appended", "events"], ["events ingested", "ingested"], ["reads", "reads"]]),
      plot("Append latency", "ms", [["p99", "append_p99_ms"], ["median", "append_p50_ms"]]),
      plot("Read latency", "ms", [["p99", "read_p99_ms"], ["median", "read_p50_ms"]]),
      plot("Processor", "cores", [["server", "cpu_seconds"]]));
  }
  /** The series since the start: all of them at first, then what is new. */
  async series() {
    const known = this.known;
    const found = await get("/v1/figures" + query({ after: known?.at.at(-1) }), { signal: this.signal });
    // A server that has taken less time than before is another one.
    const isAnother = found.now.cpu_seconds < this.cpuSeconds;
    this.cpuSeconds = found.now.cpu_seconds;
    if (isAnother && known) { this.known = null; return this.series(); }
    if (!known || known.at.length > MOST) {
      this.known = known ? null : { at: found.at_ms, series: found.series };
      return this.known ? { ...this.known, now: found.now } : this.series();
    }
    known.at.push(...found.at_ms);
    for (const [name, values] of Object.entries(found.series)) known.series[name].push(...values);
    return { ...known, now: found.now };
  }
  async counts() {
    const { logs } = await get("/v1/logs", { signal: this.signal });
    const stored = logs.filter((log) => log.name !== "system").reduce((sum, log) => sum + log.head, 0);
    fill(this.cards, h("div", { class: "card figure" }, h("span", {}, "Events in the logs"), h("b", {}, short(stored))));
  }
}
customElements.define("overview-page", OverviewPage);
