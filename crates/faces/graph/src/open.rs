//! Open transactions: each on its own version, until it is committed, rolled back or expired.

use crate::replay::Transcript;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use wellspring_cypher::error::{Detail, Error, ErrorKind};
use wellspring_graph::{Graph, Transaction};
use wellspring_host::access::Principal;

/// All open transactions of a server.
pub(crate) struct OpenTransactions {
    most: usize,
    /// Most bytes that idle ones may hold together.
    most_bytes: usize,
    timeout_us: u64,
    /// Bytes they hold; changed under the lock.
    held_bytes: AtomicUsize,
    /// Number rolled back after their timeout.
    expired: AtomicU64,
    open: Mutex<HashMap<u64, OpenTransaction>>,
}

struct OpenTransaction {
    log: String,
    /// Its owner.
    holder: String,
    /// When it expires, in µs of the monotonic clock.
    ends_us: u64,
    /// `None` while a request uses it.
    transaction: Option<Box<Transaction>>,
    transcript: Transcript,
    /// Bytes it holds while idle.
    held_bytes: usize,
}

/// Why a transaction cannot be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotOpen {
    /// None of that id exists for that account in that log; there may have been one.
    Unknown,
    /// Another request is using it.
    Busy,
    /// The limit is reached.
    TooMany,
}

/// A transaction borrowed by a request. Dropped without having been put back, it is rolled back.
pub(crate) struct BorrowedTransaction {
    transactions: Arc<OpenTransactions>,
    pub(crate) id: u64,
    transaction: Option<Box<Transaction>>,
    /// What was executed in it.
    pub(crate) transcript: Transcript,
    /// It has been put back, and another request may be using it.
    is_back: bool,
}

