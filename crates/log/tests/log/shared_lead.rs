//! The lead of a shared log: taken on request, kept, and given up.

use crate::oracle::append;
use crate::shared::node;
use crate::shared_trouble::{HandClock, by_turns};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use wellspring_log::shared::simulated::SimulatedLog;
use wellspring_log::storage::simulated::SimulatedStorage;
use wellspring_log::{
    AppendError, Appended, Claims, Clock, Log, Role, SharedOptions, TurnProgress,
};
use wellspring_types::Event;

const LEAD_TIMEOUT: Duration = Duration::from_millis(200);

/// Nodes of one log, driven by hand.
struct Nodes {
    world: SimulatedLog,
    clock: Arc<HandClock>,
    claims: Claims,
    logs: Vec<Log>,
}

impl Nodes {
    fn new(count: u64, claims: Claims) -> Nodes {
        let world = SimulatedLog::immediate();
        let mut nodes = Nodes { world, clock: Arc::default(), claims, logs: Vec::new() };
        nodes.logs = (0..count).map(|n| nodes.open(&SimulatedStorage::new(n), n)).collect();
        nodes.run();
        nodes
    }

    fn open(&self, storage: &SimulatedStorage, number: u64) -> Log {
        let engine = Box::new(self.world.connect(number));
        let options = SharedOptions { claims: self.claims, ..node(number) };
        Log::open_shared(Arc::new(storage.clone()), by_turns(&self.clock), options, engine).unwrap()
    }

    fn run(&self) {
        for _ in 0..3 {
            self.logs.iter().for_each(|log| while log.turn().did == TurnProgress::Something {});
        }
    }

    /// Lets time pass in small steps.
    fn pass(&self, timeouts: u64) {
        for _ in 0..timeouts * 20 {
            self.clock.0.fetch_add(LEAD_TIMEOUT.as_micros() as u64 / 20, Ordering::Relaxed);
            self.run();
        }
    }

    fn leading(&self) -> Vec<usize> {
        let leads = |n: &usize| self.logs[*n].role().leads();
        (0..self.logs.len()).filter(leads).collect()
    }

    fn lead(&self, number: usize) {
        self.logs[number].claim_lead();
        self.run();
        assert_eq!(self.leading(), [number]);
    }
}

/// An append that was sent, and its outcome.
type Answer = Arc<Mutex<Option<Result<Appended, AppendError>>>>;

fn send(log: &Log) -> Answer {
    let answer = Answer::default();
    let told = Arc::clone(&answer);
    let done = Box::new(move |outcome| *told.lock().unwrap() = Some(outcome));
    log.submit(append(&[Event::json("T", &[], "1")]), done);
    answer
}

fn taken(answer: &Answer) -> Option<Result<Appended, AppendError>> {
    answer.lock().unwrap().take()
}

#[test]
fn where_the_engine_elects_no_node_claims_by_itself_and_an_idle_leader_offers_nothing() {
    let mut nodes = Nodes::new(3, Claims::WhenTold);
    nodes.pass(10);
    assert_eq!(nodes.leading(), [] as [usize; 0]);
    assert!(nodes.logs.iter().all(|log| log.role() == Role::Following { leader: None }));
    nodes.lead(1);
    let end = nodes.world.end();
    nodes.pass(10);
    assert_eq!((nodes.leading(), nodes.world.end()), (vec![1], end));
    nodes.lead(2);
    // Not for a former self either.
    nodes.logs[2].close();
    nodes.logs[2] = nodes.open(&SimulatedStorage::new(9), 2);
    nodes.pass(10);
    assert_eq!(nodes.leading(), [] as [usize; 0]);
    assert!(matches!(nodes.logs[2].role(), Role::Following { leader: Some(_) }));
    nodes.lead(2);
    let answer = send(&nodes.logs[2]);
    nodes.run();
    assert!(taken(&answer).unwrap().is_ok());
}

#[test]
fn a_leader_that_was_told_steps_down_only_if_what_it_offers_does_not_come_back() {
    let nodes = Nodes::new(2, Claims::WhenTold);
    nodes.lead(0);
    nodes.world.disconnect(0);
    nodes.pass(10);
    assert_eq!(nodes.leading(), [0], "it has nothing to wait for");
    let answer = send(&nodes.logs[0]);
    nodes.run();
    nodes.clock.0.fetch_add(LEAD_TIMEOUT.as_micros() as u64 - 1, Ordering::Relaxed);
    nodes.run();
    assert_eq!(nodes.leading(), [0]);
    nodes.clock.0.fetch_add(1, Ordering::Relaxed);
    nodes.run();
    assert_eq!(nodes.leading(), [] as [usize; 0]);
    assert_eq!(taken(&answer), None, "it is in doubt");
    nodes.lead(1);
    nodes.world.reconnect(0);
    nodes.run();
    assert!(matches!(taken(&answer), Some(Err(AppendError::NotLeading { leader: Some(_) }))));
}

