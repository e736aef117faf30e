//! One connection without its socket: bytes go in, answers and the next step come out. Every split
//! of the same bytes gives the same requests in the same order, and the same answers.

use super::head::{self, HeadParse, Persistence};
use super::loop_state::LoopState;
use super::replies::Replies;
use super::seam::Guards;
use super::state::State;
use crate::http::body::ENDED_EARLY;
use crate::http::body_memory::Charge;
use crate::limits::{QuotaKeys, SharedBucket};
use crate::wire::problem;
use std::net::IpAddr;
use std::sync::Arc;

/// Requests of one connection that are read as a whole and executed before others have their turn:
/// each may take a fraction of a millisecond.
const TURN_REQUESTS: u32 = 16;
/// Once this many bytes of answers are pending they are sent before more requests are parsed.
const OUT_BYTES: usize = 64 << 10;

/// What a session needs next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NextStep {
    /// More bytes.
    More,
    /// To be called again once the pending answers are sent.
    Flush,
    /// To be called again after the other connections have had their turn.
    Later,
    /// To be called again when there may be room for the request it keeps.
    Stalled,
    /// To be called again when an answer may be settled; no input before that.
    Wait,
    /// To be handed over to the other stack with [`Session::into_rest`].
    Leave,
    /// To be closed once the answers are sent.
    End,
}

/// What a session waits for the client to do, for the timeouts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// To begin a request.
    Idle,
    /// To complete a head.
    Head,
    /// To complete a body.
    Body,
    /// Nothing: the client waits for this server.
    Ours,
    /// Nothing either, and what it waits for ends when it leaves.
    Handler,
}

/// One connection without its socket.
pub(crate) struct Session {
    pub(super) state: State,
    /// Bytes read and not consumed: a part of a head, or what follows a waiting request.
    left: Vec<u8>,
    charge: Charge,
    pub(super) replies: Replies,
    /// Number of requests started, wrapping: tells a request from the previous one.
    pub(super) begun: u32,
    /// Requests that were read as a whole since others had their turn.
    pub(super) executed: u32,
    /// Whether a request was accepted whose effects may not be in the log yet.
    pub(super) handed_in: bool,
    /// Whether the pending answer is that of a handler, which runs alone.
    pub(super) at_handler: bool,
    /// The peer's address, if known.
    pub(super) peer: Option<IpAddr>,
    /// The remaining request quota of the connection.
    pub(super) rate: Arc<SharedBucket>,
    /// Whether the current request is taken from its quotas.
    pub(super) is_counted: bool,
    /// Who pays for the last request, if it is charged.
    pub(super) quota_keys: Option<QuotaKeys>,
}

impl Session {
    /// A new connection from `peer`, if that is known.
    pub(crate) fn new(peer: Option<IpAddr>) -> Session {
        Session {
            state: State::IDLE,
            left: Vec::new(),
            charge: Charge::default(),
            replies: Replies::new(),
            begun: 0,
            executed: 0,
            handed_in: false,
            at_handler: false,
            peer,
            rate: Arc::default(),
            is_counted: false,
            quota_keys: None,
        }
    }

    /// Handles input. Only after [`NextStep::More`].
    pub(crate) fn receive<G: Guards>(
        &mut self,
        shared: &mut LoopState<G>,
        input: &[u8],
    ) -> NextStep {
        self.executed = 0;
        if !self.left.is_empty() {
            self.left.extend_from_slice(input);
            return match self.charge(shared) {
                Some(turn) => turn,
                None => self.resume(shared),
            };
        }
        let (used, turn) = self.advance(shared, input);
        if used < input.len() {
            self.left = shared.spare.take();
            self.left.extend_from_slice(&input[used..]);
            return self.charge(shared).unwrap_or(turn);
        }
        turn
    }

    /// Charges kept bytes like a body: many unfinished long heads take as much memory. Over the
    /// limit, the connection is closed.
    fn charge<G: Guards>(&mut self, shared: &mut LoopState<G>) -> Option<NextStep> {
        let problem = self.charge.raise(&shared.memory, self.left.len()).err()?;
        self.left = Vec::new();
        self.give_up(shared, problem, None);
        Some(self.turn())
    }

    /// Continues with input read earlier.
    pub(crate) fn resume<G: Guards>(&mut self, shared: &mut LoopState<G>) -> NextStep {
        let mut left = std::mem::take(&mut self.left);
        let (used, turn) = self.advance(shared, &left);
        if used == left.len() {
            shared.spare.give(left);
            self.charge = Charge::default();
        } else {
            left.drain(..used);
            self.left = left;
        }
        turn
    }

    /// The client will send no more. Only after [`NextStep::More`].
    pub(crate) fn end_of_input<G: Guards>(&mut self, shared: &mut LoopState<G>) -> NextStep {
        if let Some(path_index) = self.in_body() {
            self.give_up(shared, problem::BAD_REQUEST.because(ENDED_EARLY), Some(path_index));
        } else if !self.left.is_empty() {
            let left = std::mem::take(&mut self.left);
            if let HeadParse::Broken(problem, path_index) = head::read(shared, &left, 0) {
                self.give_up(shared, problem, path_index);
            }
        }
        self.state = State::Ended;
        self.turn()
    }

