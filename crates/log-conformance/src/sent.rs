//! Numbered requests, sent without waiting, and their outcomes.

use crate::oracle::{SeenEvent, append, read_all};
use crate::{Nodes, idempotence};
use std::sync::mpsc::{Receiver, channel};
use wellspring_log::{Append, AppendError, Appended, Log};
use wellspring_patience::PATIENCE;
use wellspring_types::{Event, Position};

/// An event with this number.
pub(super) fn event(number: u64) -> Event {
    Event::json("Numbered", &[&format!("n:{number}")], &number.to_string())
}

pub(super) fn numbered(number: u64) -> Append {
    append(&[event(number)])
}

/// The same with a key, so that a retry is recognized.
pub(super) fn keyed(number: u64) -> Append {
    idempotence::keyed(&format!("key-{number}"), 1, &[event(number)])
}

/// A request waiting for its answer.
pub(super) struct SentAppend {
    pub(super) number: u64,
    told: Receiver<Result<Appended, AppendError>>,
}

impl SentAppend {
    /// Sends the request with this number to a node.
    pub(super) fn to(log: &Log, number: u64) -> SentAppend {
        let (tell, told) = channel();
        log.submit(numbered(number), Box::new(move |outcome| drop(tell.send(outcome))));
        SentAppend { number, told }
    }

    /// Whether and where it was appended; if not, it never will be. A live node owes this answer.
    pub(super) fn outcome(self) -> Outcome {
        let number = self.number;
        match self.told.recv_timeout(PATIENCE) {
            Ok(Ok(appended)) => Outcome { number, position: Some(appended.first) },
            Ok(Err(AppendError::NotLeading { .. })) => Outcome { number, position: None },
            Ok(Err(other)) => panic!("request {number}: {other:?} is no definite answer"),
            Err(_) => panic!("request {number} was never answered"),
        }
    }
}

/// The outcome that a client knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Outcome {
    pub(super) number: u64,
    /// `None`: it is not in the log and never will be.
    pub(super) position: Option<Position>,
}

/// On every node each request is exactly where its client was told, and there is nothing else.
pub(super) fn check(nodes: &Nodes, outcomes: &[Outcome]) {
    let told = outcomes.iter().filter_map(|outcome| Some((outcome.position?, outcome.number)));
    let mut told: Vec<(Position, u64)> = told.collect();
    told.sort_unstable();
    let last = told.last().map_or(0, |(position, _)| *position);
    for node in 0..nodes.count() {
        let log = nodes.log(node).expect("all nodes are open");
        nodes.wait_until(&format!("node {node} has position {last}"), || log.head() >= last);
        let found: Vec<(Position, u64)> = read_all(&log).iter().map(number_of).collect();
        assert_eq!(found, told, "what is on node {node}, and what clients were told");
    }
}

fn number_of(seen: &SeenEvent) -> (Position, u64) {
    let text = std::str::from_utf8(&seen.event.data).expect("a number");
    (seen.position, text.parse().expect("a number"))
}
