//! Decisions on top of each other, while staged ones fail and others append.
#![allow(clippy::disallowed_methods)]

use super::chain::{
    Chain, Command, Context, ForeignLinks, Refusal, StagedLink, linked, links, raw,
};
use super::{ExecuteError, Live};
use crate::wire::effects::{Effects, StepRefusal};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;
use wellspring_log::storage::simulated::{Faults, SimulatedStorage};
use wellspring_log::{AppendError, CommitOn, Log, Options, RequestKey};
use wellspring_types::Event;

const SOON: Duration = Duration::from_secs(20);

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

fn open(storage: &SimulatedStorage, dir: &Path, unless: ForeignLinks) -> (Log, Arc<Live<Chain>>) {
    let options = Options { segment_bytes: 64 << 10, ..Options::default() };
    let log = Log::open_on(Arc::new(storage.clone()), options).unwrap();
    let clock = crate::clock::system();
    let live = Live::open(log.clone(), dir, Context::new(unless), clock).unwrap();
    live.wait_live().unwrap();
    (log, live)
}

/// Makes this many decisions in sequence; those refused by the disk are repeated.
fn decide_links(live: &Live<Chain>, count: usize, on: CommitOn) {
    use AppendError::{Conflict, SetBack, StorageFull, Unavailable};
    runtime().block_on(async {
        let mut decided = 0;
        while decided < count {
            match live.execute(&Effects::default(), &[Command::Link], None, on).await {
                Ok(executed) => decided += executed.outcomes.len(),
                Err(ExecuteError::Append(StepRefusal {
                    error: StorageFull | SetBack | Unavailable { .. },
                    ..
                })) => {}
                // Overtaken repeatedly.
                Err(ExecuteError::Append(StepRefusal { error: Conflict(_), .. })) => {}
                Err(other) => panic!("{other:?}"),
            }
        }
    });
}

/// Two threads decide links while a third interferes.
fn decide_while(live: &Live<Chain>, count: usize, meddle: impl Fn(u64) + Sync) {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let deciders = [CommitOn::ThisThread, CommitOn::JournalThread]
            .map(|on| scope.spawn(move || decide_links(live, count, on)));
        scope.spawn(|| {
            (0..).take_while(|_| !done.load(Ordering::Acquire)).for_each(|round| {
                meddle(round);
                std::thread::sleep(Duration::from_millis(1));
            });
        });
        deciders.into_iter().for_each(|decider| decider.join().unwrap());
        done.store(true, Ordering::Release);
    });
}

/// Each own link names the previous one.
fn assert_whole(log: &Log, is_foreign: impl Fn(u64) -> bool) {
    let mut before = 0;
    for (number, follows) in links(log) {
        assert!(
            is_foreign(number) || follows == before,
            "{number} follows {follows}, not {before}"
        );
        before = number;
    }
}

#[test]
fn no_decision_follows_one_that_came_to_nothing() {
    let mut fallen = 0;
    for seed in 0..4 {
        let dir = tempfile::tempdir().unwrap();
        let storage = SimulatedStorage::new(seed);
        // Only the number of setbacks holds this chain together.
        let (log, live) = open(&storage, dir.path(), ForeignLinks::Nothing);
        decide_while(&live, 300, |round| {
            let used: u64 = storage.contents().values().map(|file| file.len() as u64).sum();
            let capacity_bytes = (round % 4 != 3).then_some(used + round % 7 * 500);
            storage.set_faults(Faults { capacity_bytes, ..Faults::default() });
        });
        storage.set_faults(Faults::default());
        assert_whole(&log, |_| false);
        assert_eq!(links(&log).len(), 600);
        fallen += live.peek(|_, staged| staged.fallen).unwrap();
        log.close();
        live.discard();
    }
    assert!(fallen > 0, "the disk was never full");
}

