//! The network between the members of a group: it delays, loses, doubles and reorders.

use crate::dice::Dice;
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use wellspring_journal_raft::{Links, Message};

/// Messages that wait for one receiver; the next ones are lost.
const MOST_WAITING: usize = 64;

/// A sender and a receiver.
type Pair = (u64, u64);

#[derive(Default)]
struct Waiting {
    messages: BTreeMap<Pair, VecDeque<Message>>,
    broken: BTreeMap<Pair, Break>,
}

/// What is wrong with one direction of a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Break {
    /// Nothing arrives that is sent from now on.
    Cut,
    /// Everything arrives, but not before it is mended.
    Held,
}

/// All wires. Clones share them.
#[derive(Clone, Default)]
pub struct Wires(Arc<Mutex<Waiting>>);

/// Faults of the network, in permille.
#[derive(Debug, Clone, Copy, Default)]
pub struct WireFaults {
    /// Lost messages.
    pub lose: u64,
    /// Messages that arrive twice.
    pub double: u64,
    /// Messages that overtake others.
    pub reorder: u64,
}

struct LinksFrom {
    wires: Wires,
    from: u64,
}

impl Links for LinksFrom {
    fn send(&self, to: u64, message: Message) {
        let mut waiting = self.wires.waiting();
        if waiting.broken.get(&(self.from, to)) == Some(&Break::Cut) {
            return;
        }
        let queue = waiting.messages.entry((self.from, to)).or_default();
        if queue.len() < MOST_WAITING {
            queue.push_back(message);
        }
    }
}

impl Wires {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The links of a member.
    #[must_use]
    pub fn links(&self, from: u64) -> Arc<dyn Links> {
        Arc::new(LinksFrom { wires: self.clone(), from })
    }

    /// Takes a message that arrives, with its sender and receiver.
    pub fn take(&self, dice: &mut Dice, faults: WireFaults) -> Option<(u64, u64, Message)> {
        let mut waiting = self.waiting();
        let Waiting { messages, broken } = &mut *waiting;
        messages.retain(|_, queue| !queue.is_empty());
        let is_held = |pair: &Pair| broken.get(pair) == Some(&Break::Held);
        let pairs = messages.keys().filter(|pair| !is_held(pair)).count();
        let mut moving = messages.iter_mut().filter(|(pair, _)| !is_held(pair));
        let (&(from, to), queue) = moving.nth(dice.index(pairs))?;
        let at = if dice.chance(faults.reorder) { dice.index(queue.len()) } else { 0 };
        if dice.chance(faults.lose) {
            queue.remove(at);
            return None;
        }
        let message =
            if dice.chance(faults.double) { queue.get(at).cloned() } else { queue.remove(at) };
        message.map(|message| (from, to, message))
    }

    /// All messages under way are lost.
    pub fn lose_all(&self) {
        self.waiting().messages.clear();
    }

    /// Breaks a direction. Of the messages under way, a cut leaves the first ones.
    pub fn break_up(&self, pair: (u64, u64), how: Break, dice: &mut Dice) {
        let mut waiting = self.waiting();
        waiting.broken.insert(pair, how);
        if how == Break::Cut
            && let Some(queue) = waiting.messages.get_mut(&pair)
        {
            queue.truncate(dice.index(queue.len() + 1));
        }
    }

    /// Mends a direction; what was wrong with it.
    pub fn mend(&self, pair: (u64, u64)) -> Option<Break> {
        self.waiting().broken.remove(&pair)
    }

    /// Mends all.
    pub fn mend_all(&self) {
        self.waiting().broken.clear();
    }
}
