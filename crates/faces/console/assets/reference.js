// The API, from the server's own OpenAPI document, each route with a form that tries it.

import { h, fill, heading, Page, field, number, problemNote } from "./elements.js";
import { get, call, may, parse } from "./api.js";
import { tree } from "./json-tree.js";
import { showSnippets } from "./snippets.js";

class ReferencePage extends Page {
  async show() {
    const list = h("div", { class: "stack" }, h("p", { class: "muted" }, "Loading …"));
    const search = h("input", { type: "search", placeholder: "append, tags, sinks …", "aria-label": "Search routes", value: this.params.get("q") ?? "", oninput: () => { this.remember({ q: search.value }); paint(); } });
    let routes = [];
    const paint = () => {
      const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
      const found = routes.filter((route) => words.every((word) => route.text.includes(word)));
      fill(list, found.map((route) => this.route(route)), found.length ? "" : h("p", { class: "empty" }, "No route matches."));
    };
    fill(this, heading("API", search, h("a", { class: "button", href: "/openapi.json", target: "_blank", rel: "noopener" }, "OpenAPI")), list);
    try {
      const document = await get("/openapi.json", { signal: this.signal });
      routes = Object.entries(document.paths).flatMap(([path, methods]) => Object.entries(methods).filter(([method]) => ["get", "post", "put", "patch", "delete"].includes(method)).map(([method, of]) => ({ path, method: method.toUpperCase(), of, text: `${method} ${path} ${of.summary ?? ""} ${(of.tags ?? []).join(" ")}`.toLowerCase() })));
      this.shared = document.components?.parameters ?? {};
      paint();
    } catch (error) { if (error.name !== "AbortError") fill(list, problemNote(error)); }
  }
  route(route) {
    const { path, method, of } = route;
    const body = h("div", { class: "stack" });
    const details = h("details", { class: "card", ontoggle: () => { if (details.open && !body.hasChildNodes()) fill(body, this.form(route)); } },
      h("summary", {}, h("b", { class: "mono" }, method + " " + path), " ", h("span", { class: "muted" }, of.summary ?? of.description ?? "")), body);
    return details;
  }
  form({ path, method, of }) {
    const resolved = (of.parameters ?? []).map((one) => (one.$ref ? this.shared[one.$ref.split("/").at(-1)] : one)).filter(Boolean);
    const inputs = resolved.filter((one) => one.in !== "header").map((one) => [one, h("input", { spellcheck: "false", autocomplete: "off", required: one.in === "path", placeholder: one.schema?.default ?? one.schema?.type ?? "", title: one.description ?? "", value: one.in === "path" && one.name === "log" ? "main" : "" })]);
    const media = Object.keys(of.requestBody?.content ?? {});
    const body = media.length ? h("textarea", { rows: "5", spellcheck: "false", "aria-label": "Body" }) : null;
    const answer = h("div", { class: "stack", "aria-live": "polite" });
    const target = () => {
      const search = new URLSearchParams();
      let filled = path;
      for (const [one, input] of inputs) if (one.in === "path") filled = filled.replace(`{${one.name}}`, encodeURIComponent(input.value)); else if (input.value) search.append(one.name, input.value);
      return filled + (search.size ? "?" + search : "");
    };
    const needs = of["x-wellspring-needs"];
    const isAllowed = !needs || !["reader", "writer", "operator", "admin"].includes(needs) || may(needs);
    return h("form", { class: "stack", onsubmit: async (event) => {
      event.preventDefault();
      try {
        const found = await call(method, target(), { body: body?.value || undefined, text: true, signal: this.signal, headers: body?.value ? { "Content-Type": media[0] } : {} });
        let shown;
        try { shown = tree(parse(found.text), 3); } catch { shown = h("pre", { class: "wrap" }, found.text.slice(0, 20000)); }
        fill(answer, h("p", {}, h("b", { class: found.status < 400 ? "good" : "bad" }, found.status), ` in ${number(found.ms)} ms`), found.text ? shown : "");
      } catch (error) { fill(answer, problemNote(error)); }
    } }, h("p", {}, of.description ?? of.summary ?? ""), inputs.length ? h("div", { class: "row" }, inputs.map(([one, input]) => field(one.name, input))) : "", body ? field("Body, " + media[0], body) : "",
      h("div", { class: "row" }, isAllowed ? h("button", { class: "main" }, "Try it") : h("span", { class: "muted" }, "Needs the role " + needs), h("button", { type: "button", onclick: () => { let json; try { json = JSON.parse(body?.value || "null") ?? undefined; } catch { json = undefined; } showSnippets({ method, path: target(), body: json }); } }, "As code")), answer);
  }
}
customElements.define("reference-page", ReferencePage);
