//! The state that all sessions of one thread share: fast paths, authorization, limits, outgoing
//! answers, spare buffers and counts.

use super::answer::HeldMemory;
use super::head::{self, HeadLimits};
use super::logged::AccessLogEntry;
use super::repeat::RepeatableHead;
use super::seam::Guards;
use super::served_path::ServedPath;
use crate::fast::{AnyFastPath, AnyParams};
use crate::http::body_memory::{BodyMemory, FREE_BYTES};
use crate::protocol::{FirstBytes, first_bytes};
use crate::trouble::Cause;
use crate::wire::problem::Problem;

/// Spare buffers kept, and the largest size of one.
const SPARE_BUFFERS: usize = 64;
/// Not larger than what is free of charge: a connection may hold one for long.
const SPARE_BYTES: usize = FREE_BYTES;

/// The shared state of all sessions of one thread.
pub(crate) struct LoopState<G: Guards> {
    /// Authorization and limits.
    pub(crate) guards: G,
    /// The fast paths.
    pub(crate) paths: Vec<ServedPath<G::Pass>>,
    /// Limits of a head.
    pub(crate) limits: HeadLimits,
    /// The first bytes of HTTP/2 and, behind them, of protocols beside HTTP: the other stack serves
    /// them.
    pub(crate) magics: Vec<&'static [u8]>,
    /// Memory for request bodies.
    pub(crate) memory: BodyMemory,
    /// Answers of the current session, not yet given to its socket.
    pub(crate) out: Vec<u8>,
    /// What is charged for them.
    pub(crate) held: Vec<HeldMemory>,
    /// Answers to be counted.
    pub(crate) tally: Tally,
    /// Spare buffers.
    pub(crate) spare: Spare,
    /// Targets that had no room when last tried, as path index and line. Requests for them queue
    /// up.
    pub(crate) full: Vec<(usize, usize)>,
    /// Whether requests and bytes are limited.
    pub(crate) limited: bool,
    pub(crate) pending: PendingAnswers,
    /// Whether the server is shutting down.
    pub(crate) stopping: bool,
    /// Monotonic time of this turn of the loop, in µs.
    pub(crate) now_us: u64,
}

impl<G: Guards> LoopState<G> {
    /// The state of a thread without sessions.
    pub(crate) fn new(
        guards: G,
        paths: Vec<Box<dyn AnyFastPath>>,
        limits: HeadLimits,
        memory: BodyMemory,
    ) -> LoopState<G> {
        LoopState {
            limited: guards.counts_requests(),
            guards,
            paths: paths.into_iter().map(ServedPath::new).collect(),
            limits,
            magics: vec![head::PREFACE],
            memory,
            out: Vec::new(),
            held: Vec::new(),
            tally: Tally::default(),
            spare: Spare(Vec::new()),
            full: Vec::new(),
            pending: PendingAnswers::Earlier,
            stopping: false,
            now_us: 0,
        }
    }

    /// Whether requests with these parameters queue up.
    pub(crate) fn is_full(&self, path_index: usize, params: &AnyParams) -> bool {
        !self.full.is_empty()
            && self.full.contains(&(path_index, self.paths[path_index].path.line(params)))
    }

    /// Whether input that is not empty is the beginning of a protocol's first bytes.
    pub(crate) fn is_within_a_magic(&self, input: &[u8]) -> bool {
        first_bytes(&self.magics[1..], input) == FirstBytes::Undecided
    }

    /// The path whose last head `input` starts with, if what was decided about it still holds.
    #[inline]
    pub(crate) fn again(&self, input: &[u8]) -> Option<(usize, RepeatableHead)> {
        self.paths.iter().enumerate().find_map(|(at, served)| {
            let repeat = served.repeat.as_ref()?;
            let again = repeat.find(input)?;
            let holds = repeat.meaning.pass.as_ref().is_none_or(|pass| self.guards.holds(pass));
            let word = &input[again.word.clone()];
            let is_ours = holds && (word.is_empty() || served.path.accepts(word));
            is_ours.then_some((at, again))
        })
    }

    /// A problem rendered by a path; in the standard form if there is none.
    pub(crate) fn render(&self, path_index: Option<usize>, problem: Box<Problem>) -> Box<Problem> {
        match path_index {
            Some(path_index) => self.paths[path_index].path.render(problem),
            None => problem,
        }
    }
}

/// Since when answers are pending, if there are any.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PendingAnswers {
    /// Since an earlier turn of the loop.
    Earlier,
    /// One at least since this turn.
    SinceThisTurn,
}

/// When a request arrived, and its entry for the access log, if requests are logged.
#[derive(Debug, Clone, Default)]
pub(crate) struct Arrival {
    pub(crate) at_us: u64,
    pub(crate) logged: Option<Box<AccessLogEntry>>,
}

/// An answer to be counted.
#[derive(Debug)]
pub(crate) struct AnswerRecord {
    /// The index of its path; `None`: the request could not be understood.
    pub(crate) path_index: Option<usize>,
    pub(crate) status: u16,
    /// The cause of a status of 500 or above.
    pub(crate) cause: Option<Box<Cause>>,
    pub(crate) came: Arrival,
}

/// Answers to be counted once they are sent.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// Answers counted by their forms, in all.
    pub(crate) prompt: u32,
    pub(crate) others: Vec<AnswerRecord>,
    /// Whether requests are logged, which needs more than counts.
    pub(crate) logs: bool,
}

impl Tally {
    /// Counts an answer.
    pub(crate) fn answered(&mut self, path_index: usize, status: u16, came: Arrival) {
        self.others.push(AnswerRecord { path_index: Some(path_index), status, cause: None, came });
    }

    /// Counts an answer that is a problem.
    pub(crate) fn refused(&mut self, path_index: Option<usize>, problem: &Problem, came: Arrival) {
        let (status, cause) = (problem.kind.status, Cause::of(problem));
        self.others.push(AnswerRecord { path_index, status, cause, came });
    }
}

/// Spare buffers.
pub(crate) struct Spare(Vec<Vec<u8>>);

impl Spare {
    /// An empty buffer.
    pub(crate) fn take(&mut self) -> Vec<u8> {
        self.0.pop().unwrap_or_default()
    }

    /// Returns a buffer.
    pub(crate) fn give(&mut self, mut buffer: Vec<u8>) {
        let size = buffer.capacity();
        if size > 0 && size <= SPARE_BYTES && self.0.len() < SPARE_BUFFERS {
            buffer.clear();
            self.0.push(buffer);
        }
    }
}
