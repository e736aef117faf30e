//! Delivers one batch: decides which event is sent when, and handles each outcome.

use super::client::{Attempt, Client, DeliveryResult, ReceiverRefusal};
use super::connection::Connection;
use super::dead_letters::{DeadLetters, Letter};
use super::message::Message;
use crate::backoff::Backoff;
use crate::control::Control;
use crate::fault::{Fault, StopCode};
use crate::status::{ConnectorState, Counters, Status};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, sleep_until, timeout};

/// Most connections opened within [`Pace::opening`] that have brought no answer: receivers have
/// short queues of connections, and one that is dropped from a queue costs a second or more.
const MOST_OPENING: usize = 4;

/// Maximum time between two checks whether the sink should stop.
const TICK: Duration = Duration::from_millis(20);

/// The time settings of a round.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pace {
    /// First and longest wait between two attempts at an event.
    pub(super) event: (Duration, Duration),
    /// First and longest wait between two connection attempts while none succeeds.
    pub(super) connect: (Duration, Duration),
    /// Time after which a new connection is taken to be out of the receiver's queue.
    pub(super) opening: Duration,
    /// Time without success after which the sink's state is `retrying`.
    pub(super) patience: Duration,
    /// Maximum time that a stop waits for attempts in flight.
    pub(super) farewell: Duration,
}

impl Default for Pace {
    fn default() -> Pace {
        Pace {
            event: (Duration::from_millis(200), Duration::from_secs(60)),
            connect: (Duration::from_millis(100), Duration::from_secs(5)),
            opening: Duration::from_millis(50),
            patience: Duration::from_secs(5),
            farewell: Duration::from_secs(2),
        }
    }
}

/// Settings common to every round.
pub(super) struct RoundSettings {
    pub(super) sink_name: String,
    pub(super) log_name: String,
    pub(super) in_flight: usize,
    pub(super) max_tries: Option<u32>,
    pub(super) dead_letters: Option<DeadLetters>,
    pub(super) status: Arc<Status>,
    pub(super) pace: Pace,
    /// Seed for the jitter of waits.
    pub(super) seed: u64,
}

/// The end of a round.
pub(super) struct RoundEnd {
    /// Number of leading messages that are all accepted or set aside.
    pub(super) handled: usize,
    /// The fault that ended it early, if any.
    pub(super) fault: Option<Fault>,
}

/// The delivery of one batch. One task drives it; attempts and appends of dead letters are separate
/// tasks.
pub(super) struct Round<'a> {
    settings: &'a RoundSettings,
    client: &'a Arc<Client>,
    messages: &'a [Arc<Message>],
    /// Idle connections, the most recently used last.
    idle: &'a mut Vec<Connection>,
    /// For each message, the next one with the same key.
    following: Vec<Option<usize>>,
    handled: Vec<bool>,
    unhandled: usize,
    /// Messages that can be sent now: the first unhandled one of each key.
    ready: VecDeque<usize>,
    /// Messages that can be sent later.
    waiting: BinaryHeap<Reverse<(Instant, usize)>>,
    /// Failures of messages that are not handled yet.
    troubles: HashMap<usize, MessageFailures>,
    tasks: JoinSet<TaskEnd>,
    /// Number of attempts in flight.
    sending: usize,
    /// Messages whose attempts began with a new connection a moment ago.
    opening: VecDeque<(Instant, usize)>,
    outage: Option<Outage>,
    /// Set while attempts fail and none succeeds.
    failing: Option<FailureStreak>,
    fault: Option<Fault>,
}

/// The failures of a message.
struct MessageFailures {
    /// Number of attempts that got a response.
    tries: u32,
    backoff: Backoff,
    /// The last refusal, if the message becomes a dead letter.
    verdict: Option<Arc<ReceiverRefusal>>,
}

