//! What one worker has measured: histograms and counters of its own, merged only after the run.

use super::slice::Gathered;
use crate::histogram::Histogram;
use crate::result::{EndpointResult, ErrorKind, Phases};
use crate::workload::Judgement;
use std::sync::mpsc::Sender;

/// Times of one request, in nanoseconds of the run's clock.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Times {
    /// When it was due; equal to `sent_ns` in closed loop.
    pub(crate) due_ns: u64,
    pub(crate) sent_ns: u64,
    pub(crate) written_ns: u64,
    pub(crate) begun_ns: u64,
}

/// The measured part of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    pub(crate) start_ns: u64,
    /// `u64::MAX` while only a count ends the run.
    pub(crate) end_ns: u64,
}

/// One worker's figures.
pub(crate) struct Tally {
    pub(crate) endpoints: Vec<EndpointResult>,
    window: Window,
    open: bool,
    pub(crate) warmup_requests: u64,
    /// Requests of the warm-up that ended without an answer.
    pub(crate) warmup_lost: u64,
    /// Of these, the successes.
    pub(crate) warmup_successes: u64,
    pub(crate) last_answer_ns: u64,
    /// Whether a request was lost since.
    pub(crate) lost_since_answer: bool,
    gathering: Gathered,
    slices: Sender<Gathered>,
    status_cache: (u16, u16, u64),
}

impl Tally {
    pub(crate) fn new(
        names: &[String],
        open: bool,
        phases: bool,
        window: Window,
        slices: Sender<Gathered>,
    ) -> Self {
        let endpoint = |name: &String| {
            let mut endpoint = EndpointResult::new(name);
            endpoint.counters.completed = Some(0);
            endpoint.response = open.then(Histogram::new);
            endpoint.lateness = open.then(Histogram::new);
            endpoint.phases = phases.then(Phases::default);
            endpoint
        };
        Tally {
            endpoints: names.iter().map(endpoint).collect(),
            window,
            open,
            warmup_requests: 0,
            warmup_lost: 0,
            warmup_successes: 0,
            last_answer_ns: window.start_ns,
            lost_since_answer: false,
            gathering: Gathered::default(),
            slices,
            status_cache: (u16::MAX, 0, 0),
        }
    }

    /// Whether a request belongs to the measured part: by when it was due, not by when it was
    /// answered.
    pub(crate) fn measures(&self, due_ns: u64) -> bool {
        due_ns >= self.window.start_ns && due_ns < self.window.end_ns
    }

    /// A request was handed to the system.
    pub(crate) fn sent(&mut self, endpoint: u16, times: &Times, bytes: usize) {
        if !self.measures(times.due_ns) {
            return;
        }
        self.roll(times.sent_ns);
        let figures = &mut self.endpoints[usize::from(endpoint)];
        figures.counters.sent += 1;
        figures.counters.bytes_sent += bytes as u64;
        if let Some(lateness) = &mut figures.lateness {
            let late_ns = times.sent_ns.saturating_sub(times.due_ns);
            lateness.record(late_ns);
            self.gathering.lateness.record(late_ns);
        }
    }

    /// An answer was wholly read at `done_ns`.
    pub(crate) fn answered(
        &mut self,
        endpoint: u16,
        status: u16,
        judgement: Judgement,
        times: &Times,
        done_ns: u64,
    ) {
        self.last_answer_ns = done_ns;
        self.lost_since_answer = false;
        // Here and not only now and then, so that every second has exactly its own answers.
        self.roll(done_ns);
        // In time by its last byte: it may have been sent in the warm-up, or come too late.
        if judgement == Judgement::Success && self.measures(done_ns) {
            let completed = &mut self.endpoints[usize::from(endpoint)].counters.completed;
            *completed.get_or_insert(0) += 1;
        }
        if !self.measures(times.due_ns) {
            if times.due_ns < self.window.start_ns {
                self.warmup_requests += 1;
                self.warmup_successes += u64::from(judgement == Judgement::Success);
            }
            return;
        }
        // What comes while waiting for the last answers is in the distributions, but in no second.
        let in_time = done_ns < self.window.end_ns;
        self.count_status(endpoint, status);
        let figures = &mut self.endpoints[usize::from(endpoint)];
        let service_ns = done_ns.saturating_sub(times.sent_ns);
        if judgement != Judgement::Success {
            self.gathering.failures += u64::from(in_time);
            figures.failed_service.record(service_ns);
            return;
        }
        figures.counters.successes += 1;
        self.gathering.successes += u64::from(in_time);
        figures.service.record(service_ns);
        let mut latency_ns = service_ns;
        if let Some(response) = &mut figures.response {
            latency_ns = done_ns.saturating_sub(times.due_ns);
            response.record(latency_ns);
        }
        if in_time {
            self.gathering.latency.record(latency_ns);
        }
        if let Some(phases) = &mut figures.phases {
            phases.write.record(times.written_ns.saturating_sub(times.sent_ns));
            phases.first_byte.record(times.begun_ns.saturating_sub(times.written_ns));
            phases.last_byte.record(done_ns.saturating_sub(times.begun_ns));
        }
    }

