//! A link in memory: consecutive words. A change writes the link to another place and moves one
//! pointer, so readers need no lock. The old place is reused; a reader that was still reading it
//! finds the pointer moved and reads again.
//!
//! ```text
//! word 0   code (60 bits), status (2), whether words 3 to 5 exist (1), whether the URL is plain (1)
//! word 1   created, µs since 1970 UTC
//! word 2   position of the creation (48 bits), length of the URL in bytes (15), whether the
//!          settings refuse its target (1)
//! word 3   expires, µs since 1970 UTC; all ones: never
//! word 4   position of the last change
//! word 5   length of the tags in bytes (16), maximum number of clicks (32; 0: any number)
//! then     the URL, the tags (each a length byte and its text), padded with zeros
//! ```

use super::{Code, TargetVerdict};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use wellspring_host::view::contract::ChunkedArray;
use wellspring_types::Position;

/// Bits of a position in a record: enough for any log.
const POSITION_BITS: u32 = 48;
/// Upper bound of positions.
pub(super) const MOST_POSITIONS: Position = 1 << POSITION_BITS;
const CODE_BITS: u32 = 60;
const MORE: u64 = 1 << 62;
const PLAIN: u64 = 1 << 63;
const NEVER: u64 = u64::MAX;
/// The bit of word 2 that says that the settings refuse the target.
const REFUSED: u64 = 1 << 63;
const URL_LENGTH_BITS: u32 = 15;
const TAG_LENGTH_BITS: u32 = 16;

/// The state of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Status {
    /// It redirects.
    Enabled,
    /// It does not redirect; it can be enabled again.
    Disabled,
    /// It is deleted permanently, and its code is never reused.
    Deleted,
}

impl Status {
    pub(super) fn number(self) -> u8 {
        self as u8
    }

    pub(super) fn from_number(number: u8) -> Option<Status> {
        [Status::Enabled, Status::Disabled, Status::Deleted].get(usize::from(number)).copied()
    }
}

/// A link without its clicks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) code: Code,
    pub(super) status: Status,
    pub(super) created_at_us: u64,
    pub(super) created: Position,
    pub(super) changed: Position,
    pub(super) expires_at_us: Option<u64>,
    /// How often it may be followed.
    pub(super) max_clicks: Option<u32>,
    pub(super) url: String,
    /// Whether the URL can be sent in a `Location` header unchanged.
    pub(super) plain: bool,
    /// Whether the settings allow the URL.
    pub(super) verdict: TargetVerdict,
    pub(super) tags: Vec<String>,
}

/// The part of a record that a redirect needs.
pub(super) struct RedirectFields {
    pub(super) code: u64,
    pub(super) status: Status,
    pub(super) plain: bool,
    pub(super) verdict: TargetVerdict,
    pub(super) expires_at_us: Option<u64>,
    pub(super) is_limited: bool,
    url_at: u64,
    url_bytes: usize,
}

/// The memory that holds records.
#[derive(Debug, Default)]
pub(super) struct Arena {
    words: ChunkedArray<AtomicU64>,
}

impl Record {
    /// Its size in words.
    pub(super) fn words(&self) -> u64 {
        let head = if self.has_more() { 6 } else { 3 };
        head + (self.url.len() + self.tag_bytes()).div_ceil(8) as u64
    }

    /// Length of the tags, each with its length byte.
    fn tag_bytes(&self) -> usize {
        self.tags.iter().map(|tag| 1 + tag.len()).sum()
    }

    fn has_more(&self) -> bool {
        self.expires_at_us.is_some()
            || self.changed != self.created
            || !self.tags.is_empty()
            || self.max_clicks.is_some()
    }

    /// Writes the record at `at`. The link refers to it only once the place is published; a reader
    /// of the place's previous content notices that.
    pub(super) fn write(&self, arena: &Arena, at: u64) {
        let more = self.has_more();
        let mut next = at;
        let mut put = |word: u64| {
            arena.words.make(next).store(word, Relaxed);
            next += 1;
        };
        let flags = if more { MORE } else { 0 } | if self.plain { PLAIN } else { 0 };
        put(self.code.number() | u64::from(self.status.number()) << CODE_BITS | flags);
        put(self.created_at_us);
        assert!(self.url.len() < 1 << URL_LENGTH_BITS, "a URL that was checked is shorter");
        let refused = if self.verdict == TargetVerdict::Refused { REFUSED } else { 0 };
        put(self.created | (self.url.len() as u64) << POSITION_BITS | refused);
        let tag_bytes = self.tag_bytes();
        if more {
            put(self.expires_at_us.unwrap_or(NEVER));
            put(self.changed);
            put(tag_bytes as u64 | u64::from(self.max_clicks.unwrap_or(0)) << TAG_LENGTH_BITS);
        }
        let mut text = Vec::with_capacity(self.url.len() + tag_bytes);
        text.extend_from_slice(self.url.as_bytes());
        for tag in &self.tags {
            text.push(tag.len() as u8);
            text.extend_from_slice(tag.as_bytes());
        }
        for bytes in text.chunks(8) {
            let mut word = [0; 8];
            word[..bytes.len()].copy_from_slice(bytes);
            put(u64::from_le_bytes(word));
        }
    }
}

