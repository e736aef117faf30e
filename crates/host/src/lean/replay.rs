//! A session driven by a script instead of a socket, over fake fast paths that record their input.
//! For tests and the fuzz target.

use super::answer::whole;
use super::head::HeadLimits;
use super::limited;
use super::loop_state::LoopState;
use super::seam::{CountedRequest, Credentials, Guards};
use super::session::{NextStep, Session};
use crate::access::Principal;
use crate::fast::{
    Claim, FastAnswer, FastPath, FastRequest, FastRoute, Form, FormContent, Head, PipelineOrder,
    Shape, TicketState, Varying, WholeAnswer, Word, erase,
};
use crate::http::Response;
use crate::http::body_memory::BodyMemory;
use crate::identity::Role;
use crate::ingest::{ACCEPTED, Media, expect_identity, refuse_key};
use crate::limits::{Payer, QuotaKeys};
use crate::stats::Stats;
use crate::wire::problem::{self, Problem};
use std::cell::RefCell;
use std::convert::Infallible;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;

/// The largest body that the fake accepts, in bytes.
pub(crate) const LARGEST_BODY: usize = 600;

/// What the fakes have recorded, and their instructions.
#[derive(Default)]
pub(crate) struct Script {
    /// Accepted targets and bodies, codes and data of clicks, in order.
    pub(crate) taken: Vec<(String, Vec<u8>)>,
    /// Requests for `/e?full` that are still accepted before the next one finds no room.
    pub(crate) room: usize,
    /// Tickets below this are settled.
    pub(crate) stored: u64,
}

/// Admits requests without credentials.
#[derive(Default)]
pub(crate) struct FakeGuards {
    pub(crate) script: Rc<RefCell<Script>>,
    /// The limits, if any.
    limited: Option<Arc<crate::limits::Limits>>,
}

impl Guards for FakeGuards {
    type Pass = ();

    fn admit(&mut self, _: Role, _: Option<&str>, credentials: &Credentials<'_>) -> Option<()> {
        credentials.authorization.is_none().then_some(())
    }

    fn answers_under(&self, host: &[u8]) -> bool {
        host != b"foreign.example"
    }

    fn holds(&self, (): &()) -> bool {
        true
    }

    fn principal(&self, (): &()) -> Option<Arc<Principal>> {
        None
    }

    fn client(&self, peer: Option<IpAddr>, forwarded: &[u8]) -> Option<IpAddr> {
        match &self.limited {
            Some(limited) => limited.proxies().client(peer, std::iter::once(forwarded)),
            // The fake believes every proxy.
            None => {
                let last = forwarded.rsplit(|&b| b == b',').next().map(String::from_utf8_lossy);
                last.and_then(|address| address.parse().ok()).or(peer)
            }
        }
    }

    fn counts_requests(&self) -> bool {
        self.limited.is_some()
    }

    fn count(&self, request: CountedRequest<'_, ()>) -> (QuotaKeys, Result<(), Box<Problem>>) {
        let limits = self.limited.as_ref().expect("asked only if it counts requests");
        limited::count(limits, &request, None)
    }

    fn charge(&self, quota_keys: QuotaKeys, bytes: usize, now_us: u64) {
        if let Some(limits) = &self.limited {
            limits.charge_bytes(quota_keys, bytes, now_us);
        }
    }

    fn payer(&self, quota_keys: QuotaKeys) -> Payer {
        self.limited.as_ref().map_or_else(Payer::default, |limits| Payer::new(limits, quota_keys))
    }
}

/// Fake ingest. The request's target says what to do with it.
struct FakeIngest {
    script: Rc<RefCell<Script>>,
    tickets: u64,
}

impl FastPath for FakeIngest {
    type Params = (String, Media);
    type Ticket = u64;

    fn route(&self) -> FastRoute {
        FastRoute { method: "POST", path: "/e" }
    }

    fn forms(&self) -> Vec<Form> {
        vec![Form {
            status: 202,
            content_type: "application/json",
            headers: Vec::new(),
            varying_headers: &[],
            content: FormContent::Fixed(ACCEPTED),
        }]
    }

    fn claim(&mut self, method: &str, target: &str) -> Option<Claim> {
        let is_ours = method == "POST" && target.split('?').next() == Some("/e");
        is_ours.then_some(Claim { role: Some(Role::Writer), log: None, shape: Shape::Content })
    }

    fn understand(&mut self, head: &Head<'_>) -> Result<Option<Self::Params>, Box<Problem>> {
        if head.target.ends_with("?bad") {
            return Err(problem::INVALID.because("bad").field("bad"));
        }
        expect_identity(head.headers.other_than("content-encoding", "identity"))?;
        refuse_key(head.headers.get("idempotency-key").is_some())?;
        Ok(Some((head.target.to_owned(), Media::of(head.headers.get("content-type")))))
    }

