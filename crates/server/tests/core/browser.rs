//! Pages of another site in a real browser, headless Chromium: they can read nothing, write nothing
//! and register no account, on an open server and on one whose password the browser remembers.
//!
//! The browser reaches the server through a relay of the test, which records the browser's requests
//! and so proves that they were made. The relay also implements DNS rebinding: under
//! `rebound.example` its first answer is the page of an attacker, and everything else goes to the
//! server.

use crate::chromium;
use crate::closed::{Closed, PASSWORD};
use crate::server::Server;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// In an event of the server's log: no page may read it.
const MARK: &str = "mark-of-the-log";
const SCRIPT: &str = include_str!("browser.js");
/// How long a page tries at most.
const PATIENCE: Duration = Duration::from_secs(150);

/// A browser on a page. Ended when dropped.
struct Browser {
    child: Child,
    _profile: tempfile::TempDir,
}

impl Browser {
    fn open(program: &PathBuf, url: &str) -> Browser {
        let profile = tempfile::tempdir().unwrap();
        let child = Command::new(program)
            .args(chromium::FLAGS)
            .arg("--host-resolver-rules=MAP evil.example 127.0.0.1, MAP rebound.example 127.0.0.1")
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .arg(url)
            .env("HOME", profile.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the browser starts");
        Browser { child, _profile: profile }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        chromium::end(&mut self.child);
    }
}

/// A request as received: head and body.
#[derive(Debug, Clone)]
struct RelayedRequest {
    head: String,
    body: Vec<u8>,
}

impl RelayedRequest {
    fn read(stream: &TcpStream) -> Option<RelayedRequest> {
        let mut reader = BufReader::new(stream);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if reader.read_line(&mut head).ok()? == 0 {
                return None;
            }
        }
        let length = head.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().ok())?
        });
        let mut body = vec![0; length.unwrap_or(0)];
        reader.read_exact(&mut body).ok()?;
        Some(RelayedRequest { head, body })
    }

    fn line(&self) -> &str {
        self.head.lines().next().unwrap_or_default()
    }

    fn has(&self, header: &str, value: &str) -> bool {
        self.head
            .lines()
            .skip(1)
            .filter_map(|line| line.split_once(':'))
            .any(|(name, is)| name.eq_ignore_ascii_case(header) && is.trim().starts_with(value))
    }
}

/// Serves each request of a port on a thread and a connection of its own.
fn serve(
    listener: TcpListener,
    answer: impl Fn(TcpStream, RelayedRequest) + Clone + Send + 'static,
) {
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let answer = answer.clone();
            std::thread::spawn(move || {
                if let Some(asked) = RelayedRequest::read(&stream) {
                    answer(stream, asked);
                }
            });
        }
    });
}

fn page(script: &str) -> String {
    let page = format!("<!doctype html><meta charset=utf-8><body><script>{script}</script>");
    format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{page}",
        page.len()
    )
}

/// Rewrites the challenge as other browsers read it: Chromium reads only the first scheme of a
/// line, which it does not know, and so prompts for no password; Firefox reads all of them.
fn only_basic(answer: &[u8]) -> Vec<u8> {
    const BEARER: &[u8] = b"Bearer realm=\"wellspring\", ";
    match answer.windows(BEARER.len()).position(|window| window == BEARER) {
        Some(at) => [&answer[..at], &answer[at + BEARER.len()..]].concat(),
        None => answer.to_vec(),
    }
}

/// Between the browser and the server.
struct Relay {
    asked: Arc<Mutex<Vec<RelayedRequest>>>,
}

impl Relay {
    /// `attack` is the attacker's answer under the name that is rebound.
    fn start(listener: TcpListener, server: SocketAddr, attack: String) -> Relay {
        let asked = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&asked);
        serve(listener, move |mut stream, asked| {
            if asked.line().starts_with("GET /attack ") && asked.has("host", "rebound.example") {
                let _ = stream.write_all(page(&attack).as_bytes());
                return;
            }
            kept.lock().unwrap().push(asked.clone());
            let Ok(mut to) = TcpStream::connect(server) else { return };
            // One request per connection: the answer ends with the connection.
            let head = asked.head.replace("Connection: keep-alive", "Connection: close");
            let _ = to.write_all(&[head.as_bytes(), &asked.body].concat());
            let mut buffer = [0; 4096];
            while let Ok(read @ 1..) = to.read(&mut buffer) {
                if stream.write_all(&only_basic(&buffer[..read])).is_err() {
                    return;
                }
            }
            let _ = stream.shutdown(Shutdown::Write);
        });
        Relay { asked }
    }

    fn count(&self, is: impl Fn(&RelayedRequest) -> bool) -> usize {
        self.asked.lock().unwrap().iter().filter(|asked| is(asked)).count()
    }
}

