//! What the connection loop asks of whoever takes events in and knows where links
//! lead. A seam, so that all of HTTP can be tested at every split with no log behind it.

use super::head::forwarded;
use super::limited;
use super::logged::Origin;
use crate::access::{Pass, credentials};
use crate::http::Host;
use crate::ingest::{self, Intake, Media, Settled, Ticket};
use crate::limits::{Purse, SharedBucket};
pub(crate) use crate::links::Redirected;
use crate::links::{Redirects, Visiting};
use crate::names::SYSTEM_LOG;
use crate::wire::problem::Problem;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use wellspring_views::access::Role;

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

/// The headers of a request that say whom it is from.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Credentials<'a> {
    /// `Authorization`.
    pub(crate) authorization: Option<&'a [u8]>,
    /// `X-API-Key`.
    pub(crate) api_key: Option<&'a [u8]>,
    /// Whether there is an `Origin`: a page in a browser asks.
    pub(crate) of_a_page: bool,
}

/// A request that is to be counted.
pub(crate) struct Counted<'a, Pass> {
    /// Its head.
    pub(crate) head: &'a [u8],
    /// The other end of its connection.
    pub(crate) peer: Option<IpAddr>,
    /// What its connection has left.
    pub(crate) connection: &'a SharedBucket,
    /// Whose it is, if that is known.
    pub(crate) pass: Option<&'a Pass>,
    /// Monotonic time of this turn of the loop, µs.
    pub(crate) now_us: u64,
}

/// Takes events in and knows where links lead, for one thread.
pub(crate) trait Serves {
    /// What a request target asks for. Cheap to clone.
    type Target: Clone;
    /// A request whose answer waits.
    type Ticket;
    /// That somebody may.
    type Pass;

    /// What path and query ask for. `None`: this is no ingest request, whatever its method.
    fn target(&mut self, target: &str) -> Option<Result<Self::Target, Box<Problem>>>;
    /// Whether whoever shows these credentials may have events taken in for a target. `None`: it cannot
    /// be told at once, or not; the other stack knows what to say.
    fn admit(
        &mut self,
        target: Option<&Self::Target>,
        credentials: &Credentials<'_>,
    ) -> Option<Self::Pass>;
    /// Whether requests are answered under this name. If not, the other stack knows what to say.
    fn answers_under(&self, host: &[u8]) -> bool;
    /// Whether what a pass was given for still holds.
    fn holds(&self, pass: &Self::Pass) -> bool;
    /// Whether requests and bytes are limited.
    fn counts_requests(&self) -> bool;
    /// Takes a request out of what its connection, address and account may send; who pays for its body in
    /// any case.
    fn count(&self, request: Counted<'_, Self::Pass>) -> (Purse, Result<(), Box<Problem>>);
    /// The origin of a request with this head, for the access log.
    fn origin(&self, head: &[u8], peer: Option<IpAddr>, pass: Option<&Self::Pass>) -> Origin;
    /// Charges bytes of a body.
    fn charge(&self, purse: Purse, bytes: usize, now_us: u64);
    /// Takes one request's body.
    fn take(&mut self, target: &Self::Target, media: Media, body: &[u8]) -> Taken<Self::Ticket>;
    /// What has become of a request whose answer waits.
    fn settled(&mut self, ticket: &Self::Ticket) -> Settled;
    /// The largest body of this media, in bytes.
    fn largest_body(&self, media: Media) -> usize;
    /// Whether requests for both need the same room.
    fn same(a: &Self::Target, b: &Self::Target) -> bool;

    /// Whether `GET /code` is asked of [`redirect`](Self::redirect). If not, it is for the other stack.
    fn serves_link(&mut self, code: &[u8]) -> bool;
    /// Appends where a link leads to `location`, and records the click. Only for a code that
    /// [`serves_link`](Self::serves_link) says yes to.
    fn redirect(&mut self, visiting: Visiting<'_>, location: &mut Vec<u8>) -> Redirected;
}

/// The intake and the links of one thread.
pub(crate) struct Serving {
    pub(crate) host: Arc<Host>,
    pub(crate) intake: Intake,
    pub(crate) redirects: Redirects,
}

impl Serves for Serving {
    type Target = Rc<ingest::Target>;
    type Ticket = Ticket;
    type Pass = Pass;

    fn target(&mut self, target: &str) -> Option<Result<Self::Target, Box<Problem>>> {
        self.intake.target(target)
    }

    fn admit(
        &mut self,
        target: Option<&Self::Target>,
        credentials: &Credentials<'_>,
    ) -> Option<Pass> {
        let log = target.map(|target| target.log.as_str());
        // Nobody but the server writes there; and the audit exists once, in the other stack.
        if log == Some(SYSTEM_LOG) || self.host.audit.keeps_writes() {
            return None;
        }
        let Credentials { authorization, api_key, of_a_page } = *credentials;
        let by_password = authorization.is_some_and(credentials::is_basic);
        if of_a_page
            && (by_password || self.host.access.cors().is_some() || self.host.access.is_open())
        {
            return None;
        }
        self.host.access.pass(authorization, api_key, Role::Writer, log)
    }

    fn answers_under(&self, host: &[u8]) -> bool {
        self.host.access.answers_under(host)
    }

    fn holds(&self, pass: &Pass) -> bool {
        self.host.access.holds(pass)
    }

    fn counts_requests(&self) -> bool {
        self.host.limits.looks_at_requests()
    }

    fn count(&self, request: Counted<'_, Pass>) -> (Purse, Result<(), Box<Problem>>) {
        let name = request.pass.and_then(|pass| pass.principal.name());
        limited::count(&self.host.limits, &request, name)
    }

    fn origin(&self, head: &[u8], peer: Option<IpAddr>, pass: Option<&Pass>) -> Origin {
        let forwarded = forwarded(head).into_iter();
        let client = self.host.limits.proxies().client(peer, forwarded);
        Origin { client, principal: pass.map(|pass| Arc::clone(&pass.principal)) }
    }

    fn charge(&self, purse: Purse, bytes: usize, now_us: u64) {
        self.host.limits.charge_bytes(purse, bytes, now_us);
    }

    fn take(&mut self, target: &Self::Target, media: Media, body: &[u8]) -> Taken<Ticket> {
        match self.intake.take(target, media, body) {
            ingest::Taken::Accepted => Taken::Accepted,
            ingest::Taken::Pending(ticket) => Taken::Pending(ticket),
            ingest::Taken::Full => Taken::Full,
            ingest::Taken::Refused(problem) => Taken::Refused(problem),
        }
    }

    fn settled(&mut self, ticket: &Ticket) -> Settled {
        self.intake.settled(ticket)
    }

    fn largest_body(&self, media: Media) -> usize {
        self.intake.largest_body(media)
    }

    fn same(a: &Self::Target, b: &Self::Target) -> bool {
        Rc::ptr_eq(a, b) || a.log == b.log
    }

    fn serves_link(&mut self, code: &[u8]) -> bool {
        self.redirects.serves(code)
    }

    fn redirect(&mut self, visiting: Visiting<'_>, location: &mut Vec<u8>) -> Redirected {
        self.redirects.redirect(&mut self.intake, visiting, location)
    }
}
