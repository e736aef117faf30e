//! Recording clicks: an event of one tag into this thread's partition, for which a
//! redirect neither waits nor fails.

use super::visit::Visit;
use super::visitor::{Visitor, VisitorKey, VisitorKeys};
use crate::ingest::Intake;
use crate::limits::Limits;
use std::sync::Arc;
use wellspring_log::batcher::EventTemplate;
use wellspring_types::Invalid;
use wellspring_views::links::Code;
use wellspring_views::links::event::{CLICKED, CLICKED_TAG};

/// A serving thread's clicks.
pub(crate) struct Clicks {
    /// The keys under which visitors are counted.
    keys: Arc<VisitorKeys>,
    /// Knows the proxies that stand before visitors.
    limits: Arc<Limits>,
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
    pub(crate) fn new(keys: Arc<VisitorKeys>, limits: Arc<Limits>) -> Result<Clicks, Invalid> {
        let tag = CLICKED_TAG.to_owned();
        let template = EventTemplate::new(CLICKED, &[&tag])?;
        Ok(Clicks { keys, limits, template, tag, data: Vec::new(), key: None })
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
        let key = match self.key {
            Some(key) if self.keys.is_current(&key, now_us) => key,
            _ => *self.key.insert(self.keys.at(now_us)),
        };
        let forwarded = std::iter::once(visit.forwarded());
        let address = self.limits.proxies().client(visitor.peer(), forwarded);
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
