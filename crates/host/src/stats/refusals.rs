//! Counts of what the server refused to protect its other clients, by reason.

use super::family::{Family, Kind};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

macro_rules! reasons {
    ($($(#[doc = $doc:literal])+ $name:ident = $label:literal;)*) => {
        /// Why the server refused something to protect its other clients.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum RefusalReason { $($(#[doc = $doc])+ $name,)* }

        /// The label of each, in the order of the enum.
        const LABELS: &[&str] = &[$($label,)*];
    };
}

reasons! {
    /// A connection: there are `max_connections`.
    Connection = "connections";
    /// A connection: its address has `max_connections_per_address`.
    ConnectionOfAddress = "connections_per_address";
    /// A request: too many came over its connection.
    RequestOfConnection = "requests_per_connection";
    /// A request: too many came from its address.
    RequestOfAddress = "requests_per_address";
    /// A request: its account sent too many.
    RequestOfAccount = "requests_per_account";
    /// A request: too many bytes went to and came from its address.
    BytesOfAddress = "bytes_per_address";
    /// A request: its account sent and was sent too many bytes.
    BytesOfAccount = "bytes_per_account";
    /// A read: those from its address took too much time.
    ReadsOfAddress = "reads_per_address";
    /// A read: those of its account took too much time.
    ReadsOfAccount = "reads_per_account";
    /// A subscription: there are `max_subscribers`.
    Subscription = "subscriptions";
    /// A subscription: its address has `max_subscribers_per_address`.
    SubscriptionOfAddress = "subscriptions_per_address";
    /// A subscription: its account has `max_subscribers_per_account`.
    SubscriptionOfAccount = "subscriptions_per_account";
    /// A long read: `max_long_reads` are under way.
    LongRead = "long_reads";
    /// A long read: its address has `max_long_reads_per_address` under way.
    LongReadOfAddress = "long_reads_per_address";
    /// A long read: its account has `max_long_reads_per_account` under way.
    LongReadOfAccount = "long_reads_per_account";
    /// A request or an answer: all together would take more than `body_memory_bytes`.
    BodyMemory = "body_memory";
    /// A request or an answer: those of its address would take more than
    /// `body_memory_bytes_per_address`.
    MemoryOfAddress = "body_memory_per_address";
    /// A request or an answer: those of its account would take more than
    /// `body_memory_bytes_per_account`.
    MemoryOfAccount = "body_memory_per_account";
    /// A connection: the head of a request did not come in time.
    SlowHead = "slow_heads";
    /// A request: its body did not come in time.
    SlowBody = "slow_bodies";
    /// A connection: its client did not read an answer in time.
    SlowReader = "slow_readers";
    /// A link: its address made too many.
    Link = "links";
    /// A login: too many failed, or too many wait.
    Login = "logins";
}

/// How often the server refused something, for each reason.
#[derive(Debug)]
pub struct RefusalCounts([AtomicU64; LABELS.len()]);

impl Default for RefusalCounts {
    fn default() -> RefusalCounts {
        RefusalCounts(std::array::from_fn(|_| AtomicU64::new(0)))
    }
}

impl RefusalCounts {
    /// Counts one.
    pub fn count(&self, reason: RefusalReason) {
        self.0[reason as usize].fetch_add(1, Relaxed);
    }

    /// The count of one reason.
    #[cfg(test)]
    pub(crate) fn of(&self, reason: RefusalReason) -> u64 {
        self.0[reason as usize].load(Relaxed)
    }

    /// The counts as a family.
    pub(crate) fn family(&self) -> Family {
        let help = "Refused for the sake of others, by reason.";
        let family = Family::new(Kind::Counter, "wellspring_refused_total", help);
        LABELS.iter().zip(&self.0).fold(family, |family, (label, count)| {
            family.with(vec![("reason", (*label).to_owned())], count.load(Relaxed))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::prometheus;
    use super::*;

    #[test]
    fn each_is_counted_by_its_name() {
        let refusals = RefusalCounts::default();
        refusals.count(RefusalReason::Login);
        refusals.count(RefusalReason::Connection);
        refusals.count(RefusalReason::Connection);
        let out = prometheus::page(&[refusals.family()]);
        for line in [
            "wellspring_refused_total{reason=\"connections\"} 2",
            "wellspring_refused_total{reason=\"logins\"} 1",
            "wellspring_refused_total{reason=\"links\"} 0",
        ] {
            assert!(out.lines().any(|l| l == line), "{line}\n{out}");
        }
        assert_eq!(RefusalReason::Login as usize + 1, LABELS.len());
    }
}
