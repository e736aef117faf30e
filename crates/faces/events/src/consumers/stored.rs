//! The events of consumers in the log that they consume, and the way back from them.
//!
//! All have the tag `consumer:NAME`. A definition and the first checkpoint are one append. A full
//! checkpoint is as many events as its keys need, numbered (`"part":[i,n,set]`); only with all
//! parts of its set does it count, and deltas follow it. So the last definition, and the
//! checkpoints back to the last full one, are all that a start reads.

use super::definition::{ConsumerDefinition, push_definition, read_definition};
use serde::de::Visitor;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use std::collections::{BTreeMap, HashSet};
use std::fmt;
use wellspring_consumers::{ChainFault, Checkpoint, Consumer, KeyName, OpenKey, RunState};
use wellspring_host::kept_types::KeptEvents;
use wellspring_host::wire::json::{document, push_string};
use wellspring_log::{EncodedEvents, Events, Order, ReadError, RecordView, Snapshot, Work};
use wellspring_types::{DataKind, EventRef, Position, Query, limits};

/// A consumer was defined, or its definition changed.
const DEFINED: &str = "ConsumerDefined";
/// The state of a consumer, or what has changed of it.
const CHECKPOINT: &str = "ConsumerCheckpoint";
/// An event was parked, and why: for people.
const PARKED: &str = "ConsumerParked";
/// A consumer was deleted.
const DROPPED: &str = "ConsumerDropped";

/// What clients may not append to any log.
pub(crate) static KEPT: KeptEvents = KeptEvents {
    log: None,
    types: &[DEFINED, CHECKPOINT, PARKED, DROPPED],
    prefix: "Consumer",
    advice: "only the server writes: consumers are defined with PUT /v1/consumers/{name}",
};

/// Whether an event is one of consumers, which no consumer delivers and no import adds.
pub(crate) fn is_of_consumers(event_type: &str) -> bool {
    event_type.starts_with(KEPT.prefix) && KEPT.types.contains(&event_type)
}

/// Bytes of keys after which another part of a checkpoint begins.
const PART_BYTES: usize = 256 << 10;
/// Bytes of parts after which another append begins.
const APPEND_BYTES: usize = limits::MAX_REQUEST_BYTES / 2;

/// A consumer as its events say.
#[derive(Debug)]
struct StoredConsumer {
    /// Drawn once: a consumer of the same name that is defined after this one was deleted is
    /// another one.
    id: String,
    definition: ConsumerDefinition,
    /// The last full checkpoint and all after it.
    chain: Vec<Checkpoint>,
}

/// A consumer as it was when its log had this head.
#[derive(Debug)]
pub(super) struct RestoredConsumer {
    pub(super) id: String,
    pub(super) definition: ConsumerDefinition,
    pub(super) state: Result<Consumer, ChainFault>,
}

#[derive(Deserialize)]
struct DefinedData<'a> {
    id: String,
    #[serde(borrow)]
    definition: &'a RawValue,
}

/// Its number from 0, how many there are, and a number drawn for all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct CheckpointPart(u32, u32, u64);

#[derive(Serialize, Deserialize)]
struct CheckpointData {
    generation: u64,
    /// Which event of a full checkpoint it is; none: a delta.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    part: Option<CheckpointPart>,
    head: Position,
    scanned: Position,
    state: StateName,
    /// Key, next position, tries, whether that event is parked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    open: Vec<(StoredKey, Position, u8, bool)>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    closed: Vec<StoredKey>,
}

/// The name of a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum StateName {
    Running,
    Paused,
    Stopped,
}

impl From<RunState> for StateName {
    fn from(state: RunState) -> StateName {
        match state {
            RunState::Running => StateName::Running,
            RunState::Paused => StateName::Paused,
            RunState::Stopped => StateName::Stopped,
        }
    }
}

impl From<StateName> for RunState {
    fn from(name: StateName) -> RunState {
        match name {
            StateName::Running => RunState::Running,
            StateName::Paused => RunState::Paused,
            StateName::Stopped => RunState::Stopped,
        }
    }
}

