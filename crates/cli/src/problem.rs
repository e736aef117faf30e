//! Errors of the server (RFC 9457), as the tools show them.

use crate::credentials::hint;
use crate::exit::{Code, InputKind};
use serde::Deserialize;
use wellspring_client::Answer;
use wellspring_client::message::Head;
use wellspring_host::http::history::ResumePoint;

/// The contents of a problem document. Every part may be missing, as in a proxy's error page.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct Problem {
    /// `/problems/{slug}`
    #[serde(rename = "type")]
    pub kind: String,
    title: String,
    pub detail: String,
    /// The error, without advice.
    pub(crate) reason: Option<String>,
    /// Path of the field at fault.
    pub field: Option<String>,
    /// The line of the body at fault, from 1.
    pub(crate) line: Option<u64>,
    /// Of an import that stopped: lines that are settled, …
    pub(crate) durable_lines: u64,
    /// … the position of the last event they hold, …
    pub(crate) durable_last: Option<u64>,
    /// … events appended, …
    pub(crate) added: u64,
    /// … and events that were in the log already.
    pub(crate) known: u64,
    /// Position of the conflicting event.
    pub position: Option<u64>,
    /// What violates an append condition.
    pub(crate) conflict: Option<Conflict>,
    /// Of another history: which one the log has, …
    history: Option<String>,
    /// … and its head.
    head: Option<u64>,
    /// Of a log whose beginning was removed: position of its first event.
    pub(crate) first: Option<u64>,
    /// Of `/health/ready`: all that is wrong.
    reasons: Vec<Reason>,
    /// `"no"`, `"same"`, `"after-reread"` or seconds.
    retry: serde_json::Value,
    /// Whether the field at fault is set by a flag: then the command is wrong, not the data.
    #[serde(skip)]
    is_of_flag: bool,
    #[serde(skip)]
    status: u16,
    /// Seconds after which it may be tried again, if the server says so.
    #[serde(skip)]
    pub(crate) retry_after_s: Option<u64>,
}

/// One of the things that are wrong with a server.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
struct Reason {
    #[serde(rename = "type")]
    kind: String,
    /// The log that it concerns; empty if it concerns none.
    log: String,
    detail: String,
}

/// When the same request may succeed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Retrial {
    /// Never, says the server: an operator or the caller has to change something.
    Never,
    /// After at least this many seconds.
    AfterSeconds(u64),
    /// The answer says nothing, or "at any time".
    Whenever,
}

/// What violates an append condition.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(crate) struct Conflict {
    /// Position of the newest event that does.
    pub(crate) position: u64,
}

impl Problem {
    /// Reads the problem of an answer that is not a success.
    pub(crate) fn of(answer: &Answer) -> Problem {
        Problem::of_head(&answer.head, &answer.body)
    }

    /// Reads the problem that comes with this head.
    pub(crate) fn of_head(head: &Head, body: &[u8]) -> Problem {
        let mut problem = Problem::read(head.status, body);
        let header = head.header("retry-after").and_then(|seconds| seconds.parse().ok());
        problem.retry_after_s = header.or(problem.retry_after_s);
        problem
    }

    /// Reads a problem document.
    pub(crate) fn read(status: u16, body: &[u8]) -> Problem {
        let mut problem: Problem = serde_json::from_slice(body).unwrap_or_default();
        problem.status = status;
        problem.retry_after_s = problem.retry.as_u64();
        problem
    }

    /// The last part of its type, e.g. `log-not-found`; empty without a type.
    pub(crate) fn slug(&self) -> &str {
        self.kind.rsplit('/').next().unwrap_or_default()
    }

    /// The error, without the line number at the beginning of a bulk's problem.
    pub(crate) fn detail_of_line(&self) -> &str {
        let detail = self.detail.strip_prefix("line ").and_then(|rest| rest.split_once(": "));
        match detail {
            Some((number, rest)) if number.bytes().all(|b| b.is_ascii_digit()) => rest,
            _ => &self.detail,
        }
    }

    /// Whether the same request may succeed later.
    pub(crate) fn is_passing(&self) -> bool {
        matches!(self.status, 429 | 502 | 503 | 504)
            || self.retry.is_number()
            || self.retry.as_str() == Some("same")
    }

    /// The answer's advice about a retry.
    pub(crate) fn retrial(&self) -> Retrial {
        match self.retry_after_s {
            // A proxy may put anything into a header.
            _ if self.retry.as_str() == Some("no") => Retrial::Never,
            Some(seconds) => Retrial::AfterSeconds(seconds),
            None => Retrial::Whenever,
        }
    }

    /// The exit code of a tool that gets this answer.
    pub(crate) fn code(&self, input: InputKind) -> Code {
        match self.slug() {
            // The address has the wrong scheme.
            "tls-required" => Code::Usage,
            // Trying again later does not help.
            "corrupt" => Code::Refused,
            _ if self.is_of_flag => Code::of_status(self.status, InputKind::Arguments),
            _ => Code::of_status(self.status, input),
        }
    }

