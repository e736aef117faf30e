// The frame: who is signed in, which page is shown, whether the server answers.

import { h, fill, say, problemNote, field, Page, sleep } from "./elements.js";
import { session, get, learn, signIn, signOut, useKey, onconnection, may, homeLog } from "./api.js";

/** The pages: address, name, element, and what an account needs for them: a role on everything, on the
 *  log `main`, or on any log. */
const PAGES = [
  ["overview", "Overview", "overview-page", () => true],
  ["events", "Events", "events-page", () => may("reader", homeLog())],
  ["projections", "Projections", "projections-page", () => may("reader", homeLog())],
  ["graph", "Graph", "graph-page", () => may("reader", homeLog())],
  ["links", "Links", "links-page", () => may("reader", "main")],
  ["catalogue", "Catalogue", "catalogue-page", () => may("reader", "main")],
  ["ingest", "Ingest", "ingest-page", () => may("reader", homeLog())],
  ["operation", "Operation", "operation-page", () => true],
  ["race", "A race", "race-page", () => may("admin")],
  ["reference", "API", "reference-page", () => true],
];

const nav = h("nav", { "aria-label": "Pages" });
const main = h("main", { id: "main", tabindex: "-1" });
const lost = h("div", { class: "note bad", role: "alert", hidden: true }, "The server does not answer. Trying again …");

function applyScheme() {
  const chosen = localStorage.getItem("scheme") ?? "auto";
  const dark = chosen === "dark" || (chosen === "auto" && matchMedia("(prefers-color-scheme: dark)").matches);
  document.documentElement.classList.toggle("dark", dark);
  dispatchEvent(new Event("scheme"));
  return chosen;
}

function navigation(current) {
  const scheme = h("select", { "aria-label": "Colours", onchange: (event) => { localStorage.setItem("scheme", event.target.value); applyScheme(); } },
    [["auto", "As the system"], ["light", "Light"], ["dark", "Dark"]].map(([value, text]) => h("option", { value, selected: value === (localStorage.getItem("scheme") ?? "auto") }, text)));
  fill(nav,
    h("a", { class: "brand", href: "#/overview" }, h("img", { src: "/console/icon.svg", alt: "" }), h("span", {}, "Wellspring")),
    PAGES.filter(([, , , isAllowed]) => isAllowed()).map(([address, name]) => h("a", { class: "page", href: "#/" + address, "aria-current": address === current && "page" }, name)),
    h("div", { class: "foot" },
      session.isOpen ? h("span", { class: "chip warn", title: "No accounts: whoever reaches this address may do everything. `wellspring user add NAME --role admin` ends this." }, "open server") :
        [h("span", {}, session.me.account ?? session.me.subject ?? "", " ", h("span", { class: "muted" }, session.me.roles.join(", "))), h("button", { type: "button", onclick: async () => { await signOut(); start(); } }, "Sign out")],
      scheme));
}

async function show() {
  if (!session.me) return;
  const address = location.hash.slice(2).split("?")[0] || "overview";
  const found = PAGES.find(([known, , , isAllowed]) => known === address && isAllowed()) ?? PAGES[0];
  const [name, title, element] = found;
  navigation(name);
  nav.querySelector("[aria-current]")?.scrollIntoView({ inline: "center", block: "nearest" });
  try {
    await import(`/console/${name}.js`);
    const page = document.createElement(element);
    main.replaceChildren(lost, page);
    document.title = title + " · Wellspring";
    // A reader of the screen is told where it is; a pointer's user sees no frame.
    if (hasNavigated) main.querySelector("h1")?.focus({ preventScroll: true });
    hasNavigated = true;
    scrollTo(0, 0);
  } catch (error) {
    main.replaceChildren(lost, h("h1", {}, title), problemNote(error));
  }
}
let hasNavigated = false;

function signInPage(message) {
  nav.hidden = true;
  for (const open of document.querySelectorAll("dialog")) open.close();
  const name = h("input", { name: "username", autocomplete: "username", required: true });
  const password = h("input", { name: "password", type: "password", autocomplete: "current-password", required: true });
  const key = h("input", { name: "key", type: "password", autocomplete: "off", spellcheck: "false" });
  const told = h("div", {}, message ? h("p", { class: "note warn" }, message) : "");
  const attempt = (work) => async (event) => {
    event.preventDefault();
    try { await work(); start(); } catch (error) { fill(told, problemNote(error)); }
  };
  main.replaceChildren(lost, h("div", { class: "signin" },
    h("h1", {}, "Sign in to Wellspring"), told,
    h("form", { class: "card stack", onsubmit: attempt(() => signIn(name.value, password.value)) }, field("Name", name), field("Password", password), h("button", { class: "main" }, "Sign in")),
    h("form", { class: "card stack", onsubmit: attempt(() => useKey(key.value.trim())) }, field("Or an API key or token", key), h("button", {}, "Use it")),
    h("p", { class: "muted small" }, "The credential stays in this tab's memory: a reload asks again.")));
  name.focus();
}

async function start() {
  let known = Boolean(session.me);
  try { known ||= await learn(); } catch (error) {
    main.replaceChildren(lost, problemNote(error));
    setTimeout(start, 2000);
    return;
  }
  if (!known) return signInPage();
  nav.hidden = false;
  show();
}

onconnection(async (is) => {
  lost.hidden = is;
  // A page that asks for nothing by itself would not notice that the server is back.
  if (!is) while (!lost.hidden) { await sleep(2000); await get("/health").catch(() => {}); }
  if (is) say("good", "The server answers again.");
});
addEventListener("hashchange", show);
addEventListener("signed-out", () => signInPage("The session has ended. Sign in again."));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", applyScheme);
let learntAt = 0;
Page.prototype.failed = function (error) {
  if (error.status === 0) return;
  // The roles may have changed: what is no longer allowed goes from the page.
  if (error.status === 403 && Date.now() - learntAt > 10000) { learntAt = Date.now(); learn().then(show, () => {}); }
  if (error.status) say("bad", ...problemNote(error).childNodes); else console.error(error);
};
applyScheme();
document.body.append(h("a", { class: "skip", href: "#main", onclick: (event) => { event.preventDefault(); main.focus(); } }, "Skip to the content"), nav, main);
start();
