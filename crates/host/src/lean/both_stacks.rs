//! Sends a request to a fast path over both stacks, to compare the answers.

use super::HeadLimits;
use super::loop_state::LoopState;
use super::seam::ServerGuards;
use super::session::{NextStep, Session};
use crate::fast::{AnyFastPath, Factory, ServingThread, Stack};
use crate::http::{Content, Host, Request, Response, fast};
use hyper::Method;
use hyper::header::{HeaderMap, HeaderName};
use std::sync::Arc;

const LIMITS: HeadLimits =
    HeadLimits { headers: 12, head_bytes: 8_192, url_bytes: 4_096, traced: false };

/// A thread of each stack, with the fast paths of a host and perhaps more.
pub struct BothStacks {
    host: Arc<Host>,
    made_by: Arc<[Factory]>,
    shared: LoopState<ServerGuards>,
    session: Session,
}

impl BothStacks {
    /// Those of a host, and `more` paths behind its own.
    pub fn new(host: &Arc<Host>, more: &[Factory]) -> BothStacks {
        let made_by: Arc<[Factory]> = host.faces.fast_paths().iter().chain(more).cloned().collect();
        let thread = ServingThread::new(Stack::Lean, Arc::new(|| {}));
        let paths: Vec<Box<dyn AnyFastPath>> = made_by.iter().map(|make| make(&thread)).collect();
        let serving = ServerGuards { host: Arc::clone(host) };
        let shared = LoopState::new(serving, paths, LIMITS, host.body_memory.clone());
        let session = Session::new("192.0.2.1".parse().ok());
        BothStacks { host: Arc::clone(host), made_by, shared, session }
    }

    /// The answer of the lean loop, and that of the general stack.
    ///
    /// # Panics
    /// If the lean loop hands the request over.
    pub fn ask(&mut self, sent: &SentRequest) -> (PlainAnswer, PlainAnswer) {
        let lean = said_by_lean(&mut self.shared, &mut self.session, sent);
        (lean, said_by_general(&self.host, &self.made_by, sent))
    }

    /// How many answers a path has given from the memory of repeated heads.
    #[cfg(test)]
    pub(super) fn prompt(&self, path: usize) -> u32 {
        self.shared.paths[path].forms[0].prompt
    }
}

/// A request, over either stack.
pub struct SentRequest {
    /// Its method.
    pub method: &'static str,
    /// Its path and query.
    pub target: &'static str,
    /// Its headers except `Host`, `User-Agent` and `Content-Length`.
    pub headers: Vec<(&'static str, &'static str)>,
    /// Its content.
    pub content: &'static str,
}

impl SentRequest {
    /// Every header except `Content-Length`.
    fn fields(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        [("Host", "localhost"), ("User-Agent", "a")].into_iter().chain(self.headers.iter().copied())
    }
}

/// An answer: status, headers in any order without those that frame it, content.
pub(crate) type PlainAnswer = (u16, Vec<(String, String)>, String);

/// The general stack's answer.
fn said_by_general(host: &Arc<Host>, made_by: &Arc<[Factory]>, sent: &SentRequest) -> PlainAnswer {
    let mut headers = HeaderMap::new();
    for (name, value) in sent.fields() {
        let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
        headers.append(name, value.parse().unwrap());
    }
    let method = Method::from_bytes(sent.method.as_bytes()).unwrap();
    let (uri, content) = (sent.target.parse().unwrap(), sent.content.into());
    let mut request = Request::in_process(host, method, uri, headers, content);
    request.client = "192.0.2.1".parse().ok();
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
fn said_by_lean(
    shared: &mut LoopState<ServerGuards>,
    session: &mut Session,
    sent: &SentRequest,
) -> PlainAnswer {
    let SentRequest { method, target, content, .. } = sent;
    let mut bytes = format!("{method} {target} HTTP/1.1\r\n");
    for (name, value) in sent.fields() {
        bytes.push_str(&format!("{name}: {value}\r\n"));
    }
    if !content.is_empty() {
        bytes.push_str(&format!("Content-Length: {}\r\n", content.len()));
    }
    bytes.push_str(&format!("\r\n{content}"));
    assert_eq!(session.receive(shared, bytes.as_bytes()), NextStep::More, "{method} {target}");
    let answer = std::mem::take(&mut shared.out);
    let mut headers = [httparse::EMPTY_HEADER; 16];
    let mut response = httparse::Response::new(&mut headers);
    let Ok(httparse::Status::Complete(head)) = response.parse(&answer) else { panic!("{bytes}") };
    let status = response.code.unwrap();
    let length = response.headers.iter().find(|header| header.name == "Content-Length");
    let length = length.map(|header| String::from_utf8(header.value.to_vec()).unwrap());
    let has_content = !matches!(status, 204 | 304);
    assert_eq!(length, has_content.then(|| (answer.len() - head).to_string()), "{bytes}");
    let mut said: Vec<_> = (response.headers.iter())
        .map(|header| (header.name.to_ascii_lowercase(), header.value.to_vec()))
        .map(|(name, value)| (name, String::from_utf8(value).unwrap()))
        .filter(|(name, _)| !["content-length", "connection"].contains(&name.as_str()))
        .collect();
    said.sort();
    (status, said, String::from_utf8(answer[head..].to_vec()).unwrap())
}