/// A key: a value of the tag, or the position of an event without order.
#[derive(Serialize)]
#[serde(untagged)]
enum StoredKey {
    Event(Position),
    Value(Box<str>),
}

/// By hand: what is derived makes the text of an error for each value, as it tries a number first.
impl<'de> Deserialize<'de> for StoredKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<StoredKey, D::Error> {
        struct KeyVisitor;

        impl Visitor<'_> for KeyVisitor {
            type Value = StoredKey;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a value of a tag, or a position")
            }

            fn visit_u64<E: serde::de::Error>(self, position: u64) -> Result<StoredKey, E> {
                Ok(StoredKey::Event(position))
            }

            fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<StoredKey, E> {
                Ok(StoredKey::Value(value.into()))
            }
        }

        deserializer.deserialize_any(KeyVisitor)
    }
}

impl From<KeyName> for StoredKey {
    fn from(name: KeyName) -> StoredKey {
        match name {
            KeyName::Event(position) => StoredKey::Event(position),
            KeyName::Value(value) => StoredKey::Value(value),
        }
    }
}

impl From<StoredKey> for KeyName {
    fn from(key: StoredKey) -> KeyName {
        match key {
            StoredKey::Event(position) => KeyName::Event(position),
            StoredKey::Value(value) => KeyName::Value(value),
        }
    }
}

/// Data of [`PARKED`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ParkedEvent {
    pub(super) position: Position,
    pub(super) worker: String,
    pub(super) reason: String,
}

fn tag_of(name: &str) -> String {
    format!("consumer:{name}")
}

fn push(events: &mut EncodedEvents, name: &str, event_type: &str, data: &[u8]) {
    let tag = tag_of(name);
    let event = EventRef {
        event_type,
        tags: &[tag.as_str()],
        data,
        kind: DataKind::Json,
        id: None,
        metadata: &[],
    };
    events.push(&event).expect("an event within the limits");
}

/// The events of a definition, and of the first checkpoint if it creates the consumer.
pub(super) fn defined(
    name: &str,
    id: &str,
    definition: &ConsumerDefinition,
    first: Option<Checkpoint>,
) -> EncodedEvents {
    let mut data = b"{\"id\":".to_vec();
    push_string(&mut data, id);
    data.extend_from_slice(b",\"definition\":");
    push_definition(&mut data, definition);
    data.push(b'}');
    let mut events = EncodedEvents::new();
    push(&mut events, name, DEFINED, &data);
    for part in first.into_iter().flat_map(|first| checkpoint_data(first, 0)) {
        push_checkpoint(&mut events, name, &part);
    }
    events
}

/// The event of a deletion.
pub(super) fn dropped(name: &str) -> EncodedEvents {
    let mut events = EncodedEvents::new();
    push(&mut events, name, DROPPED, b"{}");
    events
}

/// The events that say why events were parked, at most as many as an append takes.
pub(super) fn parked(name: &str, reasons: &[ParkedEvent]) -> EncodedEvents {
    let mut events = EncodedEvents::new();
    for reason in reasons.iter().take(limits::MAX_EVENTS) {
        push(&mut events, name, PARKED, &wellspring_json::to_json(reason));
    }
    events
}

/// The events of a checkpoint, as one append or, with very many keys, as several. No other one of
/// the consumer has the same number drawn.
pub(super) fn checkpoint(name: &str, checkpoint: Checkpoint, drawn: u64) -> Vec<EncodedEvents> {
    let mut appends = vec![EncodedEvents::new()];
    for part in checkpoint_data(checkpoint, drawn) {
        if appends.last().expect("never empty").byte_len() > APPEND_BYTES {
            appends.push(EncodedEvents::new());
        }
        push_checkpoint(appends.last_mut().expect("never empty"), name, &part);
    }
    appends
}

fn push_checkpoint(events: &mut EncodedEvents, name: &str, part: &CheckpointData) {
    push(events, name, CHECKPOINT, &wellspring_json::to_json(part));
}

