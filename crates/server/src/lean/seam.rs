//! What the connection loop asks of whoever takes events in. A seam, so that all of
//! HTTP can be tested at every split with no log behind it.

use crate::http::problem::Problem;

/// What a request's body is, from its `Content-Type`. (Stand-in until the module `ingest` is there.)
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Media {
    Unspecified,
    Json,
    Ndjson,
    Opaque,
    Unsupported,
}

impl Media {
    pub(crate) fn of(content_type: Option<&[u8]>) -> Media {
        match content_type {
            None => Media::Unspecified,
            Some(b"application/json") => Media::Json,
            Some(b"application/x-ndjson") => Media::Ndjson,
            Some(b"multipart/form-data") => Media::Unsupported,
            Some(_) => Media::Opaque,
        }
    }
}

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

/// What has become of a request whose answer waits.
#[derive(Debug)]
pub(crate) enum Settled {
    /// It still waits.
    Pending,
    /// It is stored: answer 202.
    Stored,
    /// It is not: answer this.
    Failed(Box<Problem>),
}

/// Takes events in, for one thread. See `ingest::Intake`, the real one.
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
    /// Whether two targets are the same one, so that room for one is room for the other.
    fn same(a: &Self::Target, b: &Self::Target) -> bool;
}
