//! A serving thread's access to the logs' batchers.

use super::data;
use super::target::{self, TargetSubject};
use super::{IngestConfig, IngestOverflow};
use super::{Media, Target};
use crate::kept_types::KeptTypes;
use crate::names::MAIN;
use crate::node::{NoBatcher, Node};
use crate::subjects;
use crate::wire::params::percent_decode;
use crate::wire::problem::{self, Problem};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use tokio::sync::watch;
use wellspring_log::batcher::{EventTemplate, Producer, PushError, Receipt, StoreProgress, Wake};
use wellspring_log::{Ack, Clock};
use wellspring_subject_keys::{NonceSalt, PartKind, PlainPart, SealedWith, Sealer, SubjectKeys};
use wellspring_types::{DataKind, limits};

/// Targets cached; over the limit all are evicted and reloaded on use.
const TARGETS: usize = 1024;

/// Size of the smallest event in a partition: a record's header, a byte of type and one of data.
const SMALLEST_EVENT_BYTES: usize = 34;

/// Whether a thread comes first or second for a connection. Events handed in before a connection is
/// handed over are stored before those handed in afterwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HandoverSide {
    /// The lean loop.
    First = 0,
    /// The general stack.
    Second = 1,
}

/// The result of handing in a request's events.
#[derive(Debug)]
pub enum IntakeOutcome {
    /// Accepted, or stored already: answer now.
    Accepted,
    /// Accepted; answer when `Intake::settled` says that they are stored.
    Pending(Ticket),
    /// No room: retry the same when woken, and accept nothing else from this client meanwhile.
    Full,
    /// Not accepted.
    Refused(Box<Problem>),
}

/// Identifies events that are to become durable, for the [`Intake`] that accepted them.
#[derive(Debug, Clone, Copy)]
pub struct Ticket {
    source: usize,
    generation: u64,
    receipt: Receipt,
}

/// The state of a ticket.
#[derive(Debug)]
pub enum Settlement {
    /// Ask again when woken.
    Pending,
    /// They are durable.
    Stored,
    /// Their outcome is unknown, or they will never be durable.
    Failed(Box<Problem>),
}

/// The producer of one log.
struct Source {
    log: String,
    /// `None` if the log was closed and has not been used since.
    producer: Option<Producer>,
    /// Counts producers, so that a ticket of an earlier one is not looked up in a later one.
    generation: u64,
}

/// The shared part of all threads' intakes.
#[derive(Clone)]
pub struct IngestContext {
    /// The logs.
    pub(crate) node: Arc<Node>,
    /// The settings of taking events in.
    pub(crate) config: Arc<IngestConfig>,
    /// Event types that clients may not send.
    pub(crate) kept: Arc<KeptTypes>,
    /// The keys of data subjects; none in a cluster.
    pub(crate) keys: Option<Arc<SubjectKeys>>,
    /// The clock.
    pub(crate) clock: Arc<dyn Clock>,
    /// Becomes true at shutdown.
    pub(crate) stopping: watch::Receiver<bool>,
}

impl IngestContext {
    fn is_stopping(&self) -> bool {
        *self.stopping.borrow()
    }
}

/// See the module. One for each serving thread.
pub struct Intake {
    context: IngestContext,
    wake: Wake,
    order: HandoverSide,
    sources: Vec<Source>,
    /// The index of `main`, once used.
    main: Option<usize>,
    targets: HashMap<Box<str>, Rc<Target>>,
    /// The last target: usually the next is the same.
    last: Option<(Box<str>, Rc<Target>)>,
}

impl Intake {
    /// `wake` is called from another thread when a full partition has room again or tickets may be
    /// settled.
    pub(crate) fn new(context: IngestContext, order: HandoverSide, wake: Wake) -> Intake {
        Intake {
            context,
            wake,
            order,
            sources: Vec::new(),
            main: None,
            targets: HashMap::new(),
            last: None,
        }
    }

    /// Parses a request target. `None` if it is not for ingest; a problem if it is, but invalid.
    pub(crate) fn target(&mut self, text: &str) -> Option<Result<Rc<Target>, Box<Problem>>> {
        if let Some((known, target)) = &self.last
            && **known == *text
        {
            return Some(Ok(Rc::clone(target)));
        }
        if let Some(target) = self.targets.get(text) {
            let target = Rc::clone(target);
            self.last = Some((text.into(), Rc::clone(&target)));
            return Some(Ok(target));
        }
        let (log, query) = target::split(text)?;
        Some(self.understand(text, log, query))
    }

