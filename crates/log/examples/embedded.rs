//! The log embedded in a program: `cargo run --release -p wellspring-log --example embedded
//! [FOLDER]`.
//!
//! Opens a log, lets threads race for seats in a course, reads the outcome back and follows new
//! events. `bench` as second argument measures appends instead.

#![allow(clippy::disallowed_methods)] // an example may use the clock

use std::error::Error;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use wellspring_log::{Append, AppendError, EncodedEvents, Log, Options, ReadOptions};
use wellspring_types::{AppendCondition, Event, Query};

fn encode(events: &[Event]) -> Result<EncodedEvents, Box<dyn Error>> {
    let mut encoded = EncodedEvents::new();
    for event in events {
        encoded.push(&event.as_ref())?;
    }
    Ok(encoded)
}

/// Subscribes a student if fewer than `seats` are taken; retries after a conflict.
fn subscribe(log: &Log, student: u32, seats: usize) -> Result<bool, Box<dyn Error>> {
    let taken = Query::item(&["Subscribed"], &["course:rust"]);
    loop {
        let snapshot = log.snapshot();
        let mut events = snapshot.read(&taken, ReadOptions::default());
        let mut count = 0;
        while events.next()?.is_some() {
            count += 1;
        }
        if count >= seats {
            return Ok(false);
        }
        let tag = format!("student:{student}");
        let events = encode(&[Event::json("Subscribed", &["course:rust", &tag], "{}")])?;
        let condition = AppendCondition::no_match_after(taken.clone(), snapshot.head());
        match log.append(Append { events, condition: Some(condition), ..Append::default() }) {
            Ok(_) => return Ok(true),
            Err(AppendError::Conflict(_)) => continue,
            Err(other) => return Err(other.into()),
        }
    }
}

fn bench(log: &Log) -> Result<(), Box<dyn Error>> {
    let data = format!("{{\"payload\":\"{}\"}}", "x".repeat(180));
    for (batch, rounds) in [(1usize, 2000u32), (1000, 200)] {
        let events: Vec<Event> = (0..batch)
            .map(|i| Event::json("OrderPlaced", &[&format!("order:{i}"), "shop:1"], &data))
            .collect();
        let mut times = Vec::new();
        for _ in 0..rounds {
            let start = Instant::now();
            log.append(Append { events: encode(&events)?, ..Append::default() })?;
            times.push(start.elapsed());
        }
        times.sort_unstable();
        let total: Duration = times.iter().sum();
        println!(
            "{batch} event(s) an append, durable, in process: p50 {:.1} µs, {:.0} events/s",
            times[times.len() / 2].as_secs_f64() * 1e6,
            (batch as f64 * f64::from(rounds)) / total.as_secs_f64()
        );
    }
    let start = Instant::now();
    let mut events = log.snapshot().read(&Query::all(), ReadOptions::default());
    let mut count = 0u64;
    while events.next()?.is_some() {
        count += 1;
    }
    let rate = count as f64 / start.elapsed().as_secs_f64();
    println!("reading all {count} events, checksums verified: {rate:.0} events/s");
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().map_or_else(
        || std::env::temp_dir().join(format!("wellspring-embedded-{}", std::process::id())),
        PathBuf::from,
    );
    let log = Log::open(&folder, Options::default())?;
    println!("opened {} at position {}", folder.display(), log.head());
    if arguments.next().as_deref() == Some("bench") {
        return bench(&log);
    }
    let mut subscription = log.subscribe(Query::all(), log.head());
    let admitted: usize = std::thread::scope(|scope| {
        let log = &log;
        let racers: Vec<_> = (0..20)
            .map(|student| scope.spawn(move || subscribe(log, student, 7).unwrap_or(false)))
            .collect();
        racers.into_iter().map(|racer| usize::from(racer.join().unwrap_or(false))).sum()
    });
    println!("{admitted} of 20 students were admitted to 7 seats");
    while let Some(event) = subscription.next(Duration::ZERO)? {
        let tags: Vec<&str> = event.tags().collect();
        println!("  {} {} {}", event.position(), event.event_type(), tags.join(" "));
    }
    Ok(())
}
