//! A consumer as its operator sees it, as JSON.

use super::definition::push_definition;
use super::interrupted::Interrupted;
use super::open::OpenConsumer;
use super::pull::state_name;
use serde::Serialize;
use wellspring_consumers::{Consumer, Counters, KeyName, KeyPlace, KeyStatus, RunState};
use wellspring_host::wire::json::{push_string, push_u64};
use wellspring_types::Position;

/// What becomes of the next event of a key, as clients name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum PlaceName {
    Waiting,
    Ready,
    Held,
    Retrying,
    Parked,
}

impl PlaceName {
    pub(super) fn of(place: KeyPlace<'_>) -> PlaceName {
        match place {
            KeyPlace::Looking | KeyPlace::Waiting => PlaceName::Waiting,
            KeyPlace::Ready => PlaceName::Ready,
            KeyPlace::Held(_) => PlaceName::Held,
            KeyPlace::Retrying(_) => PlaceName::Retrying,
            KeyPlace::Parked => PlaceName::Parked,
        }
    }
}

/// An open key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct OpenKeyDocument {
    /// Its next event, or where that is looked for.
    pub(super) position: Position,
    /// None: an event without order.
    pub(super) key: Option<Box<str>>,
    pub(super) state: PlaceName,
    tries: u8,
    #[serde(skip_serializing_if = "Option::is_none")]
    worker: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_in_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reason: Option<String>,
}

impl OpenKeyDocument {
    pub(super) fn of(status: &KeyStatus<'_>, now_us: u64) -> OpenKeyDocument {
        let key = match status.key {
            KeyName::Value(value) => Some(value.clone()),
            KeyName::Event(_) => None,
        };
        let state = PlaceName::of(status.place);
        let (worker, retry_in_ms) = match status.place {
            KeyPlace::Held(worker) => (Some(shown_worker(worker)), None),
            KeyPlace::Retrying(due_us) => {
                (None, Some(due_us.saturating_sub(now_us).div_ceil(1_000)))
            }
            _ => (None, None),
        };
        let (position, tries) = (status.next, status.tries);
        OpenKeyDocument { position, key, state, tries, worker, retry_in_ms, reason: None }
    }
}

/// A worker without its account.
pub(super) fn shown_worker(name: &str) -> String {
    name.split_once('\0').map_or(name, |(_, worker)| worker).to_owned()
}

/// A consumer at a glance.
#[derive(Debug, Clone)]
pub(super) struct ConsumerStatus {
    pub(super) state: RunState,
    pub(super) counters: Counters,
    pub(super) generation: u64,
    pub(super) scanned: Position,
    pub(super) floor: Position,
    pub(super) open_keys: usize,
    pub(super) ready: usize,
    pub(super) in_flight: usize,
    pub(super) parked: usize,
    pub(super) workers: usize,
    pub(super) waiting: usize,
    /// Positions of the log that were not looked at yet.
    pub(super) lag: u64,
    pub(super) oldest: Option<OpenKeyDocument>,
    /// Age of that event; if there is none, of the first one that was not looked at.
    pub(super) oldest_age_ms: Option<u64>,
}

impl ConsumerStatus {
    /// Looks at all open keys, and reads one event.
    ///
    /// # Errors
    /// [`Interrupted`].
    pub(super) fn of(consumer: &OpenConsumer, wall_us: u64) -> Result<ConsumerStatus, Interrupted> {
        let head = consumer.log.head();
        let waiting = consumer.waiting.load(std::sync::atomic::Ordering::Relaxed);
        let mut status = consumer.with(|state: &mut Consumer, now_us| {
            // Without a waiting pull, nothing else has checked for expiry.
            state.expire(now_us);
            let status = state.status();
            ConsumerStatus {
                state: status.state,
                counters: state.counters(),
                generation: status.generation,
                scanned: status.scanned,
                floor: status.floor,
                open_keys: status.open_keys,
                ready: status.ready,
                in_flight: status.in_flight,
                parked: status.parked,
                workers: status.workers,
                waiting,
                lag: head.saturating_sub(status.scanned),
                oldest: status.oldest.map(|key| OpenKeyDocument::of(&key, now_us)),
                oldest_age_ms: None,
            }
        })?;
        let unseen = (status.lag > 0).then_some(status.scanned + 1);
        let oldest = status.oldest.as_ref().map(|oldest| oldest.position);
        if let Some(oldest) = oldest.or(unseen) {
            let recorded = consumer.log.snapshot().at(oldest, |event| event.recorded_at_us());
            // Damage is told to the worker that would get the event.
            let recorded_us = recorded.ok().flatten();
            status.oldest_age_ms =
                recorded_us.map(|recorded_us| wall_us.saturating_sub(recorded_us) / 1_000);
        }
        Ok(status)
    }

    /// Appends it as a JSON object.
    pub(super) fn push(&self, out: &mut Vec<u8>, consumer: &OpenConsumer) {
        out.extend_from_slice(b"{\"name\":");
        push_string(out, &consumer.name);
        out.extend_from_slice(b",\"definition\":");
        push_definition(out, &consumer.definition);
        out.extend_from_slice(b",\"state\":");
        push_string(out, state_name(self.state));
        let numbers = [
            ("generation", self.generation),
            ("scanned", self.scanned),
            ("floor", self.floor),
            ("lag", self.lag),
            ("open_keys", self.open_keys as u64),
            ("ready", self.ready as u64),
            ("in_flight", self.in_flight as u64),
            ("parked", self.parked as u64),
            ("workers", self.workers as u64),
        ];
        for (name, number) in numbers {
            out.push(b',');
            push_string(out, name);
            out.push(b':');
            push_u64(out, number);
        }
        if let Some(age_ms) = self.oldest_age_ms {
            out.extend_from_slice(b",\"oldest_age_ms\":");
            push_u64(out, age_ms);
        }
        if let Some(oldest) = &self.oldest {
            out.extend_from_slice(b",\"oldest\":");
            out.extend_from_slice(&wellspring_json::to_json(oldest));
        }
        out.push(b'}');
    }
}
