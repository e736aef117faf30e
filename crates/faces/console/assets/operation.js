// What an operator does: logs, accounts and keys, connectors, backups, nodes, views, problems.

import { h, fill, heading, Page, fieldForm, loaded, button, number, bytes, table, tabs, note, time, confirmName, copyable, dialog } from "./elements.js";
import { get, post, call, query, may, session, forgetLogs } from "./api.js";
import { tree } from "./json-tree.js";

class OperationPage extends Page {
  show() {
    const all = { Logs: ["logs", null], Connectors: ["connectors", "operator"], Nodes: ["nodes", null], Views: ["views", null], Backups: ["backups", "operator"], Accounts: ["accounts", "admin"], Keys: ["keys", null], Settings: ["settings", "admin"], Problems: ["problems", null] };
    const offered = Object.entries(all).filter(([, [, role]]) => !role || may(role));
    fill(this, heading("Operation"), tabs(Object.fromEntries(offered.map(([title, [name]]) => [title, () => loaded((area) => this[name](area))])), this.params.get("tab") ?? "Logs", (tab) => this.remember({ tab })));
  }
  again() { this.querySelector("[role=tab][aria-selected=true]").click(); }

  async logs(area) {
    const { logs } = await get("/v1/logs", { signal: this.signal });
    fill(area, may("admin") ? h("div", { class: "card" }, fieldForm("Create the log", { name: { pattern: "[a-z0-9_\\-]{1,63}" } }, async ({ name }) => { await call("PUT", "/v1/logs/" + encodeURIComponent(name)); forgetLogs(); this.again(); })) : "",
      h("div", { class: "card" }, table(["Log", { title: "Events", number: true }, { title: "On disk", number: true }, { title: "Segments", number: true }, { title: "Types", number: true }, "History", ""], logs.map((log) => [
        h("a", { href: "#/events?log=" + encodeURIComponent(log.name) }, log.name), number(log.head), bytes(log.disk_bytes), number(log.segments), number(log.types), h("code", {}, log.history),
        may("admin", log.name) && !["main", "system"].includes(log.name) ? button("Delete", async () => { if (await confirmName("Delete the log", log.name)) { await call("DELETE", `/v1/logs/${log.name}?confirm=${log.name}`); forgetLogs(); this.again(); } }, { class: "danger" }) : ""]))));
  }

  async connectors(area) {
    const [{ sinks }, { sources }] = await Promise.all([get("/v1/sinks", { signal: this.signal }), get("/v1/sources", { signal: this.signal })]);
    const rows = (kind, list) => list.map((one) => {
      const path = `/v1/${kind}/${encodeURIComponent(one.name)}`;
      const act = (text, action, body) => button(text, async () => { await post(path + "/" + action, body); this.again(); });
      return [h("button", { class: "quiet", type: "button", onclick: () => dialog(one.name, tree(one, 3)) }, one.name), kind.slice(0, -1),
        h("span", { class: "chip " + ({ running: "good", stopped: "bad", retrying: "warn" }[one.state] ?? "") }, one.state), one.reason ?? "", number(one.position), number(one.lag ?? one.records_behind),
        h("div", { class: "row" }, one.state === "paused" || one.state === "stopped" ? act("Resume", "resume") : act("Pause", "pause"),
          kind === "sinks" && one.state === "stopped" && one.stopped_at ? act("Skip " + number(one.stopped_at), "skip", { position: one.stopped_at }) : "",
          may("admin") ? button("Delete", async () => { if (await confirmName("Delete the connector", one.name)) { await call("DELETE", path); this.again(); } }, { class: "danger" }) : "")];
    });
    const definition = h("textarea", { rows: "5", spellcheck: "false", value: JSON.stringify({ url: "http://127.0.0.1:8080/events", query: { items: [{ types: ["OrderPlaced"] }] } }, null, 2) });
    fill(area, h("div", { class: "card" }, table(["Name", "Kind", "State", "Reason", { title: "Position", number: true }, { title: "Behind", number: true }, ""], [...rows("sinks", sinks), ...rows("sources", sources)], "No connector yet: a sink delivers events to a webhook or to Kafka.")),
      may("admin") ? h("div", { class: "card stack" }, h("h2", {}, "Add a webhook sink"), fieldForm("Create the sink", { name: {}, definition }, async ({ name, definition }) => { await call("PUT", "/v1/sinks/" + encodeURIComponent(name), { body: definition }); this.again(); })) : "");
  }

