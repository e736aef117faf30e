//! A connection after its handshake, without a socket: which message is allowed, which is next, and
//! what is sent.
//!
//! ```text
//! Negotiation ─HELLO→ Authentication ─LOGON→ Ready ─RUN→ Streaming ─PULL, DISCARD→ Ready
//!      └──── 4.4, 5.0: HELLO ─────────────────┘ └─BEGIN→ Transaction ─COMMIT, ROLLBACK→ Ready
//! a failure → Failed ─RESET→ Ready; before authentication → Closed
//! ```

mod metadata;

pub use metadata::Metadata;

use crate::dechunk::Dechunker;
use crate::failure::Failure;
use crate::framing::{begin_message, end_message};
use crate::message::{
    Auth, Fetch, Hello, Request, RequestFault, Route, Run, TransactionSettings, jumps_ahead, tag,
};
use crate::packstream::Writer;
use crate::version::Version;

/// Longest message of a client that is not authenticated, in bytes.
const MAX_EARLY_BYTES: usize = 16 << 10;
/// Longest message of a client that is, in bytes.
const MAX_MESSAGE_BYTES: usize = 16 << 20;
/// Most results that are open at once in a transaction.
const MAX_RESULTS: usize = 1_024;
/// Memory for output that is kept while nothing is to be sent, in bytes.
const KEPT_OUTPUT_BYTES: usize = 1 << 10;

/// Where the rows of a statement go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResultPlace {
    /// The statement is a transaction of its own, which takes effect when its rows are fetched.
    AutoCommit,
    /// The statement belongs to the open transaction.
    Transaction {
        /// The number of the result, by which its rows are fetched.
        qid: i64,
    },
}

/// What the caller is to do next. It ends by [`Session::succeed`], [`Session::fail`] or
/// [`Session::abandon`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ask {
    /// Tell who the server is (`server`, `connection_id`, `hints`), and authenticate the client if
    /// the greeting has credentials.
    Hello(Box<Hello>),
    /// Authenticate the client.
    Logon(Auth),
    /// Forget who the client is.
    Logoff,
    /// Tell which servers there are (`rt`).
    Route(Box<Route>),
    /// Open a transaction.
    Begin(Box<TransactionSettings>),
    /// Prepare a statement, and execute it if it is within a transaction (`fields`, `t_first`).
    Run(Box<Run>, ResultPlace),
    /// Send rows of a result, see [`Session::records`], and the summary behind the last one.
    Pull(Fetch),
    /// The same without the rows.
    Discard(Fetch),
    /// Commit the transaction (`bookmark`). Open results are dropped.
    Commit,
    /// Roll the transaction back. Open results are dropped.
    Rollback,
    /// Roll back whatever is open, and drop every result.
    Reset,
}

impl Ask {
    /// The name of its message.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Ask::Hello(_) => "HELLO",
            Ask::Logon(_) => "LOGON",
            Ask::Logoff => "LOGOFF",
            Ask::Route(_) => "ROUTE",
            Ask::Begin(_) => "BEGIN",
            Ask::Run(..) => "RUN",
            Ask::Pull(_) => "PULL",
            Ask::Discard(_) => "DISCARD",
            Ask::Commit => "COMMIT",
            Ask::Rollback => "ROLLBACK",
            Ask::Reset => "RESET",
        }
    }
}

/// Whether a result has more rows after a `PULL` or `DISCARD`. Everything else leaves none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remaining {
    /// None: the result is closed.
    Nothing,
    /// Some: the session tells the client so (`has_more`).
    Rows,
}

/// What a connection is in the middle of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// The client has not introduced itself.
    Negotiation,
    /// The client is not authenticated.
    Authentication,
    /// Nothing is open.
    Ready,
    /// A statement outside of a transaction has rows to fetch.
    Streaming,
    /// A transaction is open.
    Transaction,
    /// A request failed: everything but a reset is ignored.
    Failed,
    /// The connection is to be closed once the output is sent.
    Closed,
}

impl Phase {
    fn is_before_authentication(self) -> bool {
        matches!(self, Phase::Negotiation | Phase::Authentication)
    }
}

/// The results of a transaction.
#[derive(Debug, Default)]
struct Results {
    /// Numbers of those with rows to fetch.
    open: Vec<i64>,
    /// The number of the next one.
    next: i64,
}

