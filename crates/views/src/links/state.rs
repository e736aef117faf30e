//! What is folded of links. Readers look at it while the one writer adds to it:
//! whatever a reader can reach was written before it could be reached, and if it is
//! written over meanwhile the reader notices and looks again (a sequence lock, with
//! the pointer itself as the sequence).

use super::clicks::Clicks;
use super::event::Key;
use super::names::{Names, NamesEnd};
use super::places::Places;
use super::record::{Arena, Record, Status};
use super::url;
use super::{Code, Permutation, TargetRule, TargetVerdict};
use crate::view::Chunked;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use std::sync::{Arc, OnceLock};

/// Most links.
const MOST_LINKS: u64 = u32::MAX as u64 - 1;
/// A counter may be so far ahead of the number of links, and its code still has the
/// counter's place: beyond it someone made the event up, and it is looked up by name.
const NUMBERS_AHEAD: u64 = 1 << 12;

/// Bits of a place in [`Slot::record`].
const PLACE_BITS: u32 = 44;

/// The order of automatic codes.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) key: Key,
    pub(super) permutation: Permutation,
}

impl Opened {
    pub(super) fn new(key: Key) -> Opened {
        Opened { key, permutation: Permutation::new(key) }
    }
}

/// A link's place in memory, by its index in the order of creation.
#[derive(Debug, Default)]
struct Slot {
    /// Where its record lies, plus one, and above that how often that has changed (modulo 2^20):
    /// the same place twice is not the same record. 0 while there is none.
    record: AtomicU64,
    /// Nothing until it is clicked.
    clicks: OnceLock<Box<Clicks>>,
}

/// The readers' side.
#[derive(Debug, Default)]
pub struct Folded {
    pub(super) opened: OnceLock<Opened>,
    /// The next automatic code's counter.
    pub(super) next: AtomicU64,
    /// Links, deleted ones included.
    count: AtomicU64,
    slots: Chunked<Slot>,
    arena: Arena,
    /// From a counter to its link's index plus one.
    numbers: Chunked<AtomicU32>,
    names: Names,
}

/// The writer's side: the view.
#[derive(Debug, Default)]
pub struct Links {
    pub(super) folded: Arc<Folded>,
    places: Places,
    names_end: NamesEnd,
    /// Of the clicks.
    pub(super) recent: Recent,
    pub(super) targets: TargetRule,
}

/// The link somebody looked for last, in one view: to look for it again is cheaper. A link never
/// changes its place among links, so this is never out of date.
#[derive(Debug, Clone, Copy, Default)]
pub struct Recent(Option<(Code, u64)>);

/// What a redirect comes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lookup {
    /// The target has been appended.
    Found,
    /// There never was such a link.
    Unknown,
    /// It is disabled.
    Disabled,
    /// Its time is over.
    Expired,
    /// It is deleted.
    Deleted,
    /// The settings refuse where it leads.
    Refused,
}

impl Folded {
    /// Where a code leads at a time (µs since 1970 UTC); appends the value for a
    /// `Location` header if anywhere. Takes no lock.
    pub fn lookup(&self, code: Code, now_us: u64, location: &mut Vec<u8>) -> Lookup {
        self.lookup_near(&mut Recent::default(), code, now_us, location)
    }

