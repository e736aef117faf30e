//! What the connection loop needs of authorization and limits. A seam, so that all of HTTP can be
//! tested at every split without a server.

use crate::access::{Pass, Principal, credentials};
use crate::http::Host;
use crate::identity::Holder;
use crate::identity::Role;
use crate::limits::{Payer, QuotaKeys, SharedBucket};
use crate::names::SYSTEM_LOG;
use crate::wire::problem::Problem;
use std::net::IpAddr;
use std::sync::Arc;

/// The headers of a request that identify its sender.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Credentials<'a> {
    /// `Authorization`.
    pub(crate) authorization: Option<&'a [u8]>,
    /// `X-API-Key`.
    pub(crate) api_key: Option<&'a [u8]>,
    /// Whether there is an `Origin`: a page in a browser sent it.
    pub(crate) of_a_page: bool,
}

/// A request to be counted.
pub(crate) struct CountedRequest<'a, Pass> {
    /// Its client, taking trusted proxies into account.
    pub(crate) client: Option<IpAddr>,
    /// The quota of its connection.
    pub(crate) connection: &'a SharedBucket,
    /// Its caller, if known.
    pub(crate) pass: Option<&'a Pass>,
    /// Monotonic time of this turn of the loop, µs.
    pub(crate) now_us: u64,
}

/// Authorization and limits of one thread.
pub(crate) trait Guards {
    /// Proof of authorization.
    type Pass;

    /// Whether the owner of these credentials has a role on a log, or on everything. `None`: the
    /// check is slow or access is denied; the other stack answers.
    fn admit(
        &mut self,
        role: Role,
        log: Option<&str>,
        credentials: &Credentials<'_>,
    ) -> Option<Self::Pass>;
    /// Whether requests are answered under this name. If not, the other stack answers.
    fn answers_under(&self, host: &[u8]) -> bool;
    /// Whether the state for which a pass was given still holds.
    fn holds(&self, pass: &Self::Pass) -> bool;
    /// The owner of a pass, for the access log.
    fn principal(&self, pass: &Self::Pass) -> Option<Arc<Principal>>;
    /// The client of a request: the peer, or the one that a trusted proxy names. `forwarded` holds
    /// all values of `X-Forwarded-For`, joined.
    fn client(&self, peer: Option<IpAddr>, forwarded: &[u8]) -> Option<IpAddr>;
    /// Whether requests and bytes are limited.
    fn counts_requests(&self) -> bool;
    /// Takes a request from the quotas of its connection, address and account; returns who pays for
    /// its body in any case.
    fn count(
        &self,
        request: CountedRequest<'_, Self::Pass>,
    ) -> (QuotaKeys, Result<(), Box<Problem>>);
    /// Charges bytes of a body.
    fn charge(&self, quota_keys: QuotaKeys, bytes: usize, now_us: u64);
    /// The payer of a counted request.
    fn payer(&self, quota_keys: QuotaKeys) -> Payer;
}

/// The real server.
pub(crate) struct ServerGuards {
    pub(crate) host: Arc<Host>,
}

impl Guards for ServerGuards {
    type Pass = Pass;

    fn admit(
        &mut self,
        role: Role,
        log: Option<&str>,
        credentials: &Credentials<'_>,
    ) -> Option<Pass> {
        // Only the server writes there; and the audit exists once, in the other stack.
        let is_audited = role > Role::Writer || self.host.audit.keeps_writes();
        if role > Role::Reader && (log == Some(SYSTEM_LOG) || is_audited) {
            return None;
        }
        let Credentials { authorization, api_key, of_a_page } = *credentials;
        let by_password = authorization.is_some_and(credentials::is_basic);
        if of_a_page
            && (by_password || self.host.access.cors().is_some() || self.host.access.is_open())
        {
            return None;
        }
        self.host.access.pass(authorization, api_key, role, log)
    }

    fn answers_under(&self, host: &[u8]) -> bool {
        self.host.access.answers_under(host)
    }

    fn holds(&self, pass: &Pass) -> bool {
        self.host.access.holds(pass)
    }

    fn principal(&self, pass: &Pass) -> Option<Arc<Principal>> {
        Some(Arc::clone(&pass.principal))
    }

    fn client(&self, peer: Option<IpAddr>, forwarded: &[u8]) -> Option<IpAddr> {
        self.host.limits.proxies().client(peer, std::iter::once(forwarded))
    }

    fn counts_requests(&self) -> bool {
        self.host.limits.looks_at_requests()
    }

    fn count(&self, request: CountedRequest<'_, Pass>) -> (QuotaKeys, Result<(), Box<Problem>>) {
        let holder = request.pass.map(|pass| pass.principal.holder());
        let holder = holder.filter(|holder| *holder != Holder::AnyCaller);
        super::limited::count(&self.host.limits, &request, holder)
    }

    fn charge(&self, quota_keys: QuotaKeys, bytes: usize, now_us: u64) {
        self.host.limits.charge_bytes(quota_keys, bytes, now_us);
    }

    fn payer(&self, quota_keys: QuotaKeys) -> Payer {
        Payer::new(&self.host.limits, quota_keys)
    }
}