    fn largest_content(&self, _: &Self::Params) -> usize {
        LARGEST_BODY
    }

    fn hands_in(&self) -> bool {
        true
    }

    fn line(&self, (target, _): &Self::Params) -> usize {
        target.len()
    }

    fn answer(
        &mut self,
        (target, media): &Self::Params,
        asked: FastRequest<'_>,
        _: &mut Varying,
    ) -> FastAnswer<u64> {
        let mut script = self.script.borrow_mut();
        if *media == Media::Ndjson {
            let problem = problem::MALFORMED_JSON.because("the fake takes no lines");
            return FastAnswer::Refused(problem);
        }
        if asked.content.first() == Some(&b'!') {
            return FastAnswer::Refused(problem::INVALID.because("refused"));
        }
        if target == "/e?full" {
            let Some(room) = script.room.checked_sub(1) else { return FastAnswer::Full };
            script.room = room;
        }
        script.taken.push((target.clone(), asked.content.to_vec()));
        if target == "/e?durable" {
            self.tickets += 1;
            return FastAnswer::Pending(self.tickets - 1);
        }
        FastAnswer::Reply(0)
    }

    fn settled(&mut self, ticket: &u64, _: &mut Varying) -> TicketState {
        match ticket {
            _ if *ticket >= self.script.borrow().stored => TicketState::Pending,
            13 => TicketState::Failed(problem::STORAGE_FULL.because("the thirteenth")),
            _ => TicketState::Reply(0),
        }
    }
}

/// Fake links, all but some with a target.
struct FakeLinks {
    script: Rc<RefCell<Script>>,
}

impl FastPath for FakeLinks {
    type Params = String;
    type Ticket = Infallible;

    fn route(&self) -> FastRoute {
        FastRoute { method: "GET", path: "/{code}" }
    }

    fn forms(&self) -> Vec<Form> {
        vec![Form {
            status: 302,
            content_type: "",
            headers: vec![("cache-control", "private, no-store".to_owned())],
            varying_headers: &["location"],
            content: FormContent::Fixed(b""),
        }]
    }

    fn claim(&mut self, method: &str, target: &str) -> Option<Claim> {
        let code = target.strip_prefix('/').filter(|_| method == "GET")?.as_bytes();
        let is_code =
            (1..=10).contains(&code.len()) && code.iter().all(|b| b.is_ascii_alphanumeric());
        let shape = Shape::Bare(Some(Word { at: 1, most: 10 }));
        (is_code && self.accepts(code)).then_some(Claim { role: None, log: None, shape })
    }

    fn accepts(&self, code: &[u8]) -> bool {
        code != b"health" && code != b"e"
    }

    fn understand(&mut self, head: &Head<'_>) -> Result<Option<String>, Box<Problem>> {
        let told = ["user-agent", "referer"].map(|name| {
            let value = head.headers.get(name).unwrap_or_default();
            String::from_utf8_lossy(value).into_owned()
        });
        Ok(Some(told.join(" ")))
    }

    fn answer(
        &mut self,
        told: &String,
        asked: FastRequest<'_>,
        varying: &mut Varying,
    ) -> FastAnswer<Infallible> {
        varying.header(|out| {
            out.extend_from_slice(b"https://example.com/");
            out.extend_from_slice(asked.word);
        });
        match asked.word {
            b"unknown" => {
                FastAnswer::Refused(problem::NOT_FOUND.because("the fake knows no such link"))
            }
            b"wait" => FastAnswer::Elsewhere(problem::INTERNAL.because("to be handed over")),
            code => {
                let client = asked.client.map(|client| format!(" {client}")).unwrap_or_default();
                let code = String::from_utf8_lossy(code).into_owned();
                let click = format!("{told}{client}").into_bytes();
                self.script.borrow_mut().taken.push((code, click));
                FastAnswer::Reply(0)
            }
        }
    }

    fn settled(&mut self, ticket: &Infallible, _: &mut Varying) -> TicketState {
        match *ticket {}
    }
}

/// Fake appends, read as a whole: `!` goes to the other stack, `?` is settled later.
struct FakeAppends {
    script: Rc<RefCell<Script>>,
    tickets: u64,
}

impl FastPath for FakeAppends {
    type Params = ();
    type Ticket = u64;

    fn route(&self) -> FastRoute {
        FastRoute { method: "POST", path: "/append" }
    }

