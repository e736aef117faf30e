//! Recording clicks: an event with one tag into this thread's partition. A redirect neither waits
//! for it nor fails because of it.

use super::visit::Visit;
use super::visitor::{VisitorKey, VisitorKeys, VisitorNames};
use crate::view::Code;
use crate::view::event::{CLICKED, CLICKED_TAG};
use std::net::IpAddr;
use std::sync::Arc;
use wellspring_host::ingest::Intake;
use wellspring_log::batcher::EventTemplate;
use wellspring_types::Invalid;

/// A serving thread's clicks.
#[derive(Clone)]
pub(crate) struct Clicks {
    /// The keys that hash visitors.
    keys: Arc<VisitorKeys>,
    /// The event without its code and data.
    template: EventTemplate,
    /// The tag; the code follows its prefix.
    tag: String,
    data: Vec<u8>,
    /// The thread's copy of today's key.
    key: Option<VisitorKey>,
    /// Names hashed with it.
    names: VisitorNames,
}

impl Clicks {
    /// Nothing recorded yet.
    ///
    /// # Errors
    /// Never: type and tag are valid.
    pub(crate) fn new(keys: Arc<VisitorKeys>) -> Result<Clicks, Invalid> {
        let tag = CLICKED_TAG.to_owned();
        let template = EventTemplate::new(CLICKED, &[&tag])?;
        let names = VisitorNames::default();
        Ok(Clicks { keys, template, tag, data: Vec::new(), key: None, names })
    }

    /// Records that the client at an address followed a link at `now_us` (µs since 1970 UTC). A
    /// click that cannot be stored now (no memory, a full device, a log being closed) is counted as
    /// shed.
    pub(crate) fn record(
        &mut self,
        intake: &mut Intake,
        code: Code,
        visit: &Visit,
        client: Option<IpAddr>,
        now_us: u64,
    ) {
        let key = match self.key {
            Some(key) if self.keys.is_current(&key, now_us) => key,
            _ => *self.key.insert(self.keys.at(now_us)),
        };
        let name = self.names.of(&key, client);
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
