//! Ids for events without one, derived from the file, so they are the same in every run.

use crate::import::imported_event::ImportedEvent;
use crate::wire::push_event;
use ring::digest::{Context, SHA1_FOR_LEGACY_USE_ONLY};
use wellspring_types::EventId;

/// The namespace (RFC 9562) of ids that an import gives: a UUID drawn once.
const NAMESPACE: [u8; 16] = [
    0x6d, 0x1f, 0x0c, 0x52, 0x9b, 0x8e, 0x4a, 0x77, 0xa3, 0x41, 0x2e, 0x0f, 0xd4, 0x95, 0x6c, 0x18,
];

/// The origin of event ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum IdScheme {
    /// UUID version 5 of the event, its number in the file, and the label
    Uuid5,
}

/// Gives ids.
pub(crate) struct EventIds {
    label: String,
    /// Number of the next event, from 0.
    next: u64,
}

impl EventIds {
    /// Ids of the first event and those after it.
    pub(crate) fn new(label: &str) -> EventIds {
        EventIds { label: label.to_owned(), next: 0 }
    }

    /// Gives the next event an id unless it has one.
    pub(crate) fn name(&mut self, event: &mut ImportedEvent) {
        let number = self.next;
        self.next += 1;
        if event.event.id.is_some() {
            return;
        }
        let mut text = Vec::with_capacity(event.event.data.len() + 128);
        push_event(&mut text, &event.counted());
        // Ids are no signatures: RFC 9562 prescribes SHA-1 for version 5.
        let mut hash = Context::new(&SHA1_FOR_LEGACY_USE_ONLY);
        hash.update(&NAMESPACE);
        hash.update(&(self.label.len() as u64).to_be_bytes());
        hash.update(self.label.as_bytes());
        hash.update(&number.to_be_bytes());
        hash.update(&text);
        let mut id = [0; 16];
        id.copy_from_slice(&hash.finish().as_ref()[..16]);
        id[6] = id[6] & 0x0f | 0x50;
        id[8] = id[8] & 0x3f | 0x80;
        event.event.id = Some(EventId(id));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wellspring_types::Event;

    #[test]
    fn ids_are_of_version_5_differ_and_stay() {
        let named = |label: &str| {
            let mut ids = EventIds::new(label);
            let mut events =
                [Event::json("T", &[], "1"), Event::json("T", &[], "1")].map(ImportedEvent::from);
            events.iter_mut().for_each(|event| ids.name(event));
            events.map(|event| event.event.id.unwrap().to_string())
        };
        let [first, second] = named("");
        assert_eq!(named(""), [first.clone(), second.clone()]);
        assert_ne!(first, second);
        assert_ne!(named("x")[0], first);
        assert_eq!(&first[14..15], "5");
        assert_eq!(first, "43114c93-c906-5ae2-b86e-5ca52ef8f9a5", "logs hold these: they stay");
        let given = EventId::parse("018f5c3e-9b2a-7c11-8d3e-0123456789ab");
        let mut event = ImportedEvent::from(Event { id: given, ..Event::json("T", &[], "1") });
        EventIds::new("").name(&mut event);
        assert_eq!(event.event.id, given);
    }
}
