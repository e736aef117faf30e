//! The remaining quota of each client of one kind, address or account.

use super::client::Key;
use super::concurrent::{Concurrent, ConcurrentShare, Room};
use super::rate::{BURST_S, Bucket, Rate, Wait};
use super::settings::OfClient;
use super::table::Table;
use crate::stats::RefusalReason;
use crate::wire::problem::{self, Kind, Problem, Retry};

/// The remaining quota of a client.
#[derive(Debug, Clone, Copy, Default)]
struct ClientQuota {
    requests: Bucket,
    bytes: Bucket,
    /// Of CPU time in µs.
    reads: Bucket,
}

/// The kind of client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ClientKind {
    Address,
    Account,
}

/// The limited resource.
#[derive(Debug, Clone, Copy)]
enum QuotaResource {
    Request,
    Bytes,
    Read,
    Subscription,
    LongWork,
    Memory,
}

/// A refusal: how it is counted and what the client gets.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) reason: RefusalReason,
    pub(super) problem: Box<Problem>,
}

/// The remaining quota of all clients of one kind.
#[derive(Debug)]
pub(super) struct Quota {
    of: ClientKind,
    limits: OfClient,
    subscribers: Option<Concurrent>,
    long_reads: Option<Concurrent>,
    memory: Option<Concurrent>,
    standings: Table<ClientQuota>,
}

impl Quota {
    /// No quota used yet.
    pub(super) fn new(of: ClientKind, limits: OfClient) -> Quota {
        let several = |most: Option<u32>| most.map(|most| Concurrent::new(most.into()));
        let (subscribers, long_reads) = (several(limits.subscribers), several(limits.long_reads));
        let memory = limits.memory.map(Concurrent::new);
        Quota { of, limits, subscribers, long_reads, memory, standings: Table::default() }
    }

    /// Whether any limit applies to requests.
    pub(super) fn is_asked(&self) -> bool {
        self.limits.requests.is_some() || self.limits.bytes.is_some()
    }

    /// Whether anything is limited.
    pub(super) fn limits_anything(&self) -> bool {
        self.is_asked()
            || self.counts_reads()
            || self.subscribers.is_some()
            || self.long_reads.is_some()
            || self.memory.is_some()
    }

    /// Whether the time of reads is limited.
    pub(super) fn counts_reads(&self) -> bool {
        self.limits.reads.is_some()
    }

    /// Takes a request, if one is left and no bytes are owed.
    pub(super) fn admit(&self, key: Key, now_ns: u64) -> Result<(), Refusal> {
        if !self.is_asked() {
            return Ok(());
        }
        let OfClient { requests, bytes, .. } = self.limits;
        let taken = self.standings.with(key, |standing| {
            if let Some(wait) = bytes.and_then(|rate| rate.debt(standing.bytes, now_ns)) {
                return Err((QuotaResource::Bytes, wait));
            }
            let Some(rate) = requests else { return Ok(()) };
            let taken = rate.take(&mut standing.requests, 1, now_ns);
            taken.map(|_| ()).map_err(|wait| (QuotaResource::Request, wait))
        });
        taken.map_err(|(what, wait)| self.refuse(what, wait))
    }

    pub(super) fn charge_bytes(&self, key: Key, bytes: u64, now_ns: u64) {
        if let Some(rate) = self.limits.bytes {
            self.standings.with(key, |standing| rate.charge(&mut standing.bytes, bytes, now_ns));
        }
    }

    /// Charges CPU time.
    pub(super) fn charge_reads(&self, key: Key, us: u64, now_ns: u64) {
        if let Some(rate) = self.limits.reads {
            self.standings.with(key, |standing| rate.charge(&mut standing.reads, us, now_ns));
        }
    }

    /// Returns time that was charged and not used.
    pub(super) fn put_back_reads(&self, key: Key, us: u64) {
        if let Some(rate) = self.limits.reads {
            self.standings.with(key, |standing| rate.put_back(&mut standing.reads, us));
        }
    }

    /// Whether a client may start another read.
    pub(super) fn admit_read(&self, key: Key, now_ns: u64) -> Result<(), Refusal> {
        let Some(rate) = self.limits.reads else { return Ok(()) };
        match rate.debt(self.standings.get(key).reads, now_ns) {
            Some(wait) => Err(self.refuse(QuotaResource::Read, wait)),
            None => Ok(()),
        }
    }

    /// How long until no debt is left, in bytes or time.
    pub(super) fn debt(&self, key: Key, now_ns: u64) -> Option<Wait> {
        let OfClient { bytes, reads, .. } = self.limits;
        if bytes.is_none() && reads.is_none() {
            return None;
        }
        let standing = self.standings.get(key);
        let owed = |rate: Option<Rate>, bucket| rate.and_then(|rate| rate.debt(bucket, now_ns));
        owed(bytes, standing.bytes).max(owed(reads, standing.reads))
    }

