//! The console in a real browser: each page in both schemes and at two widths, its main task by the
//! keyboard alone, texts full of markup, roles, a server that goes away, another site's frame.
//!
//! Pictures of the pages are kept in `target/console`.

use crate::chromium::{self, Tab};
use crate::closed::{Closed, PASSWORD};
use crate::server::Server;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::PathBuf;

const PAGES: &[&str] = &[
    "overview",
    "events",
    "projections",
    "graph",
    "links",
    "catalogue",
    "ingest",
    "operation",
    "race",
    "reference",
];
/// The texts of a page that are too faint.
const CONTRAST: &str = include_str!("contrast.js");
/// Markup that would run if any page took a text for markup.
const MARKUP: &str =
    "<img src=x onerror=window.ran=1><script>window.ran=1</script>\"'`${window.ran=1}";

fn open(tab: &mut Tab, server: &Server, page: &str) {
    tab.visit(&format!("{}/#/{page}", server.url()));
    tab.until("document.querySelector('main h1')");
}

/// Waits until a page asks for nothing any more: what it loads at first is there.
fn settle(tab: &mut Tab) {
    tab.run(
        "new Promise((done) => { let last = -1; const look = () => { \
         const now = performance.getEntriesByType('resource').length + document.body.innerText.length; \
         if (now === last) return done(); last = now; setTimeout(look, 400); }; look(); })",
    );
}

fn keep(tab: &mut Tab, name: &str) {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../target")),
        PathBuf::from,
    );
    let folder = target.join("console");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join(name).with_extension("png"), tab.picture()).unwrap();
}

/// Something of everything, so that no page is empty.
fn fill(server: &Server) {
    let mut client = server.client();
    let orders: Vec<Value> = (0..300)
        .map(|n| {
            json!({"type": "OrderPlaced", "tags": [format!("order:{n}"), format!("customer:{}", n % 7)],
                   "data": {"total": f64::from(n) / 4.0, "lines": [{"sku": "a", "amount": n}]}})
        })
        .collect();
    client.post("/v1/append", &json!({"events": orders})).unwrap().expect(200);
    let link = json!({"url": "https://example.com/a", "alias": "abc"});
    client.post("/api/urls", &link).unwrap().expect(201);
    client.get("/abc").unwrap();
    client.post("/v1/catalogue/topics", &json!({"name": "Books"})).unwrap().expect(201);
    let item = json!({"name": "A book", "topic": 1, "price": "9.90", "stock": 5});
    client.post("/v1/catalogue/items", &item).unwrap().expect(201);
    statement(server, "CREATE (:Person {name: 'Ada'})-[:KNOWS]->(:Person {name: 'Grace'})");
}

fn statement(server: &Server, statement: &str) -> Value {
    let body = json!({"statements": [{"statement": statement}]});
    let answer = server.client().post("/db/main/tx/commit", &body).unwrap().expect(200);
    assert_eq!(answer["errors"], json!([]), "{statement}");
    answer["results"][0]["data"].clone()
}

fn count(server: &Server, event_type: &str) -> u64 {
    let types = server.client().get("/v1/types").unwrap().expect(200);
    let of = types["types"].as_array().unwrap().iter().find(|of| of["type"] == event_type);
    of.map_or(0, |of| of["count"].as_u64().unwrap())
}

#[test]
fn every_page_shows_itself_at_every_width_and_in_both_schemes() {
    let Some(program) = chromium::program() else { return };
    let server = Server::start();
    fill(&server);
    let mut tab = Tab::open(&program);
    for (width, height) in [(1440, 900), (360, 740)] {
        tab.size(width, height);
        for scheme in ["light", "dark"] {
            tab.scheme(scheme);
            for page in PAGES {
                open(&mut tab, &server, page);
                settle(&mut tab);
                keep(&mut tab, &format!("{page}-{width}-{scheme}"));
                assert_eq!(tab.errors(), Vec::<String>::new(), "{page} at {width}, {scheme}");
                let wide = tab.run("document.documentElement.scrollWidth").as_u64().unwrap();
                assert!(wide <= width.into(), "{page} is {wide} wide in {width}");
                let faint = tab.run(CONTRAST);
                assert_eq!(faint, json!([]), "{page}, {scheme}");
                let is_dark = tab.run("document.documentElement.classList.contains('dark')");
                assert_eq!(is_dark, scheme == "dark");
            }
        }
    }
}

