//! Routes that both stacks serve, each written once: the lean loop answers them where it reads
//! them, the general stack like any other route (decision 0025).
//!
//! ```text
//! claim ── needs, shape      the stack: access, limits, soundness of the head
//! understand ── Order        kept while the head comes again
//! answer ── Outcome          a form and what varies of it; a problem; later
//! ```
//!
//! A path knows neither sockets nor framing. A stack knows no path by name: it is given a list of
//! [`Factory`] and has one path of each for every serving thread.

mod erased;
mod form;
mod head;
mod seat;

pub use erased::{AnyFastPath, AnyOrder, AnyTicket, Factory, erase};
pub(crate) use form::Misfit;
pub use form::{Form, FormContent, MOST_VARYING_HEADERS, Varying};
pub use head::{Head, Headers};
pub use seat::{Seat, Stack, Wake};

use crate::wire::problem::Problem;
use std::net::IpAddr;
use std::rc::Rc;
use wellspring_views::access::Role;

/// A route that both stacks serve, for one serving thread.
pub trait FastPath: 'static {
    /// What a head asks for, understood once and kept while that head comes again.
    type Order: 'static;
    /// Names a request whose answer waits.
    type Ticket: Send + 'static;

    /// The route that its requests are counted for, as its face declares it.
    fn route(&self) -> FastRoute;

    /// All its answers but problems. An [`Outcome`] names one by its place here.
    fn forms(&self) -> Vec<Form>;

    /// Whether a request is this path's own, by its method and its path and query, and what a stack
    /// has to know of it beforehand.
    fn claim(&mut self, method: &str, target: &str) -> Option<Claim>;

    /// Whether a claim also holds with this word in the place of the one that was claimed. It is of
    /// the right length and characters.
    fn accepts(&self, _word: &[u8]) -> bool {
        true
    }

    /// What a head asks for that was claimed. Nobody who may not ask gets this far.
    ///
    /// # Errors
    /// It asks for nothing that can be; its content is not looked at.
    fn understand(&mut self, head: &Head<'_>) -> Result<Self::Order, Box<Problem>>;

    /// The largest content that an order may come with, in bytes.
    fn largest_content(&self, _order: &Self::Order) -> usize {
        0
    }

    /// Orders of the same line wait for the same room: while one of them has found none, the others
    /// are not tried.
    fn line(&self, _order: &Self::Order) -> usize {
        0
    }

    /// Does what is asked. What varies of the answer is written to `varying`, which is empty: each
    /// of the form's varying headers in their order, then the content if it varies. What is written
    /// for any other outcome is not looked at.
    fn answer(
        &mut self,
        order: &Self::Order,
        asked: FastRequest<'_>,
        varying: &mut Varying,
    ) -> Outcome<Self::Ticket>;

    /// What has become of a request whose answer waits. Whoever is told that it still does is woken
    /// by [`Seat::wake`] when it is worth asking again.
    fn settled(&mut self, ticket: &Self::Ticket) -> TicketState;

    /// Puts a problem into the words of its clients, as its face does. Status and `type` stay.
    fn render(&self, problem: Box<Problem>) -> Box<Problem> {
        problem
    }
}

/// A route by its method and path, as a face declares it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FastRoute {
    /// The method.
    pub method: &'static str,
    /// The path, with `{…}` for a variable segment.
    pub path: &'static str,
}

/// What a stack has to know of a request before its head is understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// The role it needs; `None`: anybody may ask.
    pub role: Option<Role>,
    /// The log on which; `None`: on everything.
    pub log: Option<Rc<str>>,
    /// What of a request may vary.
    pub shape: Shape,
}

/// What of a request may vary while the rest of its head comes again byte for byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// It has content, of any length.
    Content,
    /// It has none; a word in its target may vary.
    Bare(Option<Word>),
}

/// Letters and digits from some place on to the end of a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Word {
    /// Where it begins, in bytes.
    pub at: usize,
    /// Most characters that it may have; at least one.
    pub most: usize,
}

/// A request whose head is understood.
#[derive(Debug, Clone, Copy)]
pub struct FastRequest<'a> {
    /// The word, if its [`Shape`] has one.
    pub word: &'a [u8],
    /// All of its content.
    pub content: &'a [u8],
    /// The client's address when trusted proxies are believed.
    pub client: Option<IpAddr>,
    /// Monotonic time, µs; the same for all that a thread answers in one go.
    pub now_us: u64,
}

/// What a request came to.
#[derive(Debug)]
pub enum Outcome<Ticket> {
    /// It is answered by the form at this place, and with what was written.
    Reply(usize),
    /// It will be answered when the ticket is settled.
    Pending(Ticket),
    /// No room: ask the same again when woken, and take nothing else from this client meanwhile.
    Full,
    /// Answer this, go on with the connection.
    Refused(Box<Problem>),
    /// The lean loop is to hand the connection over with this request. Where that cannot be any
    /// more, or nobody knows better: answer this.
    Elsewhere(Box<Problem>),
}

/// What has become of a request whose answer waits.
#[derive(Debug)]
pub enum TicketState {
    /// Ask again when woken.
    Pending,
    /// It is answered by the form at this place, of which nothing varies.
    Reply(usize),
    /// Answer this.
    Failed(Box<Problem>),
}