/// Makes a first link durable whose decider is told only after `meanwhile`.
fn with_one_untold(log: &Log, live: &Live<Chain>, meanwhile: impl AsyncFnOnce()) {
    let (go_on, held) = mpsc::channel::<()>();
    let hold = move |_| {
        let _ = held.recv();
    };
    // Reported before the link, by the same thread.
    log.stage(raw(&Event::json("Other", &[], "1")), Box::new(hold));
    runtime().block_on(async {
        let effects = Effects::default();
        let decided = async {
            tokio::join!(
                live.execute(&effects, &[Command::Link], None, CommitOn::JournalThread),
                async {
                    log.feed().wait_past(1, SOON);
                    meanwhile().await;
                    go_on.send(()).unwrap();
                }
            )
        };
        tokio::time::timeout(SOON, decided).await.unwrap().0.unwrap();
    });
}

#[test]
fn what_is_told_out_of_order_is_decided_upon_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let (log, live) = open(&SimulatedStorage::new(1), dir.path(), ForeignLinks::Nothing);
    with_one_untold(&log, &live, async || {
        for number in 2..10 {
            let executed = live
                .execute(&Effects::default(), &[Command::Link], None, CommitOn::ThisThread)
                .await;
            assert_eq!(executed.unwrap().outcomes, [number]);
        }
    });
    assert_whole(&log, |_| false);
    log.close();
    live.discard();
}

#[test]
fn what_is_not_told_yet_hides_nothing_that_others_appended_behind_it() {
    const FOREIGN: u64 = 1 << 40;
    let dir = tempfile::tempdir().unwrap();
    let (log, live) = open(&SimulatedStorage::new(1), dir.path(), ForeignLinks::AnyLink);
    with_one_untold(&log, &live, async || {
        for number in 2..10 {
            log.append(raw(&linked(FOREIGN + number, 0))).unwrap();
            live.caught_up(log.head(), SOON).await.map(|_| ()).unwrap();
            let executed = live
                .execute(&Effects::default(), &[Command::Link], None, CommitOn::ThisThread)
                .await;
            assert_eq!(executed.unwrap().outcomes, [number]);
        }
    });
    assert_whole(&log, |number| number >= FOREIGN);
    log.close();
    live.discard();
}

#[test]
fn what_others_append_between_is_seen_by_every_decision_behind_it() {
    const FOREIGN: u64 = 1 << 40;
    let dir = tempfile::tempdir().unwrap();
    let (log, live) = open(&SimulatedStorage::new(1), dir.path(), ForeignLinks::AnyLink);
    decide_while(&live, 300, |round| {
        log.append(raw(&linked(FOREIGN + round, 0))).unwrap();
    });
    assert_whole(&log, |number| number >= FOREIGN);
    let all = links(&log);
    assert_eq!(all.iter().filter(|(number, _)| *number < FOREIGN).count(), 600);
    log.close();
    live.discard();
}

/// A log with an event at the device, so that decisions stay staged until barriers are released.
fn at_the_device(log: &Log, storage: &SimulatedStorage) {
    storage.hold_barriers();
    log.stage(raw(&Event::json("Other", &[], "1")), Box::new(|_| {}));
    log.commit(CommitOn::JournalThread);
    storage.wait_for_held_barrier();
}

