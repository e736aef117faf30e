// Fire-and-forget ingest: what was accepted, what became of it, what a crash now would lose.

import { h, fill, heading, Page, field, number, bytes, note, problemNote } from "./elements.js";
import { get, call, ofLog, may } from "./api.js";
import { chart } from "./chart.js";
import { logChoice } from "./events.js";

/** Samples that the chart holds: three minutes. */
const MOST = 180;

class IngestPage extends Page {
  async show() {
    this.samples = [];
    this.flow = h("div", { class: "card flow", "aria-live": "off" });
    this.plot = h("div", { class: "card" });
    this.told = h("div", { "aria-live": "polite" });
    const type = h("input", { value: "Measured", size: "14" });
    const data = h("input", { value: '{"temperature":21.5}', size: "30", spellcheck: "false" });
    fill(this, heading("Ingest", await logChoice(this)),
      h("p", { class: "lead muted" }, h("code", {}, "POST /e"), " answers 202 before the event is on disk. This account says how many a crash at this moment would lose: accepted = stored + in flight + dropped, at any time."),
      may("writer", this.log) ? h("form", { class: "card row", onsubmit: async (event) => {
        event.preventDefault();
        try {
          const { status, ms } = await call("POST", ofLog(this.log, "/e") + "?type=" + encodeURIComponent(type.value), { body: data.value });
          fill(this.told, note("good", `${status} in ${number(ms)} ms: accepted.`));
        } catch (error) { fill(this.told, problemNote(error)); }
      } }, field("Type", type), field("Data", data), h("button", { class: "main" }, "Send")) : "", this.told, this.flow, this.plot);
    if (!this.isFollowing) { this.isFollowing = true; this.every(1000, () => this.turn()); }
  }
  async turn() {
    const found = await get(ofLog(this.log, "/ingest"), { signal: this.signal });
    this.samples = [...this.samples, { at: Date.now(), ...found }].slice(-MOST);
    const figure = (name, of, text, kind = "") => h("div", { class: "figure " + kind }, h("span", {}, name), h("b", { class: kind }, number(of.events)), h("span", {}, text ?? bytes(of.bytes)));
    fill(this.flow, figure("Accepted", found.accepted), figure("Stored", found.stored), figure("In flight", found.in_flight), figure("Lost by a crash now", found.lost_possible, null, found.lost_possible.events ? "warn" : ""), figure("Refused, too many", found.shed, null, found.shed.events ? "warn" : ""), figure("Dropped, disk full", found.dropped, null, found.dropped.events ? "bad" : ""),
      h("div", { class: "figure" }, h("span", {}, "Until durable"), h("b", {}, number(found.window.last_us / 1000), " ms"), h("span", {}, "longest ", number(found.window.longest_us / 1000), " ms, overflow: ", found.overflow)));
    if (this.samples.length < 3) return;
    const growth = (name) => this.samples.slice(1).map((sample, index) => Math.max(0, sample[name].events - this.samples[index][name].events) / Math.max(0.001, (sample.at - this.samples[index].at) / 1000));
    fill(this.plot, h("h2", {}, "Events per second"), chart({ kind: "line", title: "Events per second", at: this.samples.slice(1).map((sample) => sample.at), unit: "per second", series: [{ name: "accepted", values: growth("accepted") }, { name: "stored", values: growth("stored") }] }));
  }
}
customElements.define("ingest-page", IngestPage);
