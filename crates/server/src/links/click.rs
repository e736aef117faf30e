//! Recording clicks: an event of one tag into this thread's partition, for which a
//! redirect neither waits nor fails.

use super::visit::{Told, Visit};
use super::visitor::{Visitor, VisitorKey};
use crate::http::Shell;
use crate::http::ingest::with_intake;
use crate::ingest::Intake;
use std::cell::RefCell;
use std::net::IpAddr;
use std::sync::Arc;
use wellspring_log::batcher::EventTemplate;
use wellspring_types::Invalid;
use wellspring_views::links::Code;
use wellspring_views::links::event::{CLICKED, CLICKED_TAG};

/// A serving thread's clicks.
pub(crate) struct Clicks {
    /// The event but for its code and data.
    template: EventTemplate,
    /// The tag; the code is put behind its prefix.
    tag: String,
    data: Vec<u8>,
    /// The thread's copy of today's key.
    key: Option<VisitorKey>,
}

impl Clicks {
    /// Nothing recorded yet.
    ///
    /// # Errors
    /// Never: type and tag are ours.
    pub(crate) fn new() -> Result<Clicks, Invalid> {
        let tag = CLICKED_TAG.to_owned();
        let template = EventTemplate::new(CLICKED, &[&tag])?;
        Ok(Clicks { template, tag, data: Vec::new(), key: None })
    }

    /// Records that `visitor` followed a link at `now_us` (µs since 1970 UTC). What cannot be
    /// taken now (no room, a full device, a log that closes) is counted as shed.
    pub(crate) fn record(
        &mut self,
        intake: &mut Intake,
        code: Code,
        visit: &Visit,
        visitor: &mut Visitor,
        now_us: u64,
    ) {
        let shell = intake.shell();
        let key = match self.key {
            Some(key) if key.is_for(now_us) => key,
            _ => *self.key.insert(shell.visitor_keys.at(now_us)),
        };
        let forwarded = std::iter::once(visit.forwarded());
        let address = shell.link_settings.proxies.client(visitor.peer(), forwarded);
        let name = visitor.name(&key, address);
        self.data.clear();
        visit.push_data(&name, &mut self.data);
        self.tag.truncate(CLICKED_TAG.len());
        self.tag.push_str(&code.as_text());
        // A code is never too long for a tag.
        if self.template.set_tag(&self.tag).is_ok() {
            intake.offer(&self.template, &self.data);
        }
    }
}

thread_local! {
    /// The clicks of a serving thread of the general stack, made when first needed.
    static CLICKS: RefCell<Option<Clicks>> = const { RefCell::new(None) };
}

/// Records a click on a serving thread of the general stack. `peer` is the other end of the connection.
pub(crate) fn record_click(shell: &Arc<Shell>, code: Code, told: &Told<'_>, peer: Option<IpAddr>) {
    CLICKS.with_borrow_mut(|slot| {
        let Some(clicks) = slot.take().or_else(|| Clicks::new().ok()) else { return };
        let clicks = slot.insert(clicks);
        let mut visit = Visit::default();
        visit.read(told);
        let now_us = shell.clock.wall_us();
        with_intake(shell, |intake| {
            clicks.record(intake, code, &visit, &mut Visitor::at(peer), now_us);
        });
    });
}
