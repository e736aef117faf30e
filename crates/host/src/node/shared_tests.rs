//! Nodes over an in-memory engine: the catalog, and the leaders.

use super::placement::Placement;
use super::*;
use crate::cluster::NodeName;
use crate::cluster::simulated::SimulatedLogs;
use crate::config::HostConfig;
use crate::node::NodeError;
use std::collections::BTreeSet;
use std::sync::Weak;
use std::time::Duration;
use tokio::time::Instant;
use wellspring_log::{Append, EncodedEvents, OpenError, Role};
use wellspring_patience::until;
use wellspring_types::Event;

struct World {
    dir: tempfile::TempDir,
    logs: Arc<SimulatedLogs>,
    nodes: OpenNodes,
}

/// Nodes that may have gone.
type OpenNodes = Arc<Mutex<Vec<Weak<Node>>>>;

fn living(nodes: &OpenNodes) -> Vec<Arc<Node>> {
    let nodes = nodes.lock().unwrap();
    let living = nodes.iter().filter_map(Weak::upgrade);
    living.filter(|node| node.get(SYSTEM_LOG).is_some_and(|log| !log.feed().is_closed())).collect()
}

/// Stands for the requests between nodes (`host/leads.rs`).
fn serve_placement(node: &Arc<Node>, nodes: OpenNodes) {
    let mut moves = node.placement().and_then(Placement::take_moves).expect("a cluster");
    let node = Arc::downgrade(node);
    let serve = move || {
        while let Some(node) = node.upgrade() {
            let (living, placement) = (living(&nodes), node.placement().expect("a cluster"));
            let role = node.get(SYSTEM_LOG).map(|log| log.role());
            if let Some(Role::Leading { epoch }) = role {
                let others = living.iter().filter(|other| !Arc::ptr_eq(other, &node));
                let heard = others.map(|other| placement.heard_from(&node, &other.status()));
                if heard.fold(true, |all, heard| all & heard) {
                    placement.asked(epoch);
                }
            }
            while let Ok(due) = moves.try_recv() {
                placement.settled(&due, lead_log(&living, &due.to, &due.log));
            }
            drop((living, node));
            std::thread::sleep(Duration::from_millis(10));
        }
    };
    crate::threads::spawn("leads".to_owned(), serve).expect("a thread");
}

fn lead_log(living: &[Arc<Node>], to: &str, log: &str) -> Option<u64> {
    let of = |node: &Node| node.status().node;
    let others = living.iter().filter(|node| of(node).as_deref() != Some(to) && leads(node, log));
    others.for_each(|node| node.get(log).expect("a log").resign());
    let to = living.iter().find(|node| of(node).as_deref() == Some(to))?;
    for tried in 0..100 {
        let log = to.get(log);
        match log.as_ref().map(|log| log.role()) {
            Some(Role::Leading { epoch }) => return Some(epoch),
            Some(Role::Following { .. }) if tried % 20 == 0 => log?.claim_lead(),
            _ => std::thread::sleep(Duration::from_millis(5)),
        }
    }
    None
}

impl World {
    fn new() -> World {
        World { dir: tempfile::tempdir().unwrap(), logs: Arc::default(), nodes: Arc::default() }
    }

    fn data(&self, number: u64) -> PathBuf {
        self.dir.path().join(number.to_string())
    }

    fn try_open(&self, number: u64) -> Result<Arc<Node>, NodeError> {
        let data = self.data(number);
        let config = HostConfig::for_tests(&["--data", data.to_str().expect("a path")]);
        let cluster = self.logs.node(number);
        let clock = crate::clock::system();
        let batching = config.ingest.batcher();
        let node = Node::open(&data, &config.storage, batching, clock, Some(cluster))?;
        let node = Arc::new(node);
        self.nodes.lock().unwrap().push(Arc::downgrade(&node));
        serve_placement(&node, Arc::clone(&self.nodes));
        node.look_after_shared().expect("a thread");
        node.join();
        Ok(node)
    }

    fn open(&self, number: u64) -> Arc<Node> {
        self.try_open(number).expect("a node")
    }
}

