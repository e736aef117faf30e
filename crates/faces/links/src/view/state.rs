//! The folded state of links. Readers use it while the one writer adds to it. Everything a reader
//! can reach was written before it became reachable; if it is overwritten meanwhile, the reader
//! notices and reads again (a sequence lock, with the pointer itself as the sequence).

use super::clicks::Clicks;
use super::event::{Key, SEALED};
use super::names::{Names, NamesEnd};
use super::places::Places;
use super::record::{Arena, Record, Status};
use super::url;
use super::{Code, Permutation, TargetRule, TargetVerdict};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use std::sync::{Arc, OnceLock};
use wellspring_host::view::contract::ChunkedArray;

/// Maximum number of links.
const MOST_LINKS: u64 = u32::MAX as u64 - 1;
/// How far a counter may be ahead of the number of links for its code to be stored under the
/// counter. A counter further ahead was made up, so its code is looked up by name.
const NUMBERS_AHEAD: u64 = 1 << 12;

/// Bits of a place in [`Slot::record`].
const PLACE_BITS: u32 = 44;

/// The order of automatic codes.
#[derive(Debug)]
pub(super) struct CodeOrder {
    pub(super) key: Key,
    pub(super) permutation: Permutation,
}

impl CodeOrder {
    pub(super) fn new(key: Key) -> CodeOrder {
        CodeOrder { key, permutation: Permutation::new(key) }
    }
}

/// A link's place in memory, by its index in creation order.
#[derive(Debug, Default)]
struct Slot {
    /// The place of its record plus one and, in the high bits, the number of changes modulo 2^20,
    /// so a reused place differs from its previous use. 0 while there is no record.
    record: AtomicU64,
    /// Empty until the link is clicked.
    clicks: OnceLock<Box<Clicks>>,
}

/// The readers' side of the view.
#[derive(Debug, Default)]
pub struct Folded {
    pub(super) opened: OnceLock<CodeOrder>,
    /// The next automatic code's counter.
    pub(super) next: AtomicU64,
    /// Number of links, including deleted ones.
    count: AtomicU64,
    slots: ChunkedArray<Slot>,
    arena: Arena,
    /// From a counter to its link's index plus one.
    numbers: ChunkedArray<AtomicU32>,
    names: Names,
}

/// The writer's side of the view.
#[derive(Debug, Default)]
pub struct Links {
    pub(super) folded: Arc<Folded>,
    places: Places,
    names_end: NamesEnd,
    /// For clicks.
    pub(super) recent: RecentLink,
    pub(super) targets: TargetRule,
}

/// Caches the last link found in one view, which makes repeated look-ups cheaper. A link's index
/// never changes, so the cache is never stale.
#[derive(Debug, Clone, Copy, Default)]
pub struct RecentLink(Option<(Code, u64)>);

/// The result of looking up a redirect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lookup {
    /// The target has been appended.
    Found,
    /// No such link ever existed.
    Unknown,
    /// It is disabled.
    Disabled,
    /// It has expired.
    Expired,
    /// It was deleted.
    Deleted,
    /// The settings refuse its target.
    Refused,
    /// It may be followed a number of times only, so each time is a command.
    Limited,
    /// Its target is sealed for a data subject, so it is opened first.
    Sealed,
}

impl Folded {
    /// Looks up the target of a code at a time (µs since 1970 UTC); if the link redirects, appends
    /// the value for a `Location` header. Takes no lock.
    pub fn lookup(&self, code: Code, now_us: u64, location: &mut Vec<u8>) -> Lookup {
        self.lookup_near(&mut RecentLink::default(), code, now_us, location)
    }

    /// As [`lookup`](Self::lookup), with a cache for repeated look-ups of the same link.
    pub fn lookup_near(
        &self,
        recent: &mut RecentLink,
        code: Code,
        now_us: u64,
        location: &mut Vec<u8>,
    ) -> Lookup {
        let begin = location.len();
        let looked = self.find_near(recent, code).and_then(|link| {
            self.look(link, |place| {
                location.truncate(begin);
                self.lookup_at(place, now_us, location)
            })
        });
        match looked {
            Some(StoredTarget::Plain) => Lookup::Found,
            Some(StoredTarget::Encoded(text)) => {
                // Folded URLs have been checked, and are text.
                std::str::from_utf8(&text).map_or(Lookup::Unknown, |text| {
                    url::push_location(text, location);
                    Lookup::Found
                })
            }
            Some(StoredTarget::Nowhere(lookup)) => lookup,
            None => Lookup::Unknown,
        }
    }

    fn lookup_at(&self, place: u64, now_us: u64, location: &mut Vec<u8>) -> StoredTarget {
        let glance = self.arena.glance(place);
        match glance.status {
            Status::Disabled => return StoredTarget::Nowhere(Lookup::Disabled),
            Status::Deleted => return StoredTarget::Nowhere(Lookup::Deleted),
            Status::Enabled => {}
        }
        if glance.expires_at_us.is_some_and(|expires_at_us| expires_at_us <= now_us) {
            return StoredTarget::Nowhere(Lookup::Expired);
        }
        if glance.verdict == TargetVerdict::Refused {
            return StoredTarget::Nowhere(Lookup::Refused);
        }
        if glance.is_limited {
            return StoredTarget::Nowhere(Lookup::Limited);
        }
        if glance.plain {
            self.arena.push_url(&glance, location);
            return StoredTarget::Plain;
        }
        let mut text = Vec::new();
        self.arena.push_url(&glance, &mut text);
        if text.starts_with(SEALED.as_bytes()) {
            return StoredTarget::Nowhere(Lookup::Sealed);
        }
        StoredTarget::Encoded(text)
    }