    /// As [`lookup`](Self::lookup), for somebody who looks for the same link again and again.
    pub fn lookup_near(
        &self,
        recent: &mut Recent,
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
            Some(Found::Plain) => Lookup::Found,
            Some(Found::Encoded(text)) => {
                // What is folded has been checked.
                let target = std::str::from_utf8(&text).ok().and_then(|t| url::check(t).ok());
                target.map_or(Lookup::Unknown, |target| {
                    target.push_location(location);
                    Lookup::Found
                })
            }
            Some(Found::Nowhere(lookup)) => lookup,
            None => Lookup::Unknown,
        }
    }

    fn lookup_at(&self, place: u64, now_us: u64, location: &mut Vec<u8>) -> Found {
        let glance = self.arena.glance(place);
        match glance.status {
            Status::Disabled => return Found::Nowhere(Lookup::Disabled),
            Status::Deleted => return Found::Nowhere(Lookup::Deleted),
            Status::Enabled => {}
        }
        if glance.expires_at_us.is_some_and(|expires_at_us| expires_at_us <= now_us) {
            return Found::Nowhere(Lookup::Expired);
        }
        if glance.verdict == TargetVerdict::Refused {
            return Found::Nowhere(Lookup::Refused);
        }
        if glance.plain {
            self.arena.push_url(&glance, location);
            return Found::Plain;
        }
        let mut text = Vec::new();
        self.arena.push_url(&glance, &mut text);
        Found::Encoded(text)
    }

    /// Reads at the place of a link's record, again and again until it stayed there meanwhile.
    fn look<T>(&self, link: u64, mut read: impl FnMut(u64) -> T) -> Option<T> {
        let slot = self.slots.get(link)?;
        loop {
            let seen = slot.record.load(Ordering::Acquire);
            let place = place_of(seen)?;
            let found = read(place);
            // Pairs with the fence in `replace`: who has read anything of another record sees
            // that the pointer has moved.
            fence(Ordering::Acquire);
            if slot.record.load(Ordering::Relaxed) == seen {
                return Some(found);
            }
        }
    }

    /// Links there are, deleted ones included.
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

    /// As [`find`](Self::find), and `recent` is the link found.
    pub(super) fn find_near(&self, recent: &mut Recent, code: Code) -> Option<u64> {
        if let Recent(Some((known, link))) = *recent
            && known == code
        {
            return Some(link);
        }
        let link = self.find(code)?;
        *recent = Recent(Some((code, link)));
        Some(link)
    }

    /// The counter behind a link's code, if the code has its counter's place.
    pub(super) fn number_of(&self, opened: &Opened, code: Code, link: u64) -> Option<u64> {
        let number = opened.permutation.number(code)?;
        let placed = self.numbers.get(number)?.load(Ordering::Acquire);
        (u64::from(placed) == link + 1).then_some(number)
    }

    /// The link of an index below [`count`](Self::count).
    pub(super) fn record(&self, link: u64) -> Option<Record> {
        self.look(link, |place| self.arena.read(place)).flatten()
    }

    /// A link's clicks, if it has any.
    pub(super) fn clicks(&self, link: u64) -> Option<&Clicks> {
        self.slots.get(link)?.clicks.get().map(|clicks| &**clicks)
    }

    /// A link's clicks, made if there are none yet.
    pub(super) fn clicks_or(&self, link: u64, none: impl FnOnce() -> Clicks) -> &Clicks {
        self.slots.make(link).clicks.get_or_init(|| Box::new(none()))
    }
}

impl Links {
    /// A view of no events that judges targets by this rule.
    pub(super) fn with_rule(targets: TargetRule) -> Links {
        Links { targets, ..Links::default() }
    }

    /// Adds a link that is not there; nothing once there are [`MOST_LINKS`]. `number` is the
    /// counter behind its code, if any.
    pub(super) fn insert(&mut self, record: &Record, number: Option<u64>) {
        let folded = &self.folded;
        let link = folded.count();
        if link >= MOST_LINKS {
            return;
        }
        // No fence as in `replace`: a first record gets a place that nobody has read.
        let place = self.places.take(record);
        record.write(&folded.arena, place);
        folded.slots.make(link).record.store(place + 1, Ordering::Release);
        match number.filter(|&number| self.numbers_fit(record.code, number, link)) {
            Some(number) => {
                folded.numbers.make(number).store(link as u32 + 1, Ordering::Release);
                // Only such numbers: one that was made up must not use up the codes.
                folded.next.fetch_max(number + 1, Ordering::Release);
            }
            None => folded.names.insert(&mut self.names_end, record.code, link),
        }
        folded.count.store(link + 1, Ordering::Release);
    }

    /// Whether a code has the place of its counter.
    fn numbers_fit(&self, code: Code, number: u64, links: u64) -> bool {
        let opened = self.folded.opened.get();
        number < links + NUMBERS_AHEAD
            && opened.is_some_and(|opened| opened.permutation.number(code) == Some(number))
    }

    /// Puts a changed link in the place of what it was.
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

/// What a place comes to.
enum Found {
    /// The location has been appended.
    Plain,
    /// This URL has to be encoded first.
    Encoded(Vec<u8>),
    /// No redirect.
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
