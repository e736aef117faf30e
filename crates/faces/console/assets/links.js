// Short links: make one, look at all, see who followed one.

import { h, fill, heading, Page, field, button, number, table, note, problemNote, copy, time, confirmName } from "./elements.js";
import { get, post, call, query, may } from "./api.js";
import { chart } from "./chart.js";

class LinksPage extends Page {
  show() {
    this.search = h("input", { type: "search", placeholder: "part of the target", onchange: () => this.list(), "aria-label": "Search" });
    this.rows = h("div", { class: "card" });
    this.detail = h("div", { class: "stack" });
    this.told = h("div", { "aria-live": "polite" });
    const url = h("input", { type: "url", required: true, placeholder: "https://example.com/a/long/address", size: "36" });
    const alias = h("input", { placeholder: "chosen for you", maxlength: "10", size: "12", autocomplete: "off", spellcheck: "false" });
    fill(this, heading("Links", this.search),
      may("writer", "main") ? h("form", { class: "card row", onsubmit: async (event) => {
        event.preventDefault();
        try {
          const made = await post("/api/urls", { url: url.value, ...(alias.value && { alias: alias.value }) });
          fill(this.told, note("good", h("a", { href: made.short_url, target: "_blank", rel: "noopener" }, made.short_url), " leads to ", made.original_url ?? "a sealed URL", " ", button("Copy", () => copy(made.short_url))));
          url.value = alias.value = "";
          this.list();
        } catch (error) { fill(this.told, problemNote(error)); }
      } }, field("Target", url), field("Code", alias), h("button", { class: "main" }, "Shorten")) : "",
      this.told, this.rows, this.detail);
    this.list();
    if (this.params.get("code")) this.open(this.params.get("code"));
  }
  async list(after) {
    const found = await get("/api/urls" + query({ limit: 50, order: "desc", search: this.search.value, after }), { signal: this.signal });
    this.shown = after === undefined ? found.links : [...this.shown, ...found.links];
    const rows = this.shown.map((link) => [
      h("a", { href: "#/links?code=" + link.short_code, onclick: () => this.open(link.short_code) }, link.short_code),
      h("span", { class: "mono" }, link.original_url ?? "sealed"), number(link.clicks), number(link.visitors), time(link.created_at), link.enabled ? "" : h("span", { class: "chip warn" }, "disabled")]);
    fill(this.rows, table(["Code", "Target", { title: "Clicks", number: true }, { title: "Visitors", number: true }, "Created", ""], rows, "No link yet."), found.next ? button("More", () => this.list(found.next)) : "");
  }
  async open(code) {
    this.remember({ code });
    try {
      const [link, stats] = await Promise.all([get("/api/urls/" + code), get(`/api/urls/${code}/stats?bucket=hour`)]);
      const series = (stats.series ?? []).slice(-168);
      const bars = (title, values) => h("section", { class: "card" }, h("h2", {}, title), table([title, { title: "Clicks", number: true }], values.map((one) => [one.referrer || one.agent || "none given", number(one.clicks)]), "None yet."));
      fill(this.detail,
        h("section", { class: "card stack" }, h("div", { class: "head" }, h("h2", {}, "/", link.short_code), h("div", { class: "tools" },
          h("a", { class: "button", href: `/${link.short_code}.qr`, target: "_blank", rel: "noopener" }, "QR code"),
          may("writer", "main") ? [button(link.enabled ? "Disable" : "Enable", async () => { await call("PATCH", "/api/urls/" + code, { body: { enabled: !link.enabled } }); this.open(code); this.list(); }),
            button("Delete", async () => { if (await confirmName("Delete the link", code)) { await call("DELETE", "/api/urls/" + code); fill(this.detail); this.list(); } }, { class: "danger" })] : "")),
          h("p", {}, link.original_url === null ? "The URL is sealed." : h("a", { href: link.original_url, rel: "noopener noreferrer", target: "_blank" }, link.original_url)),
          h("div", { class: "flow" }, [["Clicks", stats.clicks], ["Visitors", stats.visitors], ["Bots, apart", stats.bots]].map(([name, value]) => h("div", { class: "figure" }, h("span", {}, name), h("b", {}, number(value))))),
          series.length ? chart({ kind: "bar", title: "Clicks by hour", labels: series.map((one) => time(one.start).slice(5, 16)), series: [{ name: "clicks", values: series.map((one) => one.clicks) }], unit: "by hour, UTC" }) : h("p", { class: "muted" }, "Nobody has followed it yet.")),
        h("div", { class: "grid wide" }, bars("Referrer", stats.referrers), bars("Program", stats.agents)));
    } catch (error) { fill(this.detail, problemNote(error)); }
  }
}
customElements.define("links-page", LinksPage);