impl Arena {
    fn word(&self, at: u64) -> u64 {
        self.words.get(at).map_or(0, |word| word.load(Relaxed))
    }

    /// Reads the part of a record that a redirect needs. If the place has been reused meanwhile,
    /// the result is garbage: the caller must check whether the pointer has moved.
    pub(super) fn glance(&self, at: u64) -> RedirectFields {
        let (first, third) = (self.word(at), self.word(at + 2));
        let more = first & MORE != 0;
        let expires = if more { self.word(at + 3) } else { NEVER };
        RedirectFields {
            code: first & ((1 << CODE_BITS) - 1),
            status: status_of(first),
            plain: first & PLAIN != 0,
            verdict: verdict_of(third),
            expires_at_us: (expires != NEVER).then_some(expires),
            is_limited: more && self.word(at + 5) >> TAG_LENGTH_BITS != 0,
            url_at: at + if more { 6 } else { 3 },
            url_bytes: ((third & !REFUSED) >> POSITION_BITS) as usize,
        }
    }

    /// Appends a record's URL.
    pub(super) fn push_url(&self, glance: &RedirectFields, out: &mut Vec<u8>) {
        self.push_bytes(glance.url_at, glance.url_bytes, out);
    }

    /// Reads the record at a place; garbage or `None` if the place has been reused meanwhile.
    pub(super) fn read(&self, at: u64) -> Option<Record> {
        let glance = self.glance(at);
        let more = glance.url_at == at + 6;
        let created = self.word(at + 2) & ((1 << POSITION_BITS) - 1);
        let changed = if more { self.word(at + 4) } else { created };
        // Bounded even if the words are no longer a record.
        let fifth = if more { self.word(at + 5) } else { 0 };
        let tag_bytes = usize::from(fifth as u16);
        let mut text = Vec::with_capacity(glance.url_bytes + tag_bytes + 8);
        self.push_bytes(glance.url_at, glance.url_bytes + tag_bytes, &mut text);
        let tags = text.split_off(glance.url_bytes);
        Some(Record {
            code: Code::from_number(glance.code)?,
            status: glance.status,
            created_at_us: self.word(at + 1),
            created,
            changed,
            expires_at_us: glance.expires_at_us,
            max_clicks: Some((fifth >> TAG_LENGTH_BITS) as u32).filter(|most| *most > 0),
            url: String::from_utf8(text).ok()?,
            plain: glance.plain,
            verdict: glance.verdict,
            tags: split_tags(&tags)?,
        })
    }

    /// Appends `bytes` bytes, starting with the word at `at`.
    fn push_bytes(&self, mut at: u64, bytes: usize, out: &mut Vec<u8>) {
        let end = out.len() + bytes;
        out.reserve(bytes + 8);
        while out.len() < end {
            let Some(run) = self.words.run(at) else { break };
            let wanted = (end - out.len()).div_ceil(8).min(run.len());
            for word in &run[..wanted] {
                out.extend_from_slice(&word.load(Relaxed).to_le_bytes());
            }
            at += wanted as u64;
        }
        out.truncate(end);
    }
}

fn status_of(first: u64) -> Status {
    Status::from_number((first >> CODE_BITS & 3) as u8).unwrap_or(Status::Deleted)
}

fn verdict_of(third: u64) -> TargetVerdict {
    if third & REFUSED == 0 { TargetVerdict::Followed } else { TargetVerdict::Refused }
}

fn split_tags(mut bytes: &[u8]) -> Option<Vec<String>> {
    let mut tags = Vec::new();
    while let Some((&length, rest)) = bytes.split_first() {
        let (tag, rest) = rest.split_at_checked(length.into())?;
        tags.push(std::str::from_utf8(tag).ok()?.to_owned());
        bytes = rest;
    }
    Some(tags)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        let arena = Arena::default();
        let plain = Record {
            code: Code::parse(b"Yci").unwrap(),
            status: Status::Enabled,
            created_at_us: 1_795_225_406_952_770,
            created: 7,
            changed: 7,
            expires_at_us: None,
            max_clicks: None,
            url: "http://example.com/test".into(),
            plain: true,
            verdict: TargetVerdict::Followed,
            tags: Vec::new(),
        };
        let full = Record {
            code: Code::parse(b"zzzzzzzzzz").unwrap(),
            status: Status::Deleted,
            changed: 9,
            expires_at_us: Some(5),
            max_clicks: Some(u32::MAX),
            url: format!("https://example.com/{}", "ü".repeat(900)),
            plain: false,
            verdict: TargetVerdict::Refused,
            tags: vec!["a".into(), "é:1".into()],
            ..plain.clone()
        };
        let (mut at, mut places) = (4_090, Vec::new());
        for record in [&plain, &full, &plain] {
            places.push(at);
            record.write(&arena, at);
            at += record.words();
        }
        for (at, record) in places.into_iter().zip([&plain, &full, &plain]) {
            assert_eq!(arena.read(at).as_ref(), Some(record));
            let (glance, mut url) = (arena.glance(at), Vec::new());
            arena.push_url(&glance, &mut url);
            assert_eq!(url, record.url.as_bytes());
        }
        // Three words and the URL: the space that a link takes.
        assert_eq!(plain.words(), 6);
    }
}
