//! An event of an input: the fields of an append, and the time at which another log recorded it.

use crate::wire::{push_event, push_string};
use wellspring_types::{Event, only_tag_of};

/// Name of the member, and of the metadata entry, for the time of recording.
pub(crate) const RECORDED_AT: &str = "recorded_at";

/// An event of an input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ImportedEvent {
    pub(crate) event: Event,
    /// When another log recorded it, as the input has it.
    pub(crate) recorded_at: Option<String>,
    /// Its members about data subjects, as the input has them: each behind a comma.
    pub(crate) subjects: String,
    /// What they say.
    pub(crate) personal: PersonalData,
}

/// What an input says about the personal data of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum PersonalData {
    /// Nothing.
    None,
    /// It names data subjects, whose data is to be sealed.
    Named,
    /// It was erased.
    Erased,
    /// The export lacks it.
    Missing,
}

impl From<Event> for ImportedEvent {
    fn from(event: Event) -> ImportedEvent {
        ImportedEvent {
            event,
            recorded_at: None,
            subjects: String::new(),
            personal: PersonalData::None,
        }
    }
}

impl ImportedEvent {
    /// The event as it counts for the server: with the time among its metadata, unless these have
    /// an entry of that name.
    pub(crate) fn counted(&self) -> Event {
        let mut event = self.event.clone();
        if let Some(time) = &self.recorded_at
            && !event.metadata.iter().any(|(name, _)| name == RECORDED_AT)
        {
            event.metadata.push((RECORDED_AT.to_owned(), time.clone()));
        }
        event
    }

    /// Whether the server seals it, if it takes tags with this key for data subjects.
    pub(crate) fn is_sealed(&self, tag_key: Option<&str>) -> bool {
        match self.personal {
            PersonalData::Named => true,
            PersonalData::None => {
                tag_key.is_some_and(|key| only_tag_of(&self.event.tags, key).is_some())
            }
            PersonalData::Erased | PersonalData::Missing => false,
        }
    }

    /// Appends the line of it that `POST …/import` takes, without a line end.
    pub(crate) fn push(&self, out: &mut Vec<u8>) {
        let start = out.len();
        push_event(out, &self.event);
        // The closing brace of the object.
        out.pop();
        out.extend_from_slice(self.subjects.as_bytes());
        if let Some(time) = &self.recorded_at {
            out.extend_from_slice(b",\"recorded_at\":");
            push_string(out, time);
        }
        out.push(b'}');
        // A payload as it was written may stand on several lines; to JSON a line's end is white
        // space.
        for byte in &mut out[start..] {
            if matches!(*byte, b'\n' | b'\r') {
                *byte = b' ';
            }
        }
    }
}
