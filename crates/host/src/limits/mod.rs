//! Limits on connections, requests, bytes, CPU time and subscriptions, per connection, address and
//! account. Requests over a limit are refused with `Retry-After` and counted; costs that are known
//! only afterwards become a debt, and a client in debt is refused.
//!
//! ```text
//! connect ── Connected       a request ── admit ── Payer ── bytes, reads, subscriptions
//!               (serve, lean/worker)        (http/dispatch, lean/seam)
//! ```
//!
//! Where nothing is limited nothing is looked up: a request costs one branch.

mod client;
mod concurrent;
mod connect;
mod limiter;
mod payer;
mod quota;
mod rate;
mod settings;
mod table;

pub(crate) use client::{Keys, network};
pub(crate) use concurrent::{Concurrent, ConcurrentShare};
pub(crate) use connect::CountedConnection;
pub use limiter::Limiter;
pub use payer::{HeldByClient, HeldMemory, Payer, QuotaKeys, Reads};
pub use rate::{Rate, SharedBucket};
pub(crate) use settings::{LimitConfig, LimitSettings};

use crate::identity::Holder;
use crate::proxies::TrustedProxies;
use crate::settings::ProcessConfig;
use crate::setup::SetupError;
use crate::stats::{RefusalReason, Stats};
use crate::wire::problem::{self, Problem, Retry};
use client::Key;
use quota::{ClientKind, Quota, Refusal};
use std::net::IpAddr;
use std::sync::Arc;
use wellspring_log::Clock;

/// All limits of the server and the remaining quota of every client.
pub(crate) struct Limits {
    /// Connections at a time, in all.
    most_connections: usize,
    connections: Option<Concurrent>,
    /// Requests over one connection.
    requests: Option<Rate>,
    address: Quota,
    account: Quota,
    /// Whether any limit applies to requests.
    looks_at_requests: bool,
    keys: Keys,
    /// Peers whose connections carry many clients.
    proxies: TrustedProxies,
    stats: Arc<Stats>,
    clock: Arc<dyn Clock>,
}

impl Limits {
    /// The limits of a configuration.
    ///
    /// # Errors
    /// A sentence about the first fault.
    pub(crate) fn of(
        process: &ProcessConfig,
        config: &LimitConfig,
        stats: &Arc<Stats>,
        clock: &Arc<dyn Clock>,
    ) -> Result<Limits, SetupError> {
        let public = process.second_address()?.filter(|address| !address.ip().is_loopback());
        let settings = LimitSettings::of(config, public.unwrap_or(process.address()?));
        Ok(Limits::new(settings, process.proxies()?, stats, clock))
    }

    /// The proxies whose `X-Forwarded-For` is believed.
    pub(crate) fn proxies(&self) -> &TrustedProxies {
        &self.proxies
    }

    /// The limits that these flags give, and their figures.
    #[cfg(test)]
    pub(crate) fn for_tests(flags: &[&str]) -> (Arc<Limits>, Arc<Stats>) {
        let routes = ["POST /e", "GET /{code}"].map(str::to_owned).to_vec();
        let (stats, clock) = (Arc::new(Stats::new(1, routes, 0)), crate::clock::system());
        let config = crate::config::HostConfig::for_tests(flags);
        let limits = Limits::of(&config.process, &config.limits, &stats, &clock);
        (Arc::new(limits.expect("right settings")), stats)
    }

    /// No quota used yet.
    fn new(
        settings: LimitSettings,
        proxies: TrustedProxies,
        stats: &Arc<Stats>,
        clock: &Arc<dyn Clock>,
    ) -> Limits {
        let address = Quota::new(ClientKind::Address, settings.address);
        let account = Quota::new(ClientKind::Account, settings.account);
        let requests = settings.requests_per_connection;
        Limits {
            most_connections: settings.connections,
            connections: settings.connections_per_address.map(|most| Concurrent::new(most.into())),
            requests,
            looks_at_requests: requests.is_some()
                || address.limits_anything()
                || account.limits_anything(),
            address,
            account,
            keys: Keys::default(),
            proxies,
            stats: Arc::clone(stats),
            clock: Arc::clone(clock),
        }
    }

    /// Whether [`admit`](Self::admit) and [`admit_account`](Self::admit_account) do anything.
    pub(crate) fn looks_at_requests(&self) -> bool {
        self.looks_at_requests
    }

    /// The quota of a new connection; `None`: unlimited.
    pub(crate) fn of_connection(&self) -> Option<Arc<SharedBucket>> {
        self.requests.map(|_| Arc::default())
    }

    /// The quota keys of a request from this address, until the account is known.
    pub(crate) fn quota_keys(&self, client: Option<IpAddr>) -> QuotaKeys {
        QuotaKeys { address: self.keys.of_address(client), account: None }
    }

    /// Whether a request over this connection and from this address is within its limits. Check
    /// this first: requests refused for other reasons cost something, too. `now_us` is on the
    /// monotonic clock.
    ///
    /// # Errors
    /// 429 with `Retry-After`, counted.
    pub(crate) fn admit(
        &self,
        connection: Option<&SharedBucket>,
        quota_keys: QuotaKeys,
        now_us: u64,
    ) -> Result<(), Box<Problem>> {
        let now_ns = now_us.saturating_mul(1_000);
        if let (Some(rate), Some(bucket)) = (&self.requests, connection)
            && let Err(wait) = bucket.take(rate, now_ns)
        {
            let limit = rate.tokens();
            let detail = quota::too_fast(limit, "over this connection");
            let problem = problem::TOO_MANY_REQUESTS.because(detail).limit(limit);
            let problem = problem.retry(Retry::Seconds(wait.seconds()));
            return Err(
                self.refuse(Refusal { reason: RefusalReason::RequestOfConnection, problem })
            );
        }
        self.address.admit(quota_keys.address, now_ns).map_err(|refusal| self.refuse(refusal))
    }