/// A checkpoint cut into parts. Those of a delta are deltas of their own, which one append holds:
/// a delta is smaller than the full checkpoint before it.
fn checkpoint_data(checkpoint: Checkpoint, drawn: u64) -> Vec<CheckpointData> {
    let Checkpoint { generation, is_full, head, scanned, state, open, closed } = checkpoint;
    let empty = || CheckpointData {
        generation,
        part: None,
        head,
        scanned,
        state: state.into(),
        open: Vec::new(),
        closed: Vec::new(),
    };
    let mut parts = vec![empty()];
    let mut bytes = 0;
    // A quotation mark takes two bytes; positions and the rest take less than 40.
    let mut part_for = |parts: &mut Vec<CheckpointData>, key: &KeyName| {
        bytes += 40 + if let KeyName::Value(value) = key { 2 * value.len() } else { 0 };
        if bytes > PART_BYTES {
            bytes = 0;
            parts.push(empty());
        }
    };
    // A key that was closed and is open again is not among the closed.
    for key in closed {
        part_for(&mut parts, &key);
        parts.last_mut().expect("never empty").closed.push(key.into());
    }
    for open in open {
        part_for(&mut parts, &open.key);
        let entry = (open.key.into(), open.next, open.tries, open.is_parked);
        parts.last_mut().expect("never empty").open.push(entry);
    }
    if is_full {
        let count = parts.len() as u32;
        for (number, part) in (0..).zip(&mut parts) {
            part.part = Some(CheckpointPart(number, count, drawn));
        }
    }
    parts
}

impl CheckpointData {
    fn checkpoint(self) -> Checkpoint {
        let open = self.open.into_iter().map(|(key, next, tries, is_parked)| OpenKey {
            key: key.into(),
            next,
            tries,
            is_parked,
        });
        Checkpoint {
            generation: self.generation,
            is_full: self.part.is_some_and(|part| part.0 == 0),
            head: self.head,
            scanned: self.scanned,
            state: self.state.into(),
            open: open.collect(),
            closed: self.closed.into_iter().map(KeyName::from).collect(),
        }
    }
}

/// Events of consumers, latest first.
fn latest_first(snapshot: &Snapshot, types: &[&str], tag: Option<&str>, work: Work) -> Events {
    let tags: Vec<&str> = tag.into_iter().collect();
    // What is before was written again when it was cut off: `LogConsumers::renew`.
    let mut events = snapshot.read_kept(&Query::item(types, &tags), Order::Descending);
    events.bound(work);
    events
}

fn defined_of(record: &RecordView<'_>) -> Option<(String, ConsumerDefinition)> {
    let data: DefinedData<'_> = serde_json::from_slice(record.data()).ok()?;
    let definition = document(data.definition.get().as_bytes(), read_definition).ok()?.0;
    Some((data.id, definition))
}

/// The consumer of this name; `None` if there is none. A checkpoint that cannot be read is passed
/// over: what it says has been delivered is delivered again.
///
/// # Errors
/// [`ReadError`], also if `work` stops.
fn read(snapshot: &Snapshot, name: &str, work: Work) -> Result<Option<StoredConsumer>, ReadError> {
    let tag = tag_of(name);
    let mut events = latest_first(snapshot, &[DEFINED, DROPPED], Some(&tag), work.clone());
    let Some(record) = events.next()? else { return Ok(None) };
    let defined = (record.event_type() == DEFINED).then(|| defined_of(&record)).flatten();
    let Some((id, definition)) = defined else { return Ok(None) };
    let chain = read_chain(latest_first(snapshot, &[CHECKPOINT], Some(&tag), work))?;
    Ok(Some(StoredConsumer { id, definition, chain }))
}

/// As [`read`], with its state, which takes a while with very many keys.
///
/// # Errors
/// [`ReadError`], also if `work` stops.
pub(super) fn restore(
    snapshot: &Snapshot,
    name: &str,
    work: Work,
) -> Result<Option<RestoredConsumer>, ReadError> {
    let stored = read(snapshot, name, work)?;
    Ok(stored.map(|StoredConsumer { id, definition, chain }| {
        let state = Consumer::restore(definition.terms.clone(), &chain, snapshot.head());
        RestoredConsumer { id, definition, state }
    }))
}