/// Another site, and what its pages reported.
struct Site {
    origin: String,
    reports: Receiver<Value>,
}

impl Site {
    fn start(listener: TcpListener, attack: String) -> Site {
        let origin = format!("http://evil.example:{}", listener.local_addr().unwrap().port());
        let (tell, reports): (Sender<Value>, Receiver<Value>) = channel();
        serve(listener, move |mut stream, asked| {
            if asked.line().starts_with("GET /attack ") {
                let _ = stream.write_all(page(&attack).as_bytes());
                return;
            }
            if asked.line().starts_with("POST /report") {
                let _ = tell.send(serde_json::from_slice(&asked.body).expect("a report"));
            }
            let _ = stream.write_all(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n");
        });
        Site { origin, reports }
    }

    fn report(&self) -> Vec<(String, String)> {
        let report = self.reports.recv_timeout(PATIENCE).expect("the page reports in time");
        let text = |of: &Value, name: &str| of[name].as_str().unwrap().to_owned();
        let attempts = report.as_array().unwrap().iter();
        attempts.map(|of| (text(of, "name"), text(of, "outcome"))).collect()
    }
}

/// The outcome for the pages.
struct AttackReport {
    relay: Relay,
    origin: String,
    /// What the page of another site could read.
    foreign: Vec<(String, String)>,
    /// What the page under the rebound name could read.
    rebound: Vec<(String, String)>,
}

fn listen() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").unwrap()
}

/// Runs the pages against a server. `start` receives the port of the other site. `login`: a name
/// and a password that the browser's user has entered.
fn attack<S>(
    program: &PathBuf,
    login: Option<&str>,
    start: impl FnOnce(u16) -> S,
    address: impl Fn(&S) -> SocketAddr,
) -> (S, AttackReport) {
    let (site, relay) = (listen(), listen());
    let site_port = site.local_addr().unwrap().port();
    let relay_port = relay.local_addr().unwrap().port();
    let server = start(site_port);
    let report = format!("http://evil.example:{site_port}/report");
    let script = |targets: &[String], login: &str, next: &str| {
        let script = SCRIPT.replace("@TARGETS@", &json!(targets).to_string());
        let script = script.replace("@REPORT@", &report).replace("@LOGIN@", login);
        script.replace("@NEXT@", next)
    };
    let under = |host: &str| format!("http://{host}:{relay_port}");
    let login = login.map_or(String::new(), |who| under(&format!("{who}@127.0.0.1")) + "/metrics");
    // The browser remembers a password for the name it was entered under; under another name it
    // would prompt.
    let next = if login.is_empty() { under("rebound.example") + "/attack" } else { String::new() };
    let targets = [under("127.0.0.1"), under("localhost")];
    let relay = Relay::start(relay, address(&server), script(&[under("rebound.example")], "", ""));
    let site = Site::start(site, script(&targets, &login, &next));
    let browser = Browser::open(program, &format!("{}/attack", site.origin));
    let foreign = site.report();
    let rebound = if next.is_empty() { Vec::new() } else { site.report() };
    drop(browser);
    (server, AttackReport { relay, origin: site.origin, foreign, rebound })
}

impl AttackReport {
    /// Checks that the page of another site tried, and that nothing it could read is the server's.
    fn reads_nothing_of_another_site(&self) {
        assert!(self.foreign.len() > 300, "{}", self.foreign.len());
        let all = self.foreign.iter().chain(&self.rebound);
        let silent: Vec<_> = all.filter(|(_, outcome)| outcome == "nothing came").collect();
        assert!(silent.len() < 10, "too many say nothing: {silent:?}");
        for (name, outcome) in &self.foreign {
            let is_nothing = outcome.starts_with("opaque")
                || outcome.starts_with("refused by the browser")
                || outcome == "nothing came";
            assert!(is_nothing && !outcome.contains(MARK), "{name}: {outcome}");
        }
        let is_from = |asked: &RelayedRequest| asked.has("origin", &self.origin);
        assert!(self.relay.count(is_from) > 100, "the browser has asked");
    }

    /// The same, and that under a rebound name it learns nothing else either.
    fn could_read_nothing(&self) {
        self.reads_nothing_of_another_site();
        assert!(self.rebound.len() > 250, "{}", self.rebound.len());
        // Its page may read the refusal itself.
        for (name, outcome) in &self.rebound {
            let is_nothing = outcome.starts_with("403 {\"type\":\"/problems/foreign-host\"")
                || outcome.starts_with("in a frame {\"type\":\"/problems/foreign-host\"")
                || outcome.starts_with("opaque")
                || outcome.starts_with("refused by the browser")
                || outcome == "nothing came";
            assert!(is_nothing, "{name}: {outcome}");
        }
        assert!(self.relay.count(|asked| asked.has("host", "rebound.example")) > 100);
    }
}