    /// Reads a link's record, repeatedly until it did not move during the read.
    fn look<T>(&self, link: u64, mut read: impl FnMut(u64) -> T) -> Option<T> {
        let slot = self.slots.get(link)?;
        loop {
            let seen = slot.record.load(Ordering::Acquire);
            let place = place_of(seen)?;
            let found = read(place);
            // Pairs with the fence in `replace`: a reader that has seen any part of another record
            // also sees that the pointer has moved.
            fence(Ordering::Acquire);
            if slot.record.load(Ordering::Relaxed) == seen {
                return Some(found);
            }
        }
    }

    /// Number of links, including deleted ones.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count.load(Ordering::Acquire)
    }

    /// The index of a code's link.
    pub(super) fn find(&self, code: Code) -> Option<u64> {
        let numbered = || {
            let number = self.opened.get()?.permutation.number(code)?;
            let link = self.numbers.get(number)?.load(Ordering::Acquire);
            u64::from(link).checked_sub(1)
        };
        numbered().or_else(|| self.names.get(code))
    }

    /// As [`find`](Self::find); caches the link found in `recent`.
    pub(super) fn find_near(&self, recent: &mut RecentLink, code: Code) -> Option<u64> {
        if let RecentLink(Some((known, link))) = *recent
            && known == code
        {
            return Some(link);
        }
        let link = self.find(code)?;
        *recent = RecentLink(Some((code, link)));
        Some(link)
    }

    /// The counter of a link's code, if the code is stored under its counter.
    pub(super) fn number_of(&self, opened: &CodeOrder, code: Code, link: u64) -> Option<u64> {
        let number = opened.permutation.number(code)?;
        let placed = self.numbers.get(number)?.load(Ordering::Acquire);
        (u64::from(placed) == link + 1).then_some(number)
    }

    /// The link with an index below [`count`](Self::count).
    pub(super) fn record(&self, link: u64) -> Option<Record> {
        self.look(link, |place| self.arena.read(place)).flatten()
    }

    /// A link's clicks, if it has any.
    pub(super) fn clicks(&self, link: u64) -> Option<&Clicks> {
        self.slots.get(link)?.clicks.get().map(|clicks| &**clicks)
    }

    /// A link's clicks, created if it has none yet.
    pub(super) fn clicks_or(&self, link: u64, none: impl FnOnce() -> Clicks) -> &Clicks {
        self.slots.make(link).clicks.get_or_init(|| Box::new(none()))
    }
}

impl Links {
    /// An empty view that judges targets by this rule.
    pub(super) fn with_rule(targets: TargetRule) -> Links {
        Links { targets, ..Links::default() }
    }

    /// Adds a new link; does nothing once there are [`MOST_LINKS`]. `number` is the counter of its
    /// code, if any.
    pub(super) fn insert(&mut self, record: &Record, number: Option<u64>) {
        let folded = &self.folded;
        let link = folded.count();
        if link >= MOST_LINKS {
            return;
        }
        // Needs no fence, unlike `replace`: no reader has read a first record's place.
        let place = self.places.take(record);
        record.write(&folded.arena, place);
        folded.slots.make(link).record.store(place + 1, Ordering::Release);
        match number.filter(|&number| self.numbers_fit(record.code, number, link)) {
            Some(number) => {
                folded.numbers.make(number).store(link as u32 + 1, Ordering::Release);
                // Only plausible counters: a made-up one must not use up the codes.
                folded.next.fetch_max(number + 1, Ordering::Release);
            }
            None => folded.names.insert(&mut self.names_end, record.code, link),
        }
        folded.count.store(link + 1, Ordering::Release);
    }

    /// Whether a code can be stored under its counter.
    fn numbers_fit(&self, code: Code, number: u64, links: u64) -> bool {
        let opened = self.folded.opened.get();
        number < links + NUMBERS_AHEAD
            && opened.is_some_and(|opened| opened.permutation.number(code) == Some(number))
    }

    /// Replaces a link's record.
    pub(super) fn replace(&mut self, link: u64, was: &Record, record: &Record) {
        let place = self.places.take(record);
        // Pairs with the fence in `look`.
        fence(Ordering::Release);
        record.write(&self.folded.arena, place);
        let pointer = &self.folded.slots.make(link).record;
        let before = pointer.load(Ordering::Relaxed);
        let times = (before >> PLACE_BITS).wrapping_add(1);
        pointer.store(times << PLACE_BITS | (place + 1), Ordering::Release);
        if let Some(left) = place_of(before) {
            self.places.leave(left, was);
        }
    }
}

/// The place in a [`Slot::record`], if there is one.
fn place_of(pointer: u64) -> Option<u64> {
    (pointer & ((1 << PLACE_BITS) - 1)).checked_sub(1)
}

/// The target read from a record.
enum StoredTarget {
    /// The location was appended.
    Plain,
    /// The URL must be encoded first.
    Encoded(Vec<u8>),
    /// There is no redirect.
    Nowhere(Lookup),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(changed: u64, url: &str) -> Record {
        Record {
            code: Code::parse(b"abc").unwrap(),
            status: Status::Enabled,
            created_at_us: 1,
            created: 1,
            changed,
            expires_at_us: None,
            max_clicks: None,
            url: url.into(),
            plain: true,
            verdict: TargetVerdict::Followed,
            tags: Vec::new(),
        }
    }

    #[test]
    fn changes_take_no_more_memory_than_links() {
        let mut links = Links::default();
        let mut was = record(1, "http://a.example/");
        links.insert(&was, None);
        for changed in 2..20_000 {
            let now = record(changed, &format!("http://a.example/{changed}"));
            links.replace(0, &was, &now);
            assert_eq!(links.folded.record(0).as_ref(), Some(&now));
            was = now;
        }
        assert!(links.places.end() < 100, "{} words", links.places.end());
    }
}
