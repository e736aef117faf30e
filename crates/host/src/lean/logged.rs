//! The part of a request that the access log needs, kept only if requests are logged.

use super::loop_state::LoopState;
use super::seam::Guards;
use crate::access::Principal;
use std::net::IpAddr;
use std::sync::Arc;

/// A request's entry for the access log.
#[derive(Debug, Clone)]
pub(crate) struct AccessLogEntry {
    pub(crate) path: Box<str>,
    /// The client, taking trusted proxies into account.
    pub(crate) client: Option<IpAddr>,
    /// The admitted caller; `None` on a public route.
    pub(crate) principal: Option<Arc<Principal>>,
}

impl<G: Guards> LoopState<G> {
    /// The entry for the request with this head; `None` if requests are not logged.
    pub(super) fn logged(
        &self,
        head: &[u8],
        client: Option<IpAddr>,
        pass: Option<&G::Pass>,
    ) -> Option<Box<AccessLogEntry>> {
        if !self.tally.logs {
            return None;
        }
        let target = head.split(|&b| b == b' ').nth(1)?;
        let path = target.split(|&b| b == b'?').next()?;
        let path = String::from_utf8_lossy(path).into();
        let principal = pass.and_then(|pass| self.guards.principal(pass));
        Some(Box::new(AccessLogEntry { path, client, principal }))
    }
}