/// The last full checkpoint and all after it, from checkpoints that come latest first.
fn read_chain(mut events: Events) -> Result<Vec<Checkpoint>, ReadError> {
    let mut chain = Vec::new();
    // The next part of a full checkpoint that is whole so far.
    let mut awaited: Option<CheckpointPart> = None;
    while let Some(record) = events.next()? {
        let Ok(data) = serde_json::from_slice::<CheckpointData>(record.data()) else {
            tracing::warn!(
                position = record.position(),
                "a checkpoint of a consumer is unreadable"
            );
            continue;
        };
        if awaited.is_some() && data.part != awaited {
            // Its first parts were never stored; what is read now is from before it.
            chain.clear();
            awaited = None;
        }
        let part = data.part;
        match part {
            // Its last parts were never stored.
            Some(CheckpointPart(number, count, _)) if awaited.is_none() && number + 1 < count => {}
            None | Some(_) => chain.push(data.checkpoint()),
        }
        awaited = match part {
            Some(CheckpointPart(0, ..)) if chain.last().is_some_and(|last| last.is_full) => break,
            Some(CheckpointPart(number, count, drawn))
                if awaited.is_some() || number + 1 == count =>
            {
                Some(CheckpointPart(number - 1, count, drawn))
            }
            _ => None,
        };
    }
    chain.reverse();
    Ok(chain)
}

/// All consumers by name.
///
/// # Errors
/// [`ReadError`], also if `work` stops.
pub(super) fn names(snapshot: &Snapshot, work: Work) -> Result<Vec<String>, ReadError> {
    let mut events = latest_first(snapshot, &[DEFINED, DROPPED], None, work);
    let mut consumers: BTreeMap<String, bool> = BTreeMap::new();
    while let Some(record) = events.next()? {
        let name = record.tags().find_map(|tag| tag.strip_prefix("consumer:"));
        let is_defined = record.event_type() == DEFINED;
        consumers.entry(name.unwrap_or_default().to_owned()).or_insert(is_defined);
    }
    Ok(consumers.into_iter().filter_map(|(name, is_defined)| is_defined.then_some(name)).collect())
}

/// Why events of this consumer were parked, the latest reason of each.
///
/// # Errors
/// [`ReadError`], also if `work` stops.
pub(super) fn reasons(
    snapshot: &Snapshot,
    name: &str,
    parked: &HashSet<Position>,
    work: Work,
) -> Result<BTreeMap<Position, ParkedEvent>, ReadError> {
    let mut reasons = BTreeMap::new();
    let mut events = latest_first(snapshot, &[PARKED], Some(&tag_of(name)), work);
    while reasons.len() < parked.len()
        && let Some(record) = events.next()?
    {
        let Ok(event) = serde_json::from_slice::<ParkedEvent>(record.data()) else { continue };
        if parked.contains(&event.position) {
            reasons.entry(event.position).or_insert(event);
        }
    }
    Ok(reasons)
}

#[cfg(test)]
mod tests {
    use super::super::definition::StartAt;
    use super::*;
    use wellspring_log::{Append, Log, Options};

    fn append(log: &Log, events: EncodedEvents) {
        log.append(Append { events, ..Append::default() }).expect("appended");
    }