/// What the answer to the ask under way changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum UnderWay {
    /// Whether the greeting authenticates, and whether it asked for the patch `utc`.
    Hello { authenticates: bool, wants_utc: bool },
    /// The phase after success.
    To(Phase),
    /// A statement of a transaction, with the number of its result.
    Run(i64),
    /// Rows of this result.
    Fetch(i64),
    /// Nothing changes.
    Route,
    /// Everything is dropped.
    Reset,
}

/// A connection after its handshake.
///
/// The caller gives what it reads to [`Session::receive`], takes one [`Ask`] at a time from
/// [`Session::next_ask`], answers it, and sends [`Session::output`]. While an ask is under way the
/// caller goes on reading as long as [`Session::wants_input`], and gives the ask up if
/// [`Session::is_interrupted`].
#[derive(Debug)]
pub struct Session {
    version: Version,
    phase: Phase,
    results: Results,
    under_way: Option<UnderWay>,
    input: Dechunker,
    output: Vec<u8>,
    /// Bytes of the output that are sent.
    sent: usize,
}

impl Session {
    /// A session whose client has just agreed on this version.
    #[must_use]
    pub fn new(version: Version) -> Session {
        Session {
            version,
            phase: Phase::Negotiation,
            results: Results::default(),
            under_way: None,
            input: Dechunker::new(MAX_EARLY_BYTES),
            output: Vec::new(),
            sent: 0,
        }
    }

    /// The version; 4.4 has moments in UTC once the answer to `HELLO` said so.
    #[must_use]
    pub fn version(&self) -> Version {
        self.version
    }