fn append_mark(client: &mut crate::client::Client, bearer: Option<&str>) {
    let authorization = format!("Bearer {}", bearer.unwrap_or_default());
    let mut headers = vec![("Content-Type", "application/json")];
    headers.extend(bearer.map(|_| ("Authorization", authorization.as_str())));
    let event = json!({"events": [{"type": "T", "tags": ["t:1"], "data": MARK}]}).to_string();
    client.call("POST", "/v1/append", &headers, event.as_bytes()).unwrap().expect(200);
    let link = json!({"url": format!("https://example.com/{MARK}"), "alias": "abc"}).to_string();
    client.call("POST", "/api/urls", &headers, link.as_bytes()).unwrap().expect(201);
}

/// The number of events of each type that these pages write.
fn written(types: &Value) -> Vec<String> {
    let types = types["types"].as_array().unwrap().iter();
    types.map(|of| of["type"].as_str().unwrap().to_owned()).filter(|of| of != "T").collect()
}

#[test]
fn a_page_of_another_site_can_do_nothing_with_an_open_server() {
    let Some(program) = chromium::program() else { return };
    let start = |_| {
        let server = Server::start();
        append_mark(&mut server.client(), None);
        server
    };
    let (server, attacked) = attack(&program, None, start, |server| server.address);
    attacked.could_read_nothing();
    let mut client = server.client();
    let types = client.get("/v1/types").unwrap().expect(200);
    // The link of the test, and its clicks: a page may link anywhere, and that counts as a click.
    let own = ["LinkCreated", "LinkClicked"];
    assert!(written(&types).iter().all(|of| own.contains(&of.as_str())), "{types}");
    let links = client.get("/api/urls").unwrap().expect(200);
    assert_eq!(links["links"].as_array().unwrap().len(), 1, "{links}");
    assert_eq!(
        client.get("/auth/me").unwrap().expect(200)["accounts"],
        false,
        "nobody is registered"
    );
    let logs = client.get("/v1/logs").unwrap().expect(200);
    assert!(!logs.to_string().contains("evil"), "{logs}");
    let lease = json!({"ttl_ms": 1000});
    client.post("/v1/leases/evil", &lease).unwrap().expect(201);
}

#[test]
fn a_page_of_another_site_can_do_nothing_with_a_remembered_password() {
    let Some(program) = chromium::program() else { return };
    let start = |_| {
        let closed = Closed::start();
        append_mark(&mut closed.client(), Some(&closed.root));
        closed
    };
    let login = format!("root:{}", PASSWORD.replace(' ', "%20"));
    let (closed, attacked) = attack(&program, Some(&login), start, |closed| closed.server.address);
    attacked.reads_nothing_of_another_site();
    let AttackReport { relay, origin, .. } = &attacked;
    // The browser did remember the password and did send it for the other site's page.
    let is_sent = |asked: &RelayedRequest| {
        asked.line().starts_with("POST ")
            && asked.has("authorization", "Basic")
            && asked.has("origin", origin)
    };
    let sent = relay.count(is_sent);
    assert!(sent > 20, "{sent}: the browser sends the password with what pages post");
    let get = |path: &str| closed.get(&closed.root, path).expect(200);
    let types = get("/v1/types");
    let own = ["LinkCreated", "LinkClicked"];
    assert!(written(&types).iter().all(|of| own.contains(&of.as_str())), "{types}");
    assert_eq!(get("/api/urls")["links"].as_array().unwrap().len(), 1);
    assert_eq!(get("/v1/accounts")["accounts"].as_array().unwrap().len(), 1);
    assert_eq!(get("/v1/keys?revoked=show")["keys"], json!([]));
    assert!(!get("/v1/logs").to_string().contains("evil"));
    let system = get("/v1/logs/system/events?limit=1000").to_string();
    for event_type in ["TokensRevoked", "PasswordSet", "KeyAdded"] {
        assert!(!system.contains(event_type), "{system}");
    }
}

/// Shows that these pages can do everything where they may, so the tests above would notice.
#[test]
fn a_page_that_is_named_can_do_all_of_it() {
    let Some(program) = chromium::program() else { return };
    let start = |site_port: u16| {
        let origins = format!("http://evil.example:{site_port}");
        let server =
            Server::start_with(&["--cors-origins", &origins, "--own-hosts", "rebound.example"]);
        append_mark(&mut server.client(), None);
        server
    };
    let (server, attacked) = attack(&program, None, start, |server| server.address);
    for read in [&attacked.foreign, &attacked.rebound] {
        let marked = read.iter().filter(|(_, outcome)| outcome.contains(MARK)).count();
        assert!(marked > 5, "{read:?}");
    }
    // An account was registered.
    assert_eq!(server.client().get("/v1/head").unwrap().status, 401);
}
