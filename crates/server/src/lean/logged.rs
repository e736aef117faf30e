//! What the access log says of a request besides its answer. Only if requests are logged.

use super::desk::Desk;
use super::seam::Serves;
use super::session::Session;
use std::net::IpAddr;

/// Who asks, from where.
#[derive(Debug, Clone, Default)]
pub(crate) struct Who {
    /// The client when trusted proxies are believed.
    pub(crate) client: Option<IpAddr>,
    /// The account, or whom another issuer names.
    pub(crate) account: Option<Box<str>>,
}

/// A request as it is logged.
#[derive(Debug, Clone)]
pub(crate) struct Logged {
    pub(crate) path: Box<str>,
    pub(crate) who: Who,
}

impl<I: Serves> Session<I> {
    /// What is to be logged of the request with this head, if requests are.
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
        Some(Box::new(Logged { path, who: desk.serving.who(head, self.visitor.peer(), pass) }))
    }
}
