//! The pump killed at any moment, beside other pumps, with faults on both sides: each record still
//! arrives exactly once.

use super::bench::{Bench, DiskLog, Random};
use super::*;
use std::sync::atomic::Ordering;
use wellspring_kafka::simulated::{Operation, PlannedFault};
use wellspring_log::storage::simulated::Faults;

/// Appends records, with and without transactions, some invalid; returns the number that readers
/// will see.
fn produce(bench: &Bench, random: &mut Random, partitions: u64) -> usize {
    let count = random.below(3_000);
    for n in 0..count {
        let partition = i32::try_from(random.below(partitions)).expect("small");
        let value = format!("{{\"n\":{n}}}");
        let value = (random.below(50) != 0).then_some(value.as_str());
        match random.below(200) {
            0 => bench.cluster.append_uncommitted(bench.record(partition, value)).abort(),
            1 => bench.cluster.append_uncommitted(bench.record(partition, value)).commit(),
            _ => bench.produce(partition, value),
        }
    }
    bench.cluster.committed(super::bench::TOPIC).len()
}

fn plan_faults(bench: &Bench, random: &mut Random) {
    let operations = [Operation::Describe, Operation::MakeReader, Operation::Poll];
    for _ in 0..random.below(3) {
        let operation = operations[random.below(3) as usize];
        bench.cluster.fail_next(operation, PlannedFault::new(FaultKind::Unavailable));
    }
    for disk in [&bench.main, &bench.rejects] {
        if random.below(4) == 0 {
            let sync_fails_after = Some(random.below(4));
            disk.storage.set_faults(Faults { sync_fails_after, ..Faults::default() });
        }
    }
}

/// A history of crashes. Power fails at any moment; the reject log is copied shortly after the main
/// one, as if it had been written ahead.
fn history(seed: u64) {
    let random = &mut Random(seed);
    let partitions = 1 + random.below(3);
    let mut bench = Bench::new(i32::try_from(partitions).expect("small"));
    bench.with_ids = random.below(3) == 0;
    for _ in 0..6 {
        produce(&bench, random, partitions);
        plan_faults(&bench, random);
        let running: Vec<_> = (0..1 + random.below(2)).map(|_| bench.start()).collect();
        std::thread::sleep(Duration::from_micros(random.below(60_000)));
        let (main, rejects) = (bench.main.crash(), bench.rejects.crash());
        for running in running {
            running.stop();
        }
        (bench.main, bench.rejects) = (main, rejects);
        bench.cluster.forget_faults();
    }
    let all = produce(&bench, random, partitions);
    bench.run_until(all);
    bench.require_each_once();
}

#[test]
fn each_record_comes_once_whenever_the_power_goes() {
    let seeds = std::env::var("SOURCE_HISTORIES").ok().and_then(|count| count.parse().ok());
    for seed in 0..seeds.unwrap_or(15) {
        let done = std::panic::catch_unwind(|| history(seed));
        assert!(done.is_ok(), "the history of seed {seed}");
    }
}

#[test]
fn two_servers_that_run_one_source_take_turns_and_append_nothing_twice() {
    let mut bench = Bench::new(2);
    bench.with_ids = false;
    let running = [bench.start(), bench.start(), bench.start()];
    let mut random = Random(7);
    let mut all = 0;
    for _ in 0..10 {
        all = produce(&bench, &mut random, 2);
        std::thread::sleep(Duration::from_millis(20));
    }
    running[0].wait_for(|_| bench.count() >= all);
    let conflicts: u64 = running
        .into_iter()
        .map(|running| running.stop().counters.conflicts.load(Ordering::Relaxed))
        .sum();
    bench.require_each_once();
    assert!(conflicts > 0, "they must have met");
}

#[test]
fn a_zombie_goes_on_where_the_living_one_is() {
    let mut bench = Bench::new(1);
    bench.with_ids = false;
    let zombie = bench.start();
    zombie.wait_for(|status| status.state() == ConnectorState::Running);
    // While its barrier is held, another server has the same log: here, the same log in the same
    // process.
    bench.main.storage.hold_barriers();
    bench.produce(0, Some("1"));
    bench.main.storage.wait_for_held_barrier();
    let living = bench.start();
    bench.main.storage.release_barriers();
    for _ in 0..2_000 {
        bench.produce(0, Some("1"));
    }
    living.wait_for(|_| bench.count() == 2_001);
    zombie.stop();
    bench.produce(0, Some("1"));
    living.wait_for(|_| bench.count() == 2_002);
    living.stop();
    bench.require_each_once();
}

#[test]
fn a_crash_between_the_two_logs_stores_no_record_twice() {
    let mut bench = Bench::new(1);
    for n in 0..3_000 {
        bench.produce(0, (n % 2 == 0).then_some("1"));
    }
    // Nothing in the main log survives, but each time more of the reject log does.
    for _ in 0..3 {
        let lost = bench.main.storage.contents();
        let running = bench.start();
        running.wait_for(|_| !bench.rejected().is_empty());
        running.stop();
        let storage = wellspring_log::storage::simulated::SimulatedStorage::with_contents(3, &lost);
        bench.main = DiskLog::open(storage);
    }
    bench.run_until(3_000);
    bench.require_each_once();
}
