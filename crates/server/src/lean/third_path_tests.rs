//! What a third fast path takes, and that both stacks say the same of every fast path: content, status
//! and headers but for those that frame the answer.

use super::desk::Desk;
use super::seam::Serving;
use super::session::{Session, Turn};
use super::session_tests::LIMITS;
use crate::fast::{
    AnyFastPath, Claim, Factory, FastPath, FastRequest, FastRoute, Form, Head, Outcome, Seat,
    Shape, Stack, TicketState, Varies, Word, erase,
};
use crate::http::{Body, Content, Host, Request, Response, Source, fast};
use crate::limits::Payer;
use crate::view::State;
use crate::wire::problem::{self, Problem};
use hyper::header::{HeaderMap, HeaderName};
use hyper::{Method, Version};
use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::Arc;

/// `GET /tally/{word}`: how often the word has been asked for, and who asks.
#[derive(Default)]
struct Tally(HashMap<Vec<u8>, u64>);

impl FastPath for Tally {
    type Order = String;
    type Ticket = Infallible;

    fn route(&self) -> FastRoute {
        FastRoute { method: "GET", path: "/tally/{word}" }
    }

    fn forms(&self) -> Vec<Form> {
        let headers = vec![("cache-control", "no-store".to_owned())];
        vec![Form { status: 200, content_type: "text/plain", headers, varies: Varies::Content }]
    }

    fn claim(&mut self, method: &str, target: &str) -> Option<Claim> {
        let word = target.strip_prefix("/tally/").filter(|_| method == "GET")?;
        let is_word = (1..=8).contains(&word.len()) && word.chars().all(char::is_alphanumeric);
        let shape = Shape::Bare(Some(Word { at: "/tally/".len(), most: 8 }));
        is_word.then_some(Claim { role: None, log: None, shape })
    }

    fn understand(&mut self, head: &Head<'_>) -> Result<String, Box<Problem>> {
        let agent = head.headers.get("user-agent").unwrap_or_default();
        Ok(String::from_utf8_lossy(agent).into_owned())
    }

    fn answer(
        &mut self,
        agent: &String,
        asked: FastRequest<'_>,
        content: &mut Vec<u8>,
    ) -> Outcome<Infallible> {
        if asked.word == b"never" {
            return Outcome::Refused(problem::NOT_FOUND.because("this is never counted"));
        }
        let count = self.0.entry(asked.word.to_vec()).or_default();
        *count += 1;
        let client = asked.client.map(|client| client.to_string()).unwrap_or_default();
        content.extend_from_slice(format!("{count} {agent} {client}").as_bytes());
        Outcome::Reply(0)
    }

    fn settled(&mut self, ticket: &Infallible) -> TicketState {
        match *ticket {}
    }

    fn render(&self, problem: Box<Problem>) -> Box<Problem> {
        problem.with("tally", "true".to_owned())
    }
}

/// A request, over either stack.
struct Sent {
    method: &'static str,
    target: &'static str,
    headers: Vec<(&'static str, &'static str)>,
    content: &'static str,
}

/// An answer: status, headers that do not frame it in any order, content.
type Said = (u16, Vec<(String, String)>, String);

