//! What is sent once before measuring and once after: requests in order, each
//! made from the answers of those before it. Nothing is sent here; whoever owns
//! a connection sends what [`Setup::next_request`] gives and tells the answer.

use super::data::Table;
use super::distinct::Hash;
use super::error::ScenarioError;
use super::file::{Scenario, UnixClock};
use super::names::Slot;
use super::plan::{Body, GivenBy, RequestPlan, Shortfall};
use super::value::{Counters, Moment};
use crate::random::SplitMix64;
use crate::workload::{Head, OwnedRequest};
use std::borrow::Cow;

/// A request of setup or teardown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetupRequest {
    /// Its name, for messages.
    pub name: String,
    /// The server to ask, e.g. `https://login.example:8443`; `None` for the one that is measured.
    pub origin: Option<String>,
    /// What to send.
    pub request: OwnedRequest,
}

/// What setup leaves behind for the measured part.
#[derive(Clone, Debug, Default)]
pub struct SetupValues {
    /// By number of the name.
    pub(crate) captured: Vec<Option<String>>,
    /// By slot: what was captured with `keep`.
    pub(crate) kept: Vec<Vec<String>>,
    /// Where the counters go on.
    pub(crate) counters: Vec<u64>,
}

/// Goes through the requests of setup or teardown.
#[derive(Debug)]
pub struct Setup {
    what: &'static str,
    requests: Vec<RequestPlan>,
    tables: Vec<Table>,
    slots: Vec<Slot>,
    clock: UnixClock,
    run: String,
    random: SplitMix64,
    counters: Counters,
    values: SetupValues,
    /// The request at hand, and how many times it was answered.
    at: usize,
    times: u32,
    /// Requests made so far.
    made: u32,
}

/// Streams of the run's seed that are not users.
const BEFORE: u64 = 1 << 40;
const AFTER: u64 = 2 << 40;

/// A text that no other run has: its beginning in microseconds, base 36.
pub(crate) fn run_text(clock: UnixClock) -> String {
    let mut left = clock() / 1_000;
    let mut digits = Vec::new();
    while left > 0 || digits.is_empty() {
        digits.push(b"0123456789abcdefghijklmnopqrstuvwxyz"[(left % 36) as usize]);
        left /= 36;
    }
    digits.iter().rev().map(|digit| char::from(*digit)).collect()
}

impl Setup {
    pub(crate) fn before(scenario: &Scenario, seed: u64, clock: UnixClock) -> Self {
        let values = SetupValues {
            captured: vec![None; scenario.names.setup.len()],
            kept: vec![Vec::new(); scenario.names.slots.len()],
            counters: scenario.counter_starts(),
        };
        Self::new(
            "setup",
            scenario,
            &scenario.setup,
            values,
            SplitMix64::stream(seed, BEFORE),
            clock,
        )
    }

    pub(crate) fn after(
        scenario: &Scenario,
        values: &SetupValues,
        seed: u64,
        clock: UnixClock,
    ) -> Self {
        let requests = &scenario.teardown;
        let random = SplitMix64::stream(seed, AFTER);
        Self::new("teardown", scenario, requests, values.clone(), random, clock)
    }

    fn new(
        what: &'static str,
        scenario: &Scenario,
        requests: &[RequestPlan],
        values: SetupValues,
        random: SplitMix64,
        clock: UnixClock,
    ) -> Self {
        Setup {
            what,
            requests: requests.to_vec(),
            tables: scenario.tables.clone(),
            slots: scenario.names.slots.clone(),
            clock,
            run: run_text(clock),
            random,
            counters: Counters::new(&values.counters, 0, 1),
            values,
            at: 0,
            times: 0,
            made: 0,
        }
    }

    /// How many requests are still to be sent.
    #[cfg(test)]
    pub(crate) fn remaining(&self) -> u64 {
        let left = self.requests[self.at.min(self.requests.len())..].iter();
        left.map(|request| u64::from(request.repeat)).sum::<u64>() - u64::from(self.times)
    }

