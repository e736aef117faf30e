//! One request outside the figures: logging in, setting up, reading a counter.
//!
//! It goes through the engine, so whatever protocol, TLS and socket the load
//! uses, these requests use too.

use crate::engine::{RunError, Unobserved, run};
use crate::plan::{Load, Plan, Protocol, Settings, Stop, TlsTerms};
use crate::result::ErrorKind;
use crate::target::Target;
use crate::workload::{Answer, Endpoint, Judgement, Needs, Next, OwnedRequest, Source, Workload};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

/// The answer to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnedAnswer {
    /// Status.
    pub status: u16,
    /// Header fields.
    pub headers: Vec<(String, String)>,
    /// Body.
    pub body: Vec<u8>,
}

/// Why there is no answer.
#[derive(Debug)]
pub enum AskError {
    /// No connection, or the system refused.
    Run(RunError),
    /// A connection, but no answer.
    Lost(ErrorKind),
}

impl std::fmt::Display for AskError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            AskError::Run(error) => error.fmt(f),
            AskError::Lost(kind) => f.write_str(kind.label()),
        }
    }
}

impl std::error::Error for AskError {}

/// The answer, once it has arrived.
type AnswerCell = Arc<Mutex<Option<OwnedAnswer>>>;

struct SingleRequest {
    request: OwnedRequest,
    answer: AnswerCell,
}

struct SingleRequestWorkload {
    request: OwnedRequest,
    answer: AnswerCell,
    state: SendState,
}

#[derive(PartialEq, Eq)]
enum SendState {
    Unsent,
    Sent,
}

impl Source for SingleRequest {
    fn endpoints(&self) -> Vec<Endpoint> {
        let needs = Needs { head: true, body: true };
        vec![Endpoint { name: self.name(), needs }]
    }

    fn name(&self) -> String {
        self.request.name()
    }

    fn identity(&self) -> Vec<u8> {
        Vec::new()
    }

    fn workload(&self, _worker: u32, _workers: u32, _seed: u64) -> Box<dyn Workload> {
        let (request, answer) = (self.request.clone(), Arc::clone(&self.answer));
        Box::new(SingleRequestWorkload { request, answer, state: SendState::Unsent })
    }
}

impl Workload for SingleRequestWorkload {
    fn next(&mut self, _user: u32) -> Next<'_> {
        if self.state == SendState::Sent {
            return Next::Done;
        }
        self.state = SendState::Sent;
        Next::Send(self.request.borrowed(0, None))
    }

    fn judge(&mut self, _user: u32, answer: &Answer<'_>) -> Judgement {
        let owned = |(name, value): &(std::borrow::Cow<'_, str>, std::borrow::Cow<'_, str>)| {
            (name.to_string(), value.to_string())
        };
        let headers = answer.head.0.iter().map(owned).collect();
        let answer = OwnedAnswer { status: answer.status, headers, body: answer.body.to_vec() };
        *self.answer.lock().unwrap_or_else(PoisonError::into_inner) = Some(answer);
        Judgement::Success
    }

    fn lost(&mut self, _user: u32) {}
}

/// Sends one request and waits for its answer, `timeout_ms` at most.
///
/// # Errors
/// [`AskError`] if there was none. An answer with any status is no error.
pub fn ask(
    target: &Target,
    protocol: Protocol,
    tls: &TlsTerms,
    timeout_ms: u64,
    request: OwnedRequest,
) -> Result<OwnedAnswer, AskError> {
    let cell = AnswerCell::default();
    let source = SingleRequest { request, answer: Arc::clone(&cell) };
    let settings = Settings {
        url: target.url(),
        workload: source.name(),
        workload_hash: String::new(),
        load: Load::Closed { think_min_us: 0, think_max_us: 0 },
        connections: 1,
        streams: 1,
        workers: 1,
        protocol,
        keep_alive: true,
        stop: Stop { requests: Some(1), duration_ms: None },
        warmup_ms: 0,
        timeout_ms,
        seed: 0,
        phases: false,
        spin: false,
    };
    let (target, source) = (target.clone(), Arc::new(source));
    let plan = Plan { settings, target, source, pin: false, tls: tls.clone() };
    let stop = Arc::new(AtomicBool::new(false));
    let measured = run(&plan, &stop, &mut Unobserved).map_err(AskError::Run)?;
    let answer = cell.lock().unwrap_or_else(PoisonError::into_inner).take();
    answer.ok_or_else(|| {
        let errors = measured.run.endpoints.first().map(|e| &e.counters.errors);
        let kind = errors.and_then(|errors| errors.keys().next().copied());
        AskError::Lost(kind.unwrap_or(ErrorKind::Timeout))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::null_server::NullServer;

    #[test]
    fn one_request_gets_one_answer() {
        let server = NullServer::start(None).unwrap();
        let mut target = Target::parse(&format!("http://{}/", server.address())).unwrap();
        target.resolve().unwrap();
        let request = OwnedRequest {
            method: "POST".into(),
            path: "/x".into(),
            headers: vec![("x-a".into(), "b".into())],
            body: b"hello".to_vec(),
        };
        let tls = TlsTerms::default();
        let answer = ask(&target, Protocol::Http1, &tls, 5_000, request.clone()).unwrap();
        assert_eq!((answer.status, answer.body.as_slice()), (200, b"ok".as_slice()));
        assert_eq!(answer.headers[0].0, "Content-Length");
        // A port that no program is given as a free one.
        target.addresses[0].set_port(1);
        let refused = ask(&target, Protocol::Http1, &tls, 500, request).unwrap_err();
        assert!(refused.to_string().contains("refused"), "{refused}");
    }
}
