//! The history of a log on the wire: every answer about a log names it, and a request may name the
//! one that it knows. A client that comes from another history is told so, instead of getting
//! events of this one for those that it has seen, or nothing until the log is long enough.

use super::header_names::WELLSPRING_HISTORY;
use super::{Host, Request};
use crate::wire::problem::{self, Problem};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;
use wellspring_log::Log;
use wellspring_types::{HistoryId, Position};

/// The header, on requests and answers.
pub const HEADER: &str = "wellspring-history";
/// How long a position ahead of the head may take to be confirmed as such.
const CONFIRM_WITHIN: Duration = Duration::from_secs(1);

/// Where a consumer goes on: a position, and the history it belongs to if that is known. As text
/// `42` or `42@4f1c09d2a87b4e6f`; the id of a server-sent event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResumePoint {
    /// The last position that was processed.
    pub position: Position,
    /// Its history.
    pub history: Option<HistoryId>,
}

impl fmt::Display for ResumePoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.history {
            Some(history) => write!(f, "{}@{history}", self.position),
            None => write!(f, "{}", self.position),
        }
    }
}

/// The text is not a point to resume at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotAResumePoint;

impl fmt::Display for NotAResumePoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("must be a position, or a position and a history as in 42@4f1c09d2a87b4e6f")
    }
}

impl std::error::Error for NotAResumePoint {}

impl FromStr for ResumePoint {
    type Err = NotAResumePoint;

    fn from_str(text: &str) -> Result<ResumePoint, NotAResumePoint> {
        let (position, history) = match text.split_once('@') {
            Some((position, history)) => {
                (position, Some(history.parse().map_err(|_| NotAResumePoint)?))
            }
            None => (text, None),
        };
        if !position.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(NotAResumePoint);
        }
        let position = position.parse().map_err(|_| NotAResumePoint)?;
        Ok(ResumePoint { position, history })
    }
}

/// Refuses a request that names another history than that of the log it concerns.
///
/// # Errors
/// 400: the header is no id; 409: another history.
pub(super) fn check_header(
    host: &Host,
    request: &Request,
    log_name: Option<&str>,
) -> Result<(), Box<Problem>> {
    let Some(value) = request.headers.get(&WELLSPRING_HISTORY) else { return Ok(()) };
    let Ok(named) = String::from_utf8_lossy(value.as_bytes()).trim().parse::<HistoryId>() else {
        let detail = "Wellspring-History must be the id of a history: 16 hexadecimal digits";
        return Err(problem::BAD_REQUEST.because(detail).field("Wellspring-History"));
    };
    let log = request.log.clone().or_else(|| host.node.get(log_name?));
    log.map_or(Ok(()), |log| check(&log, named))
}

/// Refuses another history than that of a log. A copy that does not know its history refuses none:
/// the leader, which the request is forwarded to, does.
///
/// # Errors
/// 409.
pub fn check(log: &Log, named: HistoryId) -> Result<(), Box<Problem>> {
    match log.history() {
        Some(history) if history != named => {
            let head = log.head();
            Err(problem::ANOTHER_HISTORY
                .because(format!(
                    "the request is about the history {named}, the log has the history {history}, \
                     whose head is {head}: it was restored from a backup or created anew"
                ))
                .with("history", format!("\"{history}\""))
                .with("head", head.to_string()))
        }
        _ => Ok(()),
    }
}

/// Refuses to go on after a position that the log has not reached: a client that saw it saw another
/// history, even if the client names none.
///
/// # Errors
/// 409; 503 if another node may have shown the position and that cannot be found out in time.
pub async fn check_reached(log: &Log, after: Position) -> Result<(), Box<Problem>> {
    if after <= log.head() {
        return Ok(());
    }
    // In a cluster, another node may have more of the log.
    match tokio::time::timeout(CONFIRM_WITHIN, log.confirm()).await {
        Ok(Ok(_)) => {}
        Ok(Err(refused)) => {
            return Err(problem::NOT_CONFIRMED.because(format!(
                "position {after} is ahead of what this node has, and the end of the log could \
                 not be confirmed: {refused}"
            )));
        }
        Err(_) => {
            return Err(problem::NOT_CONFIRMED.because(format!(
                "position {after} is ahead of what this node has, and the end of the log was not \
                 confirmed within {} ms",
                CONFIRM_WITHIN.as_millis()
            )));
        }
    }
    let head = log.head();
    if after <= head {
        return Ok(());
    }
    let problem = problem::ANOTHER_HISTORY
        .because(format!(
            "position {after} is ahead of the log, whose head is {head}: it belongs to another \
             history, or to another log"
        ))
        .with("head", head.to_string())
        .with("position", after.to_string());
    Err(match log.history() {
        Some(history) => problem.with("history", format!("\"{history}\"")),
        None => problem,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_to_resume_at_has_one_form_with_its_history_and_one_without() {
        let history = Some(HistoryId(0x4f1c_09d2_a87b_4e6f));
        for (text, history) in [("42", None), ("42@4f1c09d2a87b4e6f", history)] {
            let point = ResumePoint { position: 42, history };
            assert_eq!(text.parse(), Ok(point));
            assert_eq!(point.to_string(), text);
        }
        for text in ["", "@", "+1", "-1", "42@", "42@4f", "@4f1c09d2a87b4e6f", "x@4f1c09d2a87b4e6f"]
        {
            assert_eq!(text.parse::<ResumePoint>(), Err(NotAResumePoint), "{text:?}");
        }
    }
}
