//! What the thread of a node shares with its logs.

use crate::copy_source::CopySource;
use crate::delivery::{Asker, Delivery};
use crate::elector::Elector;
use crate::frame::{HEADER_BYTES, Item, MAX_ITEMS};
use crate::group::Peers;
use crate::members::Members;
use crate::message::Message;
use crate::wal::WalReader;
use bytes::Bytes;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::ThreadId;
use std::time::Duration;
use tokio::sync::{Notify, mpsc};
use wellspring_log::Clock;
use wellspring_log::shared::OfferId;

/// No node has this id.
pub(crate) const NOBODY: u64 = 0;
/// Frames that are proposed and not committed: while one is flushed by followers, the next one is
/// flushed by the orderer.
const FRAMES_UNDER_WAY: usize = 2;

/// See the module's documentation.
pub(crate) struct SharedNode {
    pub(crate) node: u64,
    /// Of its cluster.
    pub(crate) generation: u64,
    pub(crate) patience: Duration,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) delivery: Arc<Delivery>,
    pub(crate) reader: WalReader,
    /// Bytes of a frame with which no more items are taken.
    pub(crate) full_bytes: usize,
    pub(crate) peers: Arc<Peers>,
    pub(crate) offered: Mutex<OfferQueue>,
    /// Something was offered, or can be proposed.
    pub(crate) has_offers: Notify,
    pub(crate) asked: Mutex<Vec<Asker>>,
    pub(crate) has_asked: Notify,
    /// A copy holds more.
    pub(crate) has_copied: Notify,
    /// The copies of other nodes.
    pub(crate) copies: Arc<dyn CopySource>,
    pub(crate) elector: Mutex<Elector>,
    pub(crate) members: Mutex<Members>,
    pub(crate) elector_moved: Notify,
    /// Id of the orderer that this node knows, or [`NOBODY`].
    pub(crate) orderer: AtomicU64,
    pub(crate) term: AtomicU64,
    /// Whether it orders and has applied an entry of its term.
    pub(crate) orders: AtomicBool,
    /// Whether its WAL waits for room on the disk: it takes no part until there is.
    pub(crate) lacks_room: Arc<AtomicBool>,
    pub(crate) frames: AtomicU64,
    pub(crate) inbox: mpsc::UnboundedSender<(u64, Message)>,
    pub(crate) is_ending: AtomicBool,
    /// The thread that turns the node.
    pub(crate) thread: OnceLock<ThreadId>,
}

/// What waits to be proposed.
#[derive(Default)]
pub(crate) struct OfferQueue {
    pub(crate) items: VecDeque<Item>,
    /// Frames.
    pub(crate) under_way: usize,
    /// Whether frames wait because ordering is being handed over.
    pub(crate) is_held: bool,
}

impl OfferQueue {
    /// Takes as many items as fit into a frame.
    fn fill(&mut self, full_bytes: usize) -> Vec<Item> {
        let (mut frame, mut bytes) = (Vec::new(), HEADER_BYTES);
        while let Some(item) = self.items.front()
            && frame.len() < MAX_ITEMS
            && (frame.is_empty() || bytes + item.bytes() <= full_bytes)
        {
            bytes += item.bytes();
            frame.extend(self.items.pop_front());
        }
        frame
    }
}

pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl SharedNode {
    pub(crate) fn now_us(&self) -> u64 {
        self.clock.monotonic_us()
    }

    pub(crate) fn patience_us(&self) -> u64 {
        self.patience.as_micros() as u64
    }

    /// Whether this node orders, and so knows all that was committed before.
    pub(crate) fn orders(&self) -> bool {
        self.orders.load(Ordering::Acquire) && self.has_room()
    }

    /// Another node orders soon if this one has no room: the library waits, and is not heard.
    pub(crate) fn has_room(&self) -> bool {
        !self.lacks_room.load(Ordering::Acquire)
    }

    /// The node that orders, as far as this one knows.
    pub(crate) fn orderer(&self) -> Option<u64> {
        let orderer = self.orderer.load(Ordering::Acquire);
        let orders = orderer != NOBODY && (orderer != self.node || self.has_room());
        orders.then_some(orderer)
    }

    pub(crate) fn is_orderer(&self) -> bool {
        self.orderer() == Some(self.node)
    }

    pub(crate) fn offer(&self, log: &Arc<str>, connection: u64, id: OfferId, entry: Bytes) {
        let item = self.delivery.offer(log, connection, id, self.now_us(), entry);
        locked(&self.offered).items.push_back(item);
        self.has_offers.notify_one();
    }

    pub(crate) fn ask_end(&self, asker: Asker) {
        locked(&self.asked).push(asker);
        self.has_asked.notify_one();
    }

    /// The offers of the next message to an orderer elsewhere.
    pub(crate) fn next_offers(&self) -> Vec<Item> {
        locked(&self.offered).fill(self.full_bytes)
    }

    /// The items of the next frame, if one may be proposed.
    pub(crate) fn next_frame(&self) -> Vec<Item> {
        let mut offered = locked(&self.offered);
        let is_full = offered.under_way >= FRAMES_UNDER_WAY;
        if is_full || offered.is_held || offered.items.is_empty() {
            return Vec::new();
        }
        offered.under_way += 1;
        offered.fill(self.full_bytes)
    }
}
