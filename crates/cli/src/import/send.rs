//! Sends parts to the server until each is durable or definitively refused.

use crate::exit::{Code, Failure, InputKind};
use crate::import::RecordedAt;
use crate::import::imported_event::RECORDED_AT;
use crate::import::parts::Part;
use crate::import::retries::{Verdict, passing, retried};
use crate::numbers::grouped;
use crate::problem::Problem;
use crate::query::add_parameter;
use crate::target::Target;
use serde::Deserialize;
use wellspring_client::{Answer, Client, Request};

/// The server's answer to a part.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct PartReply {
    /// Lines of it that are settled; the rest is to be sent again with the next part.
    pub(crate) lines: u64,
    /// Events appended.
    pub(crate) added: u64,
    /// Events that an earlier import, or an earlier try, had appended.
    pub(crate) known: u64,
    /// Invalid lines that were skipped.
    pub(crate) skipped: u64,
    /// Tags given twice in one event.
    pub(crate) folded: u64,
    /// Events that were there already under their id, and were not added.
    pub(crate) repeated: u64,
    /// Events of consumers and of erasures, which were not added.
    pub(crate) passed_over: u64,
    /// Events that were sealed for a data subject.
    pub(crate) sealed: u64,
    /// Position of the last event of either kind.
    pub(crate) last: Option<u64>,
    /// The token with which the next part continues.
    pub(crate) next: String,
    /// The first invalid lines.
    pub(crate) faults: Vec<LineFault>,
}

/// An invalid line.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct LineFault {
    /// Its number in the body, from 1.
    pub(crate) line: u64,
    /// The error.
    pub(crate) detail: String,
}

/// Why a part was refused, and what of it is in the log nevertheless.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) settled: PartReply,
    pub(crate) failure: Failure,
    /// The error, if the time of an event cannot be kept.
    time_fault: Option<String>,
}

/// The terms of an import, sent with each of its requests.
#[derive(Debug, Clone, Default)]
pub(crate) struct Terms {
    /// Most events that become durable as one.
    pub(crate) batch: u16,
    /// Whether the server skips invalid lines.
    pub(crate) skips: bool,
    /// Empty, or the label that makes the same content a new import.
    pub(crate) label: String,
    /// The key of tags that name data subjects.
    pub(crate) subject_from: Option<String>,
    /// What becomes of recording times; `None`: they are kept as long as they fit.
    pub(crate) recorded_at: Option<RecordedAt>,
    /// Name of the file, for messages.
    pub(crate) file: String,
}

/// Sends parts over one connection.
pub(crate) struct Sender {
    client: Client,
    target: Target,
    terms: Terms,
    /// What becomes of the times of the next part.
    recorded_at: RecordedAt,
}

impl Sender {
    /// A sender for one log.
    pub(crate) fn new(target: &Target, terms: Terms) -> Result<Sender, Failure> {
        let recorded_at = terms.recorded_at.unwrap_or(RecordedAt::Keep);
        Ok(Sender { client: target.client()?, target: target.clone(), terms, recorded_at })
    }

    /// The connection, for other requests.
    pub(crate) fn client(&mut self) -> &mut Client {
        &mut self.client
    }

    fn path(&self, part: &Part, continues: &str) -> String {
        let mut path = self.target.path("import");
        add_parameter(&mut path, "batch", &self.terms.batch.to_string());
        if self.terms.skips {
            add_parameter(&mut path, "invalid", "skip");
        }
        if !self.terms.label.is_empty() {
            add_parameter(&mut path, "label", &self.terms.label);
        }
        if let Some(key) = &self.terms.subject_from {
            add_parameter(&mut path, "subject_from", key);
        }
        add_parameter(&mut path, RECORDED_AT, self.recorded_at.word());
        if !part.is_last {
            add_parameter(&mut path, "more", "true");
        }
        if !continues.is_empty() {
            add_parameter(&mut path, "continues", continues);
        }
        path
    }

    /// Sends a part, again if necessary: nothing is added twice. `note` gets the reason for each
    /// wait.
    pub(crate) fn send(
        &mut self,
        part: &Part,
        continues: &str,
        note: &mut dyn FnMut(String),
    ) -> Result<PartReply, Box<Refusal>> {
        let refusal = match self.send_as(part, continues, note) {
            Err(refusal) => refusal,
            settled => return settled,
        };
        let is_left_to_us = self.terms.recorded_at.is_none();
        let Some(fault) = refusal.time_fault.as_ref().filter(|_| is_left_to_us) else {
            return Err(refusal);
        };
        note(format!(
            "{fault}. From the batch of that line on, times become metadata (recorded_at); with \
             --recorded-at keep the import is refused instead"
        ));
        self.recorded_at = RecordedAt::Metadata;
        // The events of the part that were added are known by now.
        let added = refusal.settled.added;
        self.send_as(part, continues, note).map(|settled| PartReply {
            added: settled.added + added,
            known: settled.known.saturating_sub(added),
            ..settled
        })
    }