/// The general stack's answer.
fn said_by_general(host: &Arc<Host>, made_by: &Arc<[Factory]>, sent: &Sent) -> Said {
    let mut headers = HeaderMap::new();
    for (name, value) in &sent.headers {
        let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
        headers.append(name, value.parse().unwrap());
    }
    let mut request = Request {
        connection: None,
        payer: Payer::default(),
        method: Method::from_bytes(sent.method.as_bytes()).unwrap(),
        uri: sent.target.parse().unwrap(),
        version: Version::HTTP_11,
        headers,
        client: "192.0.2.1".parse().ok(),
        principal: host.access.nobody(),
        body: Body::new(Source::Full(sent.content.into()), host, Version::HTTP_11),
        contract: &crate::http::contract::NO_ROUTE,
        query: Default::default(),
        wants: "",
        param: String::new(),
        log_name: String::new(),
        log: None,
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let response = runtime.block_on(fast::serve_by(made_by, host, &mut request, sent.target));
    let Response { status, content_type, headers, content, .. } = response;
    let mut headers: Vec<_> =
        headers.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    if !content_type.is_empty() {
        headers.push(("content-type".to_owned(), content_type.to_owned()));
    }
    headers.sort();
    let Content::Full(content) = content else { panic!("fast paths do not stream") };
    (status, headers, String::from_utf8(content.to_vec()).unwrap())
}

/// The lean loop's answer.
fn said_by_lean(desk: &mut Desk<Serving>, session: &mut Session, sent: &Sent) -> Said {
    let Sent { method, target, content, .. } = sent;
    let mut bytes = format!("{method} {target} HTTP/1.1\r\n");
    for (name, value) in &sent.headers {
        bytes.push_str(&format!("{name}: {value}\r\n"));
    }
    if !content.is_empty() {
        bytes.push_str(&format!("Content-Length: {}\r\n", content.len()));
    }
    bytes.push_str(&format!("\r\n{content}"));
    assert_eq!(session.receive(desk, bytes.as_bytes()), Turn::More, "{method} {target}");
    let answer = std::mem::take(&mut desk.out);
    let mut headers = [httparse::EMPTY_HEADER; 16];
    let mut response = httparse::Response::new(&mut headers);
    let Ok(httparse::Status::Complete(head)) = response.parse(&answer) else { panic!("{bytes}") };
    let status = response.code.unwrap();
    let mut said: Vec<_> = (response.headers.iter())
        .map(|header| (header.name.to_ascii_lowercase(), header.value.to_vec()))
        .map(|(name, value)| (name, String::from_utf8(value).unwrap()))
        .filter(|(name, _)| !["content-length", "connection"].contains(&name.as_str()))
        .collect();
    said.sort();
    (status, said, String::from_utf8(answer[head..].to_vec()).unwrap())
}

/// The fast paths of a host, and the tally.
fn with_tally(host: &Host) -> Arc<[Factory]> {
    let tally: Factory = Arc::new(|_: &Seat| erase(Tally::default()));
    host.faces.fast_paths().iter().cloned().chain([tally]).collect()
}

/// The desk of a lean thread.
fn desk(host: &Arc<Host>, made_by: &[Factory]) -> Desk<Serving> {
    let seat = Seat::new(Stack::Lean, Arc::new(|| {}));
    let paths: Vec<Box<dyn AnyFastPath>> = made_by.iter().map(|make| make(&seat)).collect();
    Desk::new(Serving { host: Arc::clone(host) }, paths, LIMITS, host.body_memory.clone())
}

#[test]
#[allow(clippy::disallowed_methods)] // it waits
fn both_stacks_say_the_same_of_every_fast_path() {
    let dir = tempfile::tempdir().unwrap();
    let server = crate::serve::open::for_tests(dir.path(), &[]);
    let host = &server.host;
    // Until its view answers, a redirect is the general stack's.
    while host.node.views().iter().any(|(.., progress)| progress.state != State::Live) {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    let made_by = with_tally(host);
    let mut desk = desk(host, &made_by);
    let mut session = Session::new("192.0.2.1".parse().ok());
    let sent = |method, target, more: &[(&'static str, &'static str)], content| {
        let headers = [&[("Host", "localhost"), ("User-Agent", "a")][..], more].concat();
        Sent { method, target, headers, content }
    };
    let json = ("Content-Type", "application/json");
    for (status, sent) in [
        (200, sent("GET", "/tally/ab", &[], "")),
        (200, sent("GET", "/tally/ab", &[], "")),
        (200, sent("GET", "/tally/c", &[], "")),
        (200, sent("GET", "/tally/ab", &[("X-Other", "b")], "")),
        (404, sent("GET", "/tally/never", &[], "")),
        (404, sent("GET", "/never", &[], "")),
        (404, sent("GET", "/never2", &[], "")),
        (202, sent("POST", "/e", &[], "{}")),
        (202, sent("POST", "/e?type=T&tag=t&ack=accepted", &[json], "{}")),
        (400, sent("POST", "/e", &[json], "{")),
        (422, sent("POST", "/e?colour=red", &[], "{}")),
        (422, sent("POST", "/e", &[("Idempotency-Key", "k")], "{}")),
        (415, sent("POST", "/e", &[("Content-Encoding", "gzip")], "{}")),
        (404, sent("POST", "/v1/logs/other/e", &[], "{}")),
    ] {
        let (lean, general) =
            (said_by_lean(&mut desk, &mut session, &sent), said_by_general(host, &made_by, &sent));
        assert_eq!(lean, general, "{} {}", sent.method, sent.target);
        assert_eq!(lean.0, status, "{} {}: {}", sent.method, sent.target, lean.2);
    }
    assert_eq!(desk.lanes[2].sheets[0].prompt, 4);
    let sent = sent("GET", "/tally/ab", &[], "");
    assert_eq!(said_by_lean(&mut desk, &mut session, &sent).2, "4 a 192.0.2.1");
}

#[test]
fn every_fast_path_needs_what_its_route_needs() {
    use crate::access::Needs;
    use crate::http::Content;
    let dir = tempfile::tempdir().unwrap();
    let server = crate::serve::open::for_tests(dir.path(), &[]);
    let host = &server.host;
    let seat = Seat::new(Stack::Lean, Arc::new(|| {}));
    for mut path in host.faces.fast_paths().iter().map(|make| make(&seat)) {
        let FastRoute { method, path: pattern } = path.route();
        let name = host.routes.name_of(method, pattern);
        assert_eq!(name.path, Some(pattern), "no face declares {method} {pattern}");
        let route = host.routes.at(name.index).route;
        let target = pattern.replace("{code}", "abc");
        let claim = path.claim(method, &target).expect("its own route");
        assert_eq!(claim.role.map_or(Needs::Public, Needs::Role), route.needs, "{pattern}");
        let problem = || problem::NOT_FOUND.because("nothing");
        let by_face = (host.routes.at(name.index).face.render)(problem());
        let Content::Full(by_face) = by_face.content else { panic!("a stream of problems") };
        assert_eq!(path.render(problem()).to_json(), by_face, "{pattern}");
    }
}
