//! Problems: every error that a client gets (RFC 9457), and the one place where the log's errors
//! become answers. General problem types are declared in [`kinds`](super::kinds); a face declares
//! its own.

use super::effects::{NothingDone, StepRefusal};
use crate::identity::Caller;
use crate::names::{NAME_RULE, is_name};
use crate::wire::json::{Fault, FaultKind, MAX_DEPTH, push_string, push_u64};
use std::io::Write as _;
use wellspring_log::{
    AppendError, FenceRefusal, Leader, LeaseError, ReadError, TooManyWaiters, TrimError,
};
use wellspring_types::{Conflict, HistoryId, Invalid, Position};

/// Whether a retry helps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retry {
    /// It does not.
    No,
    /// The same request may succeed later.
    Same,
    /// Read and decide again first.
    AfterReread,
    /// The same request after this many seconds.
    Seconds(u32),
}

/// A problem type: what its page under `/problems` and the manual say.
#[derive(Debug, PartialEq, Eq)]
pub struct Kind {
    /// Last part of the `type`, `/problems/{slug}`.
    pub slug: &'static str,
    /// HTTP status.
    pub status: u16,
    /// Same for every occurrence.
    pub title: &'static str,
    /// The default advice about a retry.
    pub retry: Retry,
    /// The cause: what has happened, and what has not.
    pub meaning: &'static str,
    /// What a client, or the operator of the server, can do.
    pub remedy: &'static str,
    /// The `detail` of an example answer.
    pub example: &'static str,
    /// Further members of the example answer: JSON without braces, or empty.
    pub example_members: &'static str,
}

impl Kind {
    /// Whether it is that kind.
    pub fn is(&self, other: &Kind) -> bool {
        self.slug == other.slug
    }
}

/// Declares problem types, each a `static`: status, last part of the type, title, whether a retry
/// helps, cause, remedy, and the detail of an example, which further members (JSON without braces)
/// may follow; and `ALL` of them, for [`Face::PROBLEMS`](crate::http::face::Face::PROBLEMS).
#[macro_export]
macro_rules! kinds {
    ($($name:ident $status:literal $slug:literal $title:literal $retry:expr,
        $meaning:literal, $remedy:literal, $example:literal $($members:literal)?;)*) => {
        $(#[doc = concat!($slug, ": ", $title, ".")]
        pub static $name: $crate::wire::problem::Kind = $crate::wire::problem::Kind {
            slug: $slug,
            status: $status,
            title: $title,
            retry: $retry,
            meaning: $meaning,
            remedy: $remedy,
            example: $example,
            example_members: concat!($($members)?),
        };)*
        /// All of these.
        pub static ALL: &[&$crate::wire::problem::Kind] = &[$(&$name),*];
    };
}
pub use crate::kinds;

pub use super::kinds::*;

/// One occurrence of a problem, on its way to the client.
#[derive(Debug)]
pub struct Problem {
    /// Its kind.
    pub kind: &'static Kind,
    /// What is wrong and what to do, in a sentence or two.
    pub detail: String,
    /// The member, parameter or header at fault.
    pub field: Option<String>,
    pub(crate) limit: Option<u64>,
    pub(crate) retry: Retry,
    /// Further members, values already JSON.
    pub more: Vec<(&'static str, String)>,
    /// Value of `Allow`, for 405.
    pub(crate) allow: Option<String>,
    /// The position the answer reflects, where a log was involved.
    pub position: Option<Position>,
    /// The history of that log, where the fast path that answers knows it.
    pub history: Option<HistoryId>,
    /// The caller, for the audit only.
    pub(crate) caller: Option<Caller>,
    /// The log concerned, for the server's own log only, where nothing else tells.
    pub log: Option<Box<str>>,
    /// Proof that the request has changed nothing and may be sent to the leader.
    pub(crate) nothing_done: Option<NothingDone>,
}

impl Kind {
    /// An occurrence of this kind.
    pub fn because(&'static self, detail: impl Into<String>) -> Box<Problem> {
        Box::new(Problem {
            kind: self,
            detail: detail.into(),
            field: None,
            limit: None,
            retry: self.retry,
            more: Vec::new(),
            allow: None,
            position: None,
            history: None,
            caller: None,
            log: None,
            nothing_done: None,
        })
    }