/// An outage: new connections fail. Meanwhile only one is tried at a time, so that a receiver that
/// is down or accepts no more connections is not flooded; open connections are still used.
struct Outage {
    backoff: Backoff,
    until: Instant,
    probing: bool,
}

struct FailureStreak {
    since: Instant,
    reason: String,
    /// The state shown in the status.
    told: Option<String>,
}

enum TaskEnd {
    Attempted { index: usize, probe: bool, attempt: Attempt },
    Stored { index: usize, stored: Result<(), Fault> },
}

impl<'a> Round<'a> {
    /// A round of these messages, which are in log order.
    pub(super) fn new(
        settings: &'a RoundSettings,
        client: &'a Arc<Client>,
        messages: &'a [Arc<Message>],
        idle: &'a mut Vec<Connection>,
    ) -> Round<'a> {
        let mut following = vec![None; messages.len()];
        let mut ready = VecDeque::with_capacity(messages.len());
        let mut last_of: HashMap<&str, usize> = HashMap::new();
        for (index, message) in messages.iter().enumerate() {
            let before = message.key.as_deref().and_then(|key| last_of.insert(key, index));
            match before {
                Some(before) => following[before] = Some(index),
                None => ready.push_back(index),
            }
        }
        Round {
            settings,
            client,
            messages,
            idle,
            following,
            handled: vec![false; messages.len()],
            unhandled: messages.len(),
            ready,
            waiting: BinaryHeap::new(),
            troubles: HashMap::new(),
            tasks: JoinSet::new(),
            sending: 0,
            opening: VecDeque::new(),
            outage: None,
            failing: None,
            fault: None,
        }
    }

    /// Delivers until every message is handled, or a fault or `control` ends it.
    pub(super) async fn run(mut self, control: &Control) -> RoundEnd {
        while self.unhandled > 0 && self.fault.is_none() && !control.is_stopping() {
            let now = Instant::now();
            self.start(now);
            let wake = self.wake(now);
            tokio::select! {
                biased;
                Some(ended) = self.tasks.join_next() => self.ended(ended),
                () = sleep_until(wake) => {}
            }
            while let Some(ended) = self.tasks.try_join_next() {
                self.ended(ended);
            }
            self.show_failing();
        }
        let _ = timeout(self.settings.pace.farewell, async {
            while let Some(ended) = self.tasks.join_next().await {
                self.ended(ended);
            }
        })
        .await;
        let handled = self.handled.iter().take_while(|handled| **handled).count();
        RoundEnd { handled, fault: self.fault }
    }

    /// Starts everything that can start.
    fn start(&mut self, now: Instant) {
        while let Some(Reverse((due, index))) = self.waiting.peek().copied() {
            if due > now {
                break;
            }
            self.waiting.pop();
            self.ready.push_back(index);
        }
        while let Some(index) = self.ready.front().copied() {
            if let Some(append) = self.letter(index) {
                self.ready.pop_front();
                self.start_storing(index, append);
                continue;
            }
            if self.sending >= self.settings.in_flight {
                return;
            }
            let connection = self.idle_connection();
            if connection.is_none() && !self.may_open(now) {
                return;
            }
            let mut probe = false;
            if let (None, Some(outage)) = (&connection, &mut self.outage) {
                if outage.probing || now < outage.until {
                    return;
                }
                (outage.probing, probe) = (true, true);
            }
            self.ready.pop_front();
            if connection.is_none() {
                self.opening.push_back((now, index));
            }
            self.start_sending(index, connection, probe);
        }
    }

    /// Whether another connection may be opened.
    fn may_open(&mut self, now: Instant) -> bool {
        let is_new = |began: Instant| now < began + self.settings.pace.opening;
        while self.opening.front().is_some_and(|(began, _)| !is_new(*began)) {
            self.opening.pop_front();
        }
        self.opening.len() < MOST_OPENING
    }

    fn idle_connection(&mut self) -> Option<Connection> {
        while let Some(connection) = self.idle.pop() {
            if connection.is_usable() {
                return Some(connection);
            }
        }
        None
    }

    fn start_sending(&mut self, index: usize, connection: Option<Connection>, probe: bool) {
        if self.troubles.contains_key(&index) {
            Counters::add(&self.settings.status.counters.retries, 1);
        }
        let (client, message) = (Arc::clone(self.client), Arc::clone(&self.messages[index]));
        self.sending += 1;
        self.tasks.spawn(async move {
            let attempt = client.attempt(&message, connection).await;
            TaskEnd::Attempted { index, probe, attempt }
        });
    }

    /// The append of a message that becomes a dead letter.
    fn letter(&self, index: usize) -> Option<Result<wellspring_log::Append, Fault>> {
        let trouble = self.troubles.get(&index)?;
        let refusal = trouble.verdict.as_deref()?;
        let letter = Letter {
            sink: &self.settings.sink_name,
            log: &self.settings.log_name,
            message: &self.messages[index],
            tries: trouble.tries,
            refusal,
        };
        Some(letter.append())
    }

    fn start_storing(&mut self, index: usize, append: Result<wellspring_log::Append, Fault>) {
        let letters = self.settings.dead_letters.clone();
        self.tasks.spawn(async move {
            let stored = match (append, letters) {
                (Ok(append), Some(letters)) => letters.store(append).await,
                (Err(fault), _) => Err(fault),
                (Ok(_), None) => {
                    Err(Fault::stop(StopCode::Unusable, "no dead-letter log is configured"))
                }
            };
            TaskEnd::Stored { index, stored }
        });
    }

    /// The latest time for the next check.
    fn wake(&self, now: Instant) -> Instant {
        let due = self.waiting.peek().map(|Reverse((due, _))| *due);
        let outage = self.outage.as_ref().filter(|outage| !outage.probing);
        let probe = outage.filter(|_| !self.ready.is_empty()).map(|outage| outage.until);
        [due, probe].into_iter().flatten().fold(now + TICK, Instant::min)
    }

    fn ended(&mut self, ended: Result<TaskEnd, JoinError>) {
        match ended {
            Ok(TaskEnd::Attempted { index, probe, attempt }) => {
                self.attempted(index, probe, attempt);
            }
            Ok(TaskEnd::Stored { index, stored: Ok(()) }) => {
                let counters = &self.settings.status.counters;
                Counters::add(&counters.set_aside, 1);
                let position = self.messages[index].position;
                let sink = self.settings.sink_name.as_str();
                tracing::warn!(sink, position, "wrote an event to the dead-letter log");
                self.succeeded(index);
            }
            Ok(TaskEnd::Stored { index, stored: Err(fault @ Fault::Transient(_)) }) => {
                self.failed(fault.to_string());
                self.wait(index, Duration::ZERO);
            }
            Ok(TaskEnd::Stored { index, stored: Err(fault) }) => {
                self.stop(fault.at(self.messages[index].position));
            }
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                // Tasks are aborted only when the round is dropped.
                Err(error) => self.stop(Fault::transient(error.to_string())),
            },
        }
    }

    fn attempted(&mut self, index: usize, probe: bool, attempt: Attempt) {
        self.sending -= 1;
        self.opening.retain(|(_, opening)| *opening != index);
        self.idle.extend(attempt.connection);
        if attempt.connected {
            self.outage = None;
        }
        match attempt.outcome {
            DeliveryResult::Accepted => self.succeeded(index),
            DeliveryResult::Refused(refusal) => self.refused(index, refusal),
            DeliveryResult::Unanswered(reason) => {
                self.failed(format!("position {}: {reason}", self.messages[index].position));
                self.wait(index, Duration::ZERO);
            }
            DeliveryResult::Unreachable(reason) => {
                self.unreachable(probe);
                self.failed(reason);
                self.trouble(index);
                self.ready.push_front(index);
            }
        }
    }

    /// Marks a message as handled; the next one with its key can be sent.
    fn succeeded(&mut self, index: usize) {
        self.handled[index] = true;
        self.unhandled -= 1;
        if self.troubles.remove(&index).is_some() && self.troubles.is_empty() {
            self.settings.status.set_retrying_for(None);
        }
        self.ready.extend(self.following[index]);
        if self.failing.take().is_some_and(|failing| failing.told.is_some()) {
            self.settings.status.set_state(ConnectorState::Running);
        }
    }

    fn refused(&mut self, index: usize, refusal: ReceiverRefusal) {
        let position = self.messages[index].position;
        let answered = match refusal.text.as_str() {
            "" => format!("status {}", refusal.status.as_u16()),
            text => format!("status {}: {text}", refusal.status.as_u16()),
        };
        let origin = self.client.endpoint.origin();
        self.failed(format!("position {position}: {origin} answered with {answered}"));
        let trouble = self.trouble(index);
        trouble.tries = trouble.tries.saturating_add(1);
        let tries = trouble.tries;
        let Some(max_tries) = self.settings.max_tries.filter(|max_tries| tries >= *max_tries)
        else {
            return self.wait(index, refusal.retry_after.unwrap_or_default());
        };
        if self.settings.dead_letters.is_some() {
            self.trouble(index).verdict = Some(Arc::new(refusal));
            self.ready.push_front(index);
        } else {
            let detail = format!(
                "the event at position {position} was refused {max_tries} times, most recently with {answered}"
            );
            self.stop(Fault::stop(StopCode::Rejected, detail).at(position));
        }
    }

    fn unreachable(&mut self, probe: bool) {
        let now = Instant::now();
        match &mut self.outage {
            None => {
                let (first, longest) = self.settings.pace.connect;
                let mut backoff = Backoff::new(first, longest, self.settings.seed);
                let until = now + backoff.next_wait();
                self.outage = Some(Outage { backoff, until, probing: false });
            }
            Some(outage) if probe => {
                outage.probing = false;
                outage.until = now + outage.backoff.next_wait();
            }
            // The attempt was in flight when the outage began.
            Some(_) => {}
        }
    }

    fn trouble(&mut self, index: usize) -> &mut MessageFailures {
        let (first, longest) = self.settings.pace.event;
        let seed = self.settings.seed ^ self.messages[index].position;
        self.troubles.entry(index).or_insert_with(|| MessageFailures {
            tries: 0,
            backoff: Backoff::new(first, longest, seed),
            verdict: None,
        })
    }

    /// Delays a message by at least this long.
    fn wait(&mut self, index: usize, at_least: Duration) {
        let wait = self.trouble(index).backoff.next_wait().max(at_least);
        self.waiting.push(Reverse((Instant::now() + wait, index)));
    }

    fn failed(&mut self, reason: String) {
        if self.settings.status.set_retrying_for(Some(&reason)) {
            let sink = self.settings.sink_name.as_str();
            tracing::warn!(sink, reason, "an event is sent again until the receiver accepts it");
        }
        match &mut self.failing {
            Some(failing) => failing.reason = reason,
            None => {
                self.failing = Some(FailureStreak { since: Instant::now(), reason, told: None });
            }
        }
    }

    /// Updates the status if nothing has succeeded for a while.
    fn show_failing(&mut self) {
        let Some(failing) = &mut self.failing else { return };
        let patient = failing.since.elapsed() < self.settings.pace.patience;
        if patient || failing.told.as_ref() == Some(&failing.reason) {
            return;
        }
        failing.told = Some(failing.reason.clone());
        let reason = failing.reason.clone();
        self.settings.status.set_state(ConnectorState::Retrying { reason });
    }

    /// Ends the round; the first fault wins.
    fn stop(&mut self, fault: Fault) {
        self.fault.get_or_insert(fault);
    }
}