#[test]
fn a_program_gets_the_discovery_document_and_a_browser_the_console() {
    let server = Server::start();
    let mut client = server.client();
    let ask = |client: &mut crate::client::Client, accept| {
        client.call("GET", "/", &[("Accept", accept)], b"").unwrap()
    };
    let page = ask(&mut client, "text/html,application/xhtml+xml,*/*;q=0.8");
    assert_eq!(page.header("content-type"), Some("text/html"));
    let policy = page.header("content-security-policy").unwrap();
    assert!(policy.contains("default-src 'none'") && policy.contains("frame-ancestors 'none'"));
    let etag = page.header("etag").unwrap().to_owned();
    let known = [("Accept", "text/html"), ("If-None-Match", etag.as_str())];
    assert_eq!(client.call("GET", "/", &known, b"").unwrap().status, 304);
    let weak = [("Accept", "text/html"), ("If-None-Match", &*format!("\"x\", W/{etag}"))];
    assert_eq!(client.call("GET", "/", &weak, b"").unwrap().status, 304);
    for accept in ["*/*", "application/json"] {
        let document = ask(&mut client, accept).expect(200);
        assert_eq!(document["transaction"], "http://test/db/{databaseName}/tx");
        assert_eq!(document["console"], "http://test/");
    }
    assert_eq!(ask(&mut client, "image/png").status, 406);
    client.get("/console/nothing.js").unwrap().problem(404);
    let icon = client.get("/favicon.ico").unwrap();
    assert_eq!((icon.status, icon.header("content-type")), (200, Some("image/svg+xml")));
    assert!(client.get("/robots.txt").unwrap().text().contains("Disallow: /v1/"));

    let without = Server::start_with(&["--console", "false"]);
    let mut client = without.client();
    assert!(ask(&mut client, "text/html").expect(200)["console"].is_null());
    client.get("/console/app.js").unwrap().problem(404);
    let settings = client.get("/v1/settings").unwrap();
    assert!(settings.text().contains("\nconsole = false\n"), "{}", settings.text());
}

#[test]
fn figures_begin_at_the_start_and_go_on() {
    let server = Server::start();
    fill(&server);
    let figures = || server.client().get("/v1/figures").unwrap().expect(200);
    wellspring_patience::until("the second sample", || {
        figures()["at_ms"].as_array().unwrap().len() > 2
    });
    let found = figures();
    let length = found["at_ms"].as_array().unwrap().len();
    for (name, values) in found["series"].as_object().unwrap() {
        assert_eq!(values.as_array().unwrap().len(), length, "{name}");
    }
    assert!(found["now"]["events"].as_f64().unwrap() >= 300.0, "{found}");
    assert!(found["now"]["stored_events"].as_f64().unwrap() >= 300.0, "{found}");
    assert!(found["now"]["memory_bytes"].as_f64().unwrap() > 1e6, "{found}");
}

