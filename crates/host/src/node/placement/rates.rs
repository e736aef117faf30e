//! How many events a second each log takes, by the positions of this node's copies, so every node
//! knows the rates of all logs.

use super::Node;
use std::collections::{HashMap, VecDeque};
use std::time::Duration;
use tokio::time::Instant;
use wellspring_types::Position;

/// Time between two samples.
const SAMPLE: Duration = Duration::from_secs(5);
/// Samples of a log: of the last minute.
const SAMPLES: usize = 13;

/// The heads of all logs during the last minute.
#[derive(Debug, Default)]
pub(super) struct Rates {
    sampled: Option<Instant>,
    heads: HashMap<String, VecDeque<(Instant, Position)>>,
}

impl Rates {
    /// Takes the samples that are due.
    pub(super) fn look(&mut self, node: &Node) {
        let now = Instant::now();
        if self.sampled.is_some_and(|at| now - at < SAMPLE) {
            return;
        }
        self.sampled = Some(now);
        let logs = node.all();
        self.heads.retain(|name, _| logs.iter().any(|(log, _)| log == name));
        for (name, log) in logs {
            self.sample(name, now, log.head());
        }
    }

    fn sample(&mut self, log: String, now: Instant, head: Position) {
        let heads = self.heads.entry(log).or_default();
        // Another log has the name.
        if heads.back().is_some_and(|(_, last)| *last > head) {
            heads.clear();
        }
        heads.push_back((now, head));
        if heads.len() > SAMPLES {
            heads.pop_front();
        }
    }

    /// Events a second; 0 for a log that was just opened.
    pub(super) fn per_s(&self, log: &str) -> u64 {
        let Some(heads) = self.heads.get(log) else { return 0 };
        let (Some((from, first)), Some((to, last))) = (heads.front(), heads.back()) else {
            return 0;
        };
        let ms = (*to - *from).as_millis() as u64;
        ((last - first) * 1_000).checked_div(ms).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_of_the_last_minute_and_of_the_log_that_has_the_name_now() {
        let (begun, mut rates) = (Instant::now(), Rates::default());
        let mut sample = |at_s: u64, head: Position| {
            rates.sample("a".to_owned(), begun + Duration::from_secs(at_s), head);
            rates.per_s("a")
        };
        assert_eq!((sample(0, 100), sample(5, 200), sample(10, 300)), (0, 20, 20));
        for at_s in 3..15 {
            sample(5 * at_s, 300);
        }
        assert_eq!(sample(75, 300), 0, "it was a minute ago");
        assert_eq!(sample(80, 7), 0, "another log has the name");
        assert_eq!(sample(85, 12), 1);
        assert_eq!(rates.per_s("b"), 0);
    }
}
