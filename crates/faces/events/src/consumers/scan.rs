//! What a consumer reads of its log: new events, and the next ones of keys that lag behind. The
//! first pull in line does this; only positions and keys are kept.

use super::interrupted::Interrupted;
use super::open::OpenConsumer;
use super::settled_since::SettledSince;
use super::stored::is_of_consumers;
use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use wellspring_consumers::{
    KeyName, KeyedEvent, LookUp, OrderKey, ScanFrom, ScanNeed, ScanVerdict,
};
use wellspring_host::http::work::{Cost, Job, Progress, Task};
use wellspring_host::wire::problem::Problem;
use wellspring_log::{
    CompiledQuery, Events, ReadError, ReadOptions, RecordView, Snapshot, Subscription,
    TooManyWaiters, Work,
};
use wellspring_types::{Position, Query, QueryItem};

/// Most events of one scan.
const SCAN_EVENTS: usize = 1_024;
/// Most keys looked up at a time.
const LOOK_UPS: usize = 64;

/// An event of a consumer's query, without its content.
struct FoundEvent {
    position: Position,
    keys: Vec<Box<str>>,
}

impl FoundEvent {
    fn of(record: &RecordView<'_>, order: &OrderKey) -> FoundEvent {
        let keys = order.values(record.tags()).into_iter().map(Box::from).collect();
        FoundEvent { position: record.position(), keys }
    }

    fn keyed(events: &[FoundEvent]) -> Vec<KeyedEvent<'_>> {
        let mut keyed = Vec::with_capacity(events.len());
        for event in events {
            let keys = event.keys.iter().map(|key| &**key).collect();
            keyed.push(KeyedEvent { position: event.position, keys });
        }
        keyed
    }
}

/// Whether there is more to read at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Advance {
    /// Something was read.
    Advanced,
    /// Everything is read, or nothing is wanted.
    Idle,
}

/// Where a consumer's log is read. One of each consumer, for the first pull in line.
pub(super) struct Scanner {
    query: Arc<CompiledQuery>,
    cost: Cost,
    /// With what was scanned up to its position. None: to be made again.
    subscription: Option<(Subscription, ScanFrom)>,
    settled: SettledSince,
}

impl Scanner {
    pub(super) fn new(query: &Query) -> Scanner {
        Scanner {
            query: CompiledQuery::shared(query),
            cost: Cost::of_terms(query.term_count()),
            subscription: None,
            settled: SettledSince::default(),
        }
    }

    /// Reads what the consumer wants next, if it wants this many events to be ready.
    ///
    /// # Errors
    /// [`Interrupted`].
    pub(super) async fn advance(
        &mut self,
        consumer: &Arc<OpenConsumer>,
        job: &mut Job,
        enough: usize,
    ) -> Result<Advance, Interrupted> {
        let wanted = consumer.with(|state, _| state.wanted_look_ups(enough, LOOK_UPS))?;
        if !wanted.is_empty() {
            self.look_up(consumer, job, wanted).await?;
            return Ok(Advance::Advanced);
        }
        let (need, ready) =
            consumer.with(|state, _| (state.scan_need(enough), state.ready_events()))?;
        match need {
            ScanNeed::From(from) => self.scan(consumer, job, from, enough - ready).await,
            ScanNeed::Enough | ScanNeed::Full | ScanNeed::Idle => Ok(Advance::Idle),
        }
    }

    /// Ready when there may be another event to scan. Never, where nothing is to be scanned.
    pub(super) fn poll_ready(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), TooManyWaiters>> {
        match &mut self.subscription {
            Some((subscription, _)) => subscription.poll_ready(context),
            None => Poll::Pending,
        }
    }

    async fn scan(
        &mut self,
        consumer: &Arc<OpenConsumer>,
        job: &mut Job,
        from: ScanFrom,
        most: usize,
    ) -> Result<Advance, Interrupted> {
        let subscription = match self.subscription.take() {
            Some((subscription, at)) if at == from => subscription,
            _ => consumer.log.subscribe(consumer.definition.query.clone(), from.after),
        };
        let recovery = consumer.with(|state, _| state.recovery())?;
        self.settled.begin(consumer, from.generation, recovery, from.after);
        let task = ScanTask {
            consumer: Arc::clone(consumer),
            subscription,
            settled: self.settled.clone(),
            events: Vec::new(),
            // A run is of events that were scanned, so the scan goes on for a while.
            most: (most * usize::from(consumer.definition.terms.run)).min(SCAN_EVENTS),
            is_at_end: false,
        };
        let task = self.run(job, task).await?;
        let ScanTask { subscription, events, is_at_end, .. } = task;
        let up_to = subscription.position();
        let runs = self.settled.runs();
        let verdict = consumer.with(|state, _| {
            state.leave_out(runs);
            state.scanned(from, &FoundEvent::keyed(&events), up_to)
        })?;
        if verdict == ScanVerdict::Taken {
            self.subscription = Some((subscription, ScanFrom { after: up_to, ..from }));
            if is_at_end && events.is_empty() {
                return Ok(Advance::Idle);
            }
        }
        Ok(Advance::Advanced)
    }

