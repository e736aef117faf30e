//! Routes of both stacks, each implemented once: the lean loop answers them where it reads them,
//! the general stack like any other route (decision 0025).
//!
//! ```text
//! claim ── needs, shape      the stack: access, limits, soundness of the head
//! understand ── Params       kept while the head is repeated
//! answer ── FastAnswer       a form and its varying parts; a problem; later
//! ```
//!
//! A path knows neither sockets nor framing. A stack knows no path by name: it is given a list of
//! [`Factory`] and makes one path of each per serving thread.

mod erased;
mod form;
mod head;
mod serving_thread;

pub use erased::{AnyFastPath, AnyParams, AnyTicket, Factory, erase};
pub(crate) use form::Misfit;
pub use form::{Form, FormContent, MOST_VARYING_HEADERS, Varying};
pub use head::{Head, Headers};
pub use serving_thread::{ServingThread, Stack, Wake};

use crate::access::Principal;
use crate::identity::Role;
use crate::limits::{Payer, SharedBucket};
use crate::wire::problem::Problem;
use bytes::Bytes;
use std::any::Any;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;

/// A route of both stacks, for one serving thread.
pub trait FastPath: 'static {
    /// The parameters of a request, parsed once and kept while the head is repeated.
    type Params: 'static;
    /// Identifies a request whose answer is pending.
    type Ticket: Send + 'static;

    /// The route that its requests are counted for, as its face declares it.
    fn route(&self) -> FastRoute;

    /// All its answers except problems. A [`FastAnswer`] refers to one by index.
    fn forms(&self) -> Vec<Form>;

    /// Whether the path claims a request, by its method and its path and query, and what a stack
    /// needs to know first.
    fn claim(&mut self, method: &str, target: &str) -> Option<Claim>;

    /// Whether a claim also holds with this word instead of the claimed one. It has a valid length
    /// and characters.
    fn accepts(&self, _word: &[u8]) -> bool {
        true
    }

    /// Parses a claimed head. Only called for authorized requests. `None`: it is for the next path
    /// that claims it, or for the general stack.
    ///
    /// # Errors
    /// It is invalid; its content is not read.
    fn understand(&mut self, head: &Head<'_>) -> Result<Option<Self::Params>, Box<Problem>>;

    /// The largest content of a request, in bytes.
    fn largest_content(&self, _params: &Self::Params) -> usize {
        0
    }

    /// Whether what it accepts may reach the log later than its answer: then nothing that its
    /// connection asks for afterwards may overtake it.
    fn hands_in(&self) -> bool {
        false
    }

    /// When a request is executed beside others of its connection. Only for the shape of a whole
    /// request.
    fn order(&self) -> PipelineOrder {
        PipelineOrder::Overlapping
    }

    /// Whether it compares `Wellspring-History` with the history of its log. Requests for other
    /// paths that have the header go to the general stack.
    fn compares_history(&self) -> bool {
        false
    }

    /// Orders of the same line wait for the same room: while one of them has found none, the others
    /// are not tried.
    fn line(&self, _params: &Self::Params) -> usize {
        0
    }

    /// Executes a request. The varying pieces of the answer go to `varying`, which is empty: each
    /// varying header in order, then the content if it varies. For any other outcome they are
    /// ignored.
    fn answer(
        &mut self,
        params: &Self::Params,
        asked: FastRequest<'_>,
        varying: &mut Varying,
    ) -> FastAnswer<Self::Ticket>;

    /// The state of a request whose answer is pending. While it is, [`ServingThread::wake`] signals
    /// when to ask again. The varying pieces of a reply go to `varying`, as for
    /// [`answer`](Self::answer).
    fn settled(&mut self, ticket: &Self::Ticket, varying: &mut Varying) -> TicketState;

    /// Called by the lean loop after it has read from every connection that had something to read,
    /// if an answer of any path is pending since: the time to act on all of them at once.
    fn end_turn(&mut self) {}

    /// Renders a problem for its clients, as its face does. Status and `type` stay.
    fn render(&self, problem: Box<Problem>) -> Box<Problem> {
        problem
    }
}