    fn forms(&self) -> Vec<Form> {
        vec![Form {
            status: 200,
            content_type: "text/plain",
            headers: Vec::new(),
            varying_headers: &["place"],
            content: FormContent::Varying,
        }]
    }

    fn claim(&mut self, method: &str, target: &str) -> Option<Claim> {
        let shape = Shape::Whole { most: LARGEST_BODY };
        let is_ours = method == "POST" && matches!(target, "/append" | "/both");
        is_ours.then_some(Claim { role: Some(Role::Writer), log: None, shape })
    }

    fn understand(&mut self, _: &Head<'_>) -> Result<Option<()>, Box<Problem>> {
        Ok(Some(()))
    }

    fn answer(
        &mut self,
        (): &(),
        asked: FastRequest<'_>,
        varying: &mut Varying,
    ) -> FastAnswer<u64> {
        if asked.content.first() == Some(&b'!') {
            return FastAnswer::Elsewhere(problem::INTERNAL.because("it can be handed over"));
        }
        let mut script = self.script.borrow_mut();
        script.taken.push(("/append".to_owned(), asked.content.to_vec()));
        if asked.content.first() == Some(&b'?') {
            self.tickets += 1;
            return FastAnswer::Pending(self.tickets - 1);
        }
        varying.header(|out| out.push(b'-'));
        varying.content().extend_from_slice(b"now");
        FastAnswer::Reply(0)
    }

    fn settled(&mut self, ticket: &u64, varying: &mut Varying) -> TicketState {
        if *ticket >= self.script.borrow().stored {
            return TicketState::Pending;
        }
        varying.header(|out| out.extend_from_slice(ticket.to_string().as_bytes()));
        varying.content().extend_from_slice(b"later");
        TicketState::Reply(0)
    }
}

/// Fake reads, which tell how many appends are settled.
struct FakeLooks {
    script: Rc<RefCell<Script>>,
}

impl FastPath for FakeLooks {
    type Params = ();
    type Ticket = Infallible;

    fn route(&self) -> FastRoute {
        FastRoute { method: "GET", path: "/v1/look" }
    }

    fn forms(&self) -> Vec<Form> {
        vec![Form {
            status: 200,
            content_type: "text/plain",
            headers: Vec::new(),
            varying_headers: &[],
            content: FormContent::Varying,
        }]
    }

    fn claim(&mut self, method: &str, target: &str) -> Option<Claim> {
        let is_ours = method == "GET" && target == "/v1/look";
        let shape = Shape::Whole { most: 0 };
        is_ours.then_some(Claim { role: Some(Role::Reader), log: None, shape })
    }

    fn understand(&mut self, _: &Head<'_>) -> Result<Option<()>, Box<Problem>> {
        Ok(Some(()))
    }

    fn order(&self) -> PipelineOrder {
        PipelineOrder::Behind
    }

    fn answer(
        &mut self,
        (): &(),
        _: FastRequest<'_>,
        varying: &mut Varying,
    ) -> FastAnswer<Infallible> {
        let settled = self.script.borrow().stored;
        varying.content().extend_from_slice(settled.to_string().as_bytes());
        FastAnswer::Reply(0)
    }

    fn settled(&mut self, ticket: &Infallible, _: &mut Varying) -> TicketState {
        match *ticket {}
    }
}

/// Fake handlers, of their own requests and of what the fake appends send elsewhere at `/both`: `?`
/// is answered later, `~` executed later.
struct FakeHandlers {
    script: Rc<RefCell<Script>>,
    is_put_off: bool,
}

impl FastPath for FakeHandlers {
    type Params = ();
    type Ticket = u64;

    fn route(&self) -> FastRoute {
        FastRoute { method: "", path: "" }
    }

    fn forms(&self) -> Vec<Form> {
        Vec::new()
    }

    fn claim(&mut self, method: &str, target: &str) -> Option<Claim> {
        let shape = Shape::Whole { most: LARGEST_BODY };
        let is_ours = method == "POST" && matches!(target, "/handled" | "/both");
        is_ours.then_some(Claim { role: None, log: None, shape })
    }

    fn understand(&mut self, _: &Head<'_>) -> Result<Option<()>, Box<Problem>> {
        Ok(Some(()))
    }

    fn order(&self) -> PipelineOrder {
        PipelineOrder::Alone
    }

    fn answer(&mut self, (): &(), asked: FastRequest<'_>, _: &mut Varying) -> FastAnswer<u64> {
        let mut script = self.script.borrow_mut();
        if asked.content.first() == Some(&b'~') && !std::mem::replace(&mut self.is_put_off, true) {
            return FastAnswer::Later;
        }
        self.is_put_off = false;
        script.taken.push(("/handled".to_owned(), asked.content.to_vec()));
        match asked.content.first() {
            Some(b'?') => FastAnswer::Pending(script.stored + 1),
            _ => FastAnswer::Answered(handled(b"handled")),
        }
    }

