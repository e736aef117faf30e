//! A log over a simulated shared log: one node, several, and the fate of a copy.

use crate::oracle::{append, append_if, read_all, small_segments};
use std::sync::Arc;
use std::time::{Duration, Instant};
use wellspring_log::shared::simulated::{Settings, SimulatedLog};
use wellspring_log::shared::{EngineLeader, SharedLimits};
use wellspring_log::storage::simulated::{Faults, SimulatedStorage};
use wellspring_log::{
    Append, AppendError, Driver, FenceRefusal, Leader, LeaseError, LeaseProof, Log, Options, Role,
    SharedOptions,
};
use wellspring_patience::until;
use wellspring_types::{AppendCondition, Event, Query};

pub fn node(number: u64) -> SharedOptions {
    let mut options = SharedOptions::new(&format!("node-{number}"), "http://127.0.0.1:1");
    options.lead_timeout = Duration::from_millis(200);
    options
}

pub fn open_node(world: &SimulatedLog, storage: &SimulatedStorage, number: u64) -> Log {
    open_node_with(world, storage, number, small_segments())
}

pub fn open_node_with(
    world: &SimulatedLog,
    storage: &SimulatedStorage,
    number: u64,
    options: Options,
) -> Log {
    let engine = Box::new(world.connect(number));
    Log::open_shared(Arc::new(storage.clone()), options, node(number), engine).unwrap()
}

/// Asks a node to lead, again until it does: a node that has not heard of the last claim names an
/// epoch that is taken, which is void.
#[allow(clippy::disallowed_methods)] // a test's own pace
pub fn take_lead(log: &Log) {
    let mut asked: Option<Instant> = None;
    until("it leads", || {
        let is_due = asked.is_none_or(|at| at.elapsed() >= Duration::from_millis(100));
        if is_due && !log.role().leads() {
            asked = Some(Instant::now());
            log.claim_lead();
        }
        log.role().leads()
    });
}

/// The leader that a follower knows. It shows an event before it says who leads.
fn leader_known_to(log: &Log) -> Leader {
    let mut known = None;
    until("it knows the leader", || {
        if let Role::Following { leader } = log.role() {
            known = leader;
        }
        known.is_some()
    });
    known.expect("just found")
}

#[test]
fn one_node_founds_leads_appends_and_goes_on_after_a_restart() {
    let world = SimulatedLog::immediate();
    let mut storage = SimulatedStorage::new(1);
    let mut appended = 0;
    for round in 1..=4 {
        let log = open_node(&world, &storage, 1);
        until("it leads", || log.role().leads());
        assert_eq!(log.head(), appended, "round {round}");
        for i in 0..30 {
            let data = format!("\"{}\"", "x".repeat(3_000));
            let event = Event::json("T", &[&format!("n:{i}")], &data);
            assert_eq!(log.append(append(&[event])).unwrap().first, appended + 1);
            appended += 1;
        }
        let taken = append_if(
            &[Event::json("T", &[], "1")],
            AppendCondition::not_exists(Query::item(&["T"], &["n:3"])),
        );
        assert!(matches!(log.append(taken), Err(AppendError::Conflict(_))));
        assert_eq!(read_all(&log).len() as u64, appended);
        drop(log);
        storage = storage.crash();
    }
}

