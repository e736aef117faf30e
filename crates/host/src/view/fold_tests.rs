//! A fold that panics, a start that is overtaken, a snapshot that finds no room.
#![allow(clippy::disallowed_methods)]

use super::snapshot::SnapshotFile;
use super::{Live, NotFresh, State};
use crate::view::contract::{Decision, LogEvent, SnapshotFault, Ticket, View};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use wellspring_log::{Append, EncodedEvents, Log, Options};
use wellspring_types::{Event, Query};

const SOON: Duration = Duration::from_secs(20);

/// Counts events in two steps, and panics between them at one of the type `Poison`; is slow for one
/// of the type `Heavy`.
struct Fragile(Arc<Counts>);

#[derive(Default)]
struct Counts {
    begun: AtomicU64,
    folded: AtomicU64,
}

impl View for Fragile {
    const NAME: &'static str = "fragile";
    const VERSION: u32 = 1;
    type Folded = Counts;
    type Staged = ();
    type Command = ();
    type Context = ();
    type Outcome = ();
    type Refusal = ();

    fn new() -> Self {
        Fragile(Arc::default())
    }

    fn query() -> Query {
        Query::all()
    }

    fn folded(&self) -> &Arc<Counts> {
        &self.0
    }

    fn apply(&mut self, event: &impl LogEvent) {
        self.0.begun.fetch_add(1, Ordering::SeqCst);
        if event.event_type() == "Heavy" {
            std::thread::sleep(Duration::from_millis(250));
        }
        assert!(event.event_type() != "Poison", "meant: the fold of this test panics");
        self.0.folded.fetch_add(1, Ordering::SeqCst);
    }

    fn outcome(_: &impl LogEvent) -> Option<()> {
        None
    }

    fn decide(_: &Counts, (): &(), (): &(), (): &()) -> Result<Decision<()>, ()> {
        Err(())
    }

    fn stage((): &mut (), _: &Decision<()>, _: Ticket) {}

    fn settle((): &mut (), _: Ticket) {}

    fn encode(folded: &Counts, out: &mut impl io::Write) -> io::Result<()> {
        out.write_all(&folded.folded.load(Ordering::SeqCst).to_le_bytes())
    }

    fn decode(input: &mut impl io::Read) -> Result<Self, SnapshotFault> {
        let mut bytes = [0; 8];
        input.read_exact(&mut bytes).map_err(SnapshotFault::Io)?;
        let view = Fragile::new();
        view.0.folded.store(u64::from_le_bytes(bytes), Ordering::SeqCst);
        Ok(view)
    }
}

fn append(log: &Log, event_type: &str) {
    let mut events = EncodedEvents::new();
    events.push(&Event::json(event_type, &[], "{}").as_ref()).unwrap();
    log.append(Append { events, ..Append::default() }).unwrap();
}

fn open(dir: &Path) -> (Log, Arc<Live<Fragile>>) {
    let log = Log::open(dir, Options::default()).unwrap();
    let live = Live::open(log.clone(), dir, (), crate::clock::system()).unwrap();
    (log, live)
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

#[test]
fn a_fold_that_panics_fails_the_view_and_never_goes_on() {
    for on_a_waiters_thread in [true, false] {
        let dir = tempfile::tempdir().unwrap();
        let (log, live) = open(dir.path());
        append(&log, "Fine");
        let folded = live.wait_live().unwrap();
        append(&log, "Poison");
        append(&log, "Fine");
        runtime().block_on(async {
            if !on_a_waiters_thread {
                tokio::time::sleep(Duration::from_millis(300)).await;
            }
            for _ in 0..3 {
                let waited = live.caught_up(log.head(), SOON).await.map(|_| ());
                assert!(
                    matches!(&waited, Err(NotFresh::Failed(why)) if why.contains("panicked")),
                    "{waited:?}"
                );
            }
        });
        assert_eq!(live.progress().state, State::Failed);
        assert!(live.position() < log.head());
        std::thread::sleep(Duration::from_millis(50));
        let counts = (folded.begun.load(Ordering::SeqCst), folded.folded.load(Ordering::SeqCst));
        assert_eq!(counts, (2, 1), "what comes after half an event is not folded");
        log.close();
        live.close();
        assert!(!dir.path().join("views/fragile.snapshot").exists(), "half an event is not kept");
    }
}

#[test]
fn a_snapshot_is_worth_its_writing_after_few_events_that_took_long() {
    for (event_type, is_kept) in [("Fine", false), ("Heavy", true)] {
        let dir = tempfile::tempdir().unwrap();
        let file = || dir.path().join("views/fragile.snapshot").exists();
        let (log, live) = open(dir.path());
        append(&log, event_type);
        live.wait_live().unwrap();
        runtime().block_on(async { live.caught_up(1, SOON).await.map(|_| ()).unwrap() });
        log.close();
        live.close();
        assert_eq!(file(), is_kept, "{event_type}");
        if is_kept {
            // It is not folded again, so there is nothing new for another snapshot.
            let (log, live) = open(dir.path());
            live.wait_live().unwrap();
            assert_eq!((live.progress().snapshot, live.figures().applied), (1, 0));
            log.close();
            live.close();
            assert_eq!(live.figures().snapshots, 0);
        }
    }
}

#[test]
fn a_start_that_is_overtaken_never_takes_the_position_back() {
    let dir = tempfile::tempdir().unwrap();
    let (log, live) = open(dir.path());
    append(&log, "Fine");
    live.wait_live().unwrap();
    runtime().block_on(async { live.caught_up(1, SOON).await.map(|_| ()).unwrap() });
    // What a preempted start did between two lines once another thread had folded.
    live.position.publish(0);
    assert_eq!(live.position(), 1);
    append(&log, "Fine");
    runtime().block_on(async { live.caught_up(2, SOON).await.map(|_| ()).unwrap() });
    log.close();
    live.close();
}

#[test]
fn a_snapshot_that_fails_leaves_nothing_behind() {
    let dir = tempfile::tempdir().unwrap();
    let log = Log::open(dir.path(), Options::default()).unwrap();
    append(&log, "Fine");
    let file = SnapshotFile::new(dir.path(), "fragile", 1);
    let files = || std::fs::read_dir(dir.path().join("views")).unwrap().count();
    let full = file.write(&log, 1, |out| {
        io::Write::write_all(out, &[7; 1 << 20])?;
        Err(io::ErrorKind::StorageFull.into())
    });
    assert!(full.is_err());
    assert_eq!(files(), 0);
    file.write(&log, 1, |out| io::Write::write_all(out, &[7; 8])).unwrap();
    let forbidden = file.write(&log, 1, |_| {
        file.forbid();
        Ok(())
    });
    assert!(forbidden.is_ok());
    assert_eq!(files(), 1, "the one before stays");
}