    /// Most answers have the status of the one before; only a change reaches the map.
    fn count_status(&mut self, endpoint: u16, status: u16) {
        if self.status_cache.0 != endpoint || self.status_cache.1 != status {
            self.flush_status();
            self.status_cache = (endpoint, status, 0);
        }
        self.status_cache.2 += 1;
    }

    fn flush_status(&mut self) {
        let (endpoint, status, count) = self.status_cache;
        if count > 0 {
            let statuses = &mut self.endpoints[usize::from(endpoint)].counters.statuses;
            *statuses.entry(status).or_default() += count;
            self.status_cache.2 = 0;
        }
    }

    /// A check failed; told in addition to [`Tally::answered`].
    pub(crate) fn failed_check(&mut self, endpoint: u16, due_ns: u64, check: String) {
        if self.measures(due_ns) {
            let checks = &mut self.endpoints[usize::from(endpoint)].counters.failed_checks;
            *checks.entry(check).or_default() += 1;
        }
    }

    /// A request that counts as sent ended without an answer.
    pub(crate) fn lost(&mut self, endpoint: u16, kind: ErrorKind, due_ns: u64, now_ns: u64) {
        // A server that answers, however wrongly, or ends a connection has not fallen silent.
        if matches!(kind, ErrorKind::Protocol | ErrorKind::TooLarge | ErrorKind::Closed) {
            self.last_answer_ns = self.last_answer_ns.max(now_ns);
        }
        if self.measures(due_ns) {
            self.lost_since_answer = true;
            self.gathering.failures += u64::from(now_ns < self.window.end_ns);
            let errors = &mut self.endpoints[usize::from(endpoint)].counters.errors;
            *errors.entry(kind).or_default() += 1;
        } else if due_ns < self.window.start_ns {
            self.warmup_lost += 1;
        }
    }

    /// The server did not take a request that counts as sent; another one takes its place.
    pub(crate) fn unprocessed(&mut self, endpoint: u16, due_ns: u64) {
        if self.measures(due_ns) {
            let counters = &mut self.endpoints[usize::from(endpoint)].counters;
            counters.sent -= 1;
            counters.unprocessed += 1;
        }
    }

    /// A request that is lost may have crossed the end of its connection.
    pub(crate) fn crossed(&mut self, endpoint: u16, due_ns: u64) {
        if self.measures(due_ns) {
            self.endpoints[usize::from(endpoint)].counters.crossed += 1;
        }
    }

    /// A request that could not even be sent: counted as sent and lost at once.
    pub(crate) fn unsendable(&mut self, endpoint: u16, kind: ErrorKind, due_ns: u64, now_ns: u64) {
        let times = Times { due_ns, sent_ns: now_ns, ..Times::default() };
        self.sent(endpoint, &times, 0);
        self.lost(endpoint, kind, due_ns, now_ns);
    }

    /// Bytes of answers arrived.
    pub(crate) fn received(&mut self, endpoint: u16, bytes: usize, due_ns: u64) {
        if self.measures(due_ns) {
            self.endpoints[usize::from(endpoint)].counters.bytes_received += bytes as u64;
        }
    }

    /// A connection was opened: how long that took, and how long its TLS handshake, if any.
    /// All connections are counted, whether requests are measured yet or not.
    pub(crate) fn connected(&mut self, tcp_ns: u64, tls_ns: Option<u64>) {
        let first = &mut self.endpoints[0];
        first.counters.connections_opened += 1;
        if let Some(phases) = &mut first.phases {
            phases.connect.record(tcp_ns);
            if let Some(tls_ns) = tls_ns {
                phases.tls.record(tls_ns);
            }
        }
    }

