//! What most checks need of a step, added up once over its repeats and endpoints.

use crate::plan::{Load, Settings};
use crate::result::{EndpointResult, ErrorKind, Outcome, Step};

/// What a check says of one step, before its number and the step's name are put to it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct StepFinding {
    pub(super) outcome: Outcome,
    pub(super) sentence: String,
}

impl StepFinding {
    pub(super) fn new(outcome: Outcome, sentence: impl Into<String>) -> Self {
        StepFinding { outcome, sentence: sentence.into() }
    }

    pub(super) fn passed(sentence: impl Into<String>) -> Self {
        StepFinding::new(Outcome::Passed, sentence)
    }

    pub(super) fn not_checked(sentence: impl Into<String>) -> Self {
        StepFinding::new(Outcome::NotChecked, sentence)
    }

    pub(super) fn note(sentence: impl Into<String>) -> Self {
        StepFinding::new(Outcome::Note, sentence)
    }

    pub(super) fn care(sentence: impl Into<String>) -> Self {
        StepFinding::new(Outcome::Care, sentence)
    }

    pub(super) fn stop(sentence: impl Into<String>) -> Self {
        StepFinding::new(Outcome::Stop, sentence)
    }

    /// The worst outcome of all, with every sentence that is at least a note,
    /// the worst first; `otherwise` if nothing was said.
    pub(super) fn worst(mut findings: Vec<StepFinding>, otherwise: StepFinding) -> StepFinding {
        findings.sort_by_key(|one| std::cmp::Reverse(one.outcome));
        let Some(first) = findings.first() else { return otherwise };
        let sentences: Vec<&str> = findings.iter().map(|one| one.sentence.as_str()).collect();
        StepFinding { outcome: first.outcome, sentence: sentences.join(" ") }
    }
}

/// A step added up over its repeats and endpoints.
pub(super) struct Figures<'a> {
    pub(super) step: &'a Step,
    /// Everything of all repeats and endpoints in one.
    pub(super) total: EndpointResult,
    /// Measured time of all repeats, in nanoseconds.
    pub(super) measured_ns: f64,
    pub(super) unanswered: u64,
    pub(super) never_sent: u64,
}

impl<'a> Figures<'a> {
    /// `None` for a step in which nothing was run.
    pub(super) fn of(step: &'a Step) -> Option<Self> {
        let total = step.total()?;
        let open = step.runs.iter().filter_map(|run| run.open_loop.as_ref());
        Some(Figures {
            step,
            total,
            measured_ns: step.runs.iter().map(|run| run.measured_ns as f64).sum(),
            unanswered: step.runs.iter().map(|run| run.unanswered).sum(),
            never_sent: open.map(|open| open.never_sent).sum(),
        })
    }

    pub(super) fn settings(&self) -> &'a Settings {
        &self.step.settings
    }

    pub(super) fn is_closed(&self) -> bool {
        matches!(self.settings().load, Load::Closed { .. })
    }

    /// Places from which requests are sent: connections times streams.
    pub(super) fn places(&self) -> u64 {
        places(self.settings())
    }

    /// Answers that were wholly read, successes and failures.
    pub(super) fn answers(&self) -> u64 {
        self.total.service.count() + self.total.failed_service.count()
    }

    /// Time the answers took, in nanoseconds, successes and failures.
    pub(super) fn service_ns(&self) -> f64 {
        self.total.service.sum_ns() as f64 + self.total.failed_service.sum_ns() as f64
    }

    /// The longest answer, in nanoseconds; 0 without any.
    pub(super) fn longest_ns(&self) -> f64 {
        let longest = self.total.service.max_ns().max(self.total.failed_service.max_ns());
        longest.unwrap_or(0) as f64
    }

    /// The shortest answer, in nanoseconds.
    pub(super) fn shortest_ns(&self) -> Option<f64> {
        let (one, other) = (self.total.service.min_ns(), self.total.failed_service.min_ns());
        one.into_iter().chain(other).min().map(|ns| ns as f64)
    }

    pub(super) fn errors(&self, kind: ErrorKind) -> u64 {
        self.total.counters.errors.get(&kind).copied().unwrap_or(0)
    }

    /// Requests whose answer would have come late or never: unanswered, timed out, never sent.
    pub(super) fn missing(&self) -> u64 {
        self.unanswered + self.errors(ErrorKind::Timeout) + self.never_sent
    }

    /// Share of the places' time in which a request was on its way: throughput ×
    /// mean service time ÷ places. 0 if nothing was measured.
    pub(super) fn busy_share(&self) -> f64 {
        let there = self.measured_ns * self.places() as f64;
        if there == 0.0 { 0.0 } else { self.service_ns() / there }
    }
}

/// Places from which requests are sent: connections times streams, at least 1.
pub(super) fn places(settings: &Settings) -> u64 {
    u64::from(settings.connections.max(1)) * u64::from(settings.streams.max(1))
}