    /// An example of an answer of this kind.
    pub fn example_json(&self) -> Vec<u8> {
        self.document(self.example, self.retry, |out| {
            if !self.example_members.is_empty() {
                out.push(b',');
                out.extend_from_slice(self.example_members.as_bytes());
            }
        })
    }

    /// An answer of this kind; `push_members` appends further members, each after a comma.
    fn document(
        &self,
        detail: &str,
        retry: Retry,
        push_members: impl FnOnce(&mut Vec<u8>),
    ) -> Vec<u8> {
        let mut out = Vec::with_capacity(256);
        out.extend_from_slice(b"{\"type\":\"/problems/");
        out.extend_from_slice(self.slug.as_bytes());
        out.extend_from_slice(b"\",\"title\":");
        push_string(&mut out, self.title);
        out.extend_from_slice(b",\"status\":");
        push_u64(&mut out, self.status.into());
        out.extend_from_slice(b",\"detail\":");
        push_string(&mut out, detail);
        push_members(&mut out);
        out.extend_from_slice(b",\"retry\":");
        match retry {
            Retry::No => out.extend_from_slice(b"\"no\""),
            Retry::Same => out.extend_from_slice(b"\"same\""),
            Retry::AfterReread => out.extend_from_slice(b"\"after-reread\""),
            Retry::Seconds(seconds) => push_u64(&mut out, seconds.into()),
        }
        out.push(b'}');
        out
    }
}

impl Problem {
    /// Names the caller, for the audit only.
    pub fn told_to(mut self: Box<Problem>, caller: Caller) -> Box<Problem> {
        self.caller = Some(caller);
        self
    }

    /// Names the log concerned, for the server's own log only.
    pub(crate) fn about(mut self: Box<Problem>, log: &str) -> Box<Problem> {
        self.log = Some(log.into());
        self
    }

    /// Names the field at fault.
    pub fn field(mut self: Box<Problem>, field: impl Into<String>) -> Box<Problem> {
        self.field = Some(field.into()).filter(|f| !f.is_empty());
        self
    }

    /// Names the limit that was exceeded.
    pub fn limit(mut self: Box<Problem>, limit: u64) -> Box<Problem> {
        self.limit = Some(limit);
        self
    }

    /// Says when a retry helps.
    pub fn retry(mut self: Box<Problem>, retry: Retry) -> Box<Problem> {
        self.retry = retry;
        self
    }

    /// Adds a member whose value is already JSON.
    pub fn with(mut self: Box<Problem>, name: &'static str, json: String) -> Box<Problem> {
        self.more.push((name, json));
        self
    }

    /// Whether the log lost its leader after the first effect of the request.
    pub(crate) fn is_interrupted(&self) -> bool {
        self.kind == &INTERRUPTED
    }

    /// Value of `Retry-After`, if the client should wait.
    pub(crate) fn retry_after_s(&self) -> Option<u32> {
        match self.retry {
            Retry::Seconds(seconds) => Some(seconds),
            Retry::Same if matches!(self.kind.status, 429 | 503) => Some(1),
            _ => None,
        }
    }

    /// Appends a complete answer over HTTP/1.1, where no other stack writes one. `connection` is
    /// the value of its header: `keep-alive` or `close`.
    pub(crate) fn push_answer(&self, out: &mut Vec<u8>, connection: &str) {
        let document = self.to_json();
        let status = self.kind.status;
        out.extend_from_slice(b"HTTP/1.1 ");
        push_u64(out, status.into());
        out.push(b' ');
        let reason = hyper::StatusCode::from_u16(status).ok().and_then(|s| s.canonical_reason());
        out.extend_from_slice(reason.unwrap_or_default().as_bytes());
        out.extend_from_slice(b"\r\nContent-Type: application/problem+json\r\nContent-Length: ");
        push_u64(out, document.len() as u64);
        out.extend_from_slice(b"\r\nConnection: ");
        out.extend_from_slice(connection.as_bytes());
        out.extend_from_slice(b"\r\n");
        if let Some(position) = self.position {
            out.extend_from_slice(b"Wellspring-Position: ");
            push_u64(out, position);
            out.extend_from_slice(b"\r\n");
        }
        if let Some(history) = self.history {
            out.extend_from_slice(b"Wellspring-History: ");
            let _ = write!(out, "{history}");
            out.extend_from_slice(b"\r\n");
        }
        if let Some(seconds) = self.retry_after_s() {
            out.extend_from_slice(b"Retry-After: ");
            push_u64(out, seconds.into());
            out.extend_from_slice(b"\r\n");
        }
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(&document);
    }

