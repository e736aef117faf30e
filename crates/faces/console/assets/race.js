// A race for the last seat, by twenty clients of this browser: what a dynamic consistency boundary is.

import { h, fill, heading, Page, button, number, note, problemNote, sleep } from "./elements.js";
import { call, get, post, ofLog, ProblemError } from "./api.js";

const CLIENTS = 20;
const SEATS = 1;

class RacePage extends Page {
  show() {
    this.lanes = h("div", { class: "card" });
    this.told = h("div", { "aria-live": "polite" });
    this.mode = h("input", { type: "checkbox", checked: true });
    fill(this, heading("A race for the last seat", h("label", { class: "check" }, this.mode, "with an append condition"), button("Start", () => this.race(), { class: "main" })),
      h("p", { class: "lead" }, "Course 42 has one seat left and twenty students want it at the same moment. Each reads how many are taken, sees one free, and appends ", h("code", {}, "SeatTaken"), ". With a condition, the log refuses every append whose decision is out of date: by an event that matches ", h("em", {}, "its own query"), " and nothing else, so courses do not block each other and no row is locked."),
      this.told, this.lanes);
    fill(this.lanes, h("p", { class: "muted" }, "The race runs on a log of its own, which is removed afterwards."));
    this.offerRemoval().catch(() => {});
  }
  /** A tab that was closed, or a server that was killed, during a race has left its log behind. */
  async offerRemoval() {
    const { logs } = await get("/v1/logs", { signal: this.signal });
    const left = logs.map((log) => log.name).filter((name) => /^race-[0-9a-f]{10}$/.test(name));
    if (left.length) this.lanes.append(button(`Remove ${left.length} logs of races that did not end`, async () => {
      for (const log of left) await call("DELETE", `/v1/logs/${log}?confirm=${log}`);
      this.show();
    }));
  }
  async race() {
    const isSafe = this.mode.checked;
    const log = "race-" + Array.from(crypto.getRandomValues(new Uint8Array(5)), (byte) => byte.toString(16).padStart(2, "0")).join("");
    fill(this.told);
    await call("PUT", "/v1/logs/" + log);
    try {
      await post(ofLog(log, "/append"), { events: [{ type: "CourseOffered", tags: ["course:42"], data: { seats: SEATS } }] });
      const results = await this.run(log, isSafe);
      await this.verdict(log, isSafe, results);
    } catch (error) {
      fill(this.told, problemNote(error));
    } finally {
      await call("DELETE", `/v1/logs/${log}?confirm=${log}`).catch(() => {});
    }
  }
  async run(log, isSafe) {
    const lanes = Array.from({ length: CLIENTS }, (_, index) => {
      const [read, end, text] = [h("i", { class: "read" }), h("i"), h("span", { class: "nowrap" }, "…")];
      return { name: "Student " + (index + 1), read, end, text, element: h("div", { class: "lane" }, h("span", {}, "Student " + (index + 1)), h("div", { class: "track" }, end, read), text) };
    });
    fill(this.lanes, lanes.map((lane) => lane.element));
    // All wait for the same moment, so that their decisions overlap as those of real clients do.
    let go;
    const started = new Promise((resolve) => (go = resolve));
    const seats = { items: [{ types: ["SeatTaken"], tags: ["course:42"] }] };
    const began = performance.now();
    // The browser sends a few at a time: a random order makes it anyone's seat.
    const order = [...lanes.entries()].map(([index, lane]) => [Math.random(), lane, index]).sort((a, b) => a[0] - b[0]);
    const running = order.map(async ([, lane, index]) => {
      const found = await post(ofLog(log, "/project"), { projections: { taken: { query: seats, reduce: "count" } } });
      lane.readAt = performance.now() - began;
      await started;
      lane.sentAt = performance.now();
      const free = SEATS - found.states.taken;
      if (free <= 0) return { lane, kind: "full" };
      try {
        const done = await post(ofLog(log, "/append"), { events: [{ type: "SeatTaken", tags: ["course:42", "student:" + (index + 1)], data: {} }], ...(isSafe && { condition: found.appendCondition }) });
        return { lane, kind: "won", position: done.first };
      } catch (error) {
        if (!(error instanceof ProblemError) || error.status !== 409) throw error;
        return { lane, kind: "lost", position: error.problem.conflict.position };
      } finally {
        lane.ms = performance.now() - lane.sentAt;
      }
    });
    await sleep(350, this.signal);
    go();
    const ended = await Promise.allSettled(running);
    const failed = ended.find(({ status }) => status === "rejected");
    if (failed) throw failed.reason;
    const results = ended.map(({ value }) => value);
    const longest = Math.max(...results.map(({ lane }) => lane.ms ?? 1));
    for (const { lane, kind, position } of results) {
      lane.end.className = kind === "won" ? "won" : "lost";
      lane.end.style.width = (100 * (lane.ms ?? 1)) / longest + "%";
      fill(lane.text, kind === "won" ? h("b", { class: "good" }, "200 at position " + position) : kind === "lost" ? h("span", { class: "bad" }, "409, by position " + position) : "full");
    }
    return results;
  }
  async verdict(log, isSafe, results) {
    const won = results.filter(({ kind }) => kind === "won");
    const lost = results.filter(({ kind }) => kind === "lost");
    const sold = await post(ofLog(log, "/project"), { projections: { taken: { query: { items: [{ types: ["SeatTaken"] }] }, reduce: "count" } } });
    const taken = sold.states.taken;
    fill(this.told, isSafe
      ? note("good", h("p", {}, h("b", {}, won[0]?.lane.name ?? "Nobody"), ` has the seat. ${number(lost.length)} appends were refused with 409, which names the event in the way: position ${lost[0]?.position}. The log holds ${number(taken)} SeatTaken. Each loser reads again and decides again; nobody waited for a lock.`))
      : note("bad", h("p", {}, h("b", {}, `${number(taken)} students have one seat.`), " Each decision was right when it was made and out of date when it was written. Tick the condition and start again.")));
  }
}
customElements.define("race-page", RacePage);