    /// The request to send now; `None` when all have been answered. Asked again
    /// without an answer in between, it is made anew.
    ///
    /// # Errors
    /// If a placeholder has no value, e.g. because an optional capture found nothing.
    pub fn next_request(&mut self) -> Result<Option<SetupRequest>, ScenarioError> {
        let Some(plan) = self.requests.get(self.at) else { return Ok(None) };
        let rows: Vec<u32> = self.tables.iter().map(|table| self.made % table.rows()).collect();
        let mut counted = vec![None; self.counters.next().len()];
        let mut moment = Moment {
            user: 0,
            random: &mut self.random,
            setup: &self.values.captured,
            slots: &[],
            tables: &self.tables,
            rows: &rows,
            counters: &mut self.counters,
            counted: &mut counted,
            clock: self.clock,
            now_ns: None,
            run: &self.run,
        };
        let place = format!("{} {:?}", self.what, plan.name);
        let mut path = String::new();
        let fail = |part: &str, why: String| ScenarioError::new(format!("{place}, {part}"), why);
        plan.path.fill(&mut moment, &mut path).map_err(|unfilled| fail("path", unfilled.0))?;
        if !path.starts_with('/') {
            return Err(fail("path", format!("{path:?} does not begin with \"/\"")));
        }
        let mut headers = Vec::new();
        for header in &plan.headers {
            let mut value = String::new();
            match header.value.fill(&mut moment, &mut value) {
                Ok(()) => headers.push((header.name.clone(), value)),
                // Not known yet, e.g. the token while logging in.
                Err(_) if header.given_by == GivenBy::Scenario => {}
                Err(unfilled) => return Err(fail("headers", unfilled.0)),
            }
        }
        let body = match &plan.body {
            Body::Bytes(bytes) => bytes.clone(),
            Body::Text(template) => {
                let mut text = String::new();
                template.fill(&mut moment, &mut text).map_err(|why| fail("body", why.0))?;
                text.into_bytes()
            }
        };
        Ok(Some(SetupRequest {
            name: plan.name.clone(),
            origin: plan.origin.clone(),
            request: OwnedRequest { method: plan.method.clone(), path, headers, body },
        }))
    }

    /// Tells the answer to the last request.
    ///
    /// # Errors
    /// If the answer is not what the scenario expects; the run should not begin then.
    pub fn answered(
        &mut self,
        status: u16,
        headers: &[(String, String)],
        body: &[u8],
    ) -> Result<(), ScenarioError> {
        let Some(plan) = self.requests.get(self.at) else { return Ok(()) };
        let fields = headers.iter().map(|(n, v)| (Cow::Borrowed(&**n), Cow::Borrowed(&**v)));
        let head = Head(fields.collect());
        let mut short = plan.judge(status, &head, body).err();
        if short.is_none() {
            let mut value = String::new();
            for (number, capture) in plan.captures.iter().enumerate() {
                if capture.take(&head, body, &mut value) {
                    let (setup, slot) = (capture.setup.map(usize::from), capture.slot);
                    if let Some(there) = setup.and_then(|at| self.values.captured.get_mut(at)) {
                        *there = Some(value.clone());
                    }
                    let slot = slot.map(usize::from);
                    if let Some(kept) = slot.and_then(|at| self.values.kept.get_mut(at)) {
                        let most = slot.and_then(|at| self.slots.get(at)?.keep).unwrap_or(0);
                        if kept.len() >= most as usize {
                            kept.remove(0);
                        }
                        kept.push(value.clone());
                    }
                } else if !capture.optional {
                    short = Some(Shortfall::Check(plan.checks.len() + number));
                    break;
                }
            }
        }
        if let Some(short) = short {
            return Err(self.fell_short(plan, status, body, short));
        }
        self.made = self.made.wrapping_add(1);
        self.times += 1;
        if self.times >= plan.repeat {
            self.at += 1;
            self.times = 0;
        }
        Ok(())
    }

    fn fell_short(
        &self,
        plan: &RequestPlan,
        status: u16,
        body: &[u8],
        short: Shortfall,
    ) -> ScenarioError {
        const SHOWN: usize = 200;
        let shown = String::from_utf8_lossy(&body[..body.len().min(SHOWN)]);
        let why = match short {
            Shortfall::Status => format!("expected the status {}", plan.expected),
            Shortfall::Check(check) => format!("expected that {}", plan.check_text(check)),
        };
        let body = match shown.trim() {
            "" => "with an empty body".to_owned(),
            text => format!("with a body that begins: {text}"),
        };
        ScenarioError::new(
            format!("{} {:?}", self.what, plan.name),
            format!("{why}, but the server answered {status} {body}"),
        )
    }

    /// What the measured part needs. Call it when [`Setup::next_request`] has given `None`.
    #[must_use]
    pub fn finish(mut self) -> SetupValues {
        self.values.counters = self.counters.next().to_vec();
        self.values
    }
}

impl SetupValues {
    /// A hash of what was captured, to tell two sets of values apart without showing them.
    #[must_use]
    pub fn fingerprint(&self) -> u64 {
        let mut hash = Hash::new(0);
        let texts = self.captured.iter().flatten().chain(self.kept.iter().flatten());
        texts.for_each(|text| hash.add(text.as_bytes()));
        hash.finish()
    }
}