  async nodes(area) {
    const found = await get("/v1/cluster", { signal: this.signal });
    const transfer = (node) => may("admin") && node.role !== "leading" && node.reachable ? button("Transfer the lead to it", async () => { await post("/v1/cluster/transfer", { to: node.node }); this.again(); }) : "";
    const forget = (node) => may("admin") && !node.reachable ? button("Forget it", async () => { await call("DELETE", "/v1/cluster/nodes/" + encodeURIComponent(node.node)); this.again(); }, { class: "danger" }) : "";
    fill(area, found.nodes.length ? h("div", { class: "card" }, table(["Node", "Address", "Role", { title: "Position", number: true }, "Version", ""], found.nodes.map((node) => [node.node, node.url, node.reachable ? node.role : h("span", { class: "bad" }, node.error ?? "unreachable"), number(node.position), node.version, [transfer(node), forget(node)]])))
      : note("", h("p", {}, "One node that keeps its logs in files (journal: ", h("code", {}, found.journal), "). Several nodes share their logs through PostgreSQL.")),
      h("div", { class: "card" }, h("h2", {}, "Logs on this node"), table(["Log", "Role", { title: "Epoch", number: true }, "Leader", { title: "Head", number: true }], found.logs.map((log) => [log.log, log.role, number(log.epoch), log.leader ?? "", number(log.head)]))));
  }

  async views(area) {
    const { views } = await get("/v1/views", { signal: this.signal });
    fill(area, h("div", { class: "card" }, table(["View", "Log", "State", { title: "Position", number: true }, { title: "Behind", number: true }, { title: "Snapshot at", number: true }], views.map((view) => [view.view, view.log, h("span", { class: "chip " + ({ live: "good", failed: "bad" }[view.state] ?? "warn") }, view.state), number(view.position), number(view.lag), number(view.snapshot)]), "No view is open.")));
  }

  async backups(area) {
    const text = (await call("GET", "/metrics", { headers: { Accept: "text/plain" }, signal: this.signal })).text;
    const value = (name) => { const line = text.split("\n").find((one) => one.startsWith(name + " ")); return line && Number(line.split(" ")[1]); };
    const at = (seconds) => (seconds ? time(new Date(seconds * 1000).toISOString()) + " UTC" : "never");
    const rows = [["Last pass over every byte", at(value("wellspring_scrub_last_finished_timestamp_seconds"))], ["Damaged files found", number(value("wellspring_scrub_damaged_files"))], ["Files repaired", number(value("wellspring_scrub_mended_files_total"))], ["Bytes checked", bytes(value("wellspring_scrub_bytes_total"))]];
    const backup = text.split("\n").filter((one) => one.startsWith("wellspring_backup")).map((one) => { const [name, number] = one.split(" "); return [name.replace("wellspring_", "").replaceAll("_", " "), name.includes("timestamp") ? at(Number(number)) : number]; });
    fill(area, h("div", { class: "card" }, h("h2", {}, "Check of the files"), table(["", ""], rows)),
      h("div", { class: "card" }, h("h2", {}, "Scheduled backups"), backup.length ? table(["", ""], backup) : h("p", { class: "muted" }, "None are scheduled: ", h("code", {}, "serve --backup-to FOLDER"), " does.")),
      h("div", { class: "card stack" }, h("h2", {}, "Back up now"), h("p", { class: "muted" }, "On a machine with room for it:"), copyable(`wellspring backup --url ${location.origin} --to ./backup`)));
  }

