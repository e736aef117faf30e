//! Views of every log: opened on first use or when the log contains their events, closed with it.

use super::*;
use crate::config::HostConfig;
use crate::node::readiness::{Purpose, reasons};
use crate::view::contract::{Decision, LogEvent, SnapshotFault, Ticket, View};
use crate::view::{Live, State, ViewSlot};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use wellspring_log::{Append, EncodedEvents};
use wellspring_types::{Event, Query};

const SEEN: &str = "Seen";

/// Counts events, and starts when its gate is open.
struct Tally(Arc<AtomicU64>);

impl View for Tally {
    const NAME: &'static str = "counted";
    const VERSION: u32 = 1;
    type Folded = AtomicU64;
    type Staged = ();
    type Command = ();
    /// The gate.
    type Context = Arc<Mutex<()>>;
    type Outcome = ();
    type Refusal = ();

    fn new() -> Self {
        Tally(Arc::default())
    }

    fn with_context(gate: &Arc<Mutex<()>>) -> Self {
        drop(gate.lock());
        Tally::new()
    }

    fn query() -> Query {
        Query::item(&[SEEN], &[])
    }

    fn folded(&self) -> &Arc<AtomicU64> {
        &self.0
    }

    fn apply(&mut self, event: &impl LogEvent) {
        // Repeating events after a snapshot changes nothing: each position counts once in these
        // tests.
        self.0.fetch_max(event.position(), Ordering::SeqCst);
    }

    fn outcome(_: &impl LogEvent) -> Option<()> {
        None
    }

    fn decide(_: &AtomicU64, (): &(), _: &Self::Context, (): &()) -> Result<Decision<()>, ()> {
        Err(())
    }

    fn stage((): &mut (), _: &Decision<()>, _: Ticket) {}

    fn settle((): &mut (), _: Ticket) {}

    fn encode(folded: &AtomicU64, out: &mut impl io::Write) -> io::Result<()> {
        out.write_all(&folded.load(Ordering::SeqCst).to_le_bytes())
    }

    fn decode(input: &mut impl io::Read) -> Result<Self, SnapshotFault> {
        let mut bytes = [0; 8];
        input.read_exact(&mut bytes)?;
        Ok(Tally(Arc::new(AtomicU64::new(u64::from_le_bytes(bytes)))))
    }
}

struct World {
    node: Arc<Node>,
    views: Views<Tally>,
    gate: Arc<Mutex<()>>,
}

fn node(data: &Path) -> Arc<Node> {
    let config = HostConfig::for_tests(&["--data", data.to_str().expect("a path")]);
    Arc::new(config.node(crate::clock::system()))
}

/// A node over this folder with views of each log. `closed` keeps views from starting.
fn open(data: &Path) -> World {
    let (node, gate) = (node(data), Arc::<Mutex<()>>::default());
    let context = Arc::clone(&gate);
    let views = node.attach_each(&[SEEN], move |_| Ok(Arc::clone(&context))).expect("views");
    World { node, views, gate }
}

/// Appends events that the view counts.
fn append(node: &Node, log: &str, count: usize) {
    for chunk in vec![(); count].chunks(1_000) {
        let mut events = EncodedEvents::new();
        chunk.iter().for_each(|()| events.push(&Event::json(SEEN, &[], "1").as_ref()).unwrap());
        let append = Append { events, ..Append::default() };
        node.get(log).expect("a log").append(append).expect("room");
    }
}

/// The count of the view once it is up to date.
fn counted(world: &World, log: &str) -> u64 {
    let live = world.views.get(log).expect("a view");
    wait_for(&live, world.node.get(log).expect("a log").head());
    live.folded().expect("it answers").load(Ordering::SeqCst)
}

fn wait_for(live: &Live<Tally>, position: u64) {
    live.wait_live().expect("it answers");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let soon = Duration::from_secs(20);
    runtime.block_on(async { live.caught_up(position, soon).await.map(|_| ()).unwrap() });
}