#[test]
fn the_main_task_of_each_page_is_done_by_the_keyboard() {
    let Some(program) = chromium::program() else { return };
    let server = Server::start();
    fill(&server);
    let tab = &mut Tab::open(&program);
    tab.size(1440, 900);

    // Events: through the list to one event; a filter; an append; one that a condition refuses.
    open(tab, &server, "events");
    tab.until("document.querySelector('.item')");
    tab.tab_to("event-list");
    tab.press("ArrowDown");
    tab.press("ArrowDown");
    tab.until("document.querySelector('.detail h2').textContent.includes('Position')");
    tab.tab_to("#tags");
    tab.write("customer:3");
    tab.press("Enter");
    tab.until("document.querySelector('event-list').isWhole");
    assert_eq!(tab.run("document.querySelector('event-list').events.length"), 43);
    let append = |tab: &mut Tab, event_type: &str, refused_by: Option<&str>| {
        tab.run("[...document.querySelectorAll('button')].find((one) => one.textContent === 'Append').id = 'append'");
        tab.tab_to("#append");
        tab.press("Enter");
        tab.until("document.querySelector('dialog[open]')");
        tab.write(event_type);
        if let Some(tag) = refused_by {
            tab.tab_to("#unless-tags");
            tab.write(tag);
            tab.press("Enter");
        }
        tab.tab_to("dialog button.main");
        tab.press("Enter");
        // The note that it is refused comes first; the event in the way is read after it.
        tab.until("document.querySelector('dialog .note.good, dialog .card')");
        let said = tab.run("document.querySelector('dialog').innerText");
        tab.press("Escape");
        tab.until("!document.querySelector('dialog[open]')");
        said.as_str().unwrap().to_owned()
    };
    assert!(append(tab, "NoteTaken", None).contains("Appended at position"));
    assert_eq!(count(&server, "NoteTaken"), 1);
    let refused = append(tab, "NoteTaken", Some("order:7"));
    assert!(refused.contains("The event in the way") && refused.contains("1.75"), "{refused}");
    assert_eq!(count(&server, "NoteTaken"), 1);

    open(tab, &server, "projections");
    tab.tab_to("#types");
    tab.write("OrderPlaced");
    tab.press("Enter");
    tab.tab_to("form button.main");
    tab.press("Enter");
    tab.until("document.querySelector('section.figure b')?.textContent === '300'");
    tab.until("document.querySelector('pre').textContent.includes('failIfEventsMatch')");

    open(tab, &server, "graph");
    tab.until("document.querySelector('graph-drawing')?.nodes.size === 2");
    tab.tab_to(".editor textarea");
    tab.run("document.activeElement.value = ''");
    tab.write("MATCH (p:Per");
    tab.until("!document.querySelector('.options').hidden");
    tab.press("Enter");
    tab.write(") RETURN p.name AS name ORDER BY name");
    tab.press("Ctrl+Enter");
    tab.until("document.querySelector('main td')?.textContent === 'Ada'");
    tab.run("[...document.querySelectorAll('button')].find((one) => one.textContent === 'Explain').id = 'explain'");
    tab.tab_to("#explain");
    tab.press("Enter");
    tab.until("document.querySelector('.tree')?.innerText.includes('ProduceResults')");
    tab.until("document.querySelector('.tree').innerText.includes('NodeByLabelScan')");
    tab.tab_to(".editor textarea");
    tab.run("document.querySelector('.editor textarea').value = 'MATCH (n)\\nRETRUN n'");
    tab.press("Ctrl+Enter");
    tab.until("document.querySelector('graph-page .note.bad')");
    let chosen = "(() => { const area = document.querySelector('.editor textarea'); \
                  return area.value.slice(area.selectionStart, area.selectionEnd); })()";
    assert_eq!(tab.run(chosen), "RETRUN");

    open(tab, &server, "links");
    tab.tab_to("input[type=url]");
    tab.write("https://example.com/by-keyboard");
    tab.press("Enter");
    tab.until("document.querySelector('.note.good a')");
    let links = server.client().get("/api/urls?search=by-keyboard").unwrap().expect(200);
    assert_eq!(links["links"].as_array().unwrap().len(), 1);

    open(tab, &server, "catalogue");
    tab.tab_to("form input");
    tab.write("Another book");
    tab.press("Tab");
    tab.press("Tab");
    tab.write("12.50");
    tab.press("Enter");
    tab.until("document.querySelector('main').innerText.includes('Another book')");

    open(tab, &server, "ingest");
    tab.tab_to("form button.main");
    tab.press("Enter");
    tab.until("document.querySelector('.note.good')?.textContent.startsWith('202')");
    wellspring_patience::until("the event is stored", || count(&server, "Measured") == 1);

    open(tab, &server, "operation");
    tab.tab_to("form input");
    tab.write("by-keyboard");
    tab.press("Enter");
    tab.until("document.querySelector('main').innerText.includes('by-keyboard')");
    server.client().get("/v1/logs/by-keyboard").unwrap().expect(200);
    tab.tab_to("[role=tab]");
    tab.press("ArrowRight");
    tab.until("document.activeElement.textContent === 'Connectors'");

    open(tab, &server, "reference");
    tab.tab_to("input[type=search]");
    tab.write("/v1/head");
    tab.until("document.querySelectorAll('main details').length <= 2");
    tab.tab_to("main details summary");
    tab.press("Enter");
    tab.tab_to("main details button.main");
    tab.press("Enter");
    tab.until("document.querySelector('main details').innerText.includes('200 in')");

    open(tab, &server, "race");
    tab.tab_to("race-page button.main");
    tab.press("Enter");
    tab.until(
        "document.querySelector('.note.good')?.innerText.includes('19 appends were refused')",
    );
    tab.until("document.querySelector('.note.good').innerText.includes('holds 1 SeatTaken')");
    // README shows this one: docs/images/console.png.
    keep(tab, "race-finished");
    wellspring_patience::until("the log of the race is removed", || {
        let logs = server.client().get("/v1/logs").unwrap().expect(200);
        !logs.to_string().contains("race-")
    });
    let unexpected: Vec<String> =
        tab.errors().into_iter().filter(|error| !error.contains("409 (Conflict)")).collect();
    assert_eq!(unexpected, Vec::<String>::new());
}

