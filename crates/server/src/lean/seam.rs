//! What the connection loop asks of whoever takes events in. A seam, so that all of
//! HTTP can be tested at every split with no log behind it.

use crate::http::problem::Problem;
use crate::ingest::{self, Intake, Media, Settled, Ticket};
use std::rc::Rc;

/// What became of a request's body.
#[derive(Debug)]
pub(crate) enum Taken<Ticket> {
    /// It is taken: answer 202 now.
    Accepted,
    /// It is taken: answer 202 when the ticket says it is stored.
    Pending(Ticket),
    /// No room: keep the request, stop reading, try again when woken.
    Full,
    /// Not taken: answer this, go on with the connection.
    Refused(Box<Problem>),
}

/// Takes events in, for one thread.
pub(crate) trait Ingest {
    /// What a request target asks for. Cheap to clone.
    type Target: Clone;
    /// A request whose answer waits.
    type Ticket;

    /// What path and query ask for. `None`: this is no ingest request, whatever its method.
    fn target(&mut self, target: &str) -> Option<Result<Self::Target, Box<Problem>>>;
    /// Takes one request's body.
    fn take(&mut self, target: &Self::Target, media: Media, body: &[u8]) -> Taken<Self::Ticket>;
    /// What has become of a request whose answer waits.
    fn settled(&mut self, ticket: &Self::Ticket) -> Settled;
    /// The largest body of this media, in bytes.
    fn largest_body(&self, media: Media) -> usize;
    /// Whether requests for both need the same room.
    fn same(a: &Self::Target, b: &Self::Target) -> bool;
}

impl Ingest for Intake {
    type Target = Rc<ingest::Target>;
    type Ticket = Ticket;

    fn target(&mut self, target: &str) -> Option<Result<Self::Target, Box<Problem>>> {
        Intake::target(self, target)
    }

    fn take(&mut self, target: &Self::Target, media: Media, body: &[u8]) -> Taken<Ticket> {
        match Intake::take(self, target, media, body) {
            ingest::Taken::Accepted => Taken::Accepted,
            ingest::Taken::Pending(ticket) => Taken::Pending(ticket),
            ingest::Taken::Full => Taken::Full,
            ingest::Taken::Refused(problem) => Taken::Refused(problem),
        }
    }

    fn settled(&mut self, ticket: &Ticket) -> Settled {
        Intake::settled(self, ticket)
    }

    fn largest_body(&self, media: Media) -> usize {
        Intake::largest_body(self, media)
    }

    fn same(a: &Self::Target, b: &Self::Target) -> bool {
        Rc::ptr_eq(a, b) || a.log == b.log
    }
}