    /// The log is looked up before the query is parsed, as for all other routes.
    fn understand(
        &mut self,
        text: &str,
        log: &str,
        query: &str,
    ) -> Result<Rc<Target>, Box<Problem>> {
        let log = percent_decode(log, false)?;
        if self.context.node.get(&log).is_none() {
            return Err(problem::no_such_log(&log));
        }
        let IngestContext { config, kept, .. } = &self.context;
        let mut target = target::understand(log, query, config, kept)?;
        target.source = self.source(&target.log);
        let target = Rc::new(target);
        if self.targets.len() >= TARGETS {
            self.targets.clear();
        }
        self.targets.insert(text.into(), Rc::clone(&target));
        self.last = Some((text.into(), Rc::clone(&target)));
        Ok(target)
    }

    /// The index of a log's producer.
    fn source(&mut self, log: &str) -> usize {
        if let Some(at) = self.sources.iter().position(|source| source.log == log) {
            return at;
        }
        // Producers of deleted logs would keep their partitions.
        for source in &mut self.sources {
            let closed = |producer: &mut Producer| {
                matches!(producer.refusal(), Some(PushError::Closed { .. }))
            };
            source.producer.take_if(closed);
        }
        self.sources.push(Source { log: log.to_owned(), producer: None, generation: 0 });
        self.sources.len() - 1
    }

    /// The largest accepted body, in bytes.
    pub(crate) fn largest_body(&self, media: Media) -> usize {
        match media {
            Media::Ndjson => self.context.config.ingest_partition_bytes / 2,
            // Space around JSON is not part of the data.
            Media::Json | Media::Unspecified | Media::Opaque => limits::MAX_DATA_BYTES + 1024,
        }
    }

    /// Whether the key of a target's subject survives a crash, so that its events can be sealed
    /// here.
    ///
    /// # Errors
    /// Nothing can be sealed for that subject.
    pub(crate) fn is_ready(&self, target: &Target) -> Result<bool, Box<Problem>> {
        let Some(subject) = &target.subject else { return Ok(true) };
        self.seal(subject, DataKind::Json, &[]).map(|(_, sealed)| sealed.are_durable())
    }

    /// The data of events with their sealed parts, and the key.
    fn seal(
        &self,
        subject: &TargetSubject,
        kind: DataKind,
        events: &[&[u8]],
    ) -> Result<(Vec<Vec<u8>>, SealedWith), Box<Problem>> {
        let kind = match kind {
            DataKind::Json => PartKind::Json,
            DataKind::Binary => PartKind::Binary,
        };
        let IngestContext { keys, clock, .. } = &self.context;
        let mut sealer = Sealer::new(keys.clone(), clock.wall_us());
        let refusal = |refused: &_| subjects::refusal(refused, "subject", &subject.name);
        sealer.begin(&subject.name).map_err(|refused| refusal(&refused))?;
        let seal = |plaintext: &&[u8]| {
            let TargetSubject { name, tag, event_type } = subject;
            let part = PlainPart { tag: *tag, subject: name, kind, plaintext };
            let sealed = sealer.seal(event_type, NonceSalt::Random, &[part]);
            let sealed = sealed.map_err(|(_, refused)| refusal(&refused))?;
            Ok([sealed, b"null"].concat())
        };
        let sealed = events.iter().map(seal).collect::<Result<Vec<_>, Box<Problem>>>()?;
        Ok((sealed, sealer.into_used()))
    }

    /// Accepts the events of one body, all or none.
    pub(crate) fn take(&mut self, target: &Target, media: Media, body: &[u8]) -> IntakeOutcome {
        let most_lines = self.context.config.ingest_partition_bytes / 2 / SMALLEST_EVENT_BYTES;
        match data::read(media, body, most_lines) {
            Ok(data) => {
                let (kind, events) = data.events();
                self.push_sealed(target, kind, events)
            }
            Err(problem) => IntakeOutcome::Refused(problem),
        }
    }

    fn push_sealed(&mut self, target: &Target, kind: DataKind, events: &[&[u8]]) -> IntakeOutcome {
        let Some(subject) = &target.subject else { return self.push(target, kind, events) };
        match self.seal(subject, kind, events) {
            Ok((sealed, keys)) if keys.are_durable() => {
                let sealed: Vec<&[u8]> = sealed.iter().map(Vec::as_slice).collect();
                self.push(target, DataKind::Json, &sealed)
            }
            // It was when the head came; another process's folder, perhaps.
            Ok(_) => IntakeOutcome::Refused(problem::KEY_UNAVAILABLE.because("the key is new")),
            Err(problem) => IntakeOutcome::Refused(problem),
        }
    }

