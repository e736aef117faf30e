//! A copy of a shared log whose engine, disk or neighbour makes trouble: nobody hangs, nobody panics, and nobody
//! takes a lead that it cannot use.

use crate::oracle::{append, small_segments};
use crate::shared::{node, open_node, until};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;
use wellspring_log::shared::entry::{BatchId, BatchPart, ClusterId, Entry, batch_entries};
use wellspring_log::shared::simulated::{SimulatedLog, SimulatedNode};
use wellspring_log::shared::{
    Arrival, AskId, OfferId, Place, PlacedEntry, SharedLimits, SharedLog, SharedLogError,
};
use wellspring_log::storage::Storage;
use wellspring_log::storage::simulated::{Faults, SimulatedStorage};
use wellspring_log::{AppendError, Clock, Driver, Log, NotConfirmed, Options, ReadError, Role};
use wellspring_types::{Event, Query};

/// What something comes to, which must not take long.
fn soon<T: Send + 'static>(what: &str, act: impl FnOnce() -> T + Send + 'static) -> T {
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || tell.send(act()));
    told.recv_timeout(Duration::from_secs(10)).unwrap_or_else(|_| panic!("it hangs: {what}"))
}

fn confirm(log: &Log, waker: &Waker) -> Poll<Result<u64, NotConfirmed>> {
    std::pin::pin!(log.confirm()).poll(&mut Context::from_waker(waker))
}

/// An event of some size.
fn event(bytes: usize) -> Event {
    Event::json("T", &[], &format!("\"{}\"", "x".repeat(bytes)))
}

/// An engine that always has another entry, which says nothing.
#[derive(Default)]
struct Chatter {
    place: u64,
    told: VecDeque<Arrival>,
}

impl SharedLog for Chatter {
    fn limits(&self) -> SharedLimits {
        let lead_timeout_min = Duration::from_millis(10);
        SharedLimits { entry_bytes: 8 << 20, window: 4, lead_timeout_min }
    }

    fn follow(&mut self, _after: Place) {}

    fn offer(&mut self, _id: OfferId, _after: Place, _entry: Arc<[u8]>) {}

    fn ask_end(&mut self, id: AskId) {
        self.told.push_back(Arrival::End { id, end: Some(Place(u64::MAX)) });
    }

    fn next(&mut self, _waker: &Waker) -> Result<Arrival, SharedLogError> {
        if let Some(told) = self.told.pop_front() {
            return Ok(told);
        }
        self.place += 1;
        let entry = match self.place {
            1 => Entry::Founded { cluster: ClusterId([1; 16]), log: "main" },
            tag => Entry::Probe { tag },
        };
        Ok(Arrival::Entry { place: Place(self.place), entry: entry.encode().into() })
    }

    fn fetch(&mut self, _: Place, _: usize) -> Result<Vec<PlacedEntry>, SharedLogError> {
        Ok(Vec::new())
    }

    fn first_kept(&mut self) -> Result<Place, SharedLogError> {
        Ok(Place(0))
    }
}

#[test]
fn a_log_that_is_far_behind_closes_without_catching_up() {
    let storage = Arc::new(SimulatedStorage::new(1));
    let log =
        Log::open_shared(storage, small_segments(), node(1), Box::<Chatter>::default()).unwrap();
    until("it reads", || log.shared_stats().unwrap().place > Place(100));
    soon("closing", move || log.close());
    let storage = Arc::new(SimulatedStorage::new(1));
    let options = Options { driver: Driver::Turns { seed: 1 }, ..small_segments() };
    let log = Log::open_shared(storage, options, node(1), Box::<Chatter>::default()).unwrap();
    soon("closing by turns", move || log.close());
}
