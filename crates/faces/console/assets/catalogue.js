// The catalogue: items with stock and price, the prices they had, the orders placed.

import { h, fill, heading, Page, fieldForm, loaded, button, number, table, note, problemNote, time, tabs } from "./elements.js";
import { get, post, call, query, may } from "./api.js";
import { chart } from "./chart.js";

class CataloguePage extends Page {
  show() {
    this.told = h("div", { "aria-live": "polite" });
    this.detail = h("div", { class: "stack" });
    fill(this, heading("Catalogue"), this.told, this.body = tabs({ Items: () => this.items(), Topics: () => this.topics() }, this.params.get("tab") ?? "Items", (tab) => this.remember({ tab })), this.detail);
    if (this.params.get("item")) this.open(this.params.get("item"));
  }
  /** A form after whose work the page is shown anew. */
  form(text, fields, work) {
    return fieldForm(text, fields, async (given) => { await work(given); this.show(); });
  }
  items() {
    return h("div", { class: "card" }, loaded(async (area) => {
      const [{ items, next }, { topics }] = await Promise.all([get("/v1/catalogue/items" + query({ limit: 100, after: this.params.get("after") }), { signal: this.signal }), get("/v1/catalogue/topics?limit=100", { signal: this.signal })]);
      fill(area,
        may("operator", "main") ? topics.length ? this.form("Add the item", { name: {}, topic: h("select", {}, topics.map((one) => h("option", { value: one.id }, one.name))), price: { inputmode: "decimal", placeholder: "9.90" }, stock: { type: "number", min: "0", optional: true }, sku: { title: "SKU", optional: true } },
          (given) => post("/v1/catalogue/items", { ...given, topic: Number(given.topic), ...(given.stock && { stock: Number(given.stock) }) })) : note("", "Add a topic first, under Topics.") : "",
        table(["Item", "Topic", { title: "Price", number: true }, { title: "Stock", number: true }, { title: "Sold", number: true }, ""],
          items.map((item) => [h("a", { href: "#/catalogue?item=" + item.id, onclick: () => this.open(item.id) }, item.name), item.topic.name, `${item.price} ${item.currency}`, number(item.stock), number(item.sold),
            [item.withdrawn ? h("span", { class: "chip warn" }, "withdrawn") : may("writer", "main") ? button("Order one", async () => { const order = await post("/v1/catalogue/orders", { item: item.id }); fill(this.told, note("good", `Order ${order.order} is placed.`)); this.refresh("Items"); }) : ""]]), "No item yet."),
        next ? button("More", () => { this.remember({ after: next }); this.refresh("Items"); }) : "");
    }));
  }
  refresh(tab) { [...this.querySelectorAll("[role=tab]")].find((one) => one.dataset.name === tab)?.click(); }
  topics() {
    return h("div", { class: "card" }, loaded(async (area) => {
      const { topics } = await get("/v1/catalogue/topics?limit=1000", { signal: this.signal });
      fill(area, may("operator", "main") ? this.form("Add the topic", { name: {} }, (given) => post("/v1/catalogue/topics", given)) : "", table(["Topic", { title: "Items", number: true }], topics.map((one) => [one.name, number(one.items)]), "No topic yet."));
    }));
  }
  async open(id) {
    this.remember({ item: id });
    try {
      const [item, { prices, currency }, { orders }] = await Promise.all([get("/v1/catalogue/items/" + id), get(`/v1/catalogue/items/${id}/prices`), get("/v1/catalogue/orders" + query({ item: id, limit: 100 }))]);
      const oldest = [...prices].reverse();
      // A price holds until the next one: each change is drawn as a step, up to now.
      const at = [], values = [];
      for (const one of oldest) { const since = new Date(one.since).getTime(); if (values.length) { at.push(since - 1); values.push(values.at(-1)); } at.push(since); values.push(Number(one.price)); }
      at.push(Math.max(Date.now(), (at.at(-1) ?? 0) + 1)); values.push(values.at(-1));
      fill(this.detail, h("section", { class: "card stack" }, h("h2", {}, item.name), h("p", {}, item.description ?? ""),
        h("dl", {}, [["Topic", item.topic.name], ["SKU", item.sku], ["Price", `${item.price} ${item.currency}`], ["Stock", number(item.stock)], ["Sold", number(item.sold)], ["Added", time(item.added_at)], ["Changed", time(item.changed_at)]].map(([name, value]) => [h("dt", {}, name), h("dd", {}, value ?? "–")])),
        may("operator", "main") ? h("div", { class: "row" }, this.form("Set the price", { price: { inputmode: "decimal" } }, (given) => call("PATCH", "/v1/catalogue/items/" + id, { body: given })), this.form("Change the stock", { by: { inputmode: "numeric", placeholder: "-1" } }, (given) => post(`/v1/catalogue/items/${id}/stock`, { by: Number(given.by) }))) : "",
        h("h3", {}, "Prices"), chart({ kind: "line", title: "Price", at, unit: currency, series: [{ name: "price", values }] }),
        h("h3", {}, "Orders"), table(["Order", { title: "Amount", number: true }, { title: "Total", number: true }, "State", "Placed", ""], orders.map((order) => [order.order, number(order.amount), `${order.total} ${order.currency}`, order.state, time(order.placed_at),
          order.state === "placed" && may("writer", "main") ? button("Cancel", async () => { await call("DELETE", "/v1/catalogue/orders/" + encodeURIComponent(order.order)); this.refresh("Items"); this.open(id); }) : ""]), "No order yet.")));
    } catch (error) { fill(this.detail, problemNote(error)); }
  }
}
customElements.define("catalogue-page", CataloguePage);