#[test]
fn no_text_of_anyone_becomes_markup() {
    let Some(program) = chromium::program() else { return };
    let server = Server::start();
    let mut client = server.client();
    let event = json!({"type": MARKUP, "tags": [MARKUP], "data": {MARKUP: [MARKUP]},
                       "metadata": {"m": MARKUP}});
    client.post("/v1/append", &json!({"events": [event]})).unwrap().expect(200);
    let target = format!("https://example.com/?q={MARKUP}").replace(' ', "%20");
    client.post("/api/urls", &json!({"url": target, "alias": "abc"})).unwrap().expect(201);
    client.post("/v1/catalogue/topics", &json!({"name": MARKUP})).unwrap().expect(201);
    let item = json!({"name": MARKUP, "description": MARKUP, "topic": 1, "price": "1", "stock": 1});
    client.post("/v1/catalogue/items", &item).unwrap().expect(201);
    let body = json!({"statements": [{"statement": "CREATE (:`<b>x</b>` {name: $m})-[:`<i>y</i>`]->(:B)",
                                      "parameters": {"m": MARKUP}}]});
    client.post("/db/main/tx/commit", &body).unwrap().expect(200);
    let tab = &mut Tab::open(&program);
    tab.size(1440, 900);
    let pages = ["events", "graph", "links?code=abc", "catalogue?item=1", "operation", "overview"];
    for page in pages {
        open(tab, &server, page);
        settle(tab);
        if page == "events" {
            tab.until("document.querySelector('.item')");
            tab.run("document.querySelector('event-list').select(document.querySelector('event-list').events.findIndex((one) => one.type.includes('onerror')))");
            tab.until("document.querySelector('.detail').innerText.includes('onerror')");
        }
        if page == "graph" {
            tab.until("document.querySelectorAll('[role=tab]').length === 3");
            tab.run("document.querySelectorAll('[role=tab]')[1].click()");
        }
        assert_eq!(tab.run("typeof window.ran"), "undefined", "{page}");
        assert_eq!(tab.run("document.querySelectorAll('main img, main script').length"), 0);
        let shown = tab.run("document.body.innerText.includes('onerror')");
        assert!(
            shown == true || ["operation", "overview"].contains(&page),
            "{page} shows it as text"
        );
        assert_eq!(tab.errors(), Vec::<String>::new(), "{page}");
    }
}

#[test]
fn a_long_list_is_never_whole_in_the_page() {
    let Some(program) = chromium::program() else { return };
    let server = Server::start();
    let mut client = server.client();
    for batch in 0..12 {
        let events: Vec<Value> = (0..1_000)
            .map(|n| json!({"type": "T", "tags": ["t:1"], "data": {"batch": batch, "n": n}}))
            .collect();
        client.post("/v1/append", &json!({"events": events})).unwrap().expect(200);
    }
    let tab = &mut Tab::open(&program);
    tab.size(1440, 900);
    open(tab, &server, "events");
    tab.until("document.querySelector('.item')");
    // To the end, page after page: rows and events in memory stay few, and none is skipped.
    let scrolled = tab.run(
        "(async () => { const list = document.querySelector('event-list'); let most = 0, rows = 0; \
         const seen = new Set(); \
         for (let turn = 0; turn < 3000 && !seen.has(1); turn += 1) { \
           for (const { position } of list.events) seen.add(position); \
           most = Math.max(most, list.events.length); \
           rows = Math.max(rows, list.querySelectorAll('.item').length); \
           list.scrollTop = list.scrollHeight; await new Promise((done) => setTimeout(done, 15)); } \
         return { seen: seen.size, most, rows }; })()",
    );
    assert_eq!(scrolled["seen"], 12_000);
    assert!(scrolled["most"].as_u64().unwrap() <= 6_200, "{scrolled}");
    assert!(scrolled["rows"].as_u64().unwrap() < 80, "{scrolled}");
    // At once to a place in the middle, by position.
    open(tab, &server, "events?at=5000");
    tab.until("document.querySelector('event-list').events[0]?.position === 5000");
}

