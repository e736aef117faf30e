// A list of events, newest first, that holds a log of any length: rows of one height, of which only
// the visible ones exist, over a contiguous stretch of loaded events that is cut where nobody looks.

import { h, number, time, colour } from "./elements.js";
import { call, ofLog, query } from "./api.js";
import { preview } from "./json-tree.js";

const ROW = 34;
/** Events of a page: first few, then as many as their size allows. */
const PAGE = { first: 50, least: 10, most: 200, bytes: 2e6 };
/** Events kept, also by their size; beyond it the end that is not looked at is dropped. */
const KEPT = { least: 200, most: 6000, bytes: 40e6 };
const within = (value, { least, most }) => Math.max(least, Math.min(most, Math.floor(value)));

class EventList extends HTMLElement {
  connectedCallback() {
    this.events = [];
    this.state = "empty";
    this.ending = new AbortController();
    this.space = h("div", { class: "space" });
    this.classList.add("list");
    this.setAttribute("role", "listbox");
    this.setAttribute("aria-label", "Events, newest first");
    this.tabIndex = 0;
    this.append(this.space);
    this.addEventListener("scroll", () => this.scrolled(), { passive: true });
    this.addEventListener("keydown", (event) => this.onkey(event));
    this.resized = new ResizeObserver(() => this.paint());
    this.resized.observe(this);
  }
  disconnectedCallback() { this.ending.abort(); this.resized.disconnect(); }

