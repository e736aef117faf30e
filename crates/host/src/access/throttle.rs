//! Delays and then blocks failed logins, per account and per address.
//!
//! An attempt counts as failed until it is known to be right, so that a thousand concurrent
//! attempts achieve no more than a few in a row. Unknown accounts are counted like existing ones: a
//! refusal reveals nothing about either. The price of the lock is known: repeated failures keep the
//! owner of an account from logging in with its password for a quarter of an hour; tokens and keys
//! keep working.

use crate::generations::Generations;
use crate::limits::network;
use sha2::{Digest, Sha256};
use std::hash::Hash;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

const SECOND_US: u64 = 1_000_000;
/// Free failures per account.
const FREE_OF_ACCOUNT: u32 = 4;
/// Free failures per address, which many people may share.
const FREE_OF_ADDRESS: u32 = 20;
/// The longest delay, which is the lock: 15 min.
const LOCK_US: u64 = 900 * SECOND_US;
/// Failures are forgotten after this time without a failure.
const FORGOTTEN_US: u64 = 3_600 * SECOND_US;
/// Concurrent attempts from one address while few have failed; many people may share it.
const MOST_OF_ADDRESS: u32 = 64;
/// Accounts, and addresses, remembered in each of two generations.
const GENERATION: usize = 16_384;

/// An account, by the first half of SHA-256 of the given name, however long it is.
type AccountKey = [u8; 16];
/// As for all limits: an IPv4 address, 64 bits of an IPv6 address, or all others together.
type Client = Option<IpAddr>;

/// The failures of one account or address.
#[derive(Debug, Clone, Copy, Default)]
struct Record {
    /// Failures in a row, without attempts in progress.
    failures: u32,
    under_way: u32,
    /// Time of the last failure or admission, in µs of the monotonic clock.
    last_us: u64,
    /// No attempt before this time, in µs of the monotonic clock.
    not_before_us: u64,
}

/// Whether an attempt may be made.
#[derive(Debug)]
pub(crate) enum Admission {
    /// Make it, and [`settle`](Attempt::settle) it.
    Go(Attempt),
    /// Not before this number of seconds, at least 1: 429 with `Retry-After`.
    Later(u64),
}

/// An attempt in progress. If dropped (its client disconnected) it counts as failed.
#[derive(Debug)]
#[must_use = "an attempt that is dropped has failed"]
pub(crate) struct Attempt {
    throttle: Arc<Throttle>,
    account: AccountKey,
    client: Client,
    admitted_us: u64,
    is_settled: bool,
}

impl Attempt {
    /// Records the outcome, at the time `now_us` of the monotonic clock. A correct password resets
    /// the counter of its account, not that of its address; otherwise an attacker could reset the
    /// address with an account of their own.
    pub(crate) fn settle(mut self, outcome: AttemptResult, now_us: u64) {
        self.is_settled = true;
        self.throttle.note(&self, outcome, now_us);
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        if !self.is_settled {
            self.throttle.note(self, AttemptResult::Wrong, self.admitted_us);
        }
    }
}

/// The outcome of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AttemptResult {
    /// The password was right.
    Right,
    /// It was wrong, or the account does not exist.
    Wrong,
    /// It was not verified: too many are waiting.
    NotTried,
}

/// Delays and blocks logins.
#[derive(Debug, Default)]
pub(crate) struct Throttle {
    records: Mutex<Records>,
}

#[derive(Debug)]
struct Records {
    accounts: Generations<AccountKey, Record>,
    clients: Generations<Client, Record>,
}

impl Default for Records {
    fn default() -> Records {
        Records { accounts: Generations::new(GENERATION), clients: Generations::new(GENERATION) }
    }
}

/// The record of a key, except for failures long ago.
fn known<K: Hash + Eq + Copy>(of: &Generations<K, Record>, key: &K, now_us: u64) -> Record {
    let found = of.get(key).copied().unwrap_or_default();
    if now_us.saturating_sub(found.last_us) < FORGOTTEN_US { found } else { Record::default() }
}

impl Record {
    /// The time to wait, in µs; 0: an attempt may be made.
    fn wait_us(&self, free: u32, most_at_once: u32, now_us: u64) -> u64 {
        let wait_us = self.not_before_us.saturating_sub(now_us);
        // Once delayed, one attempt at a time.
        let most = if self.failures < free { most_at_once } else { 1 };
        if self.under_way < most { wait_us } else { wait_us.max(SECOND_US) }
    }

    /// Doubles from one second up to the lock.
    fn fail(&mut self, free: u32, now_us: u64) {
        self.failures = self.failures.saturating_add(1);
        self.last_us = now_us;
        if let Some(beyond) = self.failures.checked_sub(free + 1) {
            let wait_us = (SECOND_US << beyond.min(20)).min(LOCK_US);
            self.not_before_us = self.not_before_us.max(now_us.saturating_add(wait_us));
        }
    }
}