#[test]
fn a_list_never_mixes_two_logs_of_one_name_nor_two_jumps() {
    let Some(program) = chromium::program() else { return };
    let server = Server::start();
    let mut client = server.client();
    let mut make = |event_type: &str, count: usize| {
        client.call("PUT", "/v1/logs/re", &[], b"").unwrap();
        let events = vec![json!({"type": event_type, "data": 1}); count];
        client.post("/v1/logs/re/append", &json!({"events": events})).unwrap().expect(200);
    };
    make("Old", 300);
    let tab = &mut Tab::open(&program);
    open(tab, &server, "events?log=re");
    tab.until("document.querySelector('event-list').events.length >= 50");
    // A jump before the first has arrived: the last one counts.
    tab.run(
        "{ const list = document.querySelector('event-list'); \
             list.open({ log: 're', before: 200 }); list.open({ log: 're', before: 101 }); }",
    );
    tab.until("document.querySelector('event-list').events[0]?.position === 100");
    open(tab, &server, "events?log=re");
    tab.until("document.querySelector('event-list').events[0]?.position === 300");
    let removed = server.client().call("DELETE", "/v1/logs/re?confirm=re", &[], b"").unwrap();
    assert_eq!(removed.status, 200);
    make("New", 301);
    let events = "document.querySelector('event-list').events";
    tab.until(&format!("{events}[0]?.position === 301"));
    assert_eq!(tab.run(&format!("{events}.every((one) => one.type === 'New')")), true);
}

#[test]
fn the_graph_page_draws_two_thousand_nodes() {
    let Some(program) = chromium::program() else { return };
    let server = Server::start();
    statement(&server, "UNWIND range(1, 2000) AS n CREATE (:N {name: n})");
    statement(
        &server,
        "MATCH (a:N), (b:N) WHERE b.name = a.name + 1 AND a.name % 10 <> 0 CREATE (a)-[:NEXT]->(b)",
    );
    let tab = &mut Tab::open(&program);
    tab.size(1440, 900);
    open(tab, &server, "graph");
    tab.until("document.querySelector('.editor textarea')");
    tab.run("document.querySelector('.editor textarea').value = 'MATCH (n) OPTIONAL MATCH (n)-[r]->() RETURN n, r'");
    tab.run("document.querySelector('graph-page').run()");
    tab.until("document.querySelector('graph-drawing')?.nodes.size === 2000");
    let frames = "document.querySelector('graph-drawing').frames ?? 0";
    let before = tab.run(frames).as_u64().unwrap();
    tab.until(&format!("({frames}) > {}", before + 30));
    let is_spread = "(() => { const all = [...document.querySelector('graph-drawing').nodes.values()]; \
                     return all.every(({ x, y }) => Number.isFinite(x) && Number.isFinite(y)) && \
                     new Set(all.map(({ x, y }) => Math.round(x) + ' ' + Math.round(y))).size > 1800; })()";
    tab.until(is_spread);
    keep(tab, "graph-2000");
    assert_eq!(tab.errors(), Vec::<String>::new());
}

#[test]
fn a_server_that_was_killed_is_missed_and_rejoined() {
    let Some(program) = chromium::program() else { return };
    let data = tempfile::tempdir().unwrap();
    let mut server = Server::start_in(data.path(), &[]);
    fill(&server);
    let tab = &mut Tab::open(&program);
    open(tab, &server, "overview");
    tab.until("document.querySelector('main').innerText.includes('Nothing is wrong')");
    let address = server.address;
    server.kill_here();
    let lost = "[...document.querySelectorAll('.note.bad')].some((one) => \
                !one.hidden && one.textContent.includes('does not answer'))";
    tab.until(lost);
    let server = Server::start_at(Some(address), &[], data.path(), &[]);
    tab.until(&format!("!({lost})"));
    let event = json!({"events": [{"type": "T", "data": 1}]});
    server.client().post("/v1/append", &event).unwrap().expect(200);
    let head = server.client().get("/v1/head").unwrap().expect(200)["head"].as_u64().unwrap();
    tab.until(&format!("document.querySelector('main').innerText.includes('{head}')"));
}

fn sign_in(tab: &mut Tab, closed: &Closed, name: &str, password: &str) {
    tab.visit(&format!("{}/", closed.server.url()));
    tab.until("document.activeElement?.name === 'username'");
    tab.write(name);
    tab.press("Tab");
    tab.write(password);
    tab.press("Enter");
}