fn leads(node: &Node, log: &str) -> bool {
    node.get(log).is_some_and(|log| log.role().leads())
}

/// Asks a node to lead, again until it does: a claim of a node that has not heard of the last one
/// has no effect.
fn take_lead(node: &Node) {
    let log = node.get(SYSTEM_LOG).expect("a log");
    let mut asked: Option<Instant> = None;
    until("it takes the lead", || {
        log.role().leads() || {
            if asked.is_none_or(|at| at.elapsed() >= Duration::from_millis(100)) {
                asked = Some(Instant::now());
                log.claim_lead();
            }
            false
        }
    });
}

fn append(node: &Node, log: &str) {
    let mut events = EncodedEvents::new();
    events.push(&Event::json("A", &[], "{}").as_ref()).unwrap();
    let log = node.get(log).expect("a log");
    log.append(Append { events, ..Append::default() }).expect("it is appended");
}

/// The number of the node that leads a log.
fn leader(nodes: &[&Node], log: &str) -> Option<usize> {
    nodes.iter().position(|node| leads(node, log))
}

fn append_at_leader(nodes: &[&Node], log: &str) {
    until("it is led", || leader(nodes, log).is_some());
    append(nodes[leader(nodes, log).unwrap()], log);
}

#[test]
fn leads_are_spread_and_those_of_a_node_that_is_gone_are_taken_over() {
    let world = World::new();
    let one = world.open(1);
    until("the first leads both", || leads(&one, MAIN) && leads(&one, SYSTEM_LOG));
    let (two, three) = (world.open(2), world.open(3));
    let all = [&*one, &*two, &*three];
    std::thread::sleep(Duration::from_millis(200));
    for log in ["orders", "stock"] {
        assert!(one.create(log).expect("a log"));
        assert!(!one.create(log).expect("a log"), "it is there already");
        append_at_leader(&all, log);
    }
    let leaders = [MAIN, "orders", "stock"].map(|log| leader(&all, log));
    assert_eq!(BTreeSet::from(leaders).len(), 3, "{leaders:?}");
    // Another one places, and finds nothing to do.
    take_lead(&two);
    until("the first follows", || !leads(&one, SYSTEM_LOG));
    assert!(matches!(one.create("late"), Err(NodeError::NotRecorded(_))), "it does not lead");
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!([MAIN, "orders", "stock"].map(|log| leader(&all, log)), leaders);
    three.close();
    let left = [&*one, &*two];
    let is_led = |log: &str| leader(&left, log).is_some();
    until("the others lead all", || ["orders", "stock", MAIN].into_iter().all(is_led));
    for log in ["orders", "stock"] {
        append(left[leader(&left, log).unwrap()], log);
        until("both have it", || left.iter().all(|node| node.get(log).unwrap().head() == 2));
    }
    // Not heard: the other one claims `system`, and finds a node that leads nothing any more.
    two.close();
    until("the first leads all", || {
        [MAIN, SYSTEM_LOG, "orders", "stock"].iter().all(|log| leads(&one, log))
    });
}

#[test]
fn a_pinned_log_goes_where_it_is_pinned_and_comes_back_with_its_node() {
    let world = World::new();
    let (one, two) = (world.open(1), world.open(2));
    take_lead(&one);
    until("main is led", || leader(&[&one, &two], MAIN).is_some());
    let pin = |node: &str| {
        until("it is pinned", || one.pin(MAIN, Some(&NodeName::parse(node).unwrap())).is_ok());
    };
    assert!(matches!(one.pin("none", None), Err(NodeError::NotFound)));
    pin("node-1");
    until("the first leads it", || leads(&one, MAIN));
    pin("node-2");
    until("the second leads it", || leads(&two, MAIN));
    append(&two, MAIN);
    two.close();
    drop(two);
    until("the first leads it meanwhile", || leads(&one, MAIN));
    let two = world.open(2);
    until("the second leads it again", || leads(&two, MAIN));
    until("its pin is lifted", || one.pin(MAIN, None).is_ok());
    assert!(one.pins().is_empty() && two.get(MAIN).unwrap().head() == 1);
    // Connectors run where `system` is led.
    assert!(leads(&one, SYSTEM_LOG) && leads(&two, MAIN));
    one.lead_with_system(BTreeSet::from([MAIN.to_owned()]));
    until("the first leads both", || leads(&one, MAIN));
}