    fn push(&mut self, target: &Target, kind: DataKind, events: &[&[u8]]) -> IntakeOutcome {
        let overflow = self.context.config.ingest_overflow;
        let push = |producer: &mut Producer| {
            let events = events.iter().copied();
            match overflow {
                IngestOverflow::Block => producer.try_push_events(&target.template, kind, events),
                IngestOverflow::Shed => producer.push_events(&target.template, kind, events),
            }
        };
        // A log that was emptied has a new batcher: its old producer is closed, a new one is not.
        let mut renewed = false;
        loop {
            let source = &mut self.sources[target.source];
            let Some(producer) = &mut source.producer else {
                match self.renew(target.source) {
                    Ok(()) => {
                        renewed = true;
                        continue;
                    }
                    Err(problem) => return IntakeOutcome::Refused(problem),
                }
            };
            let mut pushed = push(producer);
            if pushed == Err(PushError::NoRoom) && overflow == IngestOverflow::Block {
                producer.want_wake();
                // There may be room already before the flusher knows that it is wanted.
                pushed = push(producer);
            }
            return match pushed {
                Ok(_) if target.ack == Ack::Accepted => IntakeOutcome::Accepted,
                Ok(receipt) => {
                    producer.want_wake();
                    // Stored before the flusher knew that a thread waits: nothing would wake it.
                    if producer.is_stored(receipt) {
                        return IntakeOutcome::Accepted;
                    }
                    let (source, generation) = (target.source, source.generation);
                    IntakeOutcome::Pending(Ticket { source, generation, receipt })
                }
                Err(PushError::NoRoom)
                    if overflow == IngestOverflow::Block
                        && producer.progress() == StoreProgress::Flowing =>
                {
                    IntakeOutcome::Full
                }
                Err(PushError::Closed { .. }) if !renewed => {
                    source.producer = None;
                    continue;
                }
                Err(error) => IntakeOutcome::Refused(self.problem(error).about(&target.log)),
            };
        }
    }

    /// Accepts an event for the log `main` if possible; otherwise it is counted as shed and
    /// dropped.
    pub fn offer(&mut self, template: &EventTemplate, data: &[u8]) {
        let at = self.main.unwrap_or_else(|| self.source(MAIN));
        self.main = Some(at);
        let push = |producer: &mut Producer| {
            producer.try_push_events(template, DataKind::Json, std::iter::once(data))
        };
        let pushed = self.sources[at].producer.as_mut().map(push);
        // A log that was emptied has a new batcher. The shed events of a producer stay in the
        // account.
        let pushed = match pushed {
            None | Some(Err(PushError::Closed { .. })) if self.renew(at).is_ok() => {
                self.sources[at].producer.as_mut().map(push)
            }
            other => other,
        };
        if let (Some(Err(_)), Some(producer)) = (pushed, &mut self.sources[at].producer) {
            producer.count_shed(1, template.frame_bytes(data) as u64);
        }
    }

    fn renew(&mut self, source: usize) -> Result<(), Box<Problem>> {
        let log = &self.sources[source].log;
        let batcher = self.context.node.batcher(log).map_err(|why| match why {
            NoBatcher::NoLog => problem::no_such_log(log),
            NoBatcher::Closing if self.context.is_stopping() => stopping(),
            NoBatcher::Closing => problem::LOG_CLOSED.because("the log is being closed").about(log),
            NoBatcher::NoThread(error) => problem::INTERNAL
                .because(format!("cannot start the thread that stores events: {error}"))
                .about(log),
        })?;
        // A partition of an ended batcher is never drained.
        if let Some(refusal @ PushError::Closed { .. }) = batcher.refusal() {
            return Err(self.problem(refusal).about(log));
        }
        let source = &mut self.sources[source];
        source.producer = Some(batcher.producer(self.order as u8, Some(Arc::clone(&self.wake))));
        source.generation += 1;
        Ok(())
    }

    fn problem(&self, error: PushError) -> Box<Problem> {
        let detail = error.to_string();
        match error {
            PushError::NoRoom => problem::INGEST_FULL.because(format!(
                "the memory for events that wait to be stored ({} bytes for each serving \
                 thread) is full; send more slowly",
                self.context.config.ingest_partition_bytes
            )),
            PushError::TooLarge { bytes, limit } => problem::TOO_LARGE
                .because(format!(
                    "the events take {bytes} bytes when encoded (each with a header, its type \
                     and its tags); the limit is {limit}: send fewer lines per request"
                ))
                .limit(limit as u64),
            PushError::StorageFull => problem::STORAGE_FULL.because(detail),
            PushError::Closed { .. } if self.context.is_stopping() => stopping(),
            PushError::Closed { .. } => problem::LOG_CLOSED.because(detail),
            PushError::Invalid(invalid) => invalid.into(),
            PushError::EventsOnly => problem::INTERNAL.because(detail),
        }
    }