  /** Shows the events of a log that match, from a position downwards. */
  async open({ log, types = [], tags = [], before = null }) {
    this.ending.abort();
    this.ending = new AbortController();
    this.isLoading = false;
    Object.assign(this, { history: null, head: 0, log, types, tags, events: [], isWhole: false, hasNewest: before === null, selected: null, page: PAGE.first, most: KEPT.most });
    this.scrollTop = 0;
    await this.load(before);
  }
  /** A page of the newest events before a position. The size of events decides how many come next. */
  async fetch(before, signal) {
    const { data, text, headers } = await call("GET", ofLog(this.log, "/events") + query({ type: this.types, tag: this.tags, order: "desc", limit: this.page, after: before }), { signal, exact: true });
    data.history = headers.get("wellspring-history");
    if (data.events.length) {
      const each = text.length / data.events.length;
      this.page = within(PAGE.bytes / each, PAGE);
      this.most = within(KEPT.bytes / each, KEPT);
    }
    for (const event of data.events) event.line = event.data_base64 !== undefined ? "bytes " + event.data_base64.slice(0, 60) : preview(event.data);
    return data;
  }
  async load(before) {
    if (this.isLoading || this.isWhole) return;
    this.isLoading = true;
    const { ending } = this;
    const { signal } = ending;
    try {
      const page = await this.fetch(before, signal);
      if (signal.aborted) return;
      if (this.isAnother(page)) return this.restart(page);
      this.head = page.head;
      this.events.push(...page.events);
      this.isWhole = page.next === null;
      if (this.events.length > this.most) {
        const cut = this.events.length - this.most;
        this.events.splice(0, cut);
        this.scrollTop -= cut * ROW;
        this.hasNewest = false;
      }
      this.paint();
      this.dispatchEvent(new Event("loaded"));
    } finally {
      if (this.ending === ending) this.isLoading = false;
    }
  }
  /** Whether this is another log under the same name, of which no event shown so far is one. */
  isAnother(page) {
    const is = this.history !== null && (page.history !== this.history || page.head < this.head);
    this.history = page.history;
    return is;
  }
  restart(page) {
    Object.assign(this, { events: page.events, isWhole: page.next === null, hasNewest: true, head: page.head, selected: null });
    this.scrollTop = 0;
    this.paint();
    this.dispatchEvent(new Event("loaded"));
  }
  /** Looks for newer events; whatever their number, one page is fetched. Returns how many came. */
  async renew() {
    if (this.isLoading || !this.hasNewest || !this.log) return 0;
    const { signal } = this.ending;
    // A look at the head is cheap; the events are fetched when there are new ones.
    const { data, headers } = await call("GET", ofLog(this.log, "/head"), { signal });
    if (data.head === this.head && headers.get("wellspring-history") === this.history) return 0;
    const page = await this.fetch(null, signal);
    if (signal.aborted || this.isLoading) return 0;
    if (this.isAnother(page)) { this.restart(page); return page.events.length; }
    this.head = page.head;
    const top = this.events[0]?.position ?? 0;
    const fresh = page.events.filter((event) => event.position > top);
    if (!fresh.length) return 0;
    if (fresh.length === page.events.length && page.next !== null && top) {
      // More came than a page: the list begins again at the newest, and stays without a gap.
      this.events = page.events;
      this.isWhole = false;
    } else {
      this.events.unshift(...fresh);
      if (this.events.length > this.most) { this.events.length = this.most; this.isWhole = false; }
      if (this.scrollTop > ROW) this.scrollTop += fresh.length * ROW;
    }
    const last = fresh.at(-1).position;
    this.paint((event) => event.position >= last);
    this.dispatchEvent(new Event("loaded"));
    return fresh.length;
  }
  scrolled() {
    if (this.isPainting) return;
    this.isPainting = true;
    requestAnimationFrame(() => {
      this.isPainting = false;
      this.paint();
      if (this.scrollTop + this.clientHeight > this.space.offsetHeight - 40 * ROW) this.load(this.events.at(-1)?.position ?? null).catch(() => {});
    });
  }
  paint(isNew = () => false) {
    const height = this.events.length * ROW;
    this.space.style.height = height + "px";
    const first = Math.max(0, Math.floor(this.scrollTop / ROW) - 6);
    const last = Math.min(this.events.length, Math.ceil((this.scrollTop + this.clientHeight) / ROW) + 6);
    const rows = [];
    for (let index = first; index < last; index += 1) rows.push(this.row(this.events[index], index, isNew));
    this.space.replaceChildren(...rows);
  }
  row(event, index, isNew) {
    const isSelected = event.position === this.selected;
    const row = h("div", { class: "item" + (isNew(event) ? " new" : ""), role: "option", id: "event-" + event.position, "aria-selected": String(isSelected), "aria-posinset": index + 1, "aria-setsize": -1, onclick: () => this.select(index) },
      h("span", { class: "muted" }, number(event.position)),
      h("span", { class: "muted time" }, time(event.recorded_at)),
      h("span", { class: "type", title: event.type }, event.type),
      h("span", { class: "muted tags" }, event.tags.join("  ")),
      h("span", { class: "mono" }, event.line));
    row.children[2].style.color = `var(--c${colour(event.type)})`;
    row.style.top = index * ROW + "px";
    return row;
  }
  select(index) {
    const event = this.events[index];
    if (!event) return;
    this.selected = event.position;
    const top = index * ROW;
    if (top < this.scrollTop) this.scrollTop = top;
    if (top + ROW > this.scrollTop + this.clientHeight) this.scrollTop = top + ROW - this.clientHeight;
    this.paint();
    this.setAttribute("aria-activedescendant", "event-" + event.position);
    this.dispatchEvent(new CustomEvent("choose", { detail: event }));
  }
  onkey(event) {
    const at = this.events.findIndex((one) => one.position === this.selected);
    const pageful = Math.max(1, Math.floor(this.clientHeight / ROW) - 1);
    const next = { ArrowDown: at + 1, ArrowUp: at - 1, PageDown: at + pageful, PageUp: at - pageful, Home: 0, End: this.events.length - 1 }[event.key];
    if (next === undefined) return;
    event.preventDefault();
    this.select(Math.min(this.events.length - 1, Math.max(0, next)));
  }
}
customElements.define("event-list", EventList);
