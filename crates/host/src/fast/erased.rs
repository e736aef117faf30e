//! Fast paths of any type in one list: their orders and tickets with erased types.

use super::{
    Claim, FastPath, FastRequest, FastRoute, Form, Head, Outcome, Seat, TicketState, Varying,
};
use crate::wire::problem::{self, Problem};
use std::any::Any;
use std::rc::Rc;
use std::sync::Arc;

/// Makes a fast path for a serving thread.
pub type Factory = Arc<dyn Fn(&Seat) -> Box<dyn AnyFastPath> + Send + Sync>;

/// An order of some path. Only valid for that path.
pub type AnyOrder = Rc<dyn Any>;

/// A ticket of some path. Only valid for that path.
pub type AnyTicket = Box<dyn Any + Send>;

/// A [`FastPath`] with erased orders and tickets; see there.
#[allow(missing_docs)] // as there
pub trait AnyFastPath {
    fn route(&self) -> FastRoute;
    fn forms(&self) -> Vec<Form>;
    fn claim(&mut self, method: &str, target: &str) -> Option<Claim>;
    fn accepts(&self, word: &[u8]) -> bool;
    /// # Errors
    /// Those of [`FastPath::understand`].
    fn understand(&mut self, head: &Head<'_>) -> Result<AnyOrder, Box<Problem>>;
    fn largest_content(&self, order: &AnyOrder) -> usize;
    fn line(&self, order: &AnyOrder) -> usize;
    fn answer(
        &mut self,
        order: &AnyOrder,
        asked: FastRequest<'_>,
        varying: &mut Varying,
    ) -> Outcome<AnyTicket>;
    fn settled(&mut self, ticket: &AnyTicket) -> TicketState;
    fn render(&self, problem: Box<Problem>) -> Box<Problem>;
}

/// A path, to be put into a list.
pub fn erase(path: impl FastPath) -> Box<dyn AnyFastPath> {
    Box::new(ErasedPath(path))
}

struct ErasedPath<P>(P);

impl<P: FastPath> AnyFastPath for ErasedPath<P> {
    fn route(&self) -> FastRoute {
        self.0.route()
    }

    fn forms(&self) -> Vec<Form> {
        self.0.forms()
    }

    fn claim(&mut self, method: &str, target: &str) -> Option<Claim> {
        self.0.claim(method, target)
    }

    fn accepts(&self, word: &[u8]) -> bool {
        self.0.accepts(word)
    }

    fn understand(&mut self, head: &Head<'_>) -> Result<AnyOrder, Box<Problem>> {
        self.0.understand(head).map(|order| Rc::new(order) as AnyOrder)
    }

    fn largest_content(&self, order: &AnyOrder) -> usize {
        order.downcast_ref().map_or(0, |order| self.0.largest_content(order))
    }

    fn line(&self, order: &AnyOrder) -> usize {
        order.downcast_ref().map_or(0, |order| self.0.line(order))
    }

    fn answer(
        &mut self,
        order: &AnyOrder,
        asked: FastRequest<'_>,
        varying: &mut Varying,
    ) -> Outcome<AnyTicket> {
        let Some(order) = order.downcast_ref() else { return Outcome::Refused(foreign()) };
        match self.0.answer(order, asked, varying) {
            Outcome::Reply(form) => Outcome::Reply(form),
            Outcome::Pending(ticket) => Outcome::Pending(Box::new(ticket)),
            Outcome::Full => Outcome::Full,
            Outcome::Refused(problem) => Outcome::Refused(problem),
            Outcome::Elsewhere(problem) => Outcome::Elsewhere(problem),
        }
    }

    fn settled(&mut self, ticket: &AnyTicket) -> TicketState {
        match ticket.downcast_ref() {
            Some(ticket) => self.0.settled(ticket),
            None => TicketState::Failed(foreign()),
        }
    }

    fn render(&self, problem: Box<Problem>) -> Box<Problem> {
        self.0.render(problem)
    }
}

fn foreign() -> Box<Problem> {
    problem::INTERNAL.because("a request reached the wrong fast path")
}
