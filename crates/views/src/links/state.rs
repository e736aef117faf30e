//! What is folded of links. Readers look at it while the one writer adds to it:
//! whatever a reader can reach was written before it could be reached.

use super::clicks::Clicks;
use super::event::Key;
use super::names::{Names, NamesEnd};
use super::record::{Arena, Record, Status};
use super::url;
use super::{Code, Permutation};
use crate::view::Chunked;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// Most links.
const MOST_LINKS: u64 = u32::MAX as u64 - 1;
/// A counter may be so far ahead of the number of links, and its code still has the
/// counter's place: beyond it someone made the event up, and it is looked up by name.
const NUMBERS_AHEAD: u64 = 1 << 12;

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
    /// Where its record lies, plus one.
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
    arena_end: u64,
    names_end: NamesEnd,
}

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
}

impl Folded {
    /// Where a code leads at a time (µs since 1970 UTC); appends the value for a
    /// `Location` header if anywhere. Takes no lock.
    pub fn lookup(&self, code: Code, now_us: u64, location: &mut Vec<u8>) -> Lookup {
        let Some(record) = self.find(code).and_then(|link| self.place(link)) else {
            return Lookup::Unknown;
        };
        let glance = self.arena.glance(record);
        match glance.status {
            Status::Disabled => return Lookup::Disabled,
            Status::Deleted => return Lookup::Deleted,
            Status::Enabled => {}
        }
        if glance.expires_at_us.is_some_and(|expires_at_us| expires_at_us <= now_us) {
            return Lookup::Expired;
        }
        if glance.plain {
            self.arena.push_url(&glance, location);
            return Lookup::Found;
        }
        let mut text = Vec::new();
        self.arena.push_url(&glance, &mut text);
        let target = std::str::from_utf8(&text).ok().and_then(|text| url::check(text).ok());
        // What is folded has been checked.
        target.map_or(Lookup::Unknown, |target| {
            target.push_location(location);
            Lookup::Found
        })
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

    /// The counter behind a link's code, if the code has its counter's place.
    pub(super) fn number_of(&self, opened: &Opened, code: Code, link: u64) -> Option<u64> {
        let number = opened.permutation.number(code)?;
        let placed = self.numbers.get(number)?.load(Ordering::Acquire);
        (u64::from(placed) == link + 1).then_some(number)
    }

    /// Where the record of a link lies.
    fn place(&self, link: u64) -> Option<u64> {
        self.slots.get(link)?.record.load(Ordering::Acquire).checked_sub(1)
    }

    /// The link of an index below [`count`](Self::count).
    pub(super) fn record(&self, link: u64) -> Option<Record> {
        self.arena.read(self.place(link)?)
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
    /// Adds a link that is not there. `number` is the counter behind its code, if any.
    pub(super) fn insert(&mut self, record: &Record, number: Option<u64>) {
        let folded = &self.folded;
        let link = folded.count();
        if link >= MOST_LINKS {
            return;
        }
        let place = self.arena_end;
        self.arena_end += record.write(&folded.arena, place);
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
    pub(super) fn replace(&mut self, link: u64, record: &Record) {
        let place = self.arena_end;
        self.arena_end += record.write(&self.folded.arena, place);
        self.folded.slots.make(link).record.store(place + 1, Ordering::Release);
    }
}