impl Throttle {
    /// Whether an attempt at this name from this address may be made at the time `now_us` of the
    /// monotonic clock. The name is as sent: it may not be a valid account name.
    pub(crate) fn admit(
        self: &Arc<Throttle>,
        name: &str,
        address: Option<IpAddr>,
        now_us: u64,
    ) -> Admission {
        let (account_key, client_key) = (account_key(name), address.map(network));
        let mut records = self.lock();
        let mut account = known(&records.accounts, &account_key, now_us);
        let mut client = known(&records.clients, &client_key, now_us);
        // Each attempt in progress may fail: together they may be no more than in a row. The same
        // password is in progress once, so these are all different.
        let left = FREE_OF_ACCOUNT.saturating_sub(account.failures) + 1;
        let of_account = account.wait_us(FREE_OF_ACCOUNT, left, now_us);
        let wait_us = of_account.max(client.wait_us(FREE_OF_ADDRESS, MOST_OF_ADDRESS, now_us));
        if wait_us > 0 {
            return Admission::Later(wait_us.div_ceil(SECOND_US));
        }
        for record in [&mut account, &mut client] {
            record.under_way += 1;
            record.last_us = now_us;
        }
        records.accounts.insert(account_key, account);
        records.clients.insert(client_key, client);
        Admission::Go(Attempt {
            throttle: Arc::clone(self),
            account: account_key,
            client: client_key,
            admitted_us: now_us,
            is_settled: false,
        })
    }