    fn send_as(
        &mut self,
        part: &Part,
        continues: &str,
        note: &mut dyn FnMut(String),
    ) -> Result<PartReply, Box<Refusal>> {
        let path = self.path(part, continues);
        let headers = [("Content-Type", "application/x-ndjson")];
        let request =
            Request { method: "POST", path: &path, headers: &headers, body: Some(&part.body) };
        let settled = PartReply::default();
        let gave_up = |failure| Box::new(Refusal { settled, failure, time_fault: None });
        retried(note, gave_up, || match self.client.call(&request) {
            Ok(answer) => self.judge(&answer, part),
            Err(error) => Verdict::Later(None, error.to_string()),
        })
    }

    fn judge(&self, answer: &Answer, part: &Part) -> Verdict<PartReply, Box<Refusal>> {
        let refused = |settled, failure, time_fault| {
            Verdict::Refused(Box::new(Refusal { settled, failure, time_fault }))
        };
        if answer.head.status == 200 {
            return match serde_json::from_slice::<PartReply>(&answer.body) {
                Ok(settled) if settled.lines <= part.lines => Verdict::Done(settled),
                _ => refused(
                    PartReply::default(),
                    Failure::new(
                        Code::Unavailable,
                        "cannot understand the server's answer to an import; does it have the same version?",
                    ),
                    None,
                ),
            };
        }
        let problem = Problem::of(answer);
        if let Some((wait, why)) = passing(answer, &problem) {
            return Verdict::Later(wait, why);
        }
        let settled = PartReply {
            lines: problem.durable_lines.min(part.lines),
            added: problem.added,
            known: problem.known,
            last: problem.durable_last,
            ..PartReply::default()
        };
        refused(settled, self.failure(&problem, part), self.time_fault(&problem, part))
    }

    /// The error in the time of an event that was to be kept.
    fn time_fault(&self, problem: &Problem, part: &Part) -> Option<String> {
        let is_of_time = self.recorded_at == RecordedAt::Keep
            && problem.slug() == "invalid"
            && problem.field.as_deref() == Some(RECORDED_AT);
        let line = problem.line.filter(|_| is_of_time)?;
        let what = problem.reason.as_deref()?;
        Some(format!("{}, line {}: {what}", self.terms.file, grouped(part.number(line))))
    }

    /// A refusal in terms of the file's lines.
    fn failure(&self, problem: &Problem, part: &Part) -> Failure {
        let Terms { file, .. } = &self.terms;
        match (problem.slug(), problem.line) {
            ("log-not-found", _) => self.target.no_log(),
            ("storage-full", _) => {
                Failure::new(problem.code(InputKind::Data), "the server's disk is full")
            }
            ("import-changed", line) => {
                let message = format!(
                    "{file}, line {}: {}. Nothing from that line on was added. Import new events from a \
                     file of their own, or import this file again as new events with --again LABEL. A line \
                     that was skipped by --skip-invalid and corrected since counts as changed, too",
                    grouped(part.number(line.unwrap_or(1))),
                    problem.detail_of_line(),
                );
                Failure::new(problem.code(InputKind::Data), message)
            }
            ("event-id-reused" | "subject-erased", Some(line)) => {
                let message = format!(
                    "{file}, line {}: {}. Nothing from that line on was added. Skip such lines with \
                     --skip-invalid",
                    grouped(part.number(line)),
                    problem.detail_of_line(),
                );
                Failure::new(problem.code(InputKind::Data), message)
            }
            // What is missing is not in the line.
            (_, Some(line))
                if matches!(problem.field.as_deref(), Some("withheld" | "unavailable")) =>
            {
                let detail = problem.detail_of_line();
                Failure::data(format!("{file}, line {}: {detail}", grouped(part.number(line))))
            }
            (_, Some(_)) if let Some(fault) = self.time_fault(problem, part) => {
                Failure::data(format!(
                    "{fault}. Import into an empty log, or with --recorded-at metadata; the import then \
                 continues from there"
                ))
            }
            (_, Some(line)) => bad_line(file, part.number(line), problem.detail_of_line()),
            _ => {
                let (first, last) = (part.number(1), part.number(part.lines));
                let message = format!(
                    "lines {first} to {last}: refused by the server: {}",
                    problem.sentence()
                );
                Failure::new(problem.code(InputKind::Data), message)
            }
        }
    }
}

/// The failure of a line that is not skipped.
pub(crate) fn bad_line(file: &str, line: u64, what: &str) -> Failure {
    Failure::data(format!(
        "{file}, line {line}: {what}. Correct the line and run the same command again, or skip \
         invalid lines with --skip-invalid"
    ))
}

#[cfg(test)]
#[path = "send_tests.rs"]
mod tests;