    /// The client took too long: answers if a request has started, and closes.
    pub(crate) fn expire<G: Guards>(&mut self, shared: &mut LoopState<G>) -> NextStep {
        match self.phase() {
            // A client of another protocol could not read an answer.
            Phase::Head if self.begun == 0 && shared.is_within_a_magic(&self.left) => {}
            Phase::Head => {
                let problem =
                    problem::REQUEST_TIMEOUT.because("the request's head did not arrive in time");
                self.give_up(shared, problem, None);
            }
            Phase::Body => {
                if let Some(path_index) = self.in_body() {
                    let problem = problem::BODY_TIMEOUT.because("the body did not arrive in time");
                    self.give_up(shared, problem, Some(path_index));
                }
            }
            _ => {}
        }
        self.state = State::Ended;
        self.turn()
    }

    /// Moves out settled answers, and continues.
    pub(crate) fn settle<G: Guards>(&mut self, shared: &mut LoopState<G>) -> NextStep {
        let is_between = matches!(self.state, State::Head { .. } | State::Behind);
        let quiet = is_between && self.left.is_empty();
        let last = if shared.stopping && quiet { Persistence::Close } else { Persistence::Keep };
        self.replies.settle(shared, last);
        if last == Persistence::Close && self.replies.is_empty() {
            self.state = State::Ended;
        }
        self.resume(shared)
    }

    /// Retries the request that found no room. Later ones have to wait.
    pub(crate) fn retry<G: Guards>(&mut self, shared: &mut LoopState<G>) -> NextStep {
        match std::mem::replace(&mut self.state, State::IDLE) {
            State::Stalled(kept) => {
                let follows = !self.left.is_empty();
                self.place_kept(shared, *kept, follows);
                if matches!(self.state, State::Stalled(_)) {
                    return NextStep::Stalled;
                }
            }
            other => self.state = other,
        }
        NextStep::Flush
    }

    /// The path of the request whose body is not complete.
    fn in_body(&self) -> Option<usize> {
        match &self.state {
            State::Body(receiving) => Some(receiving.asking.path_index),
            State::Whole { path_index, .. } => Some(*path_index),
            _ => None,
        }
    }

    /// Whether answers are waiting to be settled.
    pub(crate) fn waits(&self) -> bool {
        !self.replies.is_empty()
    }

    /// What the client is expected to do.
    pub(crate) fn phase(&self) -> Phase {
        match &self.state {
            _ if self.waits() && self.at_handler => Phase::Handler,
            _ if self.waits() => Phase::Ours,
            State::Head { .. } if self.left.is_empty() => Phase::Idle,
            State::Head { .. } => Phase::Head,
            State::Whole { .. } | State::Body(_) | State::Skip { .. } => Phase::Body,
            State::Behind | State::Later => Phase::Ours,
            State::Stalled(_) | State::Leaving | State::Ended => Phase::Ours,
        }
    }

    /// Changes with every request.
    pub(crate) fn begun(&self) -> u32 {
        self.begun
    }

    /// The bytes that were read and not consumed.
    pub(crate) fn into_rest(self) -> Vec<u8> {
        self.left
    }

    fn turn(&self) -> NextStep {
        match &self.state {
            State::Stalled(_) => NextStep::Stalled,
            State::Leaving if self.replies.is_empty() => NextStep::Leave,
            State::Ended if self.replies.is_empty() => NextStep::End,
            State::Leaving | State::Ended => NextStep::Wait,
            State::Behind if !self.replies.is_empty() => NextStep::Wait,
            State::Later => NextStep::Later,
            _ if self.replies.is_full() => NextStep::Wait,
            _ => NextStep::More,
        }
    }

    /// Processes `input`: bytes consumed, and the next step.
    fn advance<G: Guards>(&mut self, shared: &mut LoopState<G>, input: &[u8]) -> (usize, NextStep) {
        let mut used = 0;
        loop {
            if self.replies.is_full() {
                break;
            }
            let rest = &input[used..];
            let step = match &mut self.state {
                State::Head { .. } if rest.is_empty() => {
                    // No request is in progress, and none will come.
                    if shared.stopping && self.replies.is_empty() {
                        self.state = State::Ended;
                    }
                    None
                }
                State::Head { .. } if shared.out.len() >= OUT_BYTES => {
                    return (used, NextStep::Flush);
                }
                State::Head { .. } if self.executed >= TURN_REQUESTS => {
                    self.executed = 0;
                    return (used, NextStep::Later);
                }
                State::Head { seen, line } => {
                    let (seen, line) = (*seen, *line);
                    self.head(shared, rest, seen, line)
                }
                State::Whole { needs, .. } if rest.len() < *needs => None,
                State::Behind if !self.replies.is_empty() => None,
                State::Whole { .. } | State::Behind | State::Later => {
                    self.state = State::IDLE;
                    Some(0)
                }
                State::Body(_) | State::Skip { .. } if rest.is_empty() => None,
                State::Body(_) => Some(self.body(shared, rest)),
                State::Skip { .. } => Some(self.skip(shared, rest)),
                State::Stalled(_) | State::Leaving | State::Ended => None,
            };
            match step {
                Some(step) => used += step,
                None => break,
            }
        }
        if matches!(self.state, State::Ended) {
            used = input.len();
        }
        (used, self.turn())
    }
}