    fn note(&self, attempt: &Attempt, outcome: AttemptResult, now_us: u64) {
        let (account_key, client_key) = (attempt.account, attempt.client);
        let mut records = self.lock();
        let mut account = known(&records.accounts, &account_key, now_us);
        let mut client = known(&records.clients, &client_key, now_us);
        for record in [&mut account, &mut client] {
            record.under_way = record.under_way.saturating_sub(1);
        }
        match outcome {
            AttemptResult::Wrong => {
                account.fail(FREE_OF_ACCOUNT, now_us);
                client.fail(FREE_OF_ADDRESS, now_us);
            }
            AttemptResult::Right => (account.failures, account.not_before_us) = (0, 0),
            AttemptResult::NotTried => {}
        }
        let is_nothing = |record: &Record| record.failures == 0 && record.under_way == 0;
        if is_nothing(&account) {
            records.accounts.remove(&account_key);
        } else {
            records.accounts.insert(account_key, account);
        }
        if is_nothing(&client) {
            records.clients.remove(&client_key);
        } else {
            records.clients.insert(client_key, client);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Records> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn account_key(name: &str) -> AccountKey {
    let digest: [u8; 32] = Sha256::digest(name.as_bytes()).into();
    *digest.first_chunk().expect("32 bytes")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(n: u32) -> Option<IpAddr> {
        Some(IpAddr::from(n.to_be_bytes()))
    }

    /// Tries, with this outcome; returns how long to wait if refused.
    fn attempt(
        throttle: &Arc<Throttle>,
        name: &str,
        from: Option<IpAddr>,
        outcome: AttemptResult,
        now_us: u64,
    ) -> Result<(), u64> {
        match throttle.admit(name, from, now_us) {
            Admission::Go(attempt) => {
                attempt.settle(outcome, now_us);
                Ok(())
            }
            Admission::Later(seconds) => Err(seconds),
        }
    }

    #[test]
    fn an_account_is_slowed_and_locked() {
        let throttle = Arc::new(Throttle::default());
        let mut now_us = 7 * SECOND_US;
        for n in 0..5 {
            assert_eq!(attempt(&throttle, "ann", address(n), AttemptResult::Wrong, now_us), Ok(()));
        }
        for (n, wait_s) in
            [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900, 900].into_iter().enumerate()
        {
            // From any address: the account is locked.
            let from = address(100 + n as u32);
            assert_eq!(attempt(&throttle, "ann", from, AttemptResult::Wrong, now_us), Err(wait_s));
            let almost_us = now_us + wait_s * SECOND_US - 1;
            assert_eq!(attempt(&throttle, "ann", from, AttemptResult::Right, almost_us), Err(1));
            assert_eq!(attempt(&throttle, "bob", from, AttemptResult::Right, almost_us), Ok(()));
            now_us += wait_s * SECOND_US;
            assert_eq!(attempt(&throttle, "ann", from, AttemptResult::Wrong, now_us), Ok(()));
        }
        // After an hour of quiet the count starts again.
        now_us += FORGOTTEN_US;
        for _ in 0..5 {
            assert_eq!(attempt(&throttle, "ann", address(1), AttemptResult::Wrong, now_us), Ok(()));
        }
        assert_eq!(attempt(&throttle, "ann", address(1), AttemptResult::Wrong, now_us), Err(1));
    }

    #[test]
    fn the_right_password_clears_the_account_and_not_the_address() {
        let throttle = Arc::new(Throttle::default());
        let from = address(1);
        // Logging in to one's own account in between does not help against others.
        let mut tried = 0;
        while attempt(&throttle, &format!("victim{tried}"), from, AttemptResult::Wrong, 0).is_ok() {
            tried += 1;
            let _ = attempt(&throttle, "own", from, AttemptResult::Right, 0);
            assert!(tried < 100);
        }
        assert_eq!(tried, 21);
        assert_eq!(attempt(&throttle, "own", from, AttemptResult::Right, 0), Err(1));
        assert_eq!(attempt(&throttle, "own", address(2), AttemptResult::Right, 0), Ok(()));
        for _ in 0..100 {
            for _ in 0..4 {
                assert_eq!(
                    attempt(&throttle, "ann", address(3), AttemptResult::NotTried, 0),
                    Ok(())
                );
            }
            assert_eq!(attempt(&throttle, "ann", address(3), AttemptResult::Right, 0), Ok(()));
        }
        for n in 0..4 {
            assert_eq!(attempt(&throttle, "ann", address(10 + n), AttemptResult::Wrong, 0), Ok(()));
        }
        assert_eq!(attempt(&throttle, "ann", address(20), AttemptResult::Right, 0), Ok(()));
        for n in 0..5 {
            assert_eq!(attempt(&throttle, "ann", address(30 + n), AttemptResult::Wrong, 0), Ok(()));
        }
        assert_eq!(attempt(&throttle, "ann", address(40), AttemptResult::Wrong, 0), Err(1));
    }

    #[test]
    fn many_at_once_are_few() {
        let throttle = Arc::new(Throttle::default());
        let attempts: Vec<Attempt> = (0..1000)
            .filter_map(|n| match throttle.admit("ann", address(n), 0) {
                Admission::Go(attempt) => Some(attempt),
                Admission::Later(_) => None,
            })
            .collect();
        assert_eq!(attempts.len(), FREE_OF_ACCOUNT as usize + 1);
        attempts.into_iter().for_each(|attempt| attempt.settle(AttemptResult::Wrong, 0));
        assert_eq!(attempt(&throttle, "ann", address(5000), AttemptResult::Wrong, 0), Err(1));
        // A dropped attempt has failed and is no longer in progress.
        let Admission::Go(gone) = throttle.admit("bob", address(6000), 0) else { panic!() };
        drop(gone);
        for n in 0..4 {
            assert_eq!(attempt(&throttle, "bob", address(n), AttemptResult::Wrong, 0), Ok(()));
        }
        assert_eq!(attempt(&throttle, "bob", address(9), AttemptResult::Right, 0), Err(1));
        // Once delayed, one at a time.
        let Admission::Go(one) = throttle.admit("ann", address(1), LOCK_US) else { panic!() };
        assert!(matches!(throttle.admit("ann", address(2), LOCK_US), Admission::Later(1)));
        one.settle(AttemptResult::Right, LOCK_US);
        assert_eq!(attempt(&throttle, "ann", address(2), AttemptResult::Right, LOCK_US), Ok(()));
    }

    #[test]
    fn a_network_is_one_address() {
        let throttle = Arc::new(Throttle::default());
        for n in 0..21 {
            let from = Some(format!("2001:db8::{n:x}").parse().unwrap());
            assert_eq!(attempt(&throttle, &n.to_string(), from, AttemptResult::Wrong, 0), Ok(()));
        }
        let same = Some("2001:db8::ffff:1".parse().unwrap());
        assert_eq!(attempt(&throttle, "ann", same, AttemptResult::Wrong, 0), Err(1));
        let other = Some("2001:db8:0:1::1".parse().unwrap());
        assert_eq!(attempt(&throttle, "ann", other, AttemptResult::Wrong, 0), Ok(()));
        assert_eq!(attempt(&throttle, "ann", None, AttemptResult::Wrong, 0), Ok(()));
    }

    #[test]
    fn memory_is_bounded() {
        let throttle = Arc::new(Throttle::default());
        for n in 0..100_000 {
            let _ = attempt(&throttle, &format!("{n}"), address(n), AttemptResult::Wrong, 0);
        }
        let records = throttle.lock();
        for most in records.accounts.sizes() {
            assert!(most <= GENERATION);
        }
        assert!(records.clients.sizes().iter().sum::<usize>() <= 2 * GENERATION);
        drop(records);
        let quiet = Arc::new(Throttle::default());
        for n in 0..100 {
            assert!(attempt(&quiet, "ann", address(n), AttemptResult::Right, 0).is_ok());
        }
        let records = quiet.lock();
        assert_eq!((records.accounts.sizes(), records.clients.sizes()), ([0; 2], [0; 2]));
    }
}
