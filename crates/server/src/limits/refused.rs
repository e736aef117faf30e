//! What was refused for the sake of others, counted by reason.

use crate::stats::family::{Family, Kind};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

macro_rules! reasons {
    ($($(#[doc = $doc:literal])+ $name:ident = $label:literal;)*) => {
        /// Why something was refused.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Refused { $($(#[doc = $doc])+ $name,)* }

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
    /// A request or an answer: all together would take more than `body_memory_bytes`.
    BodyMemory = "body_memory";
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

/// How often for each reason.
#[derive(Debug)]
pub(crate) struct Refusals([AtomicU64; LABELS.len()]);

impl Default for Refusals {
    fn default() -> Refusals {
        Refusals(std::array::from_fn(|_| AtomicU64::new(0)))
    }
}

impl Refusals {
    /// Counts one.
    pub(crate) fn count(&self, refused: Refused) {
        self.0[refused as usize].fetch_add(1, Relaxed);
    }

    /// How often for this reason.
    #[cfg(test)]
    pub(crate) fn of(&self, refused: Refused) -> u64 {
        self.0[refused as usize].load(Relaxed)
    }

    /// All of them.
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
    use super::*;
    use crate::stats::prometheus;

    #[test]
    fn each_is_counted_by_its_name() {
        let refusals = Refusals::default();
        refusals.count(Refused::Login);
        refusals.count(Refused::Connection);
        refusals.count(Refused::Connection);
        let out = prometheus::page(&[refusals.family()]);
        for line in [
            "wellspring_refused_total{reason=\"connections\"} 2",
            "wellspring_refused_total{reason=\"logins\"} 1",
            "wellspring_refused_total{reason=\"links\"} 0",
        ] {
            assert!(out.lines().any(|l| l == line), "{line}\n{out}");
        }
        assert_eq!(Refused::Login as usize + 1, LABELS.len());
    }
}