    /// Another subscription of a client; `None` if unlimited.
    pub(super) fn subscribe(&self, key: Key) -> Result<Option<ConcurrentShare>, Refusal> {
        self.hold(self.subscribers.as_ref(), key, QuotaResource::Subscription)
    }

    /// Another piece of long work of a client; `None` if unlimited.
    pub(super) fn long_work(&self, key: Key) -> Result<Option<ConcurrentShare>, Refusal> {
        self.hold(self.long_reads.as_ref(), key, QuotaResource::LongWork)
    }

    /// No memory yet, for a client; `None` if unlimited.
    pub(super) fn no_memory(&self, key: Key) -> Option<ConcurrentShare> {
        self.memory.as_ref().map(|memory| memory.nothing(key))
    }

    /// Sets a client's memory use, in bytes.
    pub(super) fn set_memory(&self, held: &mut ConcurrentShare, bytes: u64) -> Result<(), Refusal> {
        match held.set(bytes) {
            Room::Found => Ok(()),
            Room::None => Err(self.refuse(QuotaResource::Memory, Wait(0))),
        }
    }

    fn hold(
        &self,
        of: Option<&Concurrent>,
        key: Key,
        what: QuotaResource,
    ) -> Result<Option<ConcurrentShare>, Refusal> {
        let Some(of) = of else { return Ok(None) };
        match of.hold(key) {
            Some(held) => Ok(Some(held)),
            None => Err(self.refuse(what, Wait(0))),
        }
    }

    fn refuse(&self, what: QuotaResource, wait: Wait) -> Refusal {
        use {
            ClientKind::{Account, Address},
            QuotaResource::{Bytes, LongWork, Memory, Read, Request, Subscription},
        };
        let (whose, from) = match self.of {
            Address => ("this address", "from this address"),
            Account => ("this account", "of this account"),
        };
        let tokens = |rate: Option<Rate>| rate.map_or(0, |rate| rate.tokens());
        let OfClient { requests, bytes, reads, subscribers, long_reads, memory } = self.limits;
        let (reason, kind, limit, detail): (_, &'static Kind, _, _) = match (what, self.of) {
            (Request, of) => {
                let limit = tokens(requests);
                let detail = too_fast(limit, from);
                let reason = match of {
                    Address => RefusalReason::RequestOfAddress,
                    Account => RefusalReason::RequestOfAccount,
                };
                (reason, &problem::TOO_MANY_REQUESTS, limit, detail)
            }
            (Bytes, of) => {
                let limit = tokens(bytes);
                let detail =
                    format!("request bodies and responses {from} exceed {limit} bytes a second");
                let reason = match of {
                    Address => RefusalReason::BytesOfAddress,
                    Account => RefusalReason::BytesOfAccount,
                };
                (reason, &problem::TOO_MANY_BYTES, limit, detail)
            }
            (Read, of) => {
                let limit = tokens(reads) / 1_000;
                let detail =
                    format!("reads {from} used more than {limit} ms of server time a second");
                let reason = match of {
                    Address => RefusalReason::ReadsOfAddress,
                    Account => RefusalReason::ReadsOfAccount,
                };
                (reason, &problem::READS_TOO_COSTLY, limit, detail)
            }
            (Subscription, of) => {
                let limit = subscribers.unwrap_or(0).into();
                let detail = format!("{whose} has {limit} subscriptions, the maximum");
                let reason = match of {
                    Address => RefusalReason::SubscriptionOfAddress,
                    Account => RefusalReason::SubscriptionOfAccount,
                };
                (reason, &problem::TOO_MANY_SUBSCRIPTIONS, limit, detail)
            }
            (LongWork, of) => {
                let limit = long_reads.unwrap_or(0).into();
                let detail = format!("{whose} has {limit} long reads in progress, the maximum");
                let reason = match of {
                    Address => RefusalReason::LongReadOfAddress,
                    Account => RefusalReason::LongReadOfAccount,
                };
                (reason, &problem::TOO_MANY_LONG_READS, limit, detail)
            }
            (Memory, of) => {
                let limit = memory.unwrap_or(0);
                let detail = format!(
                    "request bodies, queries and unread responses {from} use {limit} bytes, \
                     the maximum"
                );
                let reason = match of {
                    Address => RefusalReason::MemoryOfAddress,
                    Account => RefusalReason::MemoryOfAccount,
                };
                (reason, &problem::TOO_MUCH_MEMORY, limit, detail)
            }
        };
        let problem = kind.because(detail).limit(limit).retry(Retry::Seconds(wait.seconds()));
        Refusal { reason, problem }
    }
}

/// The detail of a refusal for the request rate.
pub(super) fn too_fast(limit: u64, from: &str) -> String {
    format!("more than {limit} requests a second {from}; bursts may hold {BURST_S} seconds' worth")
}