    /// The same in terms of the command line: with flags in place of the members of the body that
    /// they set.
    pub(crate) fn in_flags(mut self) -> Problem {
        const FLAGS: [(&str, &str); 3] = [
            ("expires_in_s", "--expires (in seconds)"),
            ("expires_at", "--expires"),
            ("overlap_s", "--overlap (in seconds)"),
        ];
        if self.field.as_deref().is_some_and(|field| FLAGS.iter().any(|(name, _)| *name == field)) {
            self.is_of_flag = true;
        }
        for (member, flag) in FLAGS {
            self.detail = self.detail.replace(member, flag);
        }
        self
    }

    /// The point up to which the log of this problem has been written, if the problem is that it
    /// has another history.
    pub(crate) fn other_head(&self) -> Option<ResumePoint> {
        let position = self.head.filter(|_| self.slug() == "another-history")?;
        let history = self.history.as_ref().and_then(|history| history.parse().ok());
        Some(ResumePoint { position, history })
    }

    /// What `/health/ready` says about damage of a log.
    pub(crate) fn damage_of(&self, log: &str) -> Option<&str> {
        let is_damage = |reason: &&Reason| reason.kind == "/problems/damaged" && reason.log == log;
        self.reasons.iter().find(is_damage).map(|reason| reason.detail.as_str())
    }

    /// One sentence for people.
    pub(crate) fn sentence(&self) -> String {
        format!("{}{}", self.without_hint(), hint(self.status, self.slug()))
    }

    /// The same without advice about credentials.
    pub(crate) fn without_hint(&self) -> String {
        let what = [&self.detail, &self.title].into_iter().find(|text| !text.is_empty());
        let told = match what {
            Some(what) => format!("{what} (HTTP {})", self.status),
            None => format!("the server answered HTTP {}", self.status),
        };
        match self.retry_after_s {
            Some(seconds @ 1..) if self.status == 429 && !told.contains("try again in") => {
                format!("{told}; try again in {seconds} s")
            }
            _ => told,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_is_named_as_it_was_typed() {
        let told = |detail: &str| {
            let body = serde_json::json!({"detail": detail}).to_string();
            Problem::read(422, body.as_bytes()).in_flags().without_hint()
        };
        assert_eq!(
            told("overlap_s must be from 0 to 2592000"),
            "--overlap (in seconds) must be from 0 to 2592000 (HTTP 422)"
        );
        assert_eq!(told("expires_at lies in the past"), "--expires lies in the past (HTTP 422)");
    }

    #[test]
    fn a_damaged_log_is_not_worth_another_try() {
        let read = |status, body: &str| Problem::read(status, body.as_bytes());
        let corrupt = read(500, r#"{"type":"/problems/corrupt","retry":"no"}"#);
        assert_eq!(corrupt.retrial(), Retrial::Never);
        assert_eq!(corrupt.code(InputKind::Arguments), Code::Refused);
        assert_eq!(read(503, r#"{"retry":5}"#).retrial(), Retrial::AfterSeconds(5));
        for body in [r#"{"retry":"same"}"#, "<h1>Bad gateway</h1>"] {
            assert_eq!(read(502, body).retrial(), Retrial::Whenever);
        }
    }

    #[test]
    fn damage_is_that_of_the_log_that_is_asked_for() {
        let body = br#"{"type":"/problems/log-closed","detail":"x","reasons":[
            {"type":"/problems/log-closed","log":"a","detail":"x"},
            {"type":"/problems/damaged","log":"b","detail":"of b, 1.seg is damaged"}]}"#;
        let ready = Problem::read(503, body);
        assert_eq!(ready.damage_of("b"), Some("of b, 1.seg is damaged"));
        assert_eq!((ready.damage_of("a"), Problem::read(503, b"{}").damage_of("b")), (None, None));
    }

    #[test]
    fn a_flag_at_fault_is_a_wrong_command() {
        let flag = Problem::read(422, br#"{"field":"expires_in_s"}"#);
        assert_eq!(flag.clone().code(InputKind::Data), Code::Data, "a member of a body");
        assert_eq!(flag.in_flags().code(InputKind::Data), Code::Usage, "--expires");
        let tls = Problem::read(400, br#"{"type":"/problems/tls-required"}"#);
        assert_eq!(tls.code(InputKind::Data), Code::Usage);
    }

    #[test]
    fn problems_and_pages_of_proxies_are_read() {
        let body = br#"{"type":"/problems/overloaded","title":"t","status":503,"detail":"busy","retry":1,"x":[]}"#;
        let problem = Problem::read(503, body);
        assert_eq!((problem.slug(), problem.is_passing()), ("overloaded", true));
        assert_eq!(problem.sentence(), "busy (HTTP 503)");
        let page = Problem::read(404, b"<html>");
        assert_eq!(
            (page.sentence(), page.is_passing()),
            ("the server answered HTTP 404".to_owned(), false)
        );
        let full = Problem::read(429, br#"{"detail":"too many","retry":7}"#);
        assert_eq!(full.sentence(), "too many (HTTP 429); try again in 7 s");
        assert!(Problem::read(500, br#"{"retry":"same"}"#).is_passing());
        assert!(!Problem::read(422, br#"{"retry":"no"}"#).is_passing());
    }
}
