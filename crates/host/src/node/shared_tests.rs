//! Nodes over an in-memory engine: the catalog, and the leaders.

use super::*;
use crate::cluster::simulated::SimulatedLogs;
use crate::config::HostConfig;
use crate::node::NodeError;
use std::time::Duration;
use tokio::time::Instant;
use wellspring_log::{Append, EncodedEvents, OpenError, Role};
use wellspring_patience::until;
use wellspring_types::Event;

struct World {
    dir: tempfile::TempDir,
    logs: Arc<SimulatedLogs>,
}

impl World {
    fn new() -> World {
        World { dir: tempfile::tempdir().unwrap(), logs: Arc::default() }
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

#[test]
fn one_node_leads_all_logs_and_another_takes_all_of_them() {
    let world = World::new();
    let one = world.open(1);
    until("the first leads both", || leads(&one, MAIN) && leads(&one, SYSTEM_LOG));
    let two = world.open(2);
    assert!(one.create("orders").expect("a log"));
    assert!(!one.create("orders").expect("a log"), "it is there already");
    until("it is opened elsewhere", || two.get("orders").is_some());
    until("it is led", || leads(&one, "orders"));
    append(&one, "orders");
    take_lead(&two);
    until("the second leads all", || {
        [MAIN, SYSTEM_LOG, "orders"].iter().all(|log| leads(&two, log) && !leads(&one, log))
    });
    assert!(matches!(one.create("late"), Err(NodeError::NotRecorded(_))), "it does not lead");
    append(&two, "orders");
    until("the first follows", || one.get("orders").is_some_and(|log| log.head() == 2));
    // The leader is not heard: the other one claims.
    two.close();
    until("the first leads again", || leads(&one, MAIN) && leads(&one, "orders"));
}

#[test]
fn a_log_that_is_dropped_and_made_again_is_empty_everywhere() {
    let world = World::new();
    let (one, two) = (world.open(1), world.open(2));
    until("somebody leads", || leads(&one, SYSTEM_LOG) || leads(&two, SYSTEM_LOG));
    let (leader, follower) = if leads(&one, SYSTEM_LOG) { (one, two) } else { (two, one) };
    leader.create("a").unwrap();
    until("it is led", || leads(&leader, "a"));
    append(&leader, "a");
    until("it is there", || follower.get("a").is_some_and(|log| log.head() == 1));
    leader.empty("a").unwrap();
    let is_empty = |node: &Node| node.get("a").is_some_and(|log| log.head() == 0);
    assert!(is_empty(&leader));
    until("it is empty elsewhere", || is_empty(&follower));
    until("it is led", || leads(&leader, "a"));
    append(&leader, "a");
    until("the new one is followed", || follower.get("a").is_some_and(|log| log.head() == 1));
    leader.drop_log("a").unwrap();
    assert!(matches!(leader.drop_log("a"), Err(NodeError::NotFound)));
    until("it is gone elsewhere", || follower.get("a").is_none());
    assert!(world.logs.names().contains(&"a.2".to_owned()), "{:?}", world.logs.names());
}

#[test]
fn a_node_that_was_away_finds_logs_as_they_are_now() {
    let world = World::new();
    let (one, two) = (world.open(1), world.open(2));
    until("the first leads", || leads(&one, MAIN) || leads(&two, MAIN));
    if leads(&two, MAIN) {
        take_lead(&one);
        until("the first leads", || leads(&one, SYSTEM_LOG) && leads(&one, MAIN));
    }
    for log in ["dropped", "renewed"] {
        one.create(log).unwrap();
        until("it is led", || leads(&one, log));
        append(&one, log);
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
    until("the first leads", || leads(&one, SYSTEM_LOG) && leads(&one, MAIN));
    let in_the_way = world.data(2).join("logs/aa");
    fs::write(&in_the_way, "not a folder").unwrap();
    one.create("aa").unwrap();
    one.create("bb").unwrap();
    until("what comes behind it is opened", || two.get("bb").is_some());
    assert!(two.get("aa").is_none());
    assert_eq!(two.unopened_logs().len(), 1, "{:?}", two.unopened_logs());
    until("it is led where it opens", || leads(&one, "aa"));
    append(&one, "aa");
    // A node that cannot open it becomes leader, and creates logs until it has given up.
    take_lead(&two);
    until("it makes a log", || two.create("cc").is_ok());
    until("the first leads again", || leads(&one, SYSTEM_LOG) && leads(&one, "aa"));
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
fn a_node_that_cannot_lead_a_log_leads_none() {
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
    two.get(SYSTEM_LOG).expect("a log").claim_lead();
    until("the second has led", || {
        let role = one.get(SYSTEM_LOG).expect("a log").role();
        matches!(role, Role::Following { leader: Some(leader) } if leader.node == "node-2")
    });
    until("the first leads both again", || leads(&one, MAIN) && leads(&one, SYSTEM_LOG));
    append(&one, MAIN);
}
