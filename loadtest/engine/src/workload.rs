//! What is sent and what counts as success: the seam between the engine and the
//! makers of requests (one fixed request, or a scenario).
//!
//! Each worker thread has a [`Workload`] of its own, made by a shared
//! [`Source`], so nothing in it is shared on the hot path. A *user* is one of
//! the places from which requests are sent, one after another: a connection of
//! HTTP/1.1, or a stream's place on a connection of HTTP/2. Users are numbered
//! from 0 across all workers and keep their number when a connection is made anew.

use std::borrow::Cow;

/// Makes the workload of each worker thread.
pub trait Source: Send + Sync {
    /// What can be asked, in the order in which reports list it. At least one.
    fn endpoints(&self) -> Vec<Endpoint>;

    /// What is sent, for people.
    fn name(&self) -> String;

    /// Everything that makes a difference to what is sent and checked, as bytes
    /// to be hashed into [`crate::plan::Settings::workload_hash`].
    fn identity(&self) -> Vec<u8>;

    /// How many different requests all workers made together, given what each made. The
    /// sum is right where no two make the same, and never too low.
    fn distinct_requests(&self, of_workers: &[u64]) -> u64 {
        of_workers.iter().sum()
    }

    /// The workload of worker `worker` of `workers`. With the same seed it sends
    /// the same again, as far as it does not depend on answers.
    fn workload(&self, worker: u32, workers: u32, seed: u64) -> Box<dyn Workload>;
}

/// A request that owns its parts, as a user or a scenario gives it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnedRequest {
    /// Method, e.g. `GET`.
    pub method: String,
    /// Path and query, beginning with `/`.
    pub path: String,
    /// Header fields, without `Host`, `Content-Length` and those of the connection.
    pub headers: Vec<(String, String)>,
    /// Body, or nothing.
    pub body: Vec<u8>,
}

impl OwnedRequest {
    /// Its name in reports: method and path without the query.
    #[must_use]
    pub fn name(&self) -> String {
        let path = self.path.split('?').next().unwrap_or_default();
        format!("{} {path}", self.method)
    }

    /// To be sent for an endpoint; `fixed` as in [`Request`].
    #[must_use]
    pub fn borrowed(&self, endpoint: u16, fixed: Option<u32>) -> Request<'_> {
        let OwnedRequest { method, path, headers, body } = self;
        Request { endpoint, fixed, method, path, headers, body }
    }
}

/// Something that is asked and reported on its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Name in reports.
    pub name: String,
    /// What must be kept of its answers for [`Workload::judge`].
    pub needs: Needs,
}

/// What a workload wants to see of an answer besides its status. Bodies are
/// read to the last byte in any case; what is not needed is not kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// The header fields.
    pub head: bool,
    /// The body.
    pub body: bool,
}

/// The requests of one worker thread and its judgement of the answers.
pub trait Workload: Send {
    /// The next request of `user`. Called only when that user's last request has
    /// been judged or lost. Must not block.
    fn next(&mut self, user: u32) -> Next<'_>;

    /// Whether an answer counts as success. Called once for every answer that was wholly read.
    fn judge(&mut self, user: u32, answer: &Answer<'_>) -> Judgement;

    /// Tells that the last request of `user` ended without an answer.
    fn lost(&mut self, user: u32);

    /// How many different requests were made so far, if known; counted without memory growing with
    /// it.
    fn distinct_requests(&self) -> Option<u64> {
        None
    }

    /// The texts of the checks that [`Judgement::FailedCheck`] numbers.
    fn check_text(&self, check: u16) -> String {
        format!("check {check}")
    }
}

/// What a user does next.
#[derive(Debug)]
pub enum Next<'a> {
    /// Sends this.
    Send(Request<'a>),
    /// Could not make its request, e.g. a value was never captured. Counted as an
    /// error of the endpoint given; the user tries again after 10 ms.
    Failed {
        /// Index into [`Source::endpoints`].
        endpoint: u16,
    },
    /// Has nothing more to send in this run.
    Done,
}

/// A request, whichever protocol will carry it.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// Index into [`Source::endpoints`].
    pub endpoint: u16,
    /// If set: a small number that stands for exactly this request for the whole
    /// run, so that it need be laid out only once.
    pub fixed: Option<u32>,
    /// Method, in upper case.
    pub method: &'a str,
    /// Path and query, beginning with `/`.
    pub path: &'a str,
    /// Header fields besides `Host`, `Content-Length` and what HTTP/2 forbids; names in lower case.
    pub headers: &'a [(String, String)],
    /// Body; `Content-Length` is sent when it is not empty or the method is POST, PUT or PATCH.
    pub body: &'a [u8],
}

/// An answer that was wholly read.
#[derive(Debug)]
pub struct Answer<'a> {
    /// Index into [`Source::endpoints`].
    pub endpoint: u16,
    /// Status, 200 to 599.
    pub status: u16,
    /// Header fields, if needed; otherwise empty.
    pub head: Head<'a>,
    /// Body, if needed; otherwise empty.
    pub body: &'a [u8],
    /// Length of the body, whether kept or not.
    pub body_bytes: u64,
}

/// The header fields of an answer.
#[derive(Debug, Default)]
pub struct Head<'a>(pub Vec<(Cow<'a, str>, Cow<'a, str>)>);

impl Head<'_> {
    /// The value of the first field with this name, in any case.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(there, _)| there.eq_ignore_ascii_case(name))?;
        Some(&found.1)
    }
}

/// Whether an answer counts as success.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// It does.
    Success,
    /// Its status is not an expected one.
    WrongStatus,
    /// It failed the check of this number ([`Workload::check_text`]).
    FailedCheck(u16),
}