#[test]
fn a_node_that_hears_nothing_in_system_gives_up_its_leads() {
    let world = World::new();
    let (one, two) = (world.open(1), world.open(2));
    take_lead(&one);
    until("main is led", || leader(&[&one, &two], MAIN).is_some());
    let pinned = NodeName::parse("node-2").unwrap();
    until("it is pinned", || one.pin(MAIN, Some(&pinned)).is_ok());
    until("the second leads it", || leads(&two, MAIN));
    // Only `system` is cut off: nothing else tells this node that it is to give up.
    world.logs.log(SYSTEM_LOG).disconnect(2);
    until("the first leads it", || leads(&one, MAIN));
    append(&one, MAIN);
    until("the second follows", || !leads(&two, MAIN));
    world.logs.log(SYSTEM_LOG).reconnect(2);
    until("the second leads it again", || leads(&two, MAIN));
}

#[test]
fn a_log_that_is_dropped_and_made_again_is_empty_everywhere() {
    let world = World::new();
    let (one, two) = (world.open(1), world.open(2));
    until("somebody leads", || leads(&one, SYSTEM_LOG) || leads(&two, SYSTEM_LOG));
    let (leader, follower) = if leads(&one, SYSTEM_LOG) { (one, two) } else { (two, one) };
    let all = [&*leader, &*follower];
    let is_there = || all.iter().all(|node| node.get("a").is_some_and(|log| log.head() == 1));
    leader.create("a").unwrap();
    append_at_leader(&all, "a");
    until("it is there", is_there);
    leader.empty("a").unwrap();
    let is_empty = |node: &Node| node.get("a").is_some_and(|log| log.head() == 0);
    assert!(is_empty(&leader));
    until("it is empty elsewhere", || is_empty(&follower));
    append_at_leader(&all, "a");
    until("the new one is there", is_there);
    leader.drop_log("a").unwrap();
    assert!(matches!(leader.drop_log("a"), Err(NodeError::NotFound)));
    until("it is gone elsewhere", || follower.get("a").is_none());
    assert!(world.logs.names().contains(&"a.2".to_owned()), "{:?}", world.logs.names());
}

#[test]
fn a_node_that_was_away_finds_logs_as_they_are_now() {
    let world = World::new();
    let (one, two) = (world.open(1), world.open(2));
    until("somebody leads", || leads(&one, SYSTEM_LOG) || leads(&two, SYSTEM_LOG));
    take_lead(&one);
    for log in ["dropped", "renewed"] {
        one.create(log).unwrap();
        append_at_leader(&[&one, &two], log);
        until("it is there", || two.get(log).is_some_and(|log| log.head() == 1));
    }
    two.close();
    drop(two);
    one.drop_log("dropped").unwrap();
    one.empty("renewed").unwrap();
    one.create("new").unwrap();
    let two = world.open(2);
    assert!(two.get("dropped").is_none());
    assert_eq!(two.get("renewed").map(|log| log.head()), Some(0));
    assert!(two.get("new").is_some());
    assert!(!world.data(2).join("logs/dropped").exists());
    let members: Vec<_> = two.members().unwrap().into_iter().map(|member| member.node).collect();
    assert!(members.contains(&"node-1".to_owned()), "{members:?}");
}