#[test]
fn followers_get_the_leaders_segments_byte_for_byte_and_refuse_appends() {
    let world = SimulatedLog::immediate();
    let storages: Vec<_> = (0..3).map(SimulatedStorage::new).collect();
    let logs: Vec<Log> = (0..3).map(|n| open_node(&world, &storages[n as usize], n)).collect();
    until("one leads", || logs.iter().any(|log| log.role().leads()));
    let leader = logs.iter().position(|log| log.role().leads()).unwrap();
    for i in 0..200 {
        let data = format!("\"{}\"", "y".repeat(1 + i * 17 % 2_000));
        let events = vec![Event::json("T", &["a"], &data); 1 + i % 3];
        logs[leader].append(append(&events)).unwrap();
    }
    let head = logs[leader].head();
    for (n, log) in logs.iter().enumerate().filter(|(n, _)| *n != leader) {
        until("it has followed", || log.head() == head);
        let known = leader_known_to(log);
        assert_eq!(known.node, format!("node-{leader}"));
        let refused = log.append(append(&[Event::json("T", &[], "1")]));
        assert_eq!(refused, Err(AppendError::NotLeading { leader: Some(known) }), "node {n}");
        assert_eq!(read_all(log), read_all(&logs[leader]));
    }
    logs.iter().for_each(Log::close);
    let bodies: Vec<_> = storages.iter().map(bodies).collect();
    assert_eq!(bodies[0], bodies[1]);
    assert_eq!(bodies[0], bodies[2]);
}

/// Names of segments with their records, batch by batch.
pub fn bodies(storage: &SimulatedStorage) -> Vec<(String, Vec<Vec<u8>>)> {
    use wellspring_log::recover::scan;
    use wellspring_log::storage::Storage;
    let mut names: Vec<String> = storage.list().unwrap();
    names.retain(|name| name.ends_with(".seg"));
    names.sort();
    let bodies = names.into_iter().map(|name| {
        let file = storage.open(&name).unwrap();
        let mut bodies = Vec::new();
        scan(&*file, &name, &mut |batch| {
            bodies.push(batch.body.to_vec());
            Ok(())
        })
        .unwrap();
        (name, bodies)
    });
    bodies.collect()
}

#[test]
fn a_full_disk_at_the_founding_of_a_log_detaches_no_node() {
    let world = SimulatedLog::by_hand(1);
    let storage = SimulatedStorage::new(1);
    let options = Options { driver: Driver::Turns { seed: 1 }, ..small_segments() };
    let log = open_node_with(&world, &storage, 1, options);
    let used = storage.contents().values().map(Vec::len).sum::<usize>() as u64;
    storage.set_faults(Faults { capacity_bytes: Some(used), ..Faults::default() });
    let turns = |what: &str, holds: &dyn Fn() -> bool| {
        until(what, || {
            for under_way in world.under_way() {
                world.land(under_way.id);
                world.report(under_way.id);
                world.answer(under_way.id);
            }
            world.show(1, 10);
            log.turn();
            holds()
        });
    };
    turns("it leads", &|| log.role().leads());
    assert!(!storage.contents().contains_key("journal"));
    storage.set_faults(Faults::default());
    turns("it is written whose copy this is", &|| storage.contents().contains_key("journal"));
}

/// Repeated parts are void. A leader that treated that as a loss offered the batch from its
/// beginning, which repeated it again, and so on for ever (seed 58 of the simulator).
#[test]
fn a_part_that_arrives_twice_does_not_begin_its_batch_again() {
    let settings = Settings {
        limits: SharedLimits { entry_bytes: 4096, window: 1, ..Settings::default().limits },
        ..Settings::default()
    };
    let world = SimulatedLog::by_hand(1).with(settings);
    let storage = SimulatedStorage::new(1);
    let options = Options { driver: Driver::Turns { seed: 1 }, ..small_segments() };
    let log = open_node_with(&world, &storage, 1, options);
    let land = |repeat: bool| {
        for under_way in world.under_way() {
            if repeat && let Some(again) = world.duplicate(under_way.id) {
                world.land(again);
            }
            world.land(under_way.id);
            world.report(under_way.id);
            world.answer(under_way.id);
        }
        world.show(1, 10);
        log.turn();
    };
    until("it leads", || {
        land(false);
        log.role().leads()
    });
    let (tell, told) = std::sync::mpsc::channel();
    let data = format!("\"{}\"", "x".repeat(20_000));
    let done = Box::new(move |answer| tell.send(answer).unwrap());
    log.submit(append(&[Event::json("T", &[], &data)]), done);
    let before = world.end().0;
    until("it is durable", || {
        land(world.end().0 < before + 3);
        log.head() == 1
    });
    assert_eq!(told.recv().unwrap().unwrap().last, 1);
}

