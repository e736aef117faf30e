// The editor of statements: completion of names and keywords, history, parameters.

import { h, fill } from "./elements.js";

const KEYWORDS = "MATCH OPTIONAL WHERE RETURN WITH UNWIND CREATE MERGE SET REMOVE DELETE DETACH ORDER BY SKIP LIMIT DISTINCT AS AND OR NOT IN IS NULL CASE WHEN THEN ELSE END UNION ALL CALL YIELD EXISTS CONTAINS count collect labels type id properties keys nodes relationships size toLower coalesce avg sum min max range".split(" ");
/** The statements of this tab, newest last. */
const KEPT = "statements";

export class CypherEditor {
  /** `names()` gives {labels, types, keys}; `run()` is called for Ctrl+Enter. */
  constructor({ names, run, value }) {
    this.names = names;
    this.area = h("textarea", { rows: "5", spellcheck: "false", autocomplete: "off", "aria-label": "Cypher", "aria-autocomplete": "list", value });
    this.options = h("div", { class: "options", role: "listbox", hidden: true });
    this.element = h("div", { class: "editor" }, this.area, this.options);
    this.history = JSON.parse(sessionStorage.getItem(KEPT) ?? "[]");
    this.at = this.history.length;
    this.area.addEventListener("input", () => this.complete());
    this.area.addEventListener("blur", () => setTimeout(() => this.close(), 150));
    this.area.addEventListener("keydown", (event) => {
      const isOpen = !this.options.hidden;
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); this.close(); run(); }
      else if (isOpen && (event.key === "ArrowDown" || event.key === "ArrowUp")) { event.preventDefault(); this.move(event.key === "ArrowDown" ? 1 : -1); }
      else if (isOpen && (event.key === "Enter" || event.key === "Tab")) { event.preventDefault(); this.take(); }
      else if (isOpen && event.key === "Escape") { event.stopPropagation(); this.close(); }
      else if ((event.ctrlKey || event.metaKey) && (event.key === "ArrowUp" || event.key === "ArrowDown")) { event.preventDefault(); this.recall(event.key === "ArrowUp" ? -1 : 1); }
    });
  }
  get value() { return this.area.value; }
  set value(text) { this.area.value = text; }
  keep() {
    if (this.value.trim() && this.history.at(-1) !== this.value) this.history = [...this.history, this.value].slice(-50);
    this.at = this.history.length;
    sessionStorage.setItem(KEPT, JSON.stringify(this.history));
  }
  recall(step) {
    this.at = Math.min(this.history.length, Math.max(0, this.at + step));
    this.value = this.history[this.at] ?? "";
  }
  async complete() {
    const before = this.value.slice(0, this.area.selectionStart);
    const [, sign, word] = before.match(/([:.]?)\s*([\p{L}_][\p{L}\p{N}_]*)?$/u) ?? [];
    if (!word && !sign) return this.close();
    const { labels, types, keys } = await this.names();
    const isRelationship = /\[[^\]]*$/.test(before);
    const isMap = /\{[^}]*$/.test(before);
    const all = sign === ":" ? (isRelationship ? types : labels) : sign === "." ? keys : isMap ? [...keys, ...KEYWORDS] : KEYWORDS;
    const low = (word ?? "").toLowerCase();
    const found = all.filter((one) => one.toLowerCase().startsWith(low) && one !== word).slice(0, 12);
    if (!found.length || (!word && sign !== ":" && sign !== ".")) return this.close();
    this.word = word ?? "";
    fill(this.options, found.map((one, index) => h("div", { role: "option", "aria-selected": String(index === 0), onpointerdown: (event) => { event.preventDefault(); this.take(one); } }, one)));
    this.options.style.top = Math.min(this.area.offsetHeight, (before.split("\n").length + 0.6) * 19) + "px";
    this.options.style.left = Math.min(before.split("\n").at(-1).length * 7.4, this.area.clientWidth - 200) + "px";
    this.options.hidden = false;
  }
  move(step) {
    const all = [...this.options.children];
    const at = all.findIndex((one) => one.getAttribute("aria-selected") === "true");
    all.forEach((one, index) => one.setAttribute("aria-selected", String(index === (at + step + all.length) % all.length)));
  }
  take(text = this.options.querySelector("[aria-selected=true]")?.textContent) {
    const end = this.area.selectionStart;
    this.area.setRangeText(/^[\p{L}_][\p{L}\p{N}_]*$/u.test(text) ? text : "`" + text.replaceAll("`", "``") + "`", end - this.word.length, end, "end");
    this.close();
  }
  close() { this.options.hidden = true; }
}