    /// When the second being gathered is over.
    pub(crate) fn slice_end_ns(&self) -> u64 {
        self.window.start_ns.saturating_add((self.gathering.index + 1) * 1_000_000_000)
    }

    /// Sends off the second that is over at `now_ns`, which never goes back; seconds without
    /// anything are sent too.
    #[inline]
    pub(crate) fn roll(&mut self, now_ns: u64) {
        while now_ns >= self.slice_end_ns() && self.slice_end_ns() < self.window.end_ns {
            let next = Gathered { index: self.gathering.index + 1, ..Gathered::default() };
            let whole = std::mem::replace(&mut self.gathering, next);
            // Nobody watches any more: the run is being torn down.
            let _ = self.slices.send(whole);
        }
    }

    /// From now on the measured part ends at `end_ns`: a count was reached, or the user wants no
    /// more.
    pub(crate) fn end_at(&mut self, end_ns: u64) {
        self.window.end_ns = self.window.end_ns.min(end_ns);
    }

    /// Sends off what is left. Nothing is recorded after this.
    pub(crate) fn finish(&mut self) {
        self.flush_status();
        let last = std::mem::take(&mut self.gathering);
        let _ = self.slices.send(last);
    }

    /// Whether requests are due independently of answers.
    pub(crate) fn is_open(&self) -> bool {
        self.open
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn throughput_counts_what_came_within_the_measured_part() {
        let (slices, _kept) = std::sync::mpsc::channel();
        let window = Window { start_ns: 1_000, end_ns: 2_000 };
        let mut tally = Tally::new(&["a".to_owned()], false, false, window, slices);
        let mut answer = |due_ns, done_ns, judgement| {
            let times = Times { due_ns, sent_ns: due_ns, ..Times::default() };
            tally.sent(0, &times, 1);
            tally.answered(0, 200, judgement, &times, done_ns);
        };
        answer(500, 900, Judgement::Success);
        answer(600, 1_100, Judgement::Success);
        answer(700, 1_100, Judgement::WrongStatus);
        answer(1_200, 1_500, Judgement::Success);
        answer(1_300, 1_500, Judgement::WrongStatus);
        answer(1_900, 2_000, Judgement::Success);
        answer(1_950, 9_000, Judgement::Success);
        tally.finish();
        let counters = &tally.endpoints[0].counters;
        assert_eq!((counters.sent, counters.successes, counters.completed), (4, 3, Some(2)));
        assert_eq!((tally.warmup_requests, tally.warmup_successes), (3, 2));
        assert!((counters.throughput_per_s(1_000) - 2e6).abs() < 1.0);
    }

    #[test]
    fn answers_after_the_end_belong_to_no_second() {
        let (slices, kept) = std::sync::mpsc::channel();
        let window = Window { start_ns: 0, end_ns: 2_000_000_000 };
        let mut tally = Tally::new(&["a".to_owned()], true, false, window, slices);
        let times = |due_ns| Times { due_ns, sent_ns: due_ns, ..Times::default() };
        for (due_ns, done_ns) in [(100, 900), (1_900_000_000, 1_999_999_999), (200, 2_000_000_000)]
        {
            tally.sent(0, &times(due_ns), 1);
            tally.answered(0, 200, Judgement::Success, &times(due_ns), done_ns);
        }
        tally.sent(0, &times(300), 1);
        tally.lost(0, ErrorKind::Timeout, 300, 2_500_000_000);
        tally.finish();
        let seconds: Vec<(u64, u64)> =
            kept.try_iter().map(|second| (second.successes, second.failures)).collect();
        assert_eq!(seconds, [(1, 0), (1, 0)]);
        assert_eq!(tally.endpoints[0].counters.successes, 3);
    }

    #[test]
    fn answers_that_are_not_http_are_signs_of_life() {
        let (slices, _kept) = std::sync::mpsc::channel();
        let window = Window { start_ns: 0, end_ns: 2_000_000_000 };
        let mut tally = Tally::new(&["a".to_owned()], false, false, window, slices);
        tally.lost(0, ErrorKind::Protocol, 100, 1_900_000_000);
        tally.lost(0, ErrorKind::Timeout, 100, 1_950_000_000);
        assert_eq!(tally.last_answer_ns, 1_900_000_000);
    }
}
