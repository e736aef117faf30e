//! Events that differ only in their data, encoded directly into a partition.

use super::ring::Reservation;
use wellspring_format::record::{FLAG_BINARY, FLAG_SEALED, HEADER_BYTES};
use wellspring_format::sealed_parts::PART_OVERHEAD_BYTES;
use wellspring_types::valid::check_tags;
use wellspring_types::{DataKind, EventRef, Invalid, Reason, limits};

/// Records up to this size are assembled before they are copied.
const SMALL_BYTES: usize = 256;

/// Type and tags, validated and encoded once for many events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventTemplate {
    type_bytes: u8,
    tags: u8,
    /// Type and tags as in a record.
    terms: Vec<u8>,
    /// Whether the data of its events begins with [sealed
    /// parts](wellspring_format::sealed_parts).
    is_sealed: bool,
}

impl EventTemplate {
    /// A template of events with this type and these tags.
    ///
    /// # Errors
    /// [`Invalid`], naming `type` or `tags[n]`.
    pub fn new<T: AsRef<str>>(event_type: &str, tags: &[T]) -> Result<EventTemplate, Invalid> {
        let event =
            EventRef { event_type, tags, data: b"", kind: DataKind::Json, id: None, metadata: &[] };
        event.check()?;
        let mut terms = event_type.as_bytes().to_vec();
        for tag in tags {
            let tag = tag.as_ref();
            terms.push(tag.len() as u8);
            terms.extend_from_slice(tag.as_bytes());
        }
        let (type_bytes, tags) = (event_type.len() as u8, tags.len() as u8);
        Ok(EventTemplate { type_bytes, tags, terms, is_sealed: false })
    }

    /// The same for events whose data begins with one sealed part.
    #[must_use]
    pub fn sealed(self) -> EventTemplate {
        EventTemplate { is_sealed: true, ..self }
    }

    /// Replaces all tags by `tag`. Allocates only for a tag longer than any before.
    ///
    /// # Errors
    /// [`Invalid`], naming `tags[0]`; the template is unchanged.
    pub fn set_tag(&mut self, tag: &str) -> Result<(), Invalid> {
        check_tags(&[tag])?;
        self.terms.truncate(self.type_bytes.into());
        self.terms.push(tag.len() as u8);
        self.terms.extend_from_slice(tag.as_bytes());
        self.tags = 1;
        Ok(())
    }

    /// Size of the record of an event with this data: the space it takes in a partition.
    #[inline]
    #[must_use]
    pub fn frame_bytes(&self, data: &[u8]) -> usize {
        HEADER_BYTES + self.terms.len() + data.len()
    }

    #[inline]
    pub(super) fn check(&self, data: &[u8]) -> Result<(), Invalid> {
        let sealing = if self.is_sealed { PART_OVERHEAD_BYTES + SMALL_BYTES } else { 0 };
        if data.len() <= limits::MAX_DATA_BYTES + sealing {
            return Ok(());
        }
        let reason = Reason::TooLong { bytes: data.len(), limit: limits::MAX_DATA_BYTES };
        Err(Invalid { field: "data".into(), reason })
    }

    /// Writes the record as `record::encode` would, without position and time.
    #[inline]
    pub(super) fn put(&self, room: &mut Reservation<'_>, kind: DataKind, data: &[u8]) {
        let len = self.frame_bytes(data);
        let mut small = [0u8; SMALL_BYTES];
        let header = &mut small[..HEADER_BYTES];
        header[0..4].copy_from_slice(&(len as u32).to_le_bytes());
        header[24] = self.type_bytes;
        header[25] = self.tags;
        header[27] = if kind == DataKind::Binary { FLAG_BINARY } else { 0 }
            | if self.is_sealed { FLAG_SEALED } else { 0 };
        header[28..32].copy_from_slice(&(data.len() as u32).to_le_bytes());
        let terms_end = HEADER_BYTES + self.terms.len();
        if len <= SMALL_BYTES {
            // Assembled here first: one checksum and one copy cost less than three of each.
            small[HEADER_BYTES..terms_end].copy_from_slice(&self.terms);
            small[terms_end..len].copy_from_slice(data);
            let crc = crc32c::crc32c(&small[24..len]);
            small[4..8].copy_from_slice(&crc.to_le_bytes());
            room.put(&small[..len]);
            return;
        }
        let crc = crc32c::crc32c(&small[24..HEADER_BYTES]);
        let crc = crc32c::crc32c_append(crc, &self.terms);
        let crc = crc32c::crc32c_append(crc, data);
        small[4..8].copy_from_slice(&crc.to_le_bytes());
        room.put(&small[..HEADER_BYTES]);
        room.put(&self.terms);
        room.put(data);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_with_another_tag_is_the_one_made_with_it() {
        let made = |tags: &[&str]| EventTemplate::new("Clicked", tags).unwrap();
        for before in [made(&[]), made(&["clicked:abc"]), made(&["a", "b"])] {
            let mut template = before.clone();
            for tag in ["clicked:x", "clicked:0123456789", "y"] {
                template.set_tag(tag).unwrap();
                assert_eq!(template, made(&[tag]));
            }
            let kept = template.clone();
            for bad in ["", "line\nbreak", &"t".repeat(256)] {
                assert_eq!(template.set_tag(bad).unwrap_err().field, "tags[0]");
                assert_eq!(template, kept);
            }
        }
    }
}
