//! Open transactions: each on a version of its own, until it is committed, rolled back or forgotten.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use wellspring_graph::{Graph, Transaction};
use wellspring_host::access::Principal;
use wellspring_views::access::AccountName;

/// All open transactions of a server.
pub(crate) struct OpenTransactions {
    most: usize,
    timeout_us: u64,
    open: Mutex<HashMap<u64, OpenTransaction>>,
}

struct OpenTransaction {
    log: String,
    /// Whose it is; nobody's while there are no accounts.
    account: Option<AccountName>,
    /// When it is forgotten, on the monotonic clock, µs.
    ends_us: u64,
    /// Nothing while a request works with it.
    transaction: Option<Box<Transaction>>,
}

/// Why a transaction cannot be worked with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NotOpen {
    /// There is none of that id, of that account, in that log; there may have been.
    Unknown,
    /// Another request works with it.
    Busy,
    /// There are as many as there may be.
    TooMany,
}

/// A transaction that a request works with. Dropped without having been put back, it is rolled back.
pub(crate) struct Lent {
    transactions: Arc<OpenTransactions>,
    /// Its id.
    pub(crate) id: u64,
    transaction: Option<Box<Transaction>>,
}

impl OpenTransactions {
    pub(crate) fn new(most: usize, timeout_ms: u64) -> Arc<OpenTransactions> {
        let timeout_us = timeout_ms.saturating_mul(1_000);
        Arc::new(OpenTransactions { most, timeout_us, open: Mutex::default() })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, OpenTransaction>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens a transaction under an id that no other has.
    ///
    /// # Errors
    /// [`NotOpen::TooMany`]
    pub(crate) fn open(
        self: &Arc<Self>,
        id: u64,
        log: &str,
        principal: &Principal,
        transaction: Transaction,
    ) -> Result<Lent, NotOpen> {
        let mut open = self.lock();
        if open.len() >= self.most {
            return Err(NotOpen::TooMany);
        }
        let account = principal.account().cloned();
        // As long as a request works with it, it does not end.
        let one =
            OpenTransaction { log: log.to_owned(), account, ends_us: u64::MAX, transaction: None };
        open.insert(id, one);
        let transaction = Some(Box::new(transaction));
        Ok(Lent { transactions: Arc::clone(self), id, transaction })
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
    ) -> Result<Lent, NotOpen> {
        let id = id.parse().map_err(|_| NotOpen::Unknown)?;
        let mut open = self.lock();
        let one = open.get_mut(&id).ok_or(NotOpen::Unknown)?;
        if one.log != log || one.account.as_ref() != principal.account() {
            return Err(NotOpen::Unknown);
        }
        let transaction = Some(one.transaction.take().ok_or(NotOpen::Busy)?);
        one.ends_us = u64::MAX;
        Ok(Lent { transactions: Arc::clone(self), id, transaction })
    }

    /// Rolls back what nobody has asked for in time.
    pub(crate) fn end_idle(&self, now_us: u64) {
        let mut ended = Vec::new();
        let mut open = self.lock();
        let idle: Vec<u64> =
            open.iter().filter(|(_, one)| one.ends_us <= now_us).map(|(id, _)| *id).collect();
        ended.extend(idle.iter().filter_map(|id| open.remove(id)));
        drop(open);
        // Their versions are freed without the lock.
        drop(ended);
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.lock().len()
    }
}

impl Lent {
    /// Takes the transaction, to execute statements on it or to commit it.
    pub(crate) fn take(&mut self) -> Option<Transaction> {
        self.transaction.take().map(|transaction| *transaction)
    }

    /// Whether it is one of this graph, of which a version is given.
    pub(crate) fn is_of(&self, graph: &Graph) -> bool {
        self.transaction.as_ref().is_some_and(|transaction| transaction.is_of(graph))
    }

    /// Gives it back, to be kept until its time is over; returns how long that is, in µs.
    pub(crate) fn put_back(self, transaction: Transaction, now_us: u64) -> u64 {
        let timeout_us = self.transactions.timeout_us;
        let mut open = self.transactions.lock();
        if let Some(one) = open.get_mut(&self.id) {
            one.transaction = Some(Box::new(transaction));
            one.ends_us = now_us.saturating_add(timeout_us);
        }
        timeout_us
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let mut open = self.transactions.lock();
        let is_back = open.get(&self.id).is_some_and(|one| one.transaction.is_some());
        if !is_back {
            open.remove(&self.id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nobody() -> Principal {
        Principal::nobody()
    }

    fn transaction() -> Transaction {
        Transaction::writing(Graph::new())
    }

    #[test]
    fn a_transaction_is_lent_to_one_and_ends_when_it_is_not_given_back() {
        let all = OpenTransactions::new(2, 10);
        let mut lent = all.open(7, "a", &nobody(), transaction()).unwrap();
        let not = |id: &str, log: &str| all.lend(id, log, &nobody()).err();
        assert_eq!(not("7", "a"), Some(NotOpen::Busy));
        assert_eq!(not("8", "a"), Some(NotOpen::Unknown));
        let taken = lent.take().unwrap();
        assert_eq!(lent.put_back(taken, 1_000), 10_000);
        assert_eq!([not("7", "b"), not("x", "a"), not("07x", "a")], [Some(NotOpen::Unknown); 3]);
        drop(all.lend("7", "a", &nobody()).unwrap());
        assert_eq!((not("7", "a"), all.count()), (Some(NotOpen::Unknown), 0));
    }

    #[test]
    fn the_idle_end_and_the_busy_do_not() {
        let all = OpenTransactions::new(2, 10);
        for id in [1, 2] {
            let mut lent = all.open(id, "a", &nobody(), transaction()).unwrap();
            let taken = lent.take().unwrap();
            lent.put_back(taken, id * 1_000);
        }
        assert_eq!(all.open(3, "a", &nobody(), transaction()).err(), Some(NotOpen::TooMany));
        let busy = all.lend("1", "a", &nobody()).unwrap();
        all.end_idle(12_000);
        assert_eq!(all.count(), 1);
        assert_eq!(all.lend("2", "a", &nobody()).err(), Some(NotOpen::Unknown));
        drop(busy);
        assert_eq!(all.count(), 0);
    }
}