    /// The same for the account, once the caller is known.
    ///
    /// # Errors
    /// 429 with `Retry-After`, counted.
    pub(crate) fn admit_account(
        &self,
        quota_keys: &mut QuotaKeys,
        holder: Holder<'_>,
        now_us: u64,
    ) -> Result<(), Box<Problem>> {
        if !self.account.limits_anything() {
            return Ok(());
        }
        let key = self.keys.of_holder(holder);
        quota_keys.account = Some(key);
        let admitted = self.account.admit(key, now_us.saturating_mul(1_000));
        admitted.map_err(|refusal| self.refuse(refusal))
    }

    /// Charges bytes of a received body or a sent answer.
    pub(crate) fn charge_bytes(&self, quota_keys: QuotaKeys, bytes: usize, now_us: u64) {
        self.each(quota_keys, |quota, key| quota.charge_bytes(key, bytes as u64, now_us * 1_000));
    }

    fn charge_reads(&self, quota_keys: QuotaKeys, us: u64, now_us: u64) {
        self.each(quota_keys, |quota, key| quota.charge_reads(key, us, now_us * 1_000));
    }

    fn put_back_reads(&self, quota_keys: QuotaKeys, us: u64) {
        self.each(quota_keys, |quota, key| quota.put_back_reads(key, us));
    }

    fn each(&self, quota_keys: QuotaKeys, mut charge: impl FnMut(&Quota, Key)) {
        charge(&self.address, quota_keys.address);
        if let Some(account) = quota_keys.account {
            charge(&self.account, account);
        }
    }

    /// Whether the owner of these keys may read.
    fn admit_read(&self, quota_keys: QuotaKeys) -> Result<(), Box<Problem>> {
        if !self.counts_reads() {
            return Ok(());
        }
        let now_ns = self.clock.monotonic_us().saturating_mul(1_000);
        let of_account = |key| self.account.admit_read(key, now_ns);
        self.address
            .admit_read(quota_keys.address, now_ns)
            .and_then(|()| quota_keys.account.map_or(Ok(()), of_account))
            .map_err(|refusal| self.refuse(refusal))
    }

    fn counts_reads(&self) -> bool {
        self.address.counts_reads() || self.account.counts_reads()
    }

    /// How long the owner of these keys stays in debt, in ns.
    fn debt_ns(&self, quota_keys: QuotaKeys) -> Option<u64> {
        let now_ns = self.clock.monotonic_us().saturating_mul(1_000);
        let of_account = quota_keys.account.and_then(|key| self.account.debt(key, now_ns));
        self.address.debt(quota_keys.address, now_ns).max(of_account).map(|wait| wait.0)
    }

    /// A slot for another subscription, released when dropped.
    fn subscribe(&self, quota_keys: QuotaKeys) -> Result<HeldByClient, Box<Problem>> {
        self.hold(quota_keys, Quota::subscribe)
    }

    /// A slot for another piece of long work, released when dropped.
    fn long_work(&self, quota_keys: QuotaKeys) -> Result<HeldByClient, Box<Problem>> {
        self.hold(quota_keys, Quota::long_work)
    }

    /// No memory yet, for the address and the account.
    fn no_memory(&self, quota_keys: QuotaKeys) -> [Option<ConcurrentShare>; 2] {
        let of_account = quota_keys.account.and_then(|key| self.account.no_memory(key));
        [self.address.no_memory(quota_keys.address), of_account]
    }

    /// Changes a client's memory use from `before` to `bytes`, or leaves it unchanged.
    fn set_memory(
        &self,
        held: &mut [Option<ConcurrentShare>; 2],
        before: u64,
        bytes: u64,
    ) -> Result<(), Box<Problem>> {
        let [of_address, of_account] = held;
        if let Some(held) = of_address {
            self.address.set_memory(held, bytes).map_err(|refusal| self.refuse(refusal))?;
        }
        let Some(held) = of_account else { return Ok(()) };
        self.account.set_memory(held, bytes).map_err(|refusal| {
            if let Some(of_address) = of_address {
                of_address.set(before);
            }
            self.refuse(refusal)
        })
    }

    fn hold(
        &self,
        quota_keys: QuotaKeys,
        of: fn(&Quota, Key) -> Result<Option<ConcurrentShare>, Refusal>,
    ) -> Result<HeldByClient, Box<Problem>> {
        let of_address = of(&self.address, quota_keys.address);
        let of_address = of_address.map_err(|refusal| self.refuse(refusal))?;
        let of_account = quota_keys.account.map_or(Ok(None), |key| of(&self.account, key));
        let of_account = of_account.map_err(|refusal| self.refuse(refusal))?;
        Ok(HeldByClient { _of_address: of_address, _of_account: of_account })
    }

    fn refuse(&self, refusal: Refusal) -> Box<Problem> {
        self.stats.refusals.count(refusal.reason);
        refusal.problem
    }
}

#[cfg(test)]
mod tests;