    /// The state of events that are to become durable. `wake` follows `Pending`; in a cluster not
    /// for ever, because a batcher that stores nothing is reported as stalled.
    pub(crate) fn settled(&mut self, ticket: &Ticket) -> Settlement {
        let source = &self.sources[ticket.source];
        let producer = source.producer.as_ref().filter(|_| source.generation == ticket.generation);
        let Some(producer) = producer else {
            return Settlement::Failed(unknown("the log was closed meanwhile").about(&source.log));
        };
        if producer.is_stored(ticket.receipt) {
            return Settlement::Stored;
        }
        // Requested before checking again, so that no wake-up is missed.
        producer.want_wake();
        let refusal = producer.refusal();
        if producer.is_stored(ticket.receipt) {
            return Settlement::Stored;
        }
        match refusal {
            None if producer.progress() == StoreProgress::Flowing => Settlement::Pending,
            None => Settlement::Failed(
                problem::OUTCOME_UNKNOWN
                    .because(
                        "no node has stored events for some time; accepted events stay in \
                         memory until the journal and a leader are available",
                    )
                    .about(&source.log),
            ),
            Some(PushError::Closed { reason }) => {
                Settlement::Failed(unknown(&reason).about(&source.log))
            }
            Some(_) => Settlement::Failed(
                problem::OUTCOME_UNKNOWN
                    .because(
                        "no space left on the device; accepted events stay in memory until there \
                         is",
                    )
                    .about(&source.log),
            ),
        }
    }
}

fn unknown(reason: &str) -> Box<Problem> {
    problem::OUTCOME_UNKNOWN.because(format!("the events may or may not be stored: {reason}"))
}

fn stopping() -> Box<Problem> {
    problem::SHUTTING_DOWN.because("the server is shutting down")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;
    use std::sync::atomic::Ordering::Relaxed;

    /// Without the check after the request this fails now and then, on two cores in one run of
    /// five.
    #[test]
    #[allow(clippy::disallowed_methods)]
    fn a_waiter_for_durability_is_always_woken() {
        use std::time::Duration;
        let dir = tempfile::tempdir().unwrap();
        let host = testing::host(dir.path(), &["--sync", "interval=60000"]);
        let (wake, woken) = std::sync::mpsc::channel();
        let wake = std::sync::Mutex::new(wake);
        let wake: Wake = Arc::new(move || {
            let _ = wake.lock().unwrap().send(());
        });
        let mut intake = Intake::new(host.ingest(), HandoverSide::First, wake);
        let target = intake.target("/e?ack=durable").unwrap().unwrap();
        let ended = Arc::new(std::sync::atomic::AtomicBool::new(false));
        // So that this thread is preempted in the critical places.
        for _ in 0..8 {
            let ended = Arc::clone(&ended);
            std::thread::spawn(move || while !ended.load(Relaxed) {});
        }
        for round in 0..400 {
            woken.try_iter().for_each(drop);
            // The flusher falls asleep, and quickly stores what wakes it.
            std::thread::sleep(Duration::from_millis(4));
            match intake.take(&target, Media::Unspecified, b"1") {
                IntakeOutcome::Accepted => {}
                // As the lean loop does: it checks only when woken.
                IntakeOutcome::Pending(ticket) => loop {
                    let woken = woken.recv_timeout(Duration::from_secs(20));
                    assert!(woken.is_ok(), "nobody is woken in round {round}");
                    if matches!(intake.settled(&ticket), Settlement::Stored) {
                        break;
                    }
                },
                other => panic!("{other:?}"),
            }
        }
        ended.store(true, Relaxed);
        host.node.close();
    }

    #[test]
    fn requests_to_a_log_that_has_closed_cost_no_partition() {
        let dir = tempfile::tempdir().unwrap();
        let host = testing::host(dir.path(), &[]);
        let mut intake = Intake::new(host.ingest(), HandoverSide::First, Arc::new(|| {}));
        let target = intake.target("/e").unwrap().unwrap();
        assert!(matches!(intake.take(&target, Media::Unspecified, b"1"), IntakeOutcome::Accepted));
        host.node.get("main").unwrap().close();
        let mut refused = 0;
        while refused < 50 {
            match intake.take(&target, Media::Unspecified, b"1") {
                // The batcher learns of it when it next stores something.
                IntakeOutcome::Accepted => assert_eq!(refused, 0),
                IntakeOutcome::Refused(problem) => {
                    assert_eq!(problem.kind, &problem::LOG_CLOSED, "{problem:?}");
                    refused += 1;
                }
                other => panic!("{other:?}"),
            }
        }
        let account = host.node.account("main").unwrap();
        assert!(account.figures.partitions <= 1, "{account:?}");
    }
}
