//! Batches on their way to the server: until each is durable, or for good refused.

use crate::cli::Target;
use crate::cli::client::{Answer, Client, Request};
use crate::cli::exit::{Code, Failure};
use crate::cli::import::batch::Batch;
use crate::cli::problem::Problem;
use serde::Deserialize;
use std::time::Duration;

/// Tries per batch after the first.
const MAX_RETRIES: u32 = 10;
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// What the server says of a batch that is in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub(crate) struct Acknowledged {
    /// Position of its first event.
    pub(crate) first: u64,
    /// Head of the log.
    pub(crate) head: u64,
    /// Whether it was there already.
    #[serde(default)]
    pub(crate) replayed: bool,
}

/// Sends batches over one connection.
pub(crate) struct Sender {
    client: Client,
    log: String,
    path: String,
    note: Box<dyn Fn(String) + Send>,
}

enum Verdict {
    Done(Acknowledged),
    /// Try again, at the earliest after this; and why.
    Later(Option<Duration>, String),
    Refused(Failure),
}

impl Sender {
    /// A sender for one log. `note` is told why it waits.
    pub(crate) fn new(
        target: &Target,
        note: Box<dyn Fn(String) + Send>,
    ) -> Result<Sender, Failure> {
        Ok(Sender {
            client: target.client()?,
            log: target.log.clone(),
            path: target.path("append"),
            note,
        })
    }

    /// Sends a batch, again if need be: its key makes the server take it once.
    pub(crate) fn send(&mut self, batch: &Batch) -> Result<Acknowledged, Failure> {
        let headers =
            [("Content-Type", "application/json"), ("Idempotency-Key", batch.key.as_str())];
        let request = Request {
            method: "POST",
            path: &self.path,
            headers: &headers,
            body: Some(&batch.body),
        };
        let mut pause = FIRST_PAUSE;
        for retry in 0.. {
            let verdict = match self.client.call(&request) {
                Ok(answer) => judge(&answer, batch, &self.log),
                Err(error) => Verdict::Later(None, error.to_string()),
            };
            let (wanted, why) = match verdict {
                Verdict::Done(acknowledged) => return Ok(acknowledged),
                Verdict::Refused(failure) => return Err(failure),
                Verdict::Later(wanted, why) => (wanted, why),
            };
            if retry == MAX_RETRIES {
                let message = format!(
                    "{why}; gave up after {MAX_RETRIES} retries. Run the same command again to go on"
                );
                return Err(Failure::new(Code::Unavailable, message));
            }
            let wait = wanted.unwrap_or(pause).min(LONGEST_PAUSE);
            if retry > 0 {
                (self.note)(format!("{why}; trying again in {:.1} s", wait.as_secs_f64()));
            }
            std::thread::sleep(wait);
            pause = (pause * 2).min(Duration::from_secs(10));
        }
        unreachable!("the loop ends by returning")
    }
}

fn judge(answer: &Answer, batch: &Batch, log: &str) -> Verdict {
    if answer.head.status == 200 {
        return match serde_json::from_slice(&answer.body) {
            Ok(acknowledged) => Verdict::Done(acknowledged),
            Err(error) => Verdict::Refused(Failure::new(
                Code::Unavailable,
                format!("the server's answer to an append is not understood: {error}"),
            )),
        };
    }
    let problem = Problem::of(answer);
    if problem.is_passing() {
        let seconds = answer.head.header("retry-after").and_then(|s| s.parse().ok());
        return Verdict::Later(seconds.map(Duration::from_secs), problem.sentence());
    }
    Verdict::Refused(refusal(&problem, batch, log))
}

/// A refusal in terms of the input's lines.
fn refusal(problem: &Problem, batch: &Batch, log: &str) -> Failure {
    let (first, last) = (batch.lines.first().unwrap_or(&0), batch.lines.last().unwrap_or(&0));
    match problem.slug() {
        "log-not-found" => Failure::usage(format!(
            "there is no log {log}; make it with: curl -X PUT URL/v1/logs/{log}"
        )),
        "idempotency-key-reused" => Failure::data(format!(
            "lines {first}–{last} were imported before with other content: the file has changed since then \
             (what precedes them is unchanged and in the log). Import the new lines from a file of their own, \
             or give --import-id NAME to import all of this one as something new"
        )),
        _ => {
            let place = problem.field.as_deref().and_then(|field| event_of(field, batch));
            let place = place.unwrap_or_else(|| format!("lines {first}–{last}"));
            Failure::data(format!("{place}: the server refused it: {}", problem.sentence()))
        }
    }
}

/// `events[3].tags[0]` as a line and a field of it.
fn event_of(field: &str, batch: &Batch) -> Option<String> {
    let (index, rest) = field.strip_prefix("events[")?.split_once(']')?;
    let line = batch.lines.get(index.parse::<usize>().ok()?)?;
    let rest = rest.trim_start_matches('.');
    Some(if rest.is_empty() { format!("line {line}") } else { format!("line {line}, {rest}") })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::test_server::{Reply, TestServer};
    use crate::cli::trust::Trust;

    fn batch() -> Batch {
        Batch {
            key: "import-id-3".to_owned(),
            body: b"{}".to_vec(),
            lines: vec![10, 12],
            taken_bytes: 0,
        }
    }

    fn send(server: &TestServer) -> Result<Acknowledged, Failure> {
        let target = Target {
            url: server.url().to_owned(),
            log: "main".to_owned(),
            trust: Trust::default(),
            credentials: Default::default(),
        };
        Sender::new(&target, Box::new(|_| ())).unwrap().send(&batch())
    }

    #[test]
    fn passing_trouble_is_waited_out_under_one_key() {
        let server = TestServer::start(|request, earlier| {
            assert_eq!(request.header("idempotency-key"), "import-id-3");
            assert_eq!(request.path, "/v1/logs/main/append");
            match earlier {
                0 => Reply::json(503, r#"{"detail":"busy","retry":1}"#),
                1 => Reply::raw("HTTP/1.1 200 OK\r\nContent-Le").then_hang_up(),
                2 => Reply::json(429, "").then_hang_up(),
                _ => Reply::json(200, r#"{"first":7,"last":8,"head":9,"replayed":true}"#),
            }
        });
        assert_eq!(send(&server), Ok(Acknowledged { first: 7, head: 9, replayed: true }));
    }

    #[test]
    fn retries_are_bounded() {
        let server = TestServer::start(|_, _| Reply::json(503, r#"{"detail":"full"}"#));
        let failure = send(&server).unwrap_err();
        assert_eq!(failure.code, Code::Unavailable);
        assert!(failure.message.contains("full"), "{}", failure.message);
    }

    #[test]
    fn refusals_speak_of_lines() {
        for (body, code, word) in [
            (r#"{"detail":"bad","field":"events[1].tags[0]"}"#, Code::Data, "line 12, tags[0]"),
            (r#"{"type":"/problems/idempotency-key-reused"}"#, Code::Data, "lines 10–12"),
            (r#"{"type":"/problems/log-not-found"}"#, Code::Usage, "no log main"),
            (r#"{"field":"events[9]"}"#, Code::Data, "lines 10–12"),
        ] {
            let server = TestServer::start(move |_, _| Reply::json(422, body));
            let failure = send(&server).unwrap_err();
            assert_eq!(failure.code, code);
            assert!(failure.message.contains(word), "{}", failure.message);
        }
    }
}
