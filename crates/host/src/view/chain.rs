//! A view for tests: a chain whose links each name the previous one. A decision based on one that
//! failed, or that has missed an earlier event, visibly breaks the chain.

use crate::view::contract::{ConditionStart, Decision, LogEvent, SnapshotFault, Ticket, View};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use wellspring_log::{Append, EncodedEvents, Log, ReadOptions};
use wellspring_types::{Event, Position, Query, QueryItem};

const LINKED: &str = "Linked";

/// Whether links are appended on the condition that no foreign event lies between.
pub(super) enum ForeignLinks {
    Nothing,
    AnyLink,
}

pub(super) struct Context {
    pub(super) unless: ForeignLinks,
    /// Source of unique link numbers.
    pub(super) numbers: AtomicU64,
}

impl Context {
    pub(super) fn new(unless: ForeignLinks) -> Context {
        Context { unless, numbers: AtomicU64::new(0) }
    }
}

/// The state for readers: a version of the chain.
#[derive(Default)]
pub(super) struct Version {
    /// Number of the last link.
    pub(super) number: AtomicU64,
    /// Position up to which events are folded.
    pub(super) position: AtomicU64,
}

#[derive(Default)]
pub(super) struct Chain {
    shown: Arc<Version>,
    number: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StagedLink {
    pub(super) ticket: Ticket,
    pub(super) number: u64,
    pub(super) last: Option<Position>,
}

#[derive(Default)]
pub(super) struct Staged {
    pub(super) links: Vec<StagedLink>,
    /// How often a placed decision failed.
    pub(super) fallen: u64,
}

pub(super) enum Command {
    /// Appends a link.
    Link,
    /// Fails if this is the number of the last link. Otherwise it was overtaken.
    StillLast(u64),
    /// Is refused if this is the number of the last link. Otherwise it was overtaken.
    NotLast(u64),
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// Never reported.
    Overtaken,
    ItIsTheLast,
}

/// A link's event.
pub(super) fn linked(number: u64, follows: u64) -> Event {
    // Some are large: a small one may fit behind one that does not.
    let pad = if number.is_multiple_of(5) { 3_000 } else { 0 };
    let data = format!(r#"{{"number":{number},"follows":{follows},"pad":"{}"}}"#, "x".repeat(pad));
    Event::json(LINKED, &[], &data)
}

fn read(data: &[u8]) -> (u64, u64) {
    let value: serde_json::Value = serde_json::from_slice(data).unwrap();
    (value["number"].as_u64().unwrap(), value["follows"].as_u64().unwrap())
}

/// All links of a log in order: number and predecessor.
pub(super) fn links(log: &Log) -> Vec<(u64, u64)> {
    let mut events = log.snapshot().read(&Query::item(&[LINKED], &[]), ReadOptions::default());
    let mut links = Vec::new();
    while let Some(record) = events.next().unwrap() {
        links.push(read(record.data()));
    }
    links
}

/// A foreign append.
pub(super) fn raw(event: &Event) -> Append {
    let mut events = EncodedEvents::new();
    events.push(&event.as_ref()).unwrap();
    Append { events, ..Append::default() }
}

impl View for Chain {
    const NAME: &'static str = "chain";
    const VERSION: u32 = 1;
    const CONDITION_START: ConditionStart = ConditionStart::OwnLast;
    type Folded = Version;
    type Staged = Staged;
    type Command = Command;
    type Context = Context;
    type Outcome = u64;
    type Refusal = Refusal;

    fn new() -> Self {
        Chain::default()
    }

    fn query() -> Query {
        Query::item(&[LINKED], &[])
    }

    fn folded(&self) -> &Arc<Version> {
        &self.shown
    }

    fn apply(&mut self, event: &impl LogEvent) {
        self.number = read(event.data()).0;
    }

    fn publish(&mut self, position: Position) {
        // Time in which a position reported too early would show.
        std::thread::sleep(Duration::from_micros(200));
        self.shown.number.store(self.number, Ordering::SeqCst);
        self.shown.position.store(position, Ordering::SeqCst);
    }

    fn outcome(event: &impl LogEvent) -> Option<u64> {
        Some(read(event.data()).0)
    }

    fn decide(
        shown: &Version,
        staged: &Staged,
        context: &Context,
        command: &Command,
    ) -> Result<Decision<u64>, Refusal> {
        let folded = shown.number.load(Ordering::SeqCst);
        let last = staged.links.last().map_or(folded, |link| link.number);
        match command {
            Command::StillLast(number) | Command::NotLast(number) if *number != last => {
                return Err(Refusal::Overtaken);
            }
            Command::NotLast(_) => return Err(Refusal::ItIsTheLast),
            Command::StillLast(number) => {
                return Ok(Decision { events: vec![], unless: vec![], outcome: *number });
            }
            Command::Link => {}
        }
        let number = context.numbers.fetch_add(1, Ordering::Relaxed) + 1;
        let unless = match context.unless {
            ForeignLinks::Nothing => Vec::new(),
            ForeignLinks::AnyLink => vec![QueryItem::new(&[LINKED], &[])],
        };
        Ok(Decision { events: vec![linked(number, last)], unless, outcome: number })
    }

    fn stage(staged: &mut Staged, decision: &Decision<u64>, ticket: Ticket) {
        staged.links.push(StagedLink { ticket, number: decision.outcome, last: None });
    }

    fn placed(staged: &mut Staged, ticket: Ticket, last: Position) {
        let placed = staged.links.iter_mut().filter(|link| link.ticket == ticket);
        placed.for_each(|link| link.last = Some(last));
    }

    fn settle(staged: &mut Staged, ticket: Ticket) {
        staged.links.retain(|link| link.ticket != ticket);
    }

    fn discarded(staged: &mut Staged, ticket: Ticket) {
        staged.fallen += 1;
        Chain::settle(staged, ticket);
    }

    fn without_pending(staged: &Staged) -> Staged {
        Staged { fallen: staged.fallen, ..Staged::default() }
    }

    fn is_final(refusal: &Refusal) -> bool {
        *refusal != Refusal::Overtaken
    }

    fn encode(_: &Version, _: &mut impl io::Write) -> io::Result<()> {
        Ok(())
    }

    fn decode(_: &mut impl io::Read) -> Result<Self, SnapshotFault> {
        Err(SnapshotFault::Malformed("a chain keeps no snapshots"))
    }
}