    fn definition() -> ConsumerDefinition {
        let read = document(br#"{"query":{"items":[]},"from":"now"}"#, read_definition);
        let (definition, from) = read.expect("a definition");
        assert_eq!(from, Some(StartAt::Now));
        definition
    }

    fn with_keys(is_full: bool, scanned: Position, keys: std::ops::Range<u64>) -> Checkpoint {
        let open = keys.map(|key| OpenKey {
            key: KeyName::Value(format!("{key}-{}", "\"".repeat(200)).into()),
            next: key + 1,
            tries: 3,
            is_parked: key % 2 == 0,
        });
        Checkpoint {
            generation: 1,
            is_full,
            head: 5,
            scanned,
            state: RunState::Paused,
            open: open.collect(),
            closed: vec![KeyName::Event(7), KeyName::Value("a".into())],
        }
    }

    fn stored(log: &Log) -> Option<StoredConsumer> {
        read(&log.snapshot(), "c", Work::unbounded()).expect("read")
    }

    /// All open keys that a chain leads to.
    fn open_keys(chain: &[Checkpoint]) -> usize {
        let begins = chain.iter().rposition(|checkpoint| checkpoint.is_full);
        let after = &chain[begins.expect("a full one")..];
        after.iter().map(|checkpoint| checkpoint.open.len()).sum()
    }

    #[test]
    fn what_is_stored_is_read_again_in_as_many_parts_as_it_needs() {
        let dir = tempfile::tempdir().unwrap();
        let log = Log::open(dir.path(), Options::default()).unwrap();
        assert!(stored(&log).is_none());
        append(&log, defined("c", "0badcafe", &definition(), Some(with_keys(true, 0, 0..1))));
        append(&log, defined("other", "1", &definition(), Some(with_keys(true, 0, 0..1))));
        let found = stored(&log).expect("defined");
        assert_eq!((found.id.as_str(), &found.definition), ("0badcafe", &definition()));
        assert_eq!(found.chain, [with_keys(true, 0, 0..1)]);
        // Parts of 256 KiB, in appends of 8 MiB.
        let appends = checkpoint("c", with_keys(true, 9, 0..30_000), 1);
        assert!(appends.len() > 1 && appends[0].len() > 10, "{}", appends.len());
        appends.into_iter().for_each(|events| append(&log, events));
        append(&log, checkpoint("c", with_keys(false, 10, 5..7), 1).remove(0));
        let found = stored(&log).expect("defined");
        assert_eq!(open_keys(&found.chain), 30_002);
        assert_eq!(found.chain.last(), Some(&with_keys(false, 10, 5..7)));
        assert_eq!(names(&log.snapshot(), Work::unbounded()).unwrap(), ["c", "other"]);
        append(&log, dropped("c"));
        assert!(stored(&log).is_none());
        assert_eq!(names(&log.snapshot(), Work::unbounded()).unwrap(), ["other"]);
    }

    #[test]
    fn a_full_checkpoint_without_all_of_its_parts_does_not_count() {
        for kept in [0..1, 1..3] {
            let dir = tempfile::tempdir().unwrap();
            let log = Log::open(dir.path(), Options::default()).unwrap();
            append(&log, defined("c", "1", &definition(), Some(with_keys(true, 0, 0..1))));
            append(&log, checkpoint("c", with_keys(false, 3, 1..2), 1).remove(0));
            let appends = checkpoint("c", with_keys(true, 9, 0..60_000), 1);
            assert_eq!(appends.len(), 3);
            for events in &appends[kept.clone()] {
                append(&log, events.clone());
            }
            let found = stored(&log).expect("defined").chain;
            assert_eq!(found, [with_keys(true, 0, 0..1), with_keys(false, 3, 1..2)], "{kept:?}");
            // Nor do parts of two make one.
            let again = checkpoint("c", with_keys(true, 9, 0..60_000), 2);
            again[kept.end..].iter().for_each(|events| append(&log, events.clone()));
            assert_eq!(stored(&log).expect("defined").chain, found, "{kept:?}");
            again.into_iter().for_each(|events| append(&log, events));
            assert_eq!(open_keys(&stored(&log).expect("defined").chain), 60_000, "{kept:?}");
        }
    }

    #[test]
    fn the_latest_reason_of_each_parked_event_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let log = Log::open(dir.path(), Options::default()).unwrap();
        let event = |position, reason: &str| ParkedEvent {
            position,
            worker: "w".to_owned(),
            reason: reason.to_owned(),
        };
        append(&log, parked("c", &[event(3, "first"), event(4, "other")]));
        append(&log, parked("c", &[event(3, "second")]));
        append(&log, parked("d", &[event(3, "another consumer's")]));
        let found =
            reasons(&log.snapshot(), "c", &HashSet::from([3, 9]), Work::unbounded()).unwrap();
        assert_eq!(found.into_values().collect::<Vec<_>>(), [event(3, "second")]);
    }
}
