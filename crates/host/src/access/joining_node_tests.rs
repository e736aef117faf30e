use super::super::first_admin::ensure;
use super::*;
use crate::clock;
use crate::config::{FaceTerms, HostConfig};
use crate::setup::SetupError;
use crate::view::Live;
use std::sync::Arc;
use tempfile::TempDir;
use wellspring_log::shared::simulated::SimulatedLog;
use wellspring_log::storage::simulated::SimulatedStorage;
use wellspring_log::{Log, Options, SharedOptions};
use zeroize::Zeroizing;

/// Shorter than a node takes to claim the lead, so that a wait can time out.
const SHORT: Duration = Duration::from_millis(50);
const LONG: Duration = Duration::from_secs(20);

/// A node of a cluster that has opened its gate.
struct Node {
    gate: Gate,
    log: Log,
    _dir: TempDir,
}

impl Drop for Node {
    fn drop(&mut self) {
        self.log.close();
        self.gate.live().close();
    }
}

/// What a node does when there is no leader.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ambition {
    Leads,
    Follows,
}

fn node(cluster: &SimulatedLog, number: u64, ambition: Ambition) -> Node {
    let dir = TempDir::new().unwrap();
    let lead_timeout = match ambition {
        Ambition::Leads => Duration::from_millis(100),
        Ambition::Follows => Duration::from_secs(600),
    };
    let name = format!("n{number}");
    let shared = SharedOptions {
        log: "system".to_owned(),
        start: number,
        lead_timeout,
        ..SharedOptions::new(&name, "http://n")
    };
    let storage = Arc::new(SimulatedStorage::new(number));
    let engine = Box::new(cluster.connect(number));
    let log = Log::open_shared(storage, Options::default(), shared, engine).unwrap();
    let live = Live::open(log.clone(), dir.path(), (), clock::system()).unwrap();
    let data = dir.path().to_str().unwrap();
    let config = HostConfig::for_tests(&["--data", data, "--threads", "1"]);
    let pages = config.pages(&FaceTerms::default()).unwrap();
    let gate =
        Gate::open(&config.process, &config.access, pages, clock::system(), live, None).unwrap();
    Node { gate, log, _dir: dir }
}

fn made(node: &Node, patience: Duration) -> Result<(), SetupError> {
    let password = Zeroizing::new("correct horse".to_owned());
    ensure(&node.gate, Some(password), None, patience, &|| ())
}

#[test]
fn the_first_account_is_made_by_the_leader_and_waited_for_by_the_others() {
    let cluster = SimulatedLog::immediate();
    let follower = node(&cluster, 1, Ambition::Follows);
    let refused = made(&follower, SHORT).unwrap_err();
    assert!(refused.to_string().contains("could not create the first"), "{refused}");
    assert!(refused.to_string().contains("no leader is known"), "{refused}");
    let leader = node(&cluster, 2, Ambition::Leads);
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| made(&follower, LONG));
        assert_eq!(made(&leader, LONG), Ok(()));
        assert_eq!(waits.join().unwrap(), Ok(()));
    });
    for node in [&leader, &follower] {
        let state = node.gate.state();
        assert_eq!(state.accounts().count(), 1, "one account, on both");
        assert_eq!(made(node, Duration::ZERO), Ok(()), "another start changes nothing");
    }
}

#[test]
fn a_follower_names_the_leader_when_it_cannot_create_the_first_account() {
    let cluster = SimulatedLog::immediate();
    let leader = node(&cluster, 2, Ambition::Leads);
    assert_eq!(await_turn(&leader.gate, LONG, &|| ()), Ok(LeadWait::Leads));
    let follower = node(&cluster, 1, Ambition::Follows);
    let refused = made(&follower, Duration::from_millis(500)).unwrap_err();
    assert!(refused.to_string().contains("n2 (http://n)"), "{refused}");
}

#[test]
fn a_node_whose_copy_is_behind_does_not_take_itself_for_open() {
    let cluster = SimulatedLog::immediate();
    let leader = node(&cluster, 2, Ambition::Leads);
    assert_eq!(await_accounts(&leader.gate), Ok(()), "nobody has any, which is confirmed");
    assert!(leader.gate.is_open());
    made(&leader, LONG).unwrap();
    let late = node(&cluster, 1, Ambition::Follows);
    assert_eq!(await_accounts(&late.gate), Ok(()));
    assert!(!late.gate.is_open());
    cluster.disconnect(3);
    let cut_off = node(&cluster, 3, Ambition::Follows);
    let refused = await_accounts_for(&cut_off.gate, SHORT).unwrap_err();
    assert!(refused.to_string().contains("unknown whether accounts exist"), "{refused}");
    cluster.reconnect(3);
    assert_eq!(await_accounts(&cut_off.gate), Ok(()));
    assert!(!cut_off.gate.is_open());
}