impl OpenTransactions {
    pub(crate) fn new(most: usize, most_bytes: usize, timeout_ms: u64) -> Arc<OpenTransactions> {
        Arc::new(OpenTransactions {
            most,
            most_bytes,
            timeout_us: timeout_ms.saturating_mul(1_000),
            held_bytes: AtomicUsize::new(0),
            expired: AtomicU64::new(0),
            open: Mutex::default(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, OpenTransaction>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens a transaction under a unique id.
    ///
    /// # Errors
    /// [`NotOpen::TooMany`]
    pub(crate) fn open(
        self: &Arc<Self>,
        id: u64,
        log: &str,
        principal: &Principal,
        transaction: Transaction,
    ) -> Result<BorrowedTransaction, NotOpen> {
        let mut open = self.lock();
        if open.len() >= self.most {
            return Err(NotOpen::TooMany);
        }
        // It does not expire while a request uses it.
        let one = OpenTransaction {
            log: log.to_owned(),
            holder: principal.holder().to_string(),
            ends_us: u64::MAX,
            transaction: None,
            transcript: Transcript::new(),
            held_bytes: 0,
        };
        open.insert(id, one);
        let transaction = Some(Box::new(transaction));
        let (transactions, transcript) = (Arc::clone(self), Transcript::new());
        Ok(BorrowedTransaction { transactions, id, transaction, transcript, is_back: false })
    }

    /// Lends a transaction to a request.
    ///
    /// # Errors
    /// [`NotOpen`]
    pub(crate) fn lend(
        self: &Arc<Self>,
        id: &str,
        log: &str,
        principal: &Principal,
    ) -> Result<BorrowedTransaction, NotOpen> {
        let id = id.parse().map_err(|_| NotOpen::Unknown)?;
        let mut open = self.lock();
        let one = open.get_mut(&id).ok_or(NotOpen::Unknown)?;
        if one.log != log || one.holder != principal.holder().to_string() {
            return Err(NotOpen::Unknown);
        }
        let transaction = Some(one.transaction.take().ok_or(NotOpen::Busy)?);
        one.ends_us = u64::MAX;
        self.held_bytes.fetch_sub(one.held_bytes, Relaxed);
        let transcript = std::mem::replace(&mut one.transcript, Transcript::new());
        let transactions = Arc::clone(self);
        Ok(BorrowedTransaction { transactions, id, transaction, transcript, is_back: false })
    }

    /// Rolls a transaction back, unless a request is using it, which will.
    pub(crate) fn end(&self, id: &str) {
        let Ok(id) = id.parse() else { return };
        let mut open = self.lock();
        let is_idle = |one: &OpenTransaction| one.transaction.is_some();
        let ended = open.get(&id).is_some_and(is_idle).then(|| open.remove(&id)).flatten();
        if let Some(ended) = &ended {
            self.held_bytes.fetch_sub(ended.held_bytes, Relaxed);
        }
        drop(open);
        drop(ended);
    }

    /// Rolls back expired transactions.
    pub(crate) fn end_idle(&self, now_us: u64) {
        let mut ended = Vec::new();
        let mut open = self.lock();
        let idle: Vec<u64> =
            open.iter().filter(|(_, one)| one.ends_us <= now_us).map(|(id, _)| *id).collect();
        ended.extend(idle.iter().filter_map(|id| open.remove(id)));
        let held_bytes = ended.iter().map(|one| one.held_bytes).sum();
        self.held_bytes.fetch_sub(held_bytes, Relaxed);
        drop(open);
        self.expired.fetch_add(ended.len() as u64, Relaxed);
        // Their versions are freed outside the lock.
        drop(ended);
    }

    /// How long one may be idle.
    pub(crate) fn timeout(&self) -> Duration {
        Duration::from_micros(self.timeout_us)
    }

    /// Approximate bytes held by idle ones.
    pub(crate) fn held_bytes(&self) -> usize {
        self.held_bytes.load(Relaxed)
    }

    /// Number rolled back after their timeout.
    pub(crate) fn expired(&self) -> u64 {
        self.expired.load(Relaxed)
    }

    /// Number of open transactions.
    pub(crate) fn count(&self) -> usize {
        self.lock().len()
    }
}

impl BorrowedTransaction {
    /// Takes the transaction, to execute statements in it or to commit it.
    pub(crate) fn take(&mut self) -> Option<Transaction> {
        self.transaction.take().map(|transaction| *transaction)
    }

    /// Whether it belongs to this graph, of which a version is given.
    pub(crate) fn is_of(&self, graph: &Graph) -> bool {
        self.transaction.as_ref().is_some_and(|transaction| transaction.is_of(graph))
    }

    /// Puts it back until its timeout; returns how long that is, in µs.
    ///
    /// # Errors
    /// The idle ones would exceed their limit together. It is rolled back.
    pub(crate) fn put_back(mut self, transaction: Transaction, now_us: u64) -> Result<u64, Error> {
        let transactions = Arc::clone(&self.transactions);
        let OpenTransactions { most_bytes, timeout_us, held_bytes, .. } = &*transactions;
        let mut bytes = transaction.held_bytes();
        let mut open = transactions.lock();
        if let Some(one) = open.get_mut(&self.id) {
            let kept_bytes = self.transcript.bytes();
            if held_bytes.load(Relaxed).saturating_add(bytes + kept_bytes) <= *most_bytes {
                bytes += kept_bytes;
            } else {
                // The transaction comes first: it cannot be executed again.
                self.transcript = Transcript::incomplete();
            }
            if held_bytes.load(Relaxed).saturating_add(bytes) > *most_bytes {
                drop(open);
                return Err(no_room(*most_bytes));
            }
            held_bytes.fetch_add(bytes, Relaxed);
            one.held_bytes = bytes;
            one.transaction = Some(Box::new(transaction));
            one.transcript = std::mem::replace(&mut self.transcript, Transcript::new());
            one.ends_us = now_us.saturating_add(*timeout_us);
            self.is_back = true;
        }
        Ok(*timeout_us)
    }
}

impl Drop for BorrowedTransaction {
    fn drop(&mut self) {
        if !self.is_back {
            self.transactions.lock().remove(&self.id);
        }
    }
}

fn no_room(most_bytes: usize) -> Error {
    let message = format!(
        "Open transactions would exceed their common memory limit of {most_bytes} bytes. This \
         one is rolled back."
    );
    Error::runtime(ErrorKind::ResourceExhausted, Detail::LimitExceeded, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unauthenticated() -> Principal {
        Principal::unauthenticated()
    }

    fn transaction() -> Transaction {
        Transaction::writing(Graph::new())
    }

    #[test]
    fn a_transaction_is_lent_to_one_and_ends_when_it_is_not_given_back() {
        let all = OpenTransactions::new(2, 1 << 20, 10);
        let mut lent = all.open(7, "a", &unauthenticated(), transaction()).unwrap();
        let not = |id: &str, log: &str| all.lend(id, log, &unauthenticated()).err();
        assert_eq!(not("7", "a"), Some(NotOpen::Busy));
        assert_eq!(not("8", "a"), Some(NotOpen::Unknown));
        let taken = lent.take().unwrap();
        assert_eq!(lent.put_back(taken, 1_000), Ok(10_000));
        assert_eq!([not("7", "b"), not("x", "a"), not("07x", "a")], [Some(NotOpen::Unknown); 3]);
        drop(all.lend("7", "a", &unauthenticated()).unwrap());
        assert_eq!((not("7", "a"), all.count()), (Some(NotOpen::Unknown), 0));
    }

    #[test]
    fn returning_a_transaction_does_not_end_it_for_the_next_request() {
        let all = OpenTransactions::new(2, 1 << 20, 10);
        let mut lent = all.open(7, "a", &unauthenticated(), transaction()).unwrap();
        let taken = lent.take().unwrap();
        lent.put_back(taken, 0).unwrap();
        std::thread::scope(|scope| {
            let go_on = || {
                for _ in 0..20_000 {
                    match all.lend("7", "a", &unauthenticated()) {
                        Ok(mut lent) => {
                            let taken = lent.take().unwrap();
                            lent.put_back(taken, 0).unwrap();
                        }
                        Err(why) => assert_eq!(why, NotOpen::Busy),
                    }
                }
            };
            for _ in 0..3 {
                scope.spawn(go_on);
            }
        });
        assert_eq!(all.count(), 1);
    }

    #[test]
    fn the_idle_end_and_the_busy_do_not() {
        let all = OpenTransactions::new(2, 1 << 20, 10);
        for id in [1, 2] {
            let mut lent = all.open(id, "a", &unauthenticated(), transaction()).unwrap();
            let taken = lent.take().unwrap();
            lent.put_back(taken, id * 1_000).unwrap();
        }
        assert_eq!(
            all.open(3, "a", &unauthenticated(), transaction()).err(),
            Some(NotOpen::TooMany)
        );
        let busy = all.lend("1", "a", &unauthenticated()).unwrap();
        all.end_idle(12_000);
        assert_eq!(all.count(), 1);
        assert_eq!(all.lend("2", "a", &unauthenticated()).err(), Some(NotOpen::Unknown));
        drop(busy);
        assert_eq!((all.count(), all.expired(), all.held_bytes()), (0, 1, 0));
    }

    #[test]
    fn together_they_hold_no_more_than_they_may() {
        let all = OpenTransactions::new(9, 100_000, 10);
        let large = || {
            let mut transaction = transaction();
            let (label, key) = (transaction.name("L"), transaction.name("k"));
            let text = "x".repeat(60_000).as_str().into();
            transaction.create_node(&[label], [(key, text)]).unwrap();
            transaction
        };
        let put = |id, transaction: Transaction| {
            let mut lent = all.open(id, "a", &unauthenticated(), transaction).unwrap();
            let taken = lent.take().unwrap();
            lent.put_back(taken, 0)
        };
        assert_eq!(put(1, large()), Ok(10_000));
        let held = all.held_bytes();
        assert!((60_000..70_000).contains(&held), "{held}");
        let refused = put(2, large()).unwrap_err();
        assert!(refused.code().starts_with("Neo.TransientError."), "{}", refused.code());
        assert_eq!((all.count(), all.held_bytes()), (1, held));
        assert_eq!(put(3, transaction()), Ok(10_000));
        drop(all.lend("1", "a", &unauthenticated()).unwrap());
        assert_eq!(put(2, large()), Ok(10_000));
    }
}