    async fn look_up(
        &mut self,
        consumer: &Arc<OpenConsumer>,
        job: &mut Job,
        wanted: Vec<LookUp>,
    ) -> Result<(), Interrupted> {
        let (recovery, scanned) =
            consumer.with(|state, _| (state.recovery(), state.scanned_up_to()))?;
        self.settled.begin(consumer, wanted[0].generation, recovery, scanned);
        let task = LookUpTask {
            consumer: Arc::clone(consumer),
            snapshot: consumer.log.snapshot(),
            query: Arc::clone(&self.query),
            wanted: wanted.into(),
            current: None,
            events: Vec::new(),
            settled: self.settled.clone(),
            found: Vec::new(),
        };
        let found = self.run(job, task).await?.found;
        let runs = self.settled.runs();
        consumer.with(|state, _| {
            state.leave_out(runs);
            for LookUpResult { look_up, events, is_all } in &found {
                state.found(look_up, &FoundEvent::keyed(events), *is_all);
            }
        })?;
        Ok(())
    }

    /// Runs a task to its end: here if it is short, otherwise elsewhere, as long as it takes.
    async fn run<T: Task>(&self, job: &mut Job, task: T) -> Result<T, Box<Problem>> {
        let (mut task, mut progress) = job.begin_here(self.cost, task)?;
        while progress == Progress::More {
            (task, progress) = Box::pin(job.patient_piece(task)).await?;
        }
        Ok(task)
    }
}

/// A scan in progress.
struct ScanTask {
    consumer: Arc<OpenConsumer>,
    subscription: Subscription,
    settled: SettledSince,
    events: Vec<FoundEvent>,
    most: usize,
    is_at_end: bool,
}

impl Task for ScanTask {
    fn proceed(&mut self, work: Work) -> Result<Progress, Box<Problem>> {
        self.subscription.bound(work);
        while self.events.len() < self.most {
            let record = match self.subscription.next(Duration::ZERO) {
                Ok(Some(record)) => record,
                Ok(None) => {
                    self.is_at_end = true;
                    break;
                }
                // What could be read is delivered first.
                Err(_) if !self.events.is_empty() => break,
                Err(ReadError::Stopped(_)) => return Ok(Progress::More),
                Err(error) => return Err(error.into()),
            };
            if is_of_consumers(record.event_type()) {
                continue;
            }
            let event = FoundEvent::of(&record, &self.consumer.definition.terms.key);
            if !self.settled.has(&self.consumer, &record, &event.keys)? {
                self.events.push(event);
            }
        }
        Ok(Progress::Done)
    }
}

/// What a look-up found.
struct LookUpResult {
    look_up: LookUp,
    events: Vec<FoundEvent>,
    /// Whether there are no more.
    is_all: bool,
}

/// Look-ups in progress, one after the other.
struct LookUpTask {
    consumer: Arc<OpenConsumer>,
    snapshot: Snapshot,
    query: Arc<CompiledQuery>,
    /// The first one is in progress.
    wanted: VecDeque<LookUp>,
    current: Option<Events>,
    events: Vec<FoundEvent>,
    settled: SettledSince,
    found: Vec<LookUpResult>,
}

impl Task for LookUpTask {
    fn proceed(&mut self, mut work: Work) -> Result<Progress, Box<Problem>> {
        while let Some(look_up) = self.wanted.front() {
            let mut current = match self.current.take() {
                Some(current) => current,
                None => self.begin(look_up),
            };
            current.bound(work);
            let read = self.read(&mut current);
            work = current.work().clone();
            match read {
                Ok(is_all) => {
                    let look_up = self.wanted.pop_front().expect("it was there");
                    let events = std::mem::take(&mut self.events);
                    self.found.push(LookUpResult { look_up, events, is_all });
                }
                Err(ReadError::Stopped(_)) => {
                    self.current = Some(current);
                    return Ok(Progress::More);
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(Progress::Done)
    }
}

impl LookUpTask {
    fn begin(&self, look_up: &LookUp) -> Events {
        let options = ReadOptions { after: Some(look_up.after), ..ReadOptions::default() };
        let snapshot = self.snapshot.up_to(look_up.up_to);
        match (&look_up.key, &self.consumer.definition.terms.key) {
            (KeyName::Value(value), OrderKey::Tag(tag)) => {
                let query = and_tag(&self.consumer.definition.query, &format!("{tag}:{value}"));
                snapshot.read(&query, options)
            }
            _ => snapshot.read_compiled(Arc::clone(&self.query), options),
        }
    }

    /// Reads the events of the first look-up. Returns whether there are no more.
    fn read(&mut self, current: &mut Events) -> Result<bool, ReadError> {
        let order = &self.consumer.definition.terms.key;
        let limit = self.wanted[0].limit;
        while self.events.len() < limit {
            let Some(record) = current.next()? else { return Ok(true) };
            if is_of_consumers(record.event_type()) {
                continue;
            }
            let event = FoundEvent::of(&record, order);
            if !self.settled.has(&self.consumer, &record, &event.keys)? {
                self.events.push(event);
            }
        }
        Ok(false)
    }
}

/// A query for the events of another one that have a tag, too.
fn and_tag(query: &Query, tag: &str) -> Query {
    if query.is_all() {
        return Query::item(&[], &[tag]);
    }
    let mut query = query.clone();
    query.items.iter_mut().for_each(|item: &mut QueryItem| item.tags.push(tag.to_owned()));
    query
}
