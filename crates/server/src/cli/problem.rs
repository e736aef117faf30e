//! Errors of the server (RFC 9457), as the tools show them.

use crate::cli::client::Answer;
use crate::cli::credentials::hint;
use serde::Deserialize;

/// What a problem document says. Everything may be missing: a proxy's error page has none of it.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct Problem {
    /// `/problems/{slug}`
    #[serde(rename = "type")]
    kind: String,
    title: String,
    detail: String,
    /// Path of the field at fault.
    pub(crate) field: Option<String>,
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
    /// What offends an append condition.
    pub(crate) conflict: Option<Conflict>,
    /// `"no"`, `"same"`, `"after-reread"` or seconds.
    retry: serde_json::Value,
    #[serde(skip)]
    status: u16,
}

/// What offends an append condition.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(crate) struct Conflict {
    /// Position of the newest event that does.
    pub(crate) position: u64,
}

impl Problem {
    /// Reads the problem of an answer that is not a success.
    pub(crate) fn of(answer: &Answer) -> Problem {
        Problem::read(answer.head.status, &answer.body)
    }

    /// Reads a problem document.
    pub(crate) fn read(status: u16, body: &[u8]) -> Problem {
        let mut problem: Problem = serde_json::from_slice(body).unwrap_or_default();
        problem.status = status;
        problem
    }

    /// The last part of its type, e.g. `log-not-found`; empty if there is none.
    pub(crate) fn slug(&self) -> &str {
        self.kind.rsplit('/').next().unwrap_or_default()
    }

    /// What is wrong, without the number of the line that a bulk's problem begins with.
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

    /// One sentence for people.
    pub(crate) fn sentence(&self) -> String {
        let what = [&self.detail, &self.title].into_iter().find(|text| !text.is_empty());
        let hint = hint(self.status);
        match what {
            Some(what) => format!("{what} (HTTP {}){hint}", self.status),
            None => format!("the server answered HTTP {}{hint}", self.status),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert!(Problem::read(500, br#"{"retry":"same"}"#).is_passing());
        assert!(!Problem::read(422, br#"{"retry":"no"}"#).is_passing());
    }
}
