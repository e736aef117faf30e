//! Recording clicks on a serving thread of the general stack.

use super::LinkFace;
use crate::http::intake::with_intake;
use crate::links::{Clicks, Told, Visit, Visitor};
use std::cell::RefCell;
use std::net::IpAddr;
use std::sync::Arc;
use wellspring_views::links::Code;

thread_local! {
    /// The clicks of a serving thread of the general stack, made when first needed.
    static CLICKS: RefCell<Option<Clicks>> = const { RefCell::new(None) };
}

/// Records a click on a serving thread of the general stack. `peer` is the other end of the connection.
pub(crate) fn record_click(
    links: &Arc<LinkFace>,
    code: Code,
    told: &Told<'_>,
    peer: Option<IpAddr>,
) {
    CLICKS.with_borrow_mut(|slot| {
        let Some(clicks) = slot.take().or_else(|| links.clicks().ok()) else { return };
        let clicks = slot.insert(clicks);
        let mut visit = Visit::default();
        visit.read(told);
        let now_us = links.host.clock.wall_us();
        with_intake(&links.host, |intake| {
            clicks.record(intake, code, &visit, &mut Visitor::at(peer), now_us);
        });
    });
}
