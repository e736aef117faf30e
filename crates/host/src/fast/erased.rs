//! Fast paths of any type in one list: their orders and tickets with erased types.

use super::{
    Claim, FastAnswer, FastPath, FastRequest, FastRoute, Form, Head, PipelineOrder, ServingThread,
    TicketState, Varying,
};
use crate::wire::problem::{self, Problem};
use std::any::Any;
use std::rc::Rc;
use std::sync::Arc;

/// Makes a fast path for a serving thread.
pub type Factory = Arc<dyn Fn(&ServingThread) -> Box<dyn AnyFastPath> + Send + Sync>;

/// The parameters of a request for some path. Only valid for that path.
pub type AnyParams = Rc<dyn Any>;

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
    fn understand(&mut self, head: &Head<'_>) -> Result<Option<AnyParams>, Box<Problem>>;
    fn largest_content(&self, params: &AnyParams) -> usize;
    fn hands_in(&self) -> bool;
    fn order(&self) -> PipelineOrder;
    fn compares_history(&self) -> bool;
    fn line(&self, params: &AnyParams) -> usize;
    fn answer(
        &mut self,
        params: &AnyParams,
        asked: FastRequest<'_>,
        varying: &mut Varying,
    ) -> FastAnswer<AnyTicket>;
    fn settled(&mut self, ticket: &AnyTicket, varying: &mut Varying) -> TicketState;
    fn end_turn(&mut self);
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

    fn understand(&mut self, head: &Head<'_>) -> Result<Option<AnyParams>, Box<Problem>> {
        Ok(self.0.understand(head)?.map(|params| Rc::new(params) as AnyParams))
    }

    fn largest_content(&self, params: &AnyParams) -> usize {
        params.downcast_ref().map_or(0, |params| self.0.largest_content(params))
    }

    fn hands_in(&self) -> bool {
        self.0.hands_in()
    }

    fn order(&self) -> PipelineOrder {
        self.0.order()
    }

    fn compares_history(&self) -> bool {
        self.0.compares_history()
    }

    fn line(&self, params: &AnyParams) -> usize {
        params.downcast_ref().map_or(0, |params| self.0.line(params))
    }

    fn answer(
        &mut self,
        params: &AnyParams,
        asked: FastRequest<'_>,
        varying: &mut Varying,
    ) -> FastAnswer<AnyTicket> {
        let Some(params) = params.downcast_ref() else { return FastAnswer::Refused(foreign()) };
        match self.0.answer(params, asked, varying) {
            FastAnswer::Reply(form) => FastAnswer::Reply(form),
            FastAnswer::Pending(ticket) => FastAnswer::Pending(Box::new(ticket)),
            FastAnswer::Full => FastAnswer::Full,
            FastAnswer::Later => FastAnswer::Later,
            FastAnswer::Answered(response) => FastAnswer::Answered(response),
            FastAnswer::Refused(problem) => FastAnswer::Refused(problem),
            FastAnswer::Elsewhere(problem) => FastAnswer::Elsewhere(problem),
        }
    }

    fn settled(&mut self, ticket: &AnyTicket, varying: &mut Varying) -> TicketState {
        match ticket.downcast_ref() {
            Some(ticket) => self.0.settled(ticket, varying),
            None => TicketState::Failed(foreign()),
        }
    }

    fn end_turn(&mut self) {
        self.0.end_turn();
    }

    fn render(&self, problem: Box<Problem>) -> Box<Problem> {
        self.0.render(problem)
    }
}

fn foreign() -> Box<Problem> {
    problem::INTERNAL.because("a request reached the wrong fast path")
}
