//! The destination against a scripted receiver.

use super::*;
use crate::status::ConnectorState;
use receiver::{ReceivedRequest, Receiver, Reply};
use std::collections::{BTreeMap, BTreeSet};
use std::net::TcpListener;
use std::sync::Mutex;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Instant;
use wellspring_log::{Append, EncodedEvents, Log, Options, SystemClock};
use wellspring_types::{DataKind, Event, Position, Query};

mod dead_letters;
mod faults;
mod receiver;
mod requests;

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const TOKEN: &str = "Bearer hunter2";

struct Bench {
    dir: tempfile::TempDir,
    log: Log,
    dead: Log,
    status: Arc<Status>,
    control: Control,
}

impl Bench {
    fn new() -> Bench {
        let dir = tempfile::tempdir().unwrap();
        let open = |name: &str| Log::open(&dir.path().join(name), Options::default()).unwrap();
        let (log, dead) = (open("main"), open("dead"));
        Bench { dir, log, dead, status: Arc::default(), control: Control::default() }
    }

    fn append(&self, event: &Event) {
        let mut events = EncodedEvents::new();
        events.push(&event.as_ref()).unwrap();
        self.log.append(Append { events, ..Append::default() }).unwrap();
    }

    /// Appends an event for each of these keys.
    fn append_keys(&self, keys: &[&str]) {
        for (n, key) in keys.iter().enumerate() {
            self.append(&Event::json("T", &[&format!("key:{key}")], &n.to_string()));
        }
    }

    /// A destination with short retry intervals.
    fn destination(
        &self,
        url: String,
        change: impl FnOnce(&mut WebhookDestinationSettings),
    ) -> WebhookDestination {
        let target = WebhookTarget {
            url,
            secret: Some("signing".into()),
            headers: vec![("X-Team".into(), "shipping".into())],
            secret_headers: vec![("Authorization".into(), "token".into())],
            ca_file: None,
            in_flight: 8,
            timeout_ms: 5_000,
            max_tries: None,
            dead_letter_log: None,
        };
        let mut settings = WebhookDestinationSettings {
            sink_name: "shipping".into(),
            identity: "cluster.main/shipping".into(),
            log_name: "main".into(),
            history: None,
            target,
            format: PayloadFormat::Data,
            partition_by: Some("key".into()),
            dead_letters: None,
            clock: Arc::new(SystemClock),
            status: Arc::clone(&self.status),
        };
        change(&mut settings);
        let mut destination = WebhookDestination::new(settings, |name| {
            Ok(Zeroizing::new(if name == "token" { TOKEN } else { SECRET }.to_owned()))
        });
        destination.round.pace = Pace {
            event: (Duration::from_millis(5), Duration::from_millis(20)),
            connect: (Duration::from_millis(5), Duration::from_millis(20)),
            opening: Duration::from_millis(50),
            patience: Duration::from_millis(50),
            farewell: Duration::from_secs(2),
        };
        destination
    }

    /// Delivers the whole log.
    fn deliver(&self, destination: &mut WebhookDestination) -> Result<Position, Fault> {
        destination.open()?;
        self.deliver_after(0, destination)
    }

    fn deliver_after(
        &self,
        after: Position,
        destination: &mut WebhookDestination,
    ) -> Result<Position, Fault> {
        let mut subscription = self.log.subscribe(Query::all(), after);
        let mut cursor = Cursor::start(1, None);
        while cursor.position < self.log.head() {
            let event = subscription.next(Duration::from_secs(5))?.expect("an event");
            destination.push(&event)?;
            cursor = cursor.on(&event);
        }
        // A delivery that does not end fails its test instead of blocking it.
        std::thread::scope(|scope| {
            let (ended, end) = std::sync::mpsc::channel::<()>();
            scope.spawn(move || {
                if end.recv_timeout(Duration::from_secs(30)) == Err(RecvTimeoutError::Timeout) {
                    self.control.stop();
                }
            });
            let delivered = destination.deliver(cursor, &self.control);
            drop(ended);
            let DeliveryEnd { through, fault } = delivered?;
            fault.map_or(Ok(through), Err)
        })
    }

    /// Delivers, and stops as soon as `until` returns true.
    fn deliver_until(
        &self,
        destination: &mut WebhookDestination,
        until: impl Fn() -> bool,
    ) -> Result<Position, Fault> {
        std::thread::scope(|scope| {
            let delivering = scope.spawn(|| self.deliver(destination));
            wait_until(until);
            self.control.stop();
            delivering.join().unwrap()
        })
    }

    fn retries(&self) -> u64 {
        self.status.counters.retries.load(Relaxed)
    }

    fn set_aside(&self) -> u64 {
        self.status.counters.set_aside.load(Relaxed)
    }

    fn is_retrying(&self) -> bool {
        matches!(self.status.state(), ConnectorState::Retrying { .. })
    }

    /// Tags and data of the events in the dead-letter log.
    fn dead_letters(&self) -> Vec<(Vec<String>, serde_json::Value)> {
        let mut subscription = self.dead.subscribe(Query::all(), 0);
        let mut found = Vec::new();
        while let Some(event) = subscription.next(Duration::ZERO).unwrap() {
            assert_eq!(event.event_type(), "WebhookDeadLettered");
            let data = serde_json::from_slice(event.data()).unwrap();
            found.push((event.tags().map(str::to_owned).collect(), data));
        }
        found
    }
}

fn wait_until(holds: impl Fn() -> bool) {
    for _ in 0..2_000 {
        if holds() {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("it did not happen within 10 s");
}