/// When a request is executed beside others of its connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PipelineOrder {
    /// As soon as it is here: those of one connection reach the log in their order.
    Overlapping,
    /// Once those before it are answered: its answer shows what they have done.
    Behind,
    /// The same, and those behind it wait for its answer.
    Alone,
}

/// A route by method and path, as its face declares it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FastRoute {
    /// The method.
    pub method: &'static str,
    /// The path, with `{…}` for a variable segment.
    pub path: &'static str,
}

/// What a stack needs to know of a request before its head is parsed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// The role it needs; `None`: public.
    pub role: Option<Role>,
    /// The log; `None`: everything.
    pub log: Option<Rc<str>>,
    /// The part of a request that may vary.
    pub shape: Shape,
}

/// The part of a request that may vary while the rest of its head is repeated byte for byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// It has content, of any length.
    Content,
    /// It has content of at most this many bytes, and is read when all of it is here, so that it
    /// can always be [`Elsewhere`](FastAnswer::Elsewhere). The lean loop hands over any other
    /// framing, and every connection over which a path that [hands in](FastPath::hands_in) has
    /// accepted something.
    Whole {
        /// Most bytes of content.
        most: usize,
    },
    /// It has none; a word in its target may vary.
    Bare(Option<Word>),
}

/// Letters and digits from some position to the end of a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Word {
    /// Its start, in bytes.
    pub at: usize,
    /// Most characters of it; at least one.
    pub most: usize,
}

/// A request with a parsed head.
#[derive(Clone, Copy)]
pub struct FastRequest<'a> {
    /// The word, if its [`Shape`] has one.
    pub word: &'a [u8],
    /// All of its content.
    pub content: &'a [u8],
    /// The client's address, taking trusted proxies into account.
    pub client: Option<IpAddr>,
    /// The quota of its connection, if requests are limited.
    pub connection: Option<&'a Arc<SharedBucket>>,
    /// The account that work is charged to; none where the path counts its requests itself.
    pub payer: &'a Payer,
    /// The caller, where the [`Shape`] is that of a whole request.
    pub caller: Option<&'a Principal>,
    /// Monotonic time in µs; the same for all that a thread answers in one go.
    pub now_us: u64,
}

/// An answer that has no form.
#[derive(Debug)]
pub struct WholeAnswer {
    /// Its status line and headers, each with its line end, without `Connection`.
    pub(crate) head: Vec<u8>,
    /// Its content.
    pub(crate) content: Bytes,
    /// What is kept until it is sent, such as memory charged for it.
    pub(crate) held: Box<dyn Any + Send>,
}

/// The result of a request.
#[derive(Debug)]
pub enum FastAnswer<Ticket> {
    /// It is answered by the form with this index and the pieces written.
    Reply(usize),
    /// It will be answered when the ticket is settled.
    Pending(Ticket),
    /// It has had its share of this turn of the loop: ask again after the others.
    Later,
    /// No room: retry the same when woken, and accept nothing else from this client meanwhile.
    Full,
    /// A handler has answered, and its request is recorded. On the lean loop only.
    Answered(WholeAnswer),
    /// Answer this and keep the connection open.
    Refused(Box<Problem>),
    /// The lean loop hands the connection over with this request. If that is no longer possible, or
    /// both stacks know no better: answer this.
    Elsewhere(Box<Problem>),
}

/// The state of a request whose answer is pending.
#[derive(Debug)]
pub enum TicketState {
    /// Ask again when woken.
    Pending,
    /// It is answered by the form with this index and the pieces written.
    Reply(usize),
    /// A handler has answered, and its request is recorded. On the lean loop only.
    Answered(WholeAnswer),
    /// Answer this.
    Failed(Box<Problem>),
}
