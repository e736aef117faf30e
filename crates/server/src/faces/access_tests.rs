//! Every route × every role × every kind of credential: who is admitted, and what the others get.

#![allow(clippy::disallowed_methods)]

use super::every_route;
use crate::start::for_tests;
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use bytes::Bytes;
use hyper::{HeaderMap, Method};
use std::collections::BTreeMap;
use std::sync::Arc;
use tempfile::TempDir;
use wellspring_host::access::gate::LoggedIn;
use wellspring_host::access::view::{Command, PasswordHash};
use wellspring_host::access::{Needs, api_key, password};
use wellspring_host::http::dispatch::dispatch;
use wellspring_host::http::routes::{Route, Scope};
use wellspring_host::http::server::Server as OpenServer;
use wellspring_host::http::{Host, Request};
use wellspring_host::identity::{AccountName, Grant, Grants, Label, Role, TokenId};
use wellspring_host::names::SYSTEM_LOG;
use wellspring_host::wire::effects::Effects;
use wellspring_log::CommitOn;

const PASSWORD: &str = "correct horse";

/// A server with an account for each of these, all with the same password.
const ACCOUNTS: &[(&str, &str)] = &[
    ("root", "admin"),
    ("r", "reader"),
    ("w", "writer"),
    ("o", "operator"),
    ("a", "admin"),
    ("r-main", "reader:main"),
    ("w-main", "writer:main"),
    ("o-main", "operator:main"),
    ("a-main", "admin:main"),
    ("w-other", "writer:other"),
    ("a-other", "admin:other"),
    ("mixed", "reader writer:other"),
    ("nothing", ""),
];

struct Server {
    host: Arc<Host>,
    open: Arc<OpenServer>,
    /// A token of each account.
    tokens: BTreeMap<&'static str, String>,
    /// What issues more of them.
    logged_in: BTreeMap<&'static str, LoggedIn>,
    _dir: TempDir,
}

fn grants(text: &str) -> Grants {
    let grants = text.split_whitespace().map(|grant| Grant::parse(grant).expect("a grant"));
    Grants::new(grants.collect()).expect("grants")
}

fn name(text: &str) -> AccountName {
    AccountName::parse(text).expect("a name")
}

impl Server {
    async fn start(flags: &[&str]) -> Server {
        let dir = TempDir::new().expect("a folder");
        let open = for_tests(dir.path(), flags);
        let host = Arc::clone(&open.host);
        host.node.create("other").expect("another log");
        let (tokens, logged_in) = (BTreeMap::new(), BTreeMap::new());
        let mut server = Server { host, open, tokens, logged_in, _dir: dir };
        let kept = password::hash(PASSWORD).expect("a hash");
        for &(account, roles) in ACCOUNTS {
            server.add(account, grants(roles), kept.clone()).await;
            let logged_in = server.host.access.login(account, PASSWORD.to_owned().into(), None);
            let logged_in = logged_in.await.expect("the right password");
            server.logged_in.insert(account, logged_in);
            server.tokens.insert(account, server.fresh(account));
        }
        server
    }

    /// Another token of an account: routes end them.
    fn fresh(&self, account: &str) -> String {
        let logged_in = &self.logged_in[account];
        let issued = self.host.access.issue(logged_in, &logged_in.grants, 600);
        issued.expect("a token").token.to_string()
    }

    async fn add(&self, account: &str, roles: Grants, password: PasswordHash) {
        let name = name(account);
        self.execute(Command::AddAccount { name, password: Some(password), roles }).await;
    }

    async fn execute(&self, command: Command) {
        let live = self.host.access.live();
        let executed = live
            .execute(&Effects::default(), &[command], None, CommitOn::ThisThread)
            .await
            .expect("it is executed");
        assert!(executed.refused.is_none(), "{:?}", executed.refused);
    }