    /// The answer on a connection that is refused.
    pub(crate) fn last_words(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(512);
        self.push_answer(&mut out, "close");
        out
    }

    /// The `application/problem+json` document.
    pub fn to_json(&self) -> Vec<u8> {
        self.kind.document(&self.detail, self.retry, |out| {
            if let Some(field) = &self.field {
                out.extend_from_slice(b",\"field\":");
                push_string(out, field);
            }
            if let Some(limit) = self.limit {
                out.extend_from_slice(b",\"limit\":");
                push_u64(out, limit);
            }
            for (name, json) in &self.more {
                out.push(b',');
                push_string(out, name);
                out.push(b':');
                out.extend_from_slice(json.as_bytes());
            }
        })
    }
}

/// The member `conflict` of a failed append condition.
pub(crate) fn conflict_json(conflict: &Conflict) -> String {
    format!(
        r#"{{"position":{},"clause":"{}","item":{}}}"#,
        conflict.position,
        conflict.clause.name(),
        conflict.item
    )
}

impl From<Invalid> for Box<Problem> {
    fn from(invalid: Invalid) -> Box<Problem> {
        let kind = if invalid.reason.is_size() { &TOO_LARGE } else { &INVALID };
        let what = if invalid.field.is_empty() { "the request" } else { invalid.field.as_str() };
        let problem = kind.because(format!("{what} {}", invalid.reason));
        let problem = match invalid.reason.limit() {
            Some(limit) => problem.limit(limit as u64),
            None => problem,
        };
        problem.field(invalid.field)
    }
}

impl From<StepRefusal<AppendError>> for Box<Problem> {
    fn from(refused: StepRefusal<AppendError>) -> Box<Problem> {
        let StepRefusal { error, nothing_done } = refused;
        let detail = error.to_string();
        match error {
            AppendError::Conflict(conflict) => {
                CONDITION_FAILED.because(detail).with("conflict", conflict_json(&conflict))
            }
            AppendError::Invalid(invalid) => invalid.into(),
            AppendError::KeyReused { first } => {
                KEY_REUSED.because(detail).with("first", first.to_string())
            }
            AppendError::IdReused { event, position } => ID_REUSED
                .because(detail)
                .field(format!("events[{event}].id"))
                .with("position", position.to_string()),
            AppendError::Fenced(refusal) => of_fence(refusal),
            AppendError::Overloaded | AppendError::SetBack => OVERLOADED.because(detail),
            AppendError::Unavailable { .. } => STORAGE_UNAVAILABLE.because(detail),
            AppendError::StorageFull => STORAGE_FULL.because(detail),
            AppendError::Unknown { .. } => OUTCOME_UNKNOWN.because(format!(
                "{detail}; retry with the same Idempotency-Key or event ids to learn which"
            )),
            // The leader's URL in a claim is anybody's; `http::forward` names the one that counts.
            AppendError::NotLeading { .. } => not_leading(None, detail, nothing_done),
            AppendError::Closed { .. } => LOG_CLOSED.because(detail),
            AppendError::Read(error) => error.into(),
            AppendError::Stopped(_) => TOO_COSTLY.because(detail),
        }
    }
}

/// The problem of an append whose fence refused it.
fn of_fence(refusal: FenceRefusal) -> Box<Problem> {
    let (kind, field) = match refusal {
        FenceRefusal::LeaseLost => (&LEASE_LOST, "fence"),
        FenceRefusal::DeliveryLost => (&DELIVERY_LOST, "settles.delivery"),
        FenceRefusal::DeliveryStaged => (&DELIVERY_STAGED, "settles.delivery"),
        FenceRefusal::Outdated => (&OVERLOADED, ""),
    };
    kind.because(refusal.to_string()).field(field)
}

impl From<ReadError> for Box<Problem> {
    fn from(error: ReadError) -> Box<Problem> {
        let detail = error.to_string();
        match error {
            ReadError::Corrupt(corruption) => {
                let mut file = Vec::new();
                push_string(&mut file, &corruption.file);
                CORRUPT
                    .because(detail)
                    .with("file", String::from_utf8(file).unwrap_or_default())
                    .with("offset", corruption.offset.to_string())
            }
            ReadError::Io { .. } => IO.because(detail),
            ReadError::Stopped(_) => TOO_COSTLY.because(detail),
            ReadError::Trimmed { first } => {
                TRIMMED.because(detail).with("first", first.to_string())
            }
        }
    }
}

impl From<StepRefusal<TrimError>> for Box<Problem> {
    fn from(refused: StepRefusal<TrimError>) -> Box<Problem> {
        let detail = refused.error.to_string();
        match refused.error {
            TrimError::Read(error) => error.into(),
            TrimError::Io { is_full: true, .. } => STORAGE_FULL.because(detail),
            TrimError::Copy | TrimError::Io { .. } => IO.because(detail),
        }
    }
}

impl From<StepRefusal<LeaseError>> for Box<Problem> {
    fn from(refused: StepRefusal<LeaseError>) -> Box<Problem> {
        let StepRefusal { error, nothing_done } = refused;
        match error {
            LeaseError::Held { remaining_us } => LEASE_HELD
                .because(format!(
                    "another client holds the lease for up to {} ms more",
                    remaining_us.div_ceil(1000)
                ))
                .with("remaining_ms", remaining_us.div_ceil(1000).to_string())
                .retry(Retry::Seconds(remaining_us.div_ceil(1_000_000).max(1) as u32)),
            LeaseError::Lost => {
                LEASE_LOST.because("the lease has expired or has another holder").field("token")
            }
            LeaseError::NotLeading => not_leading(None, error.to_string(), nothing_done),
            LeaseError::TooMany => TOO_MANY_LEASES
                .because(format!("{} leases exist, the maximum", wellspring_log::Leases::MAX))
                .limit(wellspring_log::Leases::MAX as u64),
        }
    }
}

/// The problem of an unknown log, with a remedy.
pub fn no_such_log(name: &str) -> Box<Problem> {
    LOG_NOT_FOUND.because(if is_name(name) {
        format!("there is no log {name:?}; create it with PUT /v1/logs/{name}")
    } else {
        format!("there is no log {name:?}, and none can have this name: use {NAME_RULE}")
    })
}

/// Names the leader, if known. Without proof that nothing was done, the request was interrupted.
pub(crate) fn not_leading(
    leader: Option<&Leader>,
    detail: String,
    nothing_done: Option<NothingDone>,
) -> Box<Problem> {
    let kind = if nothing_done.is_some() { &NOT_LEADING } else { &INTERRUPTED };
    let mut problem = kind.because(detail);
    problem.nothing_done = nothing_done;
    let Some(leader) = leader else { return problem };
    let [mut node, mut url] = [Vec::new(), Vec::new()];
    push_string(&mut node, &leader.node);
    push_string(&mut url, &leader.url);
    let text = |json| String::from_utf8(json).unwrap_or_default();
    problem.with("leader", text(node)).with("leader_url", text(url))
}

impl From<TooManyWaiters> for Box<Problem> {
    fn from(refused: TooManyWaiters) -> Box<Problem> {
        TOO_MANY_WAITERS.because(refused.to_string()).limit(refused.limit as u64)
    }
}

/// The problem of a fault in a JSON document; `document` is its text.
pub fn of_fault(fault: &Fault, document: &[u8]) -> Box<Problem> {
    let place = if fault.field.is_empty() { "the body" } else { fault.field.as_str() };
    let problem = match &fault.kind {
        FaultKind::Syntax(expected) => {
            let (line, column) = fault.line_and_column(document);
            return MALFORMED_JSON
                .because(format!("expected {expected} at line {line}, column {column}"))
                .with("line", line.to_string())
                .with("column", column.to_string());
        }
        FaultKind::WrongType { expected, found } => {
            INVALID.because(format!("{place} must be {expected}, not {found}"))
        }
        FaultKind::Unknown(known) => {
            INVALID.because(format!("{place} is not a known field; known fields: {known}"))
        }
        FaultKind::Missing => INVALID.because(format!("{place} is missing")),
        FaultKind::Duplicate => {
            INVALID.because(format!("{place} is given more than once; remove the repetition"))
        }
        FaultKind::Beside(other) => {
            let object = fault.field.rsplit_once('.').map_or("", |(object, _)| object);
            let joint = if object.is_empty() { "" } else { "." };
            INVALID.because(format!(
                "{place} cannot be combined with {object}{joint}{other}; remove one of them"
            ))
        }
        FaultKind::TooDeep => INVALID
            .because(format!("{place} is nested deeper than {MAX_DEPTH} levels"))
            .limit(MAX_DEPTH as u64),
        FaultKind::Rule(rule) => INVALID.because(format!("{place} {rule}")),
        FaultKind::TooCostly { detail, limit } => {
            INVALID.because(format!("{place} {detail}")).limit(*limit)
        }
        FaultKind::TooLarge { detail, limit } => {
            TOO_LARGE.because(format!("{place} {detail}")).limit(*limit)
        }
    };
    problem.field(fault.field.as_str())
}

/// The problem of a fault in one line of a body: the line is malformed or breaks a rule, the body
/// as such is fine. The caller adds the line number.
pub fn of_line_fault(fault: &Fault, line: &[u8]) -> Box<Problem> {
    match &fault.kind {
        FaultKind::Syntax(expected) => {
            let (_, column) = fault.line_and_column(line);
            INVALID.because(format!("expected {expected} at column {column}"))
        }
        _ => of_fault(fault, line),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::effects::Effects;
    use wellspring_log::Corruption;
    use wellspring_types::{Clause, Reason};

    fn json(problem: &Problem) -> serde_json::Value {
        serde_json::from_slice(&problem.to_json()).unwrap()
    }

    #[test]
    fn a_failed_condition_tells_what_offends_it() {
        let conflict = Conflict { position: 7, clause: Clause::FailIfExists, item: 2 };
        let refused = Effects::default().refused(AppendError::Conflict(conflict));
        let problem: Box<Problem> = refused.into();
        let json = json(&problem);
        assert_eq!(json["type"], "/problems/append-condition-failed");
        assert_eq!(json["status"], 409);
        assert_eq!(json["retry"], "after-reread");
        assert_eq!(json["conflict"]["position"], 7);
        assert_eq!(json["conflict"]["clause"], "failIfExists");
        assert_eq!(json["conflict"]["item"], 2);
    }

    #[test]
    fn damage_names_file_and_offset() {
        let corruption = Corruption { file: "1.seg".into(), offset: 99, what: "x".into() };
        let problem: Box<Problem> = ReadError::Corrupt(corruption).into();
        let json = json(&problem);
        assert_eq!((json["status"].as_u64(), json["offset"].as_u64()), (Some(500), Some(99)));
        assert_eq!(json["file"], "1.seg");
    }

    #[test]
    fn sizes_are_413_and_other_rules_422() {
        let size = Reason::TooLong { bytes: 300, limit: 255 };
        let problem: Box<Problem> = Invalid { field: "events[0].type".into(), reason: size }.into();
        assert_eq!((problem.kind.status, problem.limit), (413, Some(255)));
        let rule = Invalid {
            field: "events[0].tags[1]".into(),
            reason: Reason::Duplicate { element: "tag" },
        };
        let problem: Box<Problem> = rule.into();
        assert_eq!(problem.kind.status, 422);
        assert_eq!(problem.field.as_deref(), Some("events[0].tags[1]"));
    }

    #[test]
    fn only_a_log_that_can_be_created_is_advised_to_be_created() {
        let detail = |name| no_such_log(name).detail;
        assert!(detail("orders").ends_with("create it with PUT /v1/logs/orders"));
        assert!(detail("Orders").contains("none can have this name: use 1 to 63 characters a-z"));
        assert!(!detail("Orders").contains("PUT"));
    }

    #[test]
    fn waiting_answers_say_how_long() {
        assert_eq!(OVERLOADED.because("").retry_after_s(), Some(1));
        assert_eq!(NOT_YET.because("").retry_after_s(), Some(1));
        let held = Effects::default().refused(LeaseError::Held { remaining_us: 2_500_000 });
        let held: Box<Problem> = held.into();
        assert_eq!(held.retry_after_s(), Some(3));
        assert_eq!(NOT_FOUND.because("").retry_after_s(), None);
    }

    #[test]
    fn slugs_are_unique() {
        let mut slugs: Vec<_> = ALL.iter().map(|k| k.slug).collect();
        slugs.sort_unstable();
        slugs.dedup();
        assert_eq!(slugs.len(), ALL.len());
    }
}