#[test]
fn a_page_offers_what_the_role_allows_and_keeps_the_credential_to_itself() {
    let Some(program) = chromium::program() else { return };
    let closed = Closed::start();
    let event = json!({"events": [{"type": "T", "tags": ["t:1"], "data": {"n": 1}}]});
    closed.ask(&closed.root, "POST", "/v1/append", &event).expect(200);
    closed.add("rita", &["reader"]);
    let tab = &mut Tab::open(&program);
    tab.size(1440, 900);
    sign_in(tab, &closed, "rita", "wrong horse");
    tab.until("document.querySelector('.signin .note.bad')");
    tab.errors();
    // What no header can carry is refused here, and does not stand in the way afterwards.
    tab.run("document.querySelector('input[name=key]').value = 'ключ'");
    tab.run("[...document.querySelectorAll('button')].find((one) => one.textContent === 'Use it').click()");
    tab.until(
        "document.querySelector('.signin .note.bad').textContent.includes('no key or token')",
    );
    tab.run("document.querySelector('input[name=username]').value = 'rita'");
    tab.run(&format!("document.querySelector('input[name=password]').value = '{PASSWORD}'"));
    tab.run("document.querySelector('form button.main').click()");
    tab.until("document.querySelector('nav')?.hidden === false");
    sign_in(tab, &closed, "rita", PASSWORD);
    tab.until(
        "document.querySelector('nav')?.hidden === false && document.querySelector('main h1')",
    );
    tab.errors();
    let offered =
        tab.run("[...document.querySelectorAll('nav a.page')].map((one) => one.textContent)");
    assert!(!offered.to_string().contains("A race"), "{offered}");
    for page in PAGES.iter().filter(|page| **page != "race") {
        tab.run(&format!("location.hash = '#/{page}'"));
        tab.until(&format!("location.hash.startsWith('#/{page}') && document.querySelector('main h1') && document.querySelector('main {page}-page')"));
        settle(tab);
        // Nothing on the page is refused, and nothing that would be is offered.
        assert_eq!(tab.errors(), Vec::<String>::new(), "{page}");
        let buttons =
            tab.run("[...document.querySelectorAll('main button')].map((one) => one.textContent)");
        for word in [
            "Append",
            "Shorten",
            "Create",
            "Delete",
            "Disable",
            "Order one",
            "Send",
            "Add",
            "Pause",
        ] {
            assert!(!buttons.to_string().contains(&format!("\"{word}")), "{page}: {buttons}");
        }
    }
    // Each tab of the operation page works for this role.
    tab.run("location.hash = '#/operation'");
    tab.until("document.querySelector('operation-page [role=tab]')");
    let tabs = tab.run("document.querySelectorAll('operation-page [role=tab]').length");
    for which in 0..tabs.as_u64().unwrap() {
        tab.run(&format!(
            "document.querySelectorAll('operation-page [role=tab]')[{which}].click()"
        ));
        settle(tab);
        assert_eq!(tab.errors(), Vec::<String>::new(), "tab {which}");
    }
    let kept = tab.run(
        "JSON.stringify([location.href, document.cookie, {...localStorage}, {...sessionStorage}])",
    );
    assert!(!kept.as_str().unwrap().contains("eyJ"), "{kept}");
    tab.run("[...document.querySelectorAll('nav button')].find((one) => one.textContent === 'Sign out').click()");
    tab.until("document.querySelector('.signin')");
}

#[test]
fn another_site_cannot_frame_the_console() {
    let Some(program) = chromium::program() else { return };
    let server = Server::start();
    let site = TcpListener::bind("127.0.0.1:0").unwrap();
    let origin = format!("http://localhost:{}", site.local_addr().unwrap().port());
    let page = format!("<!doctype html><iframe src=\"{}/\"></iframe>", server.url());
    std::thread::spawn(move || {
        for mut stream in site.incoming().map_while(Result::ok) {
            let _ = stream.read(&mut [0; 4096]);
            let head = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n";
            let _ = stream.write_all(format!("{head}{page}").as_bytes());
        }
    });
    let tab = &mut Tab::open(&program);
    tab.visit(&origin);
    tab.until("document.querySelector('iframe')");
    // The frame shows the browser's own page, of another origin than any site.
    wellspring_patience::until("the frame is refused", || {
        tab.errors().iter().any(|error| error.contains("frame-ancestors"))
    });
}
