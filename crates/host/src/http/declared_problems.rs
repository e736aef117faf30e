//! The problems that each route can answer. Those that follow from its declaration are listed here
//! once; its own are in its contract.

use super::contract::{Accept, Query};
use super::routes::{Route, Scope};
use super::subjects::SUBJECT;
use super::{Answer, Content, NDJSON, SSE};
use crate::access::Needs;
use crate::identity::Role;
use crate::wire::param::Values;
use crate::wire::problem::{self, Kind};

/// Problems of reading.
pub const READING: &[&Kind] = &[
    &problem::READS_TOO_COSTLY,
    &problem::TOO_MANY_LONG_READS,
    &problem::TOO_MUCH_MEMORY,
    &problem::TOO_COSTLY,
    &problem::CORRUPT,
    &problem::TRIMMED,
    &problem::IO,
];

/// Problems of appending.
pub const APPENDING: &[&Kind] = &[
    &problem::STORAGE_UNAVAILABLE,
    &problem::STORAGE_FULL,
    &problem::OUTCOME_UNKNOWN,
    &problem::INTERRUPTED,
    &problem::NOT_LEADING,
    &problem::LOG_CLOSED,
    &problem::CORRUPT,
    &problem::TRIMMED,
    &problem::IO,
];

/// Problems of a view that is late or stopped.
pub const VIEWING: &[&Kind] = &[
    &problem::VIEW_NOT_READY,
    &problem::NOT_YET,
    &problem::TOO_MANY_WAITERS,
    &problem::LOG_CLOSED,
    &problem::IO,
];

/// Of every route: the request's head, limits, the server itself.
const EVERY: &[&Kind] = &[
    &problem::BAD_REQUEST,
    &problem::MALFORMED_CREDENTIALS,
    &problem::NOT_A_NODE,
    &problem::FOREIGN_HOST,
    &problem::URL_TOO_LONG,
    &problem::UNSUPPORTED_MEDIA,
    &problem::EXPECTATION_FAILED,
    &problem::TOO_MANY_REQUESTS,
    &problem::TOO_MANY_BYTES,
    &problem::HEADERS_TOO_LARGE,
    &problem::INTERNAL,
    &problem::OVERLOADED,
];

/// Of routes that require authentication.
const CREDENTIALS: &[&Kind] = &[
    &problem::UNAUTHENTICATED,
    &problem::FOREIGN_PAGE,
    &problem::TOO_MANY_LOGINS,
    &problem::VIEW_NOT_READY,
    &problem::NOT_YET,
    &problem::TOO_MANY_WAITERS,
    &problem::LOG_CLOSED,
    &problem::IO,
];

/// The answer of a node that does not lead, with a `Location`, if it is set to redirect clients to
/// the leader.
pub const REDIRECTED: u16 = 307;

/// Of routes with a body.
const BODY: &[&Kind] = &[
    &problem::MALFORMED_JSON,
    &problem::BODY_TIMEOUT,
    &problem::TOO_LARGE,
    &problem::INVALID,
    &problem::TOO_MUCH_MEMORY,
];

impl Route {
    /// Whether it concerns one log.
    pub fn is_about_a_log(&self) -> bool {
        self.scope != Scope::Node || self.path.contains("{log}")
    }

    /// Whether a request may write to its log.
    pub(crate) fn may_write(&self) -> bool {
        self.method != "GET" && matches!(self.needs, Needs::Role(role) if role > Role::Reader)
    }

    /// The problems that it can answer, each once, by status and then by name.
    pub fn problems(&self) -> Vec<&'static Kind> {
        let contract = &self.contract;
        let streams = [NDJSON, SSE];
        let gives_streams = contract.offered().iter().any(|media| streams.contains(media));
        let may_write = self.may_write();
        let is_fresh = !contract.known().shared.is_empty();
        let waits = is_fresh && self.scope != Scope::Node;
        let reads_only = !may_write && self.scope != Scope::Node;
        let holds_json = contract.known().iter().any(|param| param.values() == Values::Json);
        let sets: [(bool, &[&'static Kind]); 15] = [
            (true, EVERY),
            (
                !matches!(contract.query, Query::Ignored) || self.is_for_leader(),
                &[&problem::INVALID],
            ),
            (holds_json, &[&problem::MALFORMED_JSON]),
            (self.needs.are_of_accounts(), CREDENTIALS),
            (matches!(self.needs, Needs::Role(_)), &[&problem::FORBIDDEN]),
            (
                self.is_about_a_log(),
                &[&problem::LOG_NOT_FOUND, &problem::ANOTHER_HISTORY, &problem::CATCHING_UP],
            ),
            (self.is_about_a_log() && may_write, &[&problem::SYSTEM_LOG_KEPT]),
            (contract.takes.is_some(), BODY),
            (
                contract.accept == Accept::Obeyed && !contract.offered().is_empty(),
                &[&problem::NOT_ACCEPTABLE],
            ),
            (is_fresh, &[&problem::NOT_CONFIRMED]),
            (contract.reads(&SUBJECT), &[&problem::SUBJECT_ERASED, &problem::KEY_UNAVAILABLE]),
            (waits, &[&problem::NOT_YET, &problem::TOO_MANY_WAITERS]),
            // After events of the same connection that are not stored yet.
            (
                self.scope != Scope::Node && self.is_for_leader() && self.method != "GET",
                &[&problem::NOT_YET, &problem::TOO_MANY_WAITERS],
            ),
            (reads_only, &[&problem::TOO_MUCH_MEMORY]),
            (gives_streams, &[&problem::NEEDS_HTTP_11]),
        ];
        let follow = sets.into_iter().filter(|(holds, _)| *holds).flat_map(|(_, kinds)| kinds);
        let mut all: Vec<&'static Kind> =
            follow.chain(contract.problems.iter().copied().flatten()).copied().collect();
        all.sort_unstable_by_key(|kind| (kind.status, kind.slug));
        all.dedup();
        all
    }

    fn lacks(&self, slug: &str) -> Option<String> {
        let is_declared = self.problems().iter().any(|kind| kind.slug == slug);
        (!is_declared).then(|| format!("{} {} answers {slug}", self.method, self.path))
    }

    /// An undeclared part of an answer, if there is one.
    pub(super) fn undeclared(&self, answer: &Answer) -> Option<String> {
        let route = format!("{} {}", self.method, self.path);
        let response = match answer {
            Err(problem) => return self.lacks(problem.kind.slug),
            Ok(response) => response,
        };
        // A fast path has rendered its problem already.
        if let ("application/problem+json", Content::Full(document)) =
            (response.content_type, &response.content)
        {
            let document = String::from_utf8_lossy(document);
            let slug = document.strip_prefix("{\"type\":\"/problems/")?.split('"').next()?;
            return self.lacks(slug);
        }
        let (status, media) = (response.status, response.content_type);
        if status == REDIRECTED && self.is_for_leader() {
            return None;
        }
        let gives = self.contract.gives.iter().find(|gives| {
            let media = media.split(';').next().unwrap_or_default();
            let is_media = |(known, _): &(&str, &str)| *known == media;
            gives.status == status && (gives.media.iter().any(is_media) || gives.media.is_empty())
        });
        let Some(gives) = gives else { return Some(format!("{route} answers {status} {media:?}")) };
        let location = response.header("location").is_some();
        let declares = gives.headers.iter().any(|header| header.name == "Location");
        (location && !declares).then(|| format!("{route} answers {status} with a Location"))
    }
}