/// Regression: killed while copying a log that was dropped before it restarted, a node failed to
/// start.
#[test]
fn what_a_crash_has_left_of_a_copy_of_a_dropped_log_is_removed() {
    let world = World::new();
    let one = world.open(1);
    until("the first leads", || leads(&one, MAIN));
    one.close();
    drop(one);
    let logs = world.data(1).join("logs");
    let is_segment = |name: &str| name.ends_with(".seg");
    let names = fs::read_dir(logs.join(MAIN)).unwrap().map(|entry| entry.unwrap().file_name());
    let segment = names.map(|name| name.into_string().unwrap()).find(|name| is_segment(name));
    let segment = segment.expect("a segment");
    for half in ["empty", "locked", "begun", "made"] {
        fs::create_dir(logs.join(half)).unwrap();
    }
    for half in ["locked", "begun", "made"] {
        fs::write(logs.join(half).join("LOCK"), "").unwrap();
    }
    fs::write(logs.join("begun").join(&segment), "").unwrap();
    fs::copy(logs.join(MAIN).join(&segment), logs.join("made").join(&segment)).unwrap();
    let one = world.open(1);
    for half in ["empty", "locked", "begun", "made"] {
        assert!(!logs.join(half).exists(), "{half}");
    }
    until("it leads again", || leads(&one, MAIN));
}

/// One log that one node cannot open must not affect other logs or nodes.
#[test]
fn a_log_that_does_not_open_on_one_node_is_led_by_another() {
    let world = World::new();
    let (one, two) = (world.open(1), world.open(2));
    until("somebody leads", || leads(&one, MAIN) || leads(&two, MAIN));
    take_lead(&one);
    let in_the_way = world.data(2).join("logs/aa");
    fs::write(&in_the_way, "not a folder").unwrap();
    one.create("aa").unwrap();
    one.create("bb").unwrap();
    until("what comes behind it is opened", || two.get("bb").is_some());
    assert!(two.get("aa").is_none());
    assert_eq!(two.unopened_logs().len(), 1, "{:?}", two.unopened_logs());
    until("it is led where it opens", || leads(&one, "aa"));
    append(&one, "aa");
    // A node that cannot open it becomes the placer.
    take_lead(&two);
    until("it makes a log", || two.create("cc").is_ok());
    append(&one, "aa");
    fs::remove_file(&in_the_way).unwrap();
    until("it opens", || two.get("aa").is_some_and(|log| log.head() == 2));
    assert!(two.unopened_logs().is_empty());
}

#[test]
fn a_folder_of_files_does_not_become_a_copy() {
    let world = World::new();
    let data = world.data(1);
    let config = HostConfig::for_tests(&["--data", data.to_str().expect("a path")]);
    let node = config.node(crate::clock::system());
    node.create("of-files").unwrap();
    node.close();
    drop(node);
    let refused = world.try_open(1).map(drop).expect_err("it is not a copy");
    assert!(matches!(&refused, NodeError::Open { error: OpenError::OtherJournal { .. }, .. }));
    // Without the permanent logs, the others are not taken for dropped ones.
    for log in [MAIN, SYSTEM_LOG] {
        fs::remove_dir_all(data.join("logs").join(log)).unwrap();
    }
    let refused = world.try_open(1).map(drop).expect_err("it is not a copy");
    assert!(refused.to_string().contains("of-files"), "{refused}");
    assert!(data.join("logs/of-files").exists());
}

#[test]
fn a_follower_says_who_leads() {
    let world = World::new();
    let one = world.open(1);
    until("the first leads", || leads(&one, MAIN));
    let two = world.open(2);
    until("the second knows it", || {
        let role = two.get(MAIN).expect("a log").role();
        matches!(role, Role::Following { leader: Some(leader) } if leader.node == "node-1")
    });
}

#[test]
fn a_node_that_cannot_lead_a_log_leaves_it_to_another() {
    let world = World::new();
    let one = world.open(1);
    until("the first leads", || leads(&one, MAIN));
    (0..3).for_each(|_| append(&one, MAIN));
    // The entries that a new node would have to read are gone.
    let main = world.logs.log(MAIN);
    main.drop_up_to(main.end());
    let two = world.open(2);
    let role = two.get(MAIN).expect("a log").role();
    assert!(matches!(role, Role::Detached { .. }), "{role:?}");
    take_lead(&two);
    std::thread::sleep(Duration::from_millis(500));
    assert!(leads(&two, SYSTEM_LOG) && leads(&one, MAIN));
    append(&one, MAIN);
    one.get(MAIN).expect("a log").resign();
    until("the first leads it again", || leads(&one, MAIN));
}