    /// The answer to a request: status, `WWW-Authenticate`, body.
    async fn ask(&self, method: &str, path: &str, headers: &[(&'static str, &str)]) -> TestAnswer {
        ask(&self.open, method, path, headers).await
    }

    async fn ask_as(&self, route: &Route, path: &str, token: &str) -> TestAnswer {
        let value = format!("Bearer {token}");
        self.ask(route.method, path, &[("authorization", &value)]).await
    }
}

/// The answer of a server to a request without a body.
pub(super) async fn ask(
    open: &Arc<OpenServer>,
    method: &str,
    path: &str,
    headers: &[(&'static str, &str)],
) -> TestAnswer {
    let mut map = HeaderMap::new();
    if !headers.iter().any(|(name, _)| *name == "host") {
        map.append("host", "localhost".parse().expect("a header's value"));
    }
    for (name, value) in headers {
        map.append(*name, value.parse().expect("a header's value"));
    }
    let method = Method::from_bytes(method.as_bytes()).expect("a method");
    let uri = path.parse().expect("a path");
    let request = Request::in_process(&open.host, method, uri, map, Bytes::new());
    let response = dispatch(Arc::clone(open), request).await;
    let challenge = response.headers.iter().any(|(name, _)| *name == "www-authenticate");
    let body = match &response.content {
        wellspring_host::http::Content::Full(bytes) => String::from_utf8_lossy(bytes).into_owned(),
        wellspring_host::http::Content::Stream(_) => String::new(),
    };
    TestAnswer { status: response.status, challenge, body }
}

#[derive(Debug)]
pub(super) struct TestAnswer {
    pub(super) status: u16,
    challenge: bool,
    pub(super) body: String,
}

impl TestAnswer {
    pub(super) fn is_problem(&self, slug: &str) -> bool {
        self.body.starts_with(&format!("{{\"type\":\"/problems/{slug}\""))
    }
}

/// The paths of a route, with the log of each (`None`: belongs to no log).
pub(super) fn paths(route: &Route) -> Vec<(String, Option<&'static str>)> {
    let fill = |path: &str, log: &str| {
        let uuid = "00000000-0000-0000-0000-000000000001";
        let values = [
            ("{log}", log),
            ("{uuid}", uuid),
            ("{position}", "1"),
            ("{slug}", "invalid"),
            ("{name}", "n"),
            ("{code}", "Abc"),
            ("{id}", "0123"),
            ("{transaction}", "1"),
            ("{item}", "1"),
            ("{topic}", "1"),
            ("{order}", "1-1"),
            ("{amount}", "1"),
            ("{price}", "1.5"),
            ("{word}", "word"),
        ];
        values.iter().fold(path.to_owned(), |path, (name, value)| path.replace(name, value))
    };
    let logs = ["main", "other"];
    if route.path.contains("{log}") {
        return logs.map(|log| (fill(route.path, log), Some(log))).into();
    }
    let short = fill(route.path, "");
    match route.scope {
        Scope::Node => vec![(short, None)],
        Scope::Log => {
            let long = route.path.replacen("/v1/", "/v1/logs/{log}/", 1);
            let mut paths = logs.map(|log| (fill(&long, log), Some(log))).to_vec();
            paths.push((short, Some("main")));
            paths
        }
        Scope::Named => panic!("{} names no log", route.path),
        Scope::Main | Scope::Dev => vec![(short, Some("main"))],
    }
}

/// The role that these grant on a log (`None`: on what belongs to no log), computed independently
/// of the program.
fn role_on(roles: &str, log: Option<&str>) -> Option<Role> {
    let words = roles.split_whitespace().filter_map(|grant| {
        let (role, on) = grant.split_once(':').map_or((grant, None), |(role, on)| (role, Some(on)));
        (on.is_none() || on == log).then_some(role)
    });
    words.filter_map(Role::parse).max()
}

/// The needs of each route according to `docs/access.md`.
fn documented() -> BTreeMap<String, &'static str> {
    let page = include_str!("../../../../docs/access.md");
    let table = page.split("| needs | routes |").nth(1).expect("a table of routes");
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    let mut documented = BTreeMap::new();
    for row in rows {
        let (needs, routes) = row[1..].split_once('|').expect("two columns");
        for route in routes.split('`').skip(1).step_by(2) {
            let twice = documented.insert(route.to_owned(), needs.trim());
            assert_eq!(twice, None, "{route} stands there once");
        }
    }
    documented
}

#[test]
fn every_route_needs_what_is_documented() {
    let mut documented = documented();
    for Route { method, path, needs, .. } in every_route() {
        let found = documented.remove(&format!("{method} {path}"));
        assert_eq!(found, Some(needs.to_string().as_str()), "{method} {path}");
    }
    assert!(documented.is_empty(), "not served: {documented:?}");
}

#[tokio::test]
async fn every_route_asks_for_its_role_and_for_no_more() {
    let server = Server::start(&["--dev-endpoints"]).await;
    for route in every_route() {
        for (path, log) in paths(route) {
            for (account, roles) in ACCOUNTS {
                let told = server.ask_as(route, &path, &server.fresh(account)).await;
                let may = match route.needs {
                    Needs::Public | Needs::Account => true,
                    Needs::Role(needs) => role_on(roles, log) >= Some(needs),
                    Needs::Node => false,
                };
                let what = format!("{} {path} as {account} ({roles}): {told:?}", route.method);
                if route.needs == Needs::Node {
                    assert!(told.status == 401 && told.is_problem("not-a-node"), "{what}");
                } else if may {
                    assert!(!told.is_problem("forbidden"), "{what}");
                    assert_ne!(told.status, 401, "{what}");
                } else {
                    assert!(told.status == 403 && told.is_problem("forbidden"), "{what}");
                }
            }
        }
    }
}

#[tokio::test]
async fn no_request_is_admitted_without_a_valid_credential() {
    let server = Server::start(&["--dev-endpoints"]).await;
    let bad = bad_credentials(&server).await;
    for route in every_route() {
        for (path, _) in paths(route) {
            for (what, header, value) in &bad {
                let headers = [(*header, value.as_str())];
                let sent = if value.is_empty() { &[][..] } else { &headers[..] };
                let told = server.ask(route.method, &path, sent).await;
                let what = format!("{} {path} with {what}: {told:?}", route.method);
                if route.needs == Needs::Public {
                    // Though a log-in of its own may be refused.
                    let refused = told.status == 401 && !route.path.starts_with("/auth/");
                    assert!(!refused && told.status != 403, "{what}");
                } else {
                    let right = told.status == 401 && told.challenge;
                    let is_of_accounts = route.needs.are_of_accounts();
                    let slug = if is_of_accounts { "unauthenticated" } else { "not-a-node" };
                    assert!(right && told.is_problem(slug), "{what}");
                }
            }
        }
    }
}

/// Name, header and value of invalid credentials; an empty value is not sent.
async fn bad_credentials(server: &Server) -> Vec<(&'static str, &'static str, String)> {
    let token = |account: &str| server.tokens[account].clone();
    let now_s = server.host.clock.wall_us() / 1_000_000;
    let claims = |more: &str, exp: u64| {
        format!(r#"{{"sub":"a","roles":["admin"],"iat":{},"exp":{exp}{more}}}"#, now_s - 100)
    };
    let signed = |header: &str, claims: &str| {
        let message =
            format!("{}.{}", URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode(claims));
        let tag = server.host.access.tokens().sign(message.as_bytes());
        format!("{message}.{}", URL_SAFE_NO_PAD.encode(tag))
    };
    let hs256 = r#"{"alg":"HS256","typ":"JWT"}"#;
    let soon = now_s + 600;
    let (head, rest) =
        token("a").split_once('.').map(|(a, b)| (a.to_owned(), b.to_owned())).expect("a dot");
    let none = URL_SAFE_NO_PAD.encode(r#"{"alg":"none"}"#);
    let other_claims = URL_SAFE_NO_PAD.encode(claims("", soon));
    let signature = token("r").rsplit('.').next().expect("a signature").to_owned();
    // An account whose token was valid.
    let ended = ["gone", "out", "deleted"];
    let kept = password::hash(PASSWORD).expect("a hash");
    let mut once_good = Vec::new();
    for account in ended {
        server.add(account, grants("admin"), kept.clone()).await;
        let login = server.host.access.login(account, PASSWORD.to_owned().into(), None);
        let issued = server.host.access.issue(&login.await.expect("in"), &grants("admin"), 600);
        once_good.push(issued.expect("a token"));
    }
    let expires_at_us = soon * 1_000_000;
    let id = TokenId::parse(once_good[1].id.as_str()).expect("an id");
    server.execute(Command::Disable { name: name("gone") }).await;
    let orphaned = api_key::draw().expect("a key");
    server
        .execute(Command::AddKey {
            id: orphaned.id.clone(),
            label: Label::parse("x").expect("a label"),
            digest: orphaned.digest,
            grant: Grant::everywhere(Role::Admin),
            expires_at_us: None,
            owner: name("deleted"),
            in_place_of: None,
            now_us: 0,
        })
        .await;
    server.execute(Command::Delete { name: name("deleted") }).await;
    let now_us = server.host.clock.wall_us();
    server.execute(Command::RevokeToken { name: name("out"), id, expires_at_us, now_us }).await;
    let (unknown, revoked) = (api_key::draw().expect("a key"), api_key::draw().expect("a key"));
    let add = Command::AddKey {
        id: revoked.id.clone(),
        label: Label::parse("x").expect("a label"),
        digest: revoked.digest,
        grant: Grant::everywhere(Role::Admin),
        expires_at_us: None,
        owner: name("a"),
        in_place_of: None,
        now_us: 0,
    };
    server.execute(add).await;
    server.execute(Command::RevokeKey { id: revoked.id.clone() }).await;
    let bearer = |token: &str| format!("Bearer {token}");
    vec![
        ("nothing", "authorization", String::new()),
        ("an expired token", "authorization", bearer(&signed(hs256, &claims("", now_s - 40)))),
        (
            "a token for somebody else",
            "authorization",
            bearer(&signed(hs256, &claims(r#","aud":"x""#, soon))),
        ),
        (
            "a token of nobody",
            "authorization",
            bearer(&signed(hs256, &claims("", soon).replace("\"a\"", "\"who\""))),
        ),
        (
            "a token from the future",
            "authorization",
            bearer(&signed(hs256, &claims(&format!(",\"nbf\":{soon}"), soon))),
        ),
        ("alg none", "authorization", bearer(&format!("{none}.{rest}"))),
        (
            "alg none without a signature",
            "authorization",
            bearer(&format!("{none}.{other_claims}.")),
        ),
        (
            "alg none, signed",
            "authorization",
            bearer(&signed(r#"{"alg":"none"}"#, &claims("", soon))),
        ),
        (
            "other claims under a signature",
            "authorization",
            bearer(&format!("{head}.{other_claims}.{signature}")),
        ),
        ("a token of a disabled account", "authorization", bearer(&once_good[0].token)),
        ("a revoked token", "authorization", bearer(&once_good[1].token)),
        ("a token of an account that is deleted", "authorization", bearer(&once_good[2].token)),
        ("a key of an account that is deleted", "x-api-key", orphaned.secret.to_string()),
        ("an unknown key", "x-api-key", unknown.secret.to_string()),
        ("a revoked key", "x-api-key", revoked.secret.to_string()),
        ("a token where a key belongs", "x-api-key", token("a")),
    ]
}

#[tokio::test]
async fn passwords_and_keys_come_in_and_what_is_malformed_is_said_so() {
    let server = Server::start(&[]).await;
    let basic = |text: &str| format!("Basic {}", STANDARD.encode(text));
    let get = async |headers: &[(&'static str, &str)]| server.ask("GET", "/v1/head", headers).await;
    let right = basic(&format!("r:{PASSWORD}"));
    for _ in 0..3 {
        assert_eq!(get(&[("authorization", &right)]).await.status, 200);
    }
    let (wrong, unknown) = (basic("r:wrong"), basic("who:wrong"));
    let (wrong, unknown) =
        (get(&[("authorization", &wrong)]).await, get(&[("authorization", &unknown)]).await);
    assert_eq!((wrong.status, &wrong.body), (401, &unknown.body), "nobody learns who there is");
    let key = api_key::draw().unwrap();
    let (id, digest) = (key.id.clone(), key.digest);
    let (label, grant) = (Label::parse("x").unwrap(), Grant::on(Role::Reader, "main"));
    let owner = name("r");
    let (expires_at_us, in_place_of, now_us) = (None, None, 0);
    let add =
        Command::AddKey { id, label, digest, grant, expires_at_us, owner, in_place_of, now_us };
    server.execute(add).await;
    assert_eq!(get(&[("x-api-key", &key.secret)]).await.status, 200);
    let bearer = format!("Bearer {}", *key.secret);
    assert_eq!(get(&[("authorization", &bearer)]).await.status, 200);
    let twice = [("x-api-key", &**key.secret), ("authorization", bearer.as_str())];
    for headers in [&[("authorization", "Digest x")][..], &[("authorization", "Bearer")], &twice] {
        let told = get(headers).await;
        assert!(told.status == 400 && told.is_problem("malformed-credentials"), "{told:?}");
        // Where no credentials are needed, none are checked.
        assert_eq!(server.ask("GET", "/health", headers).await.status, 200);
    }
}

#[tokio::test]
async fn the_system_log_is_read_by_admins_and_written_by_nobody() {
    let server = Server::start(&["--dev-endpoints"]).await;
    let is_of_a_log = |route: &&Route| {
        (route.scope == Scope::Log || route.path.contains("{log}")) && route.needs.are_of_accounts()
    };
    // The database `system` of the Query API is no log: its routes are others.
    let is_of_queries = |route: &&Route| route.path.contains("/query/v2");
    for route in every_route().filter(is_of_a_log).filter(|route| !is_of_queries(route)) {
        let path = paths(route).remove(0).0.replace("/main", &format!("/{SYSTEM_LOG}"));
        let told = server.ask_as(route, &path, &server.tokens["o"]).await;
        assert!(told.is_problem("forbidden"), "{path}: {told:?}");
        let told = server.ask_as(route, &path, &server.tokens["root"]).await;
        let is_write = route.method != "GET" && route.needs > Needs::Role(Role::Reader);
        assert_eq!(told.is_problem("system-log"), is_write, "{} {path}: {told:?}", route.method);
        assert!(is_write || told.status != 403, "{told:?}");
    }
    let logs = async |account: &str| {
        let route = every_route().find(|route| route.path == "/v1/logs").unwrap();
        let told = server.ask_as(route, "/v1/logs", &server.tokens[account]).await;
        let shown = ["main", "other", SYSTEM_LOG]
            .map(|log| told.body.contains(&format!("\"name\":\"{log}\"")));
        (told.status, shown)
    };
    assert_eq!(logs("root").await, (200, [true, true, true]));
    assert_eq!(logs("o").await, (200, [true, true, false]));
    assert_eq!(logs("w-other").await, (200, [false, true, false]));
    assert_eq!(logs("nothing").await, (200, [false, false, false]));
}

#[tokio::test]
async fn without_accounts_everybody_may_everything() {
    let dir = TempDir::new().unwrap();
    let open = for_tests(dir.path(), &["--dev-endpoints"]);
    let (tokens, logged_in) = (BTreeMap::new(), BTreeMap::new());
    let server = Server { host: Arc::clone(&open.host), open, tokens, logged_in, _dir: dir };
    for route in every_route() {
        for (path, _) in paths(route) {
            // Whatever is sent: clients that always send credentials work.
            for sent in [&[][..], &[("authorization", "Basic YTpi")], &[("x-api-key", "rubbish")]] {
                let told = server.ask(route.method, &path, sent).await;
                let is_refused = matches!(told.status, 401 | 403);
                assert_eq!(
                    is_refused,
                    route.needs == Needs::Node,
                    "{} {path}: {told:?}",
                    route.method
                );
            }
        }
    }
}

#[tokio::test]
async fn without_accounts_no_route_answers_under_a_name_that_a_page_can_have() {
    let dir = TempDir::new().unwrap();
    let open = for_tests(dir.path(), &["--dev-endpoints"]);
    let (tokens, logged_in) = (BTreeMap::new(), BTreeMap::new());
    let server = Server { host: Arc::clone(&open.host), open, tokens, logged_in, _dir: dir };
    for route in every_route() {
        for (path, _) in paths(route) {
            let host = ("host", "evil.example");
            for sent in [&[host][..], &[host, ("user-agent", "x"), ("x-api-key", "rubbish")]] {
                let told = server.ask(route.method, &path, sent).await;
                let what = format!("{} {path}: {told:?}", route.method);
                assert!(told.status == 403 && told.is_problem("foreign-host"), "{what}");
            }
            let told = server.ask(route.method, &path, &[("origin", "http://evil.example")]).await;
            let is_refused = told.status == 403 && told.is_problem("foreign-page");
            assert_eq!(
                is_refused,
                route.needs.are_of_accounts(),
                "{} {path}: {told:?}",
                route.method
            );
        }
    }
}

#[tokio::test]
async fn no_route_takes_a_remembered_password_from_the_page_of_another_site() {
    let server = Server::start(&["--dev-endpoints"]).await;
    let basic = format!("Basic {}", STANDARD.encode(format!("root:{PASSWORD}")));
    for route in every_route() {
        for (path, _) in paths(route) {
            for origin in ["http://evil.example", "null", "http://localhost:1"] {
                let headers = [("origin", origin), ("authorization", basic.as_str())];
                let told = server.ask(route.method, &path, &headers).await;
                let is_refused = told.status == 403 && told.is_problem("foreign-page");
                let what = format!("{} {path}: {told:?}", route.method);
                assert_eq!(is_refused, route.needs.are_of_accounts(), "{what}");
            }
        }
    }
}

#[tokio::test]
async fn a_refusal_is_the_same_whether_there_is_such_a_log() {
    let server = Server::start(&[]).await;
    let token = format!("Bearer {}", server.tokens["w-main"]);
    let headers = [("authorization", token.as_str())];
    let there = server.ask("GET", "/v1/logs/other/head", &headers).await;
    let not_there = server.ask("GET", "/v1/logs/absent/head", &headers).await;
    assert_eq!((there.status, not_there.status), (403, 403));
    assert_eq!(there.body.replace("other", "absent"), not_there.body);
}