/// The file with the last leader may be lost, and the copy may resume after the claim (seed 378 of
/// the simulator).
#[test]
fn a_copy_that_goes_on_behind_the_claim_learns_from_a_beat_who_leads() {
    let world = SimulatedLog::immediate();
    let leader = open_node(&world, &SimulatedStorage::new(1), 1);
    until("it leads", || leader.role().leads());
    let storage = SimulatedStorage::new(2);
    let follower = open_node(&world, &storage, 2);
    leader.append(append(&[Event::json("T", &[], "1")])).unwrap();
    until("it follows", || follower.head() == 1);
    follower.close();
    let mut files = storage.contents();
    files.remove("journal").unwrap();
    let follower = open_node(&world, &SimulatedStorage::with_contents(2, &files), 2);
    assert_eq!(follower.head(), 1);
    let knows = |role| matches!(role, Role::Following { leader: Some(of) } if of.node == "node-1");
    until("it knows who leads", || knows(follower.role()));
}

#[test]
fn a_copy_follows_no_log_of_another_cluster() {
    let (storage, worlds) = (SimulatedStorage::new(1), [1, 2].map(|_| SimulatedLog::immediate()));
    let log = open_node(&worlds[0], &storage, 1);
    until("it leads", || log.role().leads());
    drop(log);
    // Nothing was appended: only the cluster's name distinguishes the two.
    let founder = open_node(&worlds[1], &SimulatedStorage::new(2), 2);
    until("the other one is founded", || founder.role().leads());
    let log = open_node(&worlds[1], &storage, 1);
    until("it is detached", || matches!(log.role(), Role::Detached { .. }));
    let refused = log.append(append(&[Event::json("T", &[], "1")]));
    assert_eq!(refused, Err(AppendError::NotLeading { leader: None }));
}

#[test]
fn two_processes_of_one_name_do_not_take_the_lead_from_each_other_for_ever() {
    let world = SimulatedLog::immediate();
    let first = open_node(&world, &SimulatedStorage::new(1), 7);
    until("the first leads", || first.role().leads());
    let second = open_node(&world, &SimulatedStorage::new(2), 7);
    until("the second took it for an earlier self", || second.role().leads());
    until("the first follows", || matches!(first.role(), Role::Following { leader: Some(_) }));
    let changes = second.role_changes().head();
    std::thread::sleep(Duration::from_millis(600));
    assert_eq!(second.role_changes().head(), changes);
    assert!(second.role().leads());
}

#[test]
fn leases_end_with_the_lead_and_their_tokens_grow_over_all_leaders() {
    let world = SimulatedLog::immediate();
    // Even on a busy machine, none of them claims on its own.
    let lead_timeout = Duration::from_secs(60);
    let logs = [1, 2].map(|n| {
        let engine = Box::new(world.connect(n));
        let storage = Arc::new(SimulatedStorage::new(n));
        let options = SharedOptions { lead_timeout, ..node(n) };
        Log::open_shared(storage, small_segments(), options, engine).unwrap()
    });
    let mut last_token = 0;
    for round in 0..6 {
        let (leader, other) = (&logs[round % 2], &logs[(round + 1) % 2]);
        take_lead(leader);
        until("the other follows", || !other.role().leads());
        let lease = leader.leases().acquire("l", "", 60_000_000).unwrap();
        assert!(lease.token > last_token, "round {round}");
        assert_eq!(other.leases().acquire("l", "", 1), Err(LeaseError::NotLeading));
        assert_eq!(other.leases().renew("l", "", last_token, 1), Err(LeaseError::NotLeading));
        let fenced = |token| {
            let fence = Some(leader.leases().fence(LeaseProof { lease: "l".into(), token }));
            Append { fence, ..append(&[Event::json("T", &[], "1")]) }
        };
        assert_eq!(
            leader.append(fenced(last_token)),
            Err(AppendError::Fenced(FenceRefusal::LeaseLost))
        );
        assert!(leader.append(fenced(lease.token)).is_ok());
        last_token = lease.token;
    }
}

