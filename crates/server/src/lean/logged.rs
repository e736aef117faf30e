//! The part of a request that the access log needs, taken down only if requests are logged.

use super::desk::Desk;
use super::seam::Serves;
use super::session::Session;
use crate::access::Principal;
use std::net::IpAddr;
use std::sync::Arc;

/// The origin of a request.
#[derive(Debug, Clone, Default)]
pub(crate) struct Origin {
    /// The client when trusted proxies are believed.
    pub(crate) client: Option<IpAddr>,
    /// The admitted caller; `None` on a public route.
    pub(crate) principal: Option<Arc<Principal>>,
}

/// A request as it is logged.
#[derive(Debug, Clone)]
pub(crate) struct Logged {
    pub(crate) path: Box<str>,
    pub(crate) origin: Origin,
}

impl<I: Serves> Session<I> {
    /// What the access log needs of the request with this head; `None` if requests are not logged.
    pub(super) fn logged(
        &self,
        desk: &Desk<I>,
        head: &[u8],
        pass: Option<&I::Pass>,
    ) -> Option<Box<Logged>> {
        if !desk.tally.logs {
            return None;
        }
        let target = head.split(|&b| b == b' ').nth(1)?;
        let path = target.split(|&b| b == b'?').next()?;
        let path = String::from_utf8_lossy(path).into();
        Some(Box::new(Logged {
            path,
            origin: desk.serving.origin(head, self.visitor.peer(), pass),
        }))
    }
}