/// The logs of which a view is open.
fn open_views(world: &World) -> Vec<String> {
    world.node.views().into_iter().map(|(log, ..)| log).collect()
}

#[test]
fn a_log_has_a_view_from_when_it_is_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let world = open(dir.path());
    world.node.create("a").unwrap();
    world.node.create("b").unwrap();
    append(&world.node, "a", 3);
    assert_eq!(open_views(&world), [""; 0]);
    assert_eq!(counted(&world, "a"), 3);
    assert_eq!(open_views(&world), ["a"]);
    let (one, two) = (world.views.get("a").unwrap(), world.views.get("a").unwrap());
    assert!(Arc::ptr_eq(&one, &two));
    assert_eq!(counted(&world, "b"), 0);
    assert_eq!(open_views(&world), ["a", "b"]);
    assert!(matches!(world.views.get("none"), Err(NoView::NoLog)));
    assert!(matches!(world.views.get(SYSTEM_LOG), Err(NoView::NoLog)), "the server's own");
}

#[test]
fn asked_for_by_many_at_once_it_is_one_view() {
    let dir = tempfile::tempdir().unwrap();
    let world = open(dir.path());
    let all: Vec<_> = std::thread::scope(|scope| {
        let ask = || world.views.get(MAIN).unwrap();
        let asking: Vec<_> = (0..8).map(|_| scope.spawn(ask)).collect();
        asking.into_iter().map(|asking| asking.join().unwrap()).collect()
    });
    assert!(all.iter().all(|live| Arc::ptr_eq(live, &all[0])));
    assert_eq!(open_views(&world), [MAIN]);
}

#[test]
fn a_log_that_holds_such_events_has_its_view_from_the_start_and_its_own_snapshot() {
    let dir = tempfile::tempdir().unwrap();
    let world = open(dir.path());
    world.node.create("full").unwrap();
    world.node.create("empty").unwrap();
    append(&world.node, "full", 10_001);
    append(&world.node, MAIN, 1);
    assert_eq!((counted(&world, "full"), counted(&world, "empty")), (10_001, 0));
    world.node.close();
    drop(world);
    let snapshot = |log: &str| dir.path().join("logs").join(log).join("views/counted.snapshot");
    assert!(snapshot("full").exists() && !snapshot("empty").exists());
    let world = open(dir.path());
    assert_eq!(open_views(&world), ["full", MAIN]);
    assert_eq!(counted(&world, "full"), 10_001);
    let progress = world.node.views()[0].2;
    assert_eq!((progress.snapshot, progress.state), (10_001, State::Live));
}

#[test]
fn the_server_waits_for_views_of_the_start_and_for_no_others() {
    let dir = tempfile::tempdir().unwrap();
    let world = open(dir.path());
    let closed = world.gate.lock().unwrap();
    append(&world.node, MAIN, 1);
    let live = world.views.get(MAIN).unwrap();
    assert!(live.folded().is_none(), "it has not begun");
    assert_eq!(world.node.views()[0].2.state, State::Rebuilding, "everybody may see that");
    assert!(
        reasons(&world.node, false, Purpose::Both).is_empty(),
        "who asked waits, and nobody else"
    );
    drop(closed);
    live.wait_live().unwrap();
    drop(live);
    drop(world);
    let gate = Arc::<Mutex<()>>::default();
    let closed = gate.lock().unwrap();
    let node = node(dir.path());
    let context = Arc::clone(&gate);
    let views = node.attach_each::<Tally>(&[SEEN], move |_| Ok(Arc::clone(&context))).unwrap();
    let reasons_then = reasons(&node, false, Purpose::Both);
    assert_eq!(reasons_then.len(), 1);
    assert!(
        reasons_then[0].detail.contains("the view counted of main"),
        "{}",
        reasons_then[0].detail
    );
    drop(closed);
    views.get(MAIN).unwrap().wait_live().unwrap();
    assert!(reasons(&node, false, Purpose::Both).is_empty());
}