  async accounts(area) {
    if (session.isOpen) return fill(area, note("warn", h("p", {}, "This server is open: it has no accounts, and whoever reaches it may do everything. The first account, an admin, ends that at once.")), h("div", { class: "card" }, this.firstAccount()));
    const { accounts } = await get("/v1/accounts?limit=1000", { signal: this.signal });
    fill(area, h("div", { class: "card" }, table(["Account", "Roles", "State", "Added", ""], accounts.map((one) => [one.name, h("div", { class: "chips" }, one.roles.map((role) => h("span", { class: "chip" }, role))), one.enabled ? "enabled" : h("span", { class: "chip warn" }, "disabled"), time(one.added_at),
      h("div", { class: "row" }, button(one.enabled ? "Disable" : "Enable", async () => { await call("PATCH", "/v1/accounts/" + encodeURIComponent(one.name), { body: { enabled: !one.enabled } }); this.again(); }), button("Delete", async () => { if (await confirmName("Delete the account", one.name)) { await call("DELETE", "/v1/accounts/" + encodeURIComponent(one.name)); this.again(); } }, { class: "danger" }))]))),
      h("div", { class: "card" }, h("h2", {}, "Add an account"), fieldForm("Add the account", { name: {}, password: { type: "password", autocomplete: "new-password", minlength: "8" }, roles: { placeholder: "reader, writer:orders" } }, async ({ name, password, roles }) => { await post("/v1/accounts", { name, password, roles: roles.split(/[\s,]+/).filter(Boolean) }); this.again(); })));
  }
  firstAccount() {
    return fieldForm("Create the first admin", { name: {}, password: { type: "password", autocomplete: "new-password", minlength: "8" } }, async ({ name, password }) => {
      await post("/v1/accounts", { name, password, roles: ["admin"] });
      location.reload();
    });
  }

  async keys(area) {
    if (session.isOpen) return fill(area, note("", "Keys belong to accounts, and this server has none."));
    const { keys } = await get("/v1/keys" + query({ limit: 1000 }), { signal: this.signal });
    const role = h("select", {}, ["reader", "writer", "operator", "admin"].filter((one) => may(one)).map((one) => h("option", {}, one)));
    fill(area, h("div", { class: "card" }, table(["Key", "Label", "Account", "Role", "Expires", "State", ""], keys.map((one) => [h("code", {}, one.id), one.label ?? "", one.account, one.role + (one.log ? ":" + one.log : ""), one.expires_at ? time(one.expires_at) : "never", one.state, button("Revoke", async () => { if (await confirmName("Revoke the key", one.id)) { await call("DELETE", "/v1/keys/" + one.id); this.again(); } }, { class: "danger" })]), "No key yet.")),
      role.children.length ? h("div", { class: "card" }, h("h2", {}, "Create a key"), fieldForm("Create the key", { label: {}, role, days: { type: "number", value: "90", min: "1" } }, async ({ label, role, days }, told) => {
        const made = await post("/v1/keys", { label, role, expires_in_s: Number(days) * 86400 });
        fill(told, note("good", h("p", {}, "Copy the secret now; it is not shown again."), copyable(made.secret)));
      })) : "");
  }

  async settings(area) {
    const { text } = await call("GET", "/v1/settings", { headers: { Accept: "text/plain" }, signal: this.signal });
    fill(area, h("div", { class: "card stack" }, h("p", { class: "muted" }, "As ", h("code", {}, "serve --print-config"), " prints them. They are set by flags, environment or file, and read at the start."), copyable(text)));
  }

  async problems(area) {
    const { problems } = await get("/problems", { signal: this.signal });
    fill(area, h("div", { class: "card" }, table(["Problem", { title: "Status", number: true }, "Meaning"], problems.map((one) => [h("a", { href: one.type, target: "_blank", rel: "noopener" }, one.type.replace("/problems/", "")), one.status, one.title]))));
  }
}
customElements.define("operation-page", OperationPage);