    fn settled(&mut self, due: &u64, _: &mut Varying) -> TicketState {
        let is_due = self.script.borrow().stored >= *due;
        if is_due { TicketState::Answered(handled(b"later")) } else { TicketState::Pending }
    }
}

fn handled(content: &'static [u8]) -> WholeAnswer {
    whole(Response::text("text/plain", content)).expect("one piece")
}

/// How a connection ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum End {
    /// Closed by the server.
    Closed,
    /// Handed over with these bytes.
    Left(Vec<u8>),
}

/// The result of some input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Trace {
    /// Accepted targets and bodies, codes and data of clicks, in order.
    pub(crate) taken: Vec<(String, Vec<u8>)>,
    /// All bytes of the answers.
    pub(crate) answers: Vec<u8>,
    /// How it ended.
    pub(crate) end: End,
}

/// A loop state with the fakes.
pub(crate) fn shared(limits: HeadLimits) -> LoopState<FakeGuards> {
    desk_of(limits, FakeGuards::default())
}

/// The same, where requests are limited.
#[cfg(test)]
pub(crate) fn limited_desk(
    limits: HeadLimits,
    limited: Arc<crate::limits::Limits>,
) -> LoopState<FakeGuards> {
    desk_of(limits, FakeGuards { limited: Some(limited), ..FakeGuards::default() })
}

fn desk_of(limits: HeadLimits, guards: FakeGuards) -> LoopState<FakeGuards> {
    let stats = Arc::new(Stats::new(1, Vec::new(), 0));
    let ingest = FakeIngest { script: Rc::clone(&guards.script), tickets: 0 };
    let links = FakeLinks { script: Rc::clone(&guards.script) };
    let appends = FakeAppends { script: Rc::clone(&guards.script), tickets: 0 };
    let looks = FakeLooks { script: Rc::clone(&guards.script) };
    let handlers = FakeHandlers { script: Rc::clone(&guards.script), is_put_off: false };
    let paths = vec![erase(ingest), erase(links), erase(appends), erase(looks), erase(handlers)];
    LoopState::new(guards, paths, limits, BodyMemory::new(&stats, 1 << 20))
}

/// Gives a session the pieces one by one and then the end of input. Makes room and settles answers
/// only when the session is stuck without.
pub(crate) fn replay<'a>(limits: HeadLimits, pieces: impl Iterator<Item = &'a [u8]>) -> Trace {
    let mut shared = shared(limits);
    let mut session = Session::new(None);
    let mut answers = Vec::new();
    let mut pieces = pieces.filter(|piece| !piece.is_empty());
    let mut turn = NextStep::More;
    let end = loop {
        turn = match turn {
            NextStep::More => match pieces.next() {
                Some(piece) => session.receive(&mut shared, piece),
                None => session.end_of_input(&mut shared),
            },
            NextStep::Flush | NextStep::Later => session.resume(&mut shared),
            NextStep::Stalled => {
                shared.guards.script.borrow_mut().room += 1;
                shared.full.clear();
                session.retry(&mut shared)
            }
            NextStep::Wait => {
                shared.guards.script.borrow_mut().stored += 1;
                session.settle(&mut shared)
            }
            NextStep::Leave => break End::Left(Vec::new()),
            NextStep::End => break End::Closed,
        };
        answers.append(&mut shared.out);
    };
    let end = match end {
        End::Closed => End::Closed,
        End::Left(_) => {
            let mut rest = session.into_rest();
            pieces.for_each(|piece| rest.extend_from_slice(piece));
            End::Left(rest)
        }
    };
    Trace { taken: shared.guards.script.take().taken, answers, end }
}

/// The statuses of answers, without interim ones; `None` if the bytes are not answers.
pub(crate) fn statuses(mut answers: &[u8]) -> Option<Vec<u16>> {
    let mut found = Vec::new();
    while !answers.is_empty() {
        let mut headers = [httparse::EMPTY_HEADER; 8];
        let mut response = httparse::Response::new(&mut headers);
        let httparse::Status::Complete(head) = response.parse(answers).ok()? else { return None };
        let is_length = |h: &&httparse::Header<'_>| h.name.eq_ignore_ascii_case("content-length");
        let length = response.headers.iter().find(is_length);
        let length = match length {
            Some(length) => std::str::from_utf8(length.value).ok()?.parse().ok()?,
            None => 0,
        };
        found.extend(response.code.filter(|&code| code != 100));
        answers = answers.get(head + length..)?;
    }
    Some(found)
}