/// A node that gives up its claim because the engine has elected another continues to follow the
/// leader: it reported no leader to its clients (seed 3194 of the simulator).
#[test]
fn a_claim_that_is_given_up_leaves_the_leader_known() {
    let elects = Settings { elects: true, ..Settings::default() };
    let world = SimulatedLog::immediate().with(elects);
    world.elect(1, EngineLeader::ThisNode);
    let leader = open_node(&world, &SimulatedStorage::new(1), 1);
    until("it leads", || leader.role().leads());
    let other = open_node(&world, &SimulatedStorage::new(2), 2);
    let follows =
        || matches!(other.role(), Role::Following { leader: Some(of) } if of.node == "node-1");
    until("the other follows", follows);
    // Its claim does not arrive anywhere.
    world.disconnect(2);
    world.elect(2, EngineLeader::ThisNode);
    until("the other claims", || matches!(other.role(), Role::Claiming { .. }));
    world.elect(2, EngineLeader::NotThisNode);
    until("the other follows again", || matches!(other.role(), Role::Following { .. }));
    assert!(follows(), "{:?}", other.role());
}

#[test]
fn a_leader_whose_disk_is_full_refuses_and_goes_on_when_there_is_room() {
    let world = SimulatedLog::immediate();
    let storage = SimulatedStorage::new(1);
    let log = open_node(&world, &storage, 1);
    until("it leads", || log.role().leads());
    let data = format!("\"{}\"", "x".repeat(9_000));
    let request = || append(&[Event::json("T", &[], &data)]);
    let mut appended = 0;
    for _ in 0..8 {
        let used = storage.contents().values().map(Vec::len).sum::<usize>() as u64;
        storage.set_faults(Faults { capacity_bytes: Some(used + 30_000), ..Faults::default() });
        // Some fit into the existing space. Then each is refused, immediately and every time.
        let mut refused = 0;
        while refused < 5 {
            match log.append(request()) {
                Ok(_) => appended += 1,
                Err(AppendError::StorageFull) => refused += 1,
                Err(other) => panic!("{other}"),
            }
        }
        storage.set_faults(Faults::default());
        log.append(request()).unwrap();
        appended += 1;
        assert_eq!(log.head(), appended);
    }
    assert!(log.segments() > 2);
}

#[test]
fn used_up_epochs_are_told_and_not_claimed_beyond() {
    use wellspring_log::shared::entry::{Claim, ClusterId, Entry};
    let world = SimulatedLog::immediate();
    world.append(&Entry::Founded { cluster: ClusterId([1; 16]), log: "main" }.encode());
    let last = Claim { epoch: (1 << 21) - 1, node: "gone", start: 1, url: "" };
    world.append(&Entry::Claim(last).encode());
    let log = open_node(&world, &SimulatedStorage::new(1), 1);
    until("it says so", || matches!(log.role(), Role::Detached { .. }));
    let Role::Detached { reason } = log.role() else { unreachable!() };
    assert!(reason.contains("used up"), "{reason}");
    assert_eq!(world.end().0, 2, "nothing was offered");
}

#[test]
fn an_engine_of_entries_too_small_is_refused() {
    let limits = SharedLimits { entry_bytes: 4_095, ..Settings::default().limits };
    let world = SimulatedLog::immediate().with(Settings { limits, ..Settings::default() });
    let engine = Box::new(world.connect(1));
    let opened =
        Log::open_shared(Arc::new(SimulatedStorage::new(1)), small_segments(), node(1), engine);
    assert!(opened.is_err_and(|error| error.to_string().contains("4 KiB")));
}