    /// What the connection is in the middle of.
    #[must_use]
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// Whether the connection is to be closed once the output is sent.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.phase == Phase::Closed
    }

    /// Whether nothing is under way, open or waiting, not even a part of a message: a good moment
    /// to close.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        let is_open = matches!(self.phase, Phase::Streaming | Phase::Transaction);
        self.under_way.is_none() && !is_open && self.input.is_empty()
    }

    /// Whether a message has begun to come whose rest is not there; ask only when there is no ask.
    #[must_use]
    pub fn awaits_rest(&self) -> bool {
        !self.input.is_empty()
    }

    /// Memory for input and output, in bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.input.memory_bytes() + self.output.capacity()
    }

    /// Takes what the client sent.
    pub fn receive(&mut self, bytes: &[u8]) {
        if !self.is_closed() {
            self.input.receive(bytes);
        }
    }

    /// Whether there is room for more input: at most 64 messages and 1 MiB wait.
    #[must_use]
    pub fn wants_input(&self) -> bool {
        !self.is_closed() && self.input.has_room()
    }

    /// Whether the client wants the ask under way to be given up: a `RESET` or `GOODBYE` waits. The
    /// caller may also answer it as usual, as it must for a commit that can no longer be stopped.
    #[must_use]
    pub fn is_interrupted(&self) -> bool {
        self.under_way.is_some() && self.input.has_one_ahead()
    }

    /// The next thing to do, unless one is under way. Answers by itself what needs no caller. If it
    /// fails a request by itself, a transaction stays open at the caller until the
    /// next [`Ask::Reset`] or the end.
    pub fn next_ask(&mut self) -> Option<Ask> {
        while self.under_way.is_none() && !self.is_closed() {
            let Some(first) = self.input.first() else {
                if self.input.is_broken() {
                    let limit = self.input.limit();
                    let message = format!("a message has more than {limit} bytes");
                    self.refuse(&Failure::invalid(message), Phase::Closed);
                }
                return None;
            };
            let is_ignored = self.phase == Phase::Failed || self.input.has_one_ahead();
            if is_ignored && !jumps_ahead(first) {
                self.input.pass();
                self.ignore();
                continue;
            }
            let message = self.input.take()?;
            let judged = match Request::parse(message, self.version) {
                Ok(request) => self.judge(request),
                Err(fault) => Err(self.refusal(&fault)),
            };
            match judged {
                Ok(Some((ask, under_way))) => {
                    self.under_way = Some(under_way);
                    return Some(ask);
                }
                Ok(None) => {}
                Err((failure, phase)) => self.refuse(&failure, phase),
            }
        }
        None
    }

    /// Sends records ahead of the success of the [`Ask::Pull`] under way: whole messages, as
    /// [`begin_record`](crate::begin_record) and [`end_message`] frame them. They are copied; many
    /// are better sent by the caller itself, after [`Session::output`].
    pub fn records(&mut self, framed: &[u8]) {
        debug_assert!(matches!(self.under_way, Some(UnderWay::Fetch(_))));
        self.output.extend_from_slice(framed);
    }

    /// The ask under way is done; `write` adds to what the client is told.
    pub fn succeed(&mut self, remaining: Remaining, write: impl FnOnce(&mut Metadata<'_>)) {
        let Some(under_way) = self.under_way.take() else {
            return debug_assert!(false, "nothing is under way");
        };
        let version = self.settle(under_way, remaining);
        self.success(|metadata| {
            match under_way {
                UnderWay::Hello { wants_utc, .. } => {
                    if wants_utc && version.major() == 4 {
                        let mut patches = metadata.member("patch_bolt");
                        patches.list(1);
                        patches.text("utc");
                    }
                    if version.has_gql_errors() {
                        metadata.text("protocol_version", &version.to_string());
                    }
                }
                UnderWay::Run(qid) => metadata.int("qid", qid),
                UnderWay::Fetch(_) if remaining == Remaining::Rows => {
                    metadata.bool("has_more", true);
                }
                _ => {}
            }
            write(metadata);
        });
    }

    /// The ask under way has failed. A client that is not authenticated is disconnected; another
    /// one has to reset. The caller rolls back whatever is open. A reset that fails closes the
    /// connection.
    pub fn fail(&mut self, failure: &Failure) {
        let Some(under_way) = self.under_way.take() else {
            return debug_assert!(false, "nothing is under way");
        };
        let is_last = self.phase.is_before_authentication() || under_way == UnderWay::Reset;
        self.refuse(failure, if is_last { Phase::Closed } else { Phase::Failed });
    }

    /// The ask under way was given up for what [`Session::is_interrupted`] tells of.
    pub fn abandon(&mut self) {
        debug_assert!(self.is_interrupted());
        if self.under_way.take().is_some() {
            self.ignore();
        }
    }

    /// A sign of life between messages, for a client that waits for long.
    pub fn keep_alive(&mut self) {
        self.output.extend_from_slice(&[0, 0]);
    }

    /// Ends the session: nothing more is asked or received.
    pub fn close(&mut self) {
        self.phase = Phase::Closed;
        self.under_way = None;
        self.input = Dechunker::new(MAX_EARLY_BYTES);
        self.results = Results::default();
    }

    /// What is to be sent.
    #[must_use]
    pub fn output(&self) -> &[u8] {
        &self.output[self.sent..]
    }

    /// So many bytes of the output are sent.
    pub fn consume(&mut self, bytes: usize) {
        self.sent += bytes;
        debug_assert!(self.sent <= self.output.len());
        if self.sent >= self.output.len() {
            self.sent = 0;
            self.output.clear();
            self.output.shrink_to(KEPT_OUTPUT_BYTES);
        }
    }

    /// What a request asks for in this phase; nothing if it is answered here.
    fn judge(&mut self, request: Request) -> Result<Option<(Ask, UnderWay)>, (Failure, Phase)> {
        let ready = UnderWay::To(Phase::Ready);
        Ok(Some(match (self.phase, request) {
            (Phase::Negotiation, Request::Hello(hello)) => {
                let (authenticates, wants_utc) = (hello.auth.is_some(), hello.wants_utc);
                (Ask::Hello(hello), UnderWay::Hello { authenticates, wants_utc })
            }
            (Phase::Authentication, Request::Logon(auth)) => (Ask::Logon(auth), ready),
            (Phase::Ready, Request::Logoff) => (Ask::Logoff, UnderWay::To(Phase::Authentication)),
            (Phase::Ready, Request::Route(route)) => (Ask::Route(route), UnderWay::Route),
            (Phase::Ready, Request::Begin(settings)) => {
                (Ask::Begin(settings), UnderWay::To(Phase::Transaction))
            }
            (Phase::Ready, Request::Run(run)) => {
                (Ask::Run(run, ResultPlace::AutoCommit), UnderWay::To(Phase::Streaming))
            }
            (Phase::Transaction, Request::Run(run)) => {
                if self.results.open.len() >= MAX_RESULTS {
                    let message = format!("a transaction has at most {MAX_RESULTS} open results");
                    return Err((Failure::invalid(message), Phase::Failed));
                }
                let qid = self.results.next;
                (Ask::Run(run, ResultPlace::Transaction { qid }), UnderWay::Run(qid))
            }
            (Phase::Streaming | Phase::Transaction, Request::Pull(fetch)) => {
                let fetch = self.resolve(fetch)?;
                (Ask::Pull(fetch), UnderWay::Fetch(fetch.qid))
            }
            (Phase::Streaming | Phase::Transaction, Request::Discard(fetch)) => {
                let fetch = self.resolve(fetch)?;
                (Ask::Discard(fetch), UnderWay::Fetch(fetch.qid))
            }
            (Phase::Transaction, Request::Commit) => (Ask::Commit, ready),
            (Phase::Transaction, Request::Rollback) => (Ask::Rollback, ready),
            (phase, Request::Reset) if !phase.is_before_authentication() => {
                (Ask::Reset, UnderWay::Reset)
            }
            (Phase::Ready, Request::Telemetry) => {
                self.success(|_| {});
                return Ok(None);
            }
            (_, Request::Goodbye) => {
                self.close();
                return Ok(None);
            }
            (phase, request) => {
                let message = format!("{} is not allowed in the state {phase:?}", request.name());
                return Err((Failure::invalid(message), Phase::Closed));
            }
        }))
    }

    /// The result that a client means.
    fn resolve(&self, fetch: Fetch) -> Result<Fetch, (Failure, Phase)> {
        let last = self.results.next - 1;
        let qid = if fetch.qid < 0 { last.max(0) } else { fetch.qid };
        let is_open = match self.phase {
            Phase::Streaming => qid == 0,
            _ => self.results.open.contains(&qid),
        };
        if is_open {
            return Ok(Fetch { qid, ..fetch });
        }
        let message = format!("there is no open result {}", fetch.qid);
        Err((Failure::invalid(message), Phase::Failed))
    }

    /// Moves on after a success; the version, as the client knows it from now on.
    fn settle(&mut self, under_way: UnderWay, remaining: Remaining) -> Version {
        match under_way {
            UnderWay::Hello { authenticates, wants_utc } => {
                if wants_utc {
                    self.version = self.version.with_utc();
                }
                self.enter(if authenticates { Phase::Ready } else { Phase::Authentication });
            }
            UnderWay::To(phase) => self.enter(phase),
            UnderWay::Reset => self.enter(Phase::Ready),
            UnderWay::Run(qid) => {
                self.results.open.push(qid);
                self.results.next = qid + 1;
            }
            UnderWay::Fetch(qid) if remaining == Remaining::Nothing => match self.phase {
                Phase::Streaming => self.enter(Phase::Ready),
                _ => self.results.open.retain(|open| *open != qid),
            },
            UnderWay::Fetch(_) | UnderWay::Route => {}
        }
        self.version
    }

    /// Enters a phase in which no result is open.
    fn enter(&mut self, phase: Phase) {
        self.phase = phase;
        self.results = Results::default();
        match phase {
            Phase::Ready => self.input.set_limit(MAX_MESSAGE_BYTES),
            Phase::Authentication => self.input.set_limit(MAX_EARLY_BYTES),
            _ => {}
        }
    }

    /// Why a message cannot be understood, and the phase after that.
    fn refusal(&self, fault: &RequestFault) -> (Failure, Phase) {
        let message = match fault {
            RequestFault::Malformed(fault) => fault.to_string(),
            RequestFault::Unknown(None, _) => "a message is one structure".to_owned(),
            RequestFault::Unknown(Some(tag), fields) => {
                let version = self.version;
                format!("Bolt {version} has no message {tag:#04X} with {fields} fields")
            }
            RequestFault::Invalid { field, expected } => format!("{field} must be {expected}"),
        };
        let is_last = !matches!(fault, RequestFault::Invalid { .. });
        let is_last = is_last || self.phase.is_before_authentication();
        (Failure::invalid(message), if is_last { Phase::Closed } else { Phase::Failed })
    }

    fn success(&mut self, write: impl FnOnce(&mut Metadata<'_>)) {
        let start = begin_message(&mut self.output);
        Writer::new(&mut self.output).structure(tag::SUCCESS, 1);
        let mut metadata = Metadata::begin(&mut self.output);
        write(&mut metadata);
        metadata.finish();
        end_message(&mut self.output, start);
    }

    fn ignore(&mut self) {
        let start = begin_message(&mut self.output);
        Writer::new(&mut self.output).structure(tag::IGNORED, 0);
        end_message(&mut self.output, start);
    }

    fn refuse(&mut self, failure: &Failure, phase: Phase) {
        let start = begin_message(&mut self.output);
        failure.write(self.version, &mut Writer::new(&mut self.output));
        end_message(&mut self.output, start);
        match phase {
            Phase::Closed => self.close(),
            phase => self.enter(phase),
        }
    }
}

#[cfg(test)]
mod tests;