#[test]
fn nothing_of_a_log_is_answered_for_the_one_in_its_place() {
    let dir = tempfile::tempdir().unwrap();
    let world = open(dir.path());
    append(&world.node, MAIN, 12_000);
    let before = world.views.get(MAIN).unwrap();
    assert_eq!(counted(&world, MAIN), 12_000);
    world.node.empty(MAIN).expect("an empty log");
    assert!(before.is_closed());
    assert_eq!(open_views(&world), [""; 0], "nobody has asked for it yet");
    assert_eq!(counted(&world, MAIN), 0, "no snapshot is left either");
    append(&world.node, MAIN, 2);
    assert_eq!(counted(&world, MAIN), 2);
    let before = world.views.get(MAIN).unwrap();
    world.node.drop_log(MAIN).expect("it is dropped");
    assert!(before.is_closed() && matches!(world.views.get(MAIN), Err(NoView::NoLog)));
    world.node.create(MAIN).expect("it is made again");
    assert_eq!(counted(&world, MAIN), 0);
}

#[test]
fn a_log_that_comes_and_goes_leaves_no_view_behind() {
    let dir = tempfile::tempdir().unwrap();
    let world = open(dir.path());
    let done = std::sync::atomic::AtomicBool::new(false);
    let opened = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                match world.views.get(MAIN) {
                    Ok(live) => opened.lock().unwrap().push(live),
                    Err(NoView::NoLog | NoView::Closing) => {}
                    Err(NoView::NotOpened(reason)) => panic!("{reason}"),
                }
                opened.lock().unwrap().dedup_by(|one, other| Arc::ptr_eq(one, other));
                std::thread::sleep(Duration::from_micros(50));
            }
        });
        for round in 0..40 {
            match round % 2 {
                0 => world.node.empty(MAIN).expect("an empty log"),
                _ => {
                    world.node.drop_log(MAIN).expect("it is dropped");
                    world.node.create(MAIN).expect("it is made");
                }
            }
        }
        done.store(true, Ordering::Relaxed);
    });
    let current = world.views.get(MAIN).unwrap();
    for live in opened.lock().unwrap().iter().filter(|live| !Arc::ptr_eq(live, &current)) {
        assert!(live.is_closed(), "a view of a log that is gone goes on");
    }
}

#[test]
fn a_view_of_each_log_and_one_of_a_log_have_two_names() {
    let dir = tempfile::tempdir().unwrap();
    let world = open(dir.path());
    let gate = Arc::<Mutex<()>>::default();
    let slot = ViewSlot::<Tally>::new({
        let gate = Arc::clone(&gate);
        move || Ok(Arc::clone(&gate))
    });
    let refused = world.node.attach(MAIN, Arc::clone(&slot) as _).expect_err("one snapshot");
    assert!(refused.to_string().contains("main already has a view counted"), "{refused}");
    let again = world.node.attach_each::<Tally>(&[SEEN], move |_| Ok(Arc::clone(&gate)));
    let refused = again.map(|_| ()).expect_err("one snapshot");
    assert!(refused.to_string().contains("every log already has a view counted"), "{refused}");
    world.node.attach(SYSTEM_LOG, slot).expect("no view of each log is one of the server's own");
}

#[test]
fn a_view_that_does_not_open_is_asked_for_again() {
    let dir = tempfile::tempdir().unwrap();
    let node = node(dir.path());
    let tries = AtomicU64::new(0);
    let views = node
        .attach_each::<Tally>(&[SEEN], move |log| match tries.fetch_add(1, Ordering::SeqCst) {
            0 => Err(format!("no luck with {log}").into()),
            _ => Ok(Arc::default()),
        })
        .unwrap();
    let refused = views.get(MAIN).map(|_| ());
    assert!(
        matches!(&refused, Err(NoView::NotOpened(why)) if why.to_string() == "no luck with main")
    );
    views.get(MAIN).unwrap().wait_live().unwrap();
}
