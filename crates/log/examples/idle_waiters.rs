//! The cost of idle waiters: appends one event at a time while subscriptions to other events, and
//! tasks that wait for positions far ahead, are idle. Prints processor time and wall time per
//! append, with and without waiters, and the number of wake-ups.
//!
//! `cargo run --release -p wellspring-log --example idle_waiters`

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Wake, Waker};
use std::time::Duration;
use wellspring_log::{Append, Clock, EncodedEvents, Log, Options, Sync, SystemClock};
use wellspring_types::{Event, Query};

const APPENDS: u64 = 100_000;

#[derive(Default)]
struct Counting(AtomicU64);

impl Wake for Counting {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// Processor time used by this process, in ms.
fn processor_ms() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or_default();
    let ticks = |n| fields.split_whitespace().nth(n).and_then(|text| text.parse::<u64>().ok());
    // 100 ticks a second.
    (ticks(11).unwrap_or(0) + ticks(12).unwrap_or(0)) * 10
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    for waiters in [0, 1_000, 8_192, 20_000] {
        let dir = tempfile::tempdir()?;
        let log = Log::open(
            dir.path(),
            Options { sync: Sync::Interval(Duration::from_secs(1)), ..Options::default() },
        )?;
        let count = Arc::new(Counting::default());
        let waker = Waker::from(Arc::clone(&count));
        let mut context = Context::from_waker(&waker);
        let mut subscriptions: Vec<_> = (0..waiters)
            .map(|n| log.subscribe(Query::item(&["Paid"], &[&format!("account:{n}")]), 0))
            .collect();
        let mut positions: Vec<_> =
            (0..waiters).map(|n| log.feed().past(1_000_000 + n % 100)).collect();
        for (subscription, position) in subscriptions.iter_mut().zip(&mut positions) {
            assert!(subscription.poll_ready(&mut context).is_pending());
            assert!(Pin::new(position).poll(&mut context).is_pending());
        }
        let (begun_ms, begun_us) = (processor_ms(), SystemClock.monotonic_us());
        for n in 0..APPENDS {
            let mut events = EncodedEvents::new();
            events.push(&Event::json("Paid", &[&format!("other:{n}")], "{}").as_ref())?;
            log.append(Append { events, ..Append::default() })?;
        }
        let (wall_us, cpu_ms) = (SystemClock.monotonic_us() - begun_us, processor_ms() - begun_ms);
        let woken = count.0.load(Ordering::Relaxed);
        println!(
            "{waiters:>6} subscriptions and as many waits: {:>6.1} µs of processor, {:>6.1} µs an \
             append, {woken} wake-ups",
            cpu_ms as f64 * 1_000.0 / APPENDS as f64,
            wall_us as f64 / APPENDS as f64,
        );
    }
    Ok(())
}
