// The public HTTP API, as any client uses it. The credential lives in this module's memory only:
// not in the address, not in a storage, gone with the tab.

let credential = null;
export const session = { me: null, isOpen: false };

export class ProblemError extends Error {
  constructor(status, problem) {
    super(problem?.detail ?? problem?.title ?? "The server answered " + status);
    Object.assign(this, { status, problem });
  }
}

/** JSON whose numbers are shown as they were written: 1.10 and integers beyond 2^53 keep their digits. */
export class ExactNumber {
  constructor(source) { this.source = source; }
  toString() { return this.source; }
  toJSON() { return JSON.rawJSON ? JSON.rawJSON(this.source) : Number(this.source); }
}
export function parse(text) {
  try {
    return JSON.parse(text, (_, value, context) =>
      typeof value === "number" && context?.source !== undefined && String(value) !== context.source ? new ExactNumber(context.source) : value);
  } catch (error) {
    // Nested too deeply for a reviver, which works by recursion; the parser alone does not.
    if (error instanceof RangeError) return JSON.parse(text);
    throw error;
  }
}

const listeners = new Set();
export const onconnection = (listener) => listeners.add(listener);
let isConnected = true;
function connected(is) {
  if (is !== isConnected) { isConnected = is; for (const listener of listeners) listener(is); }
}

export async function call(method, path, { body, headers = {}, signal, exact, text } = {}) {
  const sent = { Accept: "application/json", ...headers };
  if (credential) sent.Authorization = "Bearer " + credential;
  if (body !== undefined && !sent["Content-Type"]) sent["Content-Type"] = "application/json";
  const began = performance.now();
  let response, content;
  try {
    response = await fetch(path, { method, headers: sent, signal, credentials: "omit", cache: "no-store", redirect: "error", body: body === undefined || typeof body === "string" ? body : JSON.stringify(body) });
    content = await response.text();
  } catch (error) {
    if (error.name === "AbortError") throw error;
    connected(false);
    throw new ProblemError(0, { title: "The server does not answer", detail: "The console tries again by itself." });
  }
  connected(true);
  const isJson = response.headers.get("content-type")?.includes("json");
  const answer = { status: response.status, headers: response.headers, text: content, ms: performance.now() - began };
  if (isJson && content) answer.data = (exact ? parse : JSON.parse)(content);
  if (!response.ok && !text) {
    if (response.status === 401 && session.me) { credential = null; session.me = null; dispatchEvent(new Event("signed-out")); }
    throw new ProblemError(response.status, answer.data);
  }
  return answer;
}
export const get = async (path, options) => (await call("GET", path, options)).data;
export const post = async (path, body, options) => (await call("POST", path, { body, ...options })).data;

export const ofLog = (log, path) => "/v1/logs/" + encodeURIComponent(log) + path;
export function query(values) {
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) for (const one of [value].flat()) if (one !== undefined && one !== null && one !== "") params.append(name, one);
  const text = params.toString();
  return text ? "?" + text : "";
}

/** Who is asking. An open server lets anyone do everything. */
export async function learn() {
  try {
    session.me = await get("/auth/me");
    session.isOpen = session.me.accounts === false;
    return true;
  } catch (error) {
    if (error.status !== 401) throw error;
    return false;
  }
}
export async function signIn(username, password) {
  forgetLogs();
  credential = (await post("/auth/token", { username, password })).access_token;
  return learn();
}
export async function useKey(given) {
  const key = given.replace(/^Bearer\s+/i, "");
  // A header holds nothing else.
  if (!/^[\x21-\x7e]+$/.test(key)) throw new ProblemError(400, { title: "This is no key or token", detail: "A key consists of visible ASCII characters without spaces." });
  credential = key;
  let isKnown = false;
  try { isKnown = await learn(); } finally { if (!isKnown) credential = null; }
  if (!isKnown) { throw new ProblemError(401, { title: "This key or token is not valid", detail: "It may have expired or been revoked." }); }
  return true;
}
export async function signOut() {
  try { await post("/auth/logout", {}); } catch { /* A key cannot be logged out; it is forgotten here. */ }
  credential = null;
  session.me = null;
  forgetLogs();
}

const ORDER = ["reader", "writer", "operator", "admin"];
/** Whether the account has a role, on a log or, without one, on everything. */
export function may(role, log) {
  if (session.isOpen) return true;
  const wanted = ORDER.indexOf(role);
  return (session.me?.roles ?? []).some((held) => {
    const [name, on] = held.split(":");
    return ORDER.indexOf(name) >= wanted && (on === undefined || on === log);
  });
}

/** The log that a page shows until another is chosen: `main`, or the first that the account may read. */
export function homeLog() {
  if (may("reader", "main")) return "main";
  return session.me?.roles.map((held) => held.split(":")[1]).find(Boolean) ?? "main";
}

let knownLogs = null;
export async function logs() {
  if (!knownLogs) {
    knownLogs = get("/v1/logs").then((found) => found.logs.map((log) => log.name ?? log));
    knownLogs.catch(() => (knownLogs = null));
  }
  return knownLogs;
}
export const forgetLogs = () => (knownLogs = null);