#[test]
fn decisions_on_events_of_ones_own_share_a_barrier() {
    let dir = tempfile::tempdir().unwrap();
    let storage = SimulatedStorage::new(1);
    let (log, live) = open(&storage, dir.path(), ForeignLinks::AnyLink);
    at_the_device(&log, &storage);
    runtime().block_on(async {
        let effects = Effects::default();
        let many: Vec<Command> = (0..300).map(|_| Command::Link).collect();
        let on = CommitOn::JournalThread;
        let decided = async {
            tokio::join!(
                live.execute(&effects, &many[..1], None, on),
                live.execute(&effects, &many[..1], None, on),
                // In one append, although each names its item.
                live.execute(
                    &effects,
                    &many,
                    Some(RequestKey { key: "k".into(), digest: [0; 16] }),
                    on
                ),
                async {
                    let staged = live.peek(|_, staged| staged.links.clone()).unwrap();
                    let places = |link: &StagedLink| (link.number, link.last);
                    let two: Vec<_> = staged[..2].iter().map(places).collect();
                    assert_eq!(two, [(1, Some(2)), (2, Some(3))]);
                    storage.release_barriers();
                }
            )
        };
        let (first, second, third, ()) = tokio::time::timeout(SOON, decided).await.unwrap();
        assert_eq!((first.unwrap().outcomes, second.unwrap().outcomes), (vec![1], vec![2]));
        let appended = third.unwrap().appended.unwrap();
        assert_eq!((appended.first, appended.last), (4, 303));
    });
    assert_whole(&log, |_| false);
    assert_eq!(live.peek(|_, staged| staged.links.len()), Some(0));
    log.close();
    live.discard();
}

#[test]
fn a_refusal_that_is_not_reported_needs_no_durable_event() {
    let dir = tempfile::tempdir().unwrap();
    let storage = SimulatedStorage::new(1);
    let (log, live) = open(&storage, dir.path(), ForeignLinks::AnyLink);
    at_the_device(&log, &storage);
    runtime().block_on(async {
        let on = CommitOn::JournalThread;
        // The outcome, and whether it was known before anything was durable.
        let execute = async |command| {
            let executed = live.execute(&Effects::default(), &[command], None, on).await.unwrap();
            (executed.refused, live.position() == 0)
        };
        let decided = async {
            tokio::join!(
                execute(Command::Link),
                async {
                    let overtaken = execute(Command::StillLast(0)).await;
                    assert_eq!(overtaken, (Some(Refusal::Overtaken), true));
                    storage.release_barriers();
                },
                // Without the staged decision both would be overtaken, which answers neither.
                execute(Command::NotLast(1)),
                execute(Command::StillLast(1)),
            )
        };
        let (linked, (), refused, done) = tokio::time::timeout(SOON, decided).await.unwrap();
        assert_eq!((linked, done), ((None, false), (None, false)));
        assert_eq!(refused, (Some(Refusal::ItIsTheLast), false));
    });
    log.close();
    live.discard();
}

#[test]
fn only_what_had_a_place_comes_to_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let storage = SimulatedStorage::new(1);
    let (log, live) = open(&storage, dir.path(), ForeignLinks::AnyLink);
    at_the_device(&log, &storage);
    // Refused by this one, and decided again after it.
    log.stage(raw(&linked(1 << 40, 0)), Box::new(|_| {}));
    runtime().block_on(async {
        let effects = Effects::default();
        let on = CommitOn::JournalThread;
        let decided = async {
            tokio::join!(live.execute(&effects, &[Command::Link], None, on), async {
                let staged = live.peek(|_, staged| (staged.links.len(), staged.fallen));
                assert_eq!(staged, Some((0, 0)), "it is not decided upon");
                storage.release_barriers();
            })
        };
        tokio::time::timeout(SOON, decided).await.unwrap().0.unwrap();
    });
    assert_eq!(links(&log), [(1 << 40, 0), (2, 1 << 40)]);
    assert_eq!(live.peek(|_, staged| (staged.links.len(), staged.fallen)), Some((0, 0)));
    log.close();
    live.discard();
}

#[test]
fn a_version_is_shown_before_its_position_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let (log, live) = open(&SimulatedStorage::new(1), dir.path(), ForeignLinks::AnyLink);
    let shown = Arc::clone(live.wait_live().as_ref().unwrap());
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Acquire) {
                let told = live.position();
                assert!(shown.position.load(Ordering::SeqCst) >= told, "told of {told}");
                std::thread::sleep(std::time::Duration::from_micros(20));
            }
        });
        decide_links(&live, 30, CommitOn::ThisThread);
        done.store(true, Ordering::Release);
    });
    assert_eq!(shown.number.load(Ordering::SeqCst), 30);
    log.close();
    live.discard();
}