#[test]
fn a_resigning_leader_refuses_staged_appends_and_answers_offered_ones_on_arrival() {
    for claims in [Claims::BySilence, Claims::WhenTold] {
        let nodes = Nodes::new(1, claims);
        nodes.lead(0);
        nodes.world.disconnect(0);
        let log = &nodes.logs[0];
        let offered = send(log);
        nodes.run();
        // More than the journal accepts at a time: some stay staged.
        let sent: Vec<Answer> = (0..9)
            .map(|_| {
                let answer = send(log);
                nodes.run();
                answer
            })
            .collect();
        log.resign();
        nodes.run();
        assert_eq!(log.role(), Role::Following { leader: None });
        assert_eq!(taken(&offered), None, "it was offered");
        let refused = sent.iter().filter_map(taken).collect::<Vec<_>>();
        assert!(!refused.is_empty());
        assert!(refused.iter().all(|told| *told == Err(AppendError::NotLeading { leader: None })));
        nodes.world.reconnect(0);
        nodes.run();
        assert!(taken(&offered).unwrap().is_ok(), "no other claim came before it");
        nodes.lead(0);
        let in_log = 10 - refused.len() as u64;
        assert_eq!(log.head(), in_log);
        log.resign();
        log.claim_lead();
        nodes.run();
        assert!(log.role().leads(), "the last word counts");
    }
}

#[test]
fn an_abandoned_claim_that_arrives_late_makes_no_node_lead() {
    let nodes = Nodes::new(2, Claims::WhenTold);
    nodes.lead(0);
    nodes.world.disconnect(1);
    nodes.logs[1].claim_lead();
    nodes.run();
    assert!(matches!(nodes.logs[1].role(), Role::Claiming { .. }));
    nodes.logs[1].resign();
    nodes.run();
    assert!(matches!(nodes.logs[1].role(), Role::Following { .. }));
    nodes.world.reconnect(1);
    nodes.run();
    // Its claim landed, so the first no longer leads; the other gave it up.
    assert!(nodes.leading().is_empty() || nodes.leading() == [0], "{:?}", nodes.leading());
    nodes.lead(0);
}

/// The order came after the claim in flight, so the defeat of that claim does not settle it. It was
/// dropped, and the lead stayed where it was.
#[test]
fn an_order_to_claim_during_a_claim_that_loses_is_carried_out_after_it() {
    let nodes = Nodes::new(3, Claims::WhenTold);
    nodes.lead(0);
    nodes.world.disconnect(1);
    nodes.logs[1].claim_lead();
    nodes.run();
    assert!(matches!(nodes.logs[1].role(), Role::Claiming { .. }));
    nodes.logs[1].claim_lead();
    nodes.run();
    nodes.lead(2);
    nodes.world.reconnect(1);
    nodes.pass(1);
    assert_eq!(nodes.leading(), [1]);
    // It is settled now: the next defeat is final.
    nodes.lead(2);
    nodes.pass(10);
    assert_eq!(nodes.leading(), [2]);
}

#[test]
fn a_resigned_leader_lets_another_lead_and_leads_again_if_none_does() {
    let nodes = Nodes::new(2, Claims::BySilence);
    nodes.lead(0);
    nodes.logs[0].resign();
    nodes.run();
    assert_eq!(nodes.leading(), [] as [usize; 0]);
    nodes.pass(2);
    assert_eq!(nodes.leading(), [1], "within two lead timeouts");
    nodes.world.disconnect(0);
    nodes.logs[1].resign();
    let begun_us = nodes.clock.monotonic_us();
    nodes.run();
    while nodes.leading().is_empty() {
        nodes.clock.0.fetch_add(1_000, Ordering::Relaxed);
        nodes.run();
    }
    assert_eq!(nodes.leading(), [1]);
    let alone_us = nodes.clock.monotonic_us() - begun_us;
    let timeout_us = LEAD_TIMEOUT.as_micros() as u64;
    assert!((2 * timeout_us..3 * timeout_us).contains(&alone_us), "{alone_us}");
}
